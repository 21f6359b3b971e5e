"""Scenarios and results from Python."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import whyloss as wl
from whyloss import format as fmt

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parent.parent


def test_the_python_types_are_those_of_the_engine() -> None:
    generator = _module(ROOT / "tools" / "models.py")
    committed = (ROOT / "python" / "whyloss" / "format.py").read_text()
    assert generator.generate() == committed, "run `make generated`"


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def test_a_scenario_written_in_python_equals_its_file(small: Path) -> None:
    document = fmt.Document(
        scenario=fmt.Header(name="small", seed=3),
        path=fmt.Path(
            rate="1 Mbps",
            delay="10 ms",
            queue="20 pkt",
            forward=fmt.Direction(channel=fmt.Channel(loss="2 %")),
        ),
        flow=[fmt.Flow(size="200 kB", scheme="newreno", shadows=["reported"])],
    )
    loaded = wl.Scenario.load(small).replace({"scenario.name": "small"})
    assert wl.Scenario(document) == loaded
    assert wl.Scenario(loaded.to_dict()) == loaded


def test_the_same_scenario_and_run_give_the_same_results(small: Path) -> None:
    scenario = wl.Scenario.load(small)
    first, again, other = scenario.run(0), scenario.run(0), scenario.run(1)
    assert first.losses.to_polars().equals(again.losses.to_polars())
    assert not first.losses.to_polars().equals(other.losses.to_polars())


def test_a_transfer_arrives_whole_and_its_losses_have_a_cause(small: Path) -> None:
    results = wl.Scenario.load(small).run()
    assert results.transfers["octets_delivered"].to_list() == [200_000]
    assert 0 < results.transfers["goodput_bps"][0] < 1e6
    losses = results.losses.to_polars()
    assert len(losses) > 0
    assert "erased" in losses["true_cause"].to_list()
    assert {"verdict_reported", "score_reported"} <= set(losses.columns)


def test_polars_pyarrow_and_pandas_take_tables_without_a_copy(small: Path) -> None:
    table = wl.Scenario.load(small).run().flows
    mine = pl.DataFrame(table)
    arrow, again = pa.table(table), pa.table(table)
    assert mine.columns == arrow.column_names == table.columns
    assert arrow.column("goodput_bps").to_pylist() == mine["goodput_bps"].to_list()
    assert isinstance(arrow.to_pandas(), pd.DataFrame)
    # Both see the very same memory.
    column, twin = (t.column("goodput_bps").chunk(0).buffers()[1].address for t in (arrow, again))
    assert column == twin
    assert mine["goodput_bps"].to_arrow().buffers()[1].address == column


def test_tables_outlive_their_results(small: Path) -> None:
    frame = pl.DataFrame(wl.Scenario.load(small).run().losses)
    assert frame["run"].to_list() == [0] * len(frame)


def test_results_are_saved_as_parquet(small: Path, tmp_path: Path) -> None:
    results = wl.Scenario.load(small).run()
    results.save(tmp_path / "out")
    assert pl.read_parquet(tmp_path / "out" / "losses.parquet").equals(results.losses.to_polars())
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "SHA256SUMS",
        "inputs.json",
        *(f"{name}.parquet" for name in results.names),
    }


def test_objects_show_themselves(small: Path) -> None:
    scenario = wl.Scenario.load(small)
    results = scenario.run()
    assert repr(scenario) == "Scenario('small': newreno, 200 kB)"
    assert "transfers: 1" in repr(results)
    assert "goodput_bps" in results.transfers._repr_html_()
    assert "results.losses" in results._repr_html_()
    assert "newreno" in scenario._repr_html_()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"path.rte": "1 Mbps"}, "did you mean `rate`?"),
        ({"path.rate": "-1 Mbps"}, "a bit rate above zero"),
        ({"path.rate": "1 ms"}, "path.rate"),
        ({"path.queue": "0 pkt"}, "path.queue"),
        ({"flow[0].scheme": "newrino"}, "did you mean `newreno`?"),
        ({"flow[1].scheme": "newreno"}, "has only element 0"),
        ({"flow[0].size": None, "flow[0].scheme": "newreno"}, "duration"),
        ({"path.forward.channel.loss": 1.5}, "a number from 0 to 1"),
    ],
)
def test_mistakes_are_told_by_field_and_what_is_allowed(small: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(wl.InputError) as caught:
        wl.Scenario.load(small).replace(change)
    assert message in str(caught.value)


def test_an_exception_of_the_watcher_stops_the_run(small: Path) -> None:
    def stop(_: wl.Progress) -> None:
        raise LookupError("enough")

    endless = wl.Scenario.load(small).replace({"flow[0].size": "100 GB", "scenario.duration": "100000 h"})
    with pytest.raises(LookupError, match="enough"):
        endless.run(progress=stop)
