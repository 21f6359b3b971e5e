"""Results that are run again."""

from __future__ import annotations

import json
import os
import shutil
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import whyloss as wl
from whyloss.verifying import verify

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ended


@pytest.fixture
def swept(small: Path, tmp_path: Path) -> Path:
    """Points of different columns: a shadow listens at one of them only."""
    sweep = wl.Sweep(wl.Scenario.load(small), runs=3).variants(
        "variant", {"one": {}, "two": {"flow[0].shadows": ["veno"]}}
    )
    return sweep.vary("path.rate", ["500 kbps", "1 Mbps"]).run().save(tmp_path / "swept")


def test_the_same_rows_come_out_of_a_sweep_and_of_a_run(swept: Path, small: Path, tmp_path: Path) -> None:
    sample, everything = verify(swept, runs=4), verify(swept, runs=None)
    assert (sample.runs, sample.again, sample.differences) == (12, 4, ())
    assert (everything.again, everything.differences) == (12, ())
    single = wl.Scenario.load(small).run(7).save(tmp_path / "single")
    assert verify(single).same


def test_a_release_build_gives_the_rows_of_a_debug_build() -> None:
    root = Path(__file__).parent.parent
    kept = (root / "crates/lab/tests/suite/snapshots/suite__examples__rows.snap").read_text(encoding="utf-8")
    lines = kept.split("\n---\n")[1].splitlines()
    assert len(lines) > 150
    for name, said in groupby(lines, key=lambda line: line.split()[0]):
        file, _, scheme = name.partition(":")
        scenario = wl.Scenario.load(root / "examples" / file).replace({"scenario.duration": "3 s"})
        results = (scenario.replace({"flow[0].scheme": scheme}) if scheme else scenario).run()
        found = [f"{name} {table.name} {len(table)} {table.digest()[:16]}" for table in results if len(table)]
        assert found == list(said)


def test_threads_stores_and_files_change_no_digest(small: Path, tmp_path: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small), runs=4)
    one, two = sweep.run(threads=1), sweep.run(threads=2, store=tmp_path / "store")
    assert one.digests() == two.digests() == sweep.run(store=tmp_path / "store").digests()
    folder = one.save(tmp_path / "out")
    from whyloss import _native

    assert {name: _native.file_digest(folder / f"{name}.parquet") for name in one.names} == one.digests()
    assert one.digests()["flows"] != sweep.with_runs(3).run().digests()["flows"]


def test_a_row_that_has_changed_is_found_by_its_digest_and_by_its_run(swept: Path) -> None:
    path = swept / "flows.parquet"
    rows = pl.read_parquet(path)
    rows.with_columns(
        pl.when(pl.col("run") == 1).then(0).otherwise("retransmissions").cast(pl.UInt64).alias("retransmissions")
    ).write_parquet(path, compression="snappy")
    found = verify(swept, runs=11).differences
    assert found[0] == "flows: its rows are not those that were written"
    assert any(said.startswith("flows: point ") and ", run 1: other rows came out" in said for said in found)


def test_a_table_of_other_columns_is_different(swept: Path) -> None:
    shutil.copy(swept / "losses.parquet", swept / "flows.parquet")
    found = verify(swept, runs=2).differences
    assert found[0] == "flows: its rows are not those that were written"
    assert found[1:] == ("flows: its columns are not those of that table",) * 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: 5, "found 5; allowed: an object with whyloss, engine, inputs, rows, recipe"),
        (lambda said: {**said, "rows": {}}, "rows.runs: found nothing; allowed: text"),
        (lambda said: {**said, "rows": {**said["rows"], "flows": None}}, "rows.flows: found null; allowed: text"),
        (lambda said: {**said, "rows": {**said["rows"], "more": "00"}}, 'rows: found "more"; allowed: runs, '),
        (lambda said: {**said, "rows": None}, "rows: found null; allowed: an object"),
        (lambda said: {**said, "rows": 5}, "rows: found 5; allowed: an object"),
        (lambda said: {**said, "engine": 5}, "engine: found 5; allowed: text"),
        (lambda said: {**said, "inputs": [1]}, "inputs: found [1]; allowed: text"),
        (lambda said: {**said, "recipe": 5}, "recipe: found 5; allowed: an object"),
        (lambda said: {**said, "recipe": {**said["recipe"], "only": 5}}, "recipe: invalid type: integer `5`"),
    ],
)
@pytest.mark.parametrize("runs", [2, None])
def test_a_folder_that_does_not_say_all_is_told_what_is_missing(
    swept: Path, change: Callable[[dict[str, Any]], object], said: str, runs: int | None
) -> None:
    path = swept / "inputs.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(wl.InputError) as told:
        verify(swept, runs)
    assert str(told.value).startswith(f"{path}: {said}")


def test_a_folder_that_tables_could_not_be_read_from_is_refused_first(
    small: Path, tmp_path: Path, whyloss: Callable[..., Ended]
) -> None:
    place = os.fsdecode(os.fsencode(tmp_path) + b"/n\xff")
    sweep = wl.Sweep(wl.Scenario.load(small), runs=2)
    for refused in (
        lambda: verify(place),
        lambda: sweep.save(place),
        lambda: sweep.until("5 %").known(folder=place),
        lambda: wl.Scenario.load(small).save(place),
        lambda: wl.Results.load(place),
    ):
        with pytest.raises(wl.InputError, match=r"n\\udcff: found a name that is not UTF-8"):
            refused()
    assert not Path(place).exists()
    told = whyloss("verify", place)
    assert (told.status, "found a name that is not UTF-8" in told.err) == (2, True)


def test_the_command_says_whether_they_are_the_same(swept: Path, tmp_path: Path, whyloss: Callable[..., Ended]) -> None:
    same = whyloss("verify", swept, "--runs", "3", "--json")
    assert (same.status, same.json["same"], same.json["again"]) == (0, True, 3)
    said = json.loads((swept / "inputs.json").read_text())
    said["recipe"]["sweep"]["scenario"]["scenario"]["seed"] = 4
    (swept / "inputs.json").write_text(json.dumps(said))
    other = whyloss("verify", swept)
    assert (other.status, "NOT the same" in other.out) == (1, True)
    nothing = whyloss("verify", tmp_path / "nothing")
    assert (nothing.status, "there is no such file" in nothing.err) == (2, True)
