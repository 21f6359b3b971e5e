"""Sweeps from Python."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

import whyloss as wl

if TYPE_CHECKING:
    from pathlib import Path


def test_points_are_all_combinations_and_tables_name_them(small: Path) -> None:
    sweep = (
        wl.Sweep(wl.Scenario.load(small), runs=2)
        .vary("path.rate", ["500 kbps", "1 Mbps"])
        .variants("variant", {"plain": {}, "big": {"flow[0].size": "300 kB"}})
    )
    assert (sweep.axes, len(sweep), len(sweep.scenarios)) == (["rate", "variant"], 8, 4)
    rows = sweep.run().transfers.to_polars()
    assert rows.select("rate", "variant", "run").rows() == [
        (rate, variant, run) for rate in ("500 kbps", "1 Mbps") for variant in ("plain", "big") for run in (0, 1)
    ]
    assert rows["octets_delivered"].to_list() == [200_000, 200_000, 300_000, 300_000] * 2
    assert rows.filter(pl.col("rate_bps") == 1_000_000).height == 4


def test_threads_change_no_result(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small), runs=6)
    one, two = sweep.run(threads=1), sweep.run(threads=2)
    assert all(one[name].to_polars().equals(two[name].to_polars()) for name in one.names)


def test_a_finished_sweep_is_not_computed_again_and_a_longer_one_only_in_part(small: Path, tmp_path: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small), runs=3)
    first = sweep.run(store=tmp_path / "store")
    seen: list[wl.Progress] = []
    longer = sweep.with_runs(5).run(store=tmp_path / "store", progress=seen.append)
    assert (seen[-1].found, seen[-1].done, seen[-1].total, seen[-1].fraction) == (3, 5, 5, 1.0)
    kept = longer.losses.to_polars().filter(pl.col("run") < 3)
    assert kept.equals(first.losses.to_polars())


def test_a_sweep_that_is_saved_gives_the_files_of_one_that_is_held(small: Path, tmp_path: Path) -> None:
    scenario = wl.Scenario.load(small).replace({"output.sample": "10 ms"})
    sweep = wl.Sweep(scenario, runs=3).vary("path.rate", ["500 kbps", "1 Mbps"])
    held = sweep.run()
    held.save(tmp_path / "held")
    seen: list[wl.Progress] = []
    saved = sweep.save(tmp_path / "saved", store=tmp_path / "store", progress=seen.append)
    assert (seen[-1].done, seen[-1].total) == (6, 6)
    assert (tmp_path / "saved" / "SHA256SUMS").read_text() == (tmp_path / "held" / "SHA256SUMS").read_text()
    assert (saved.digests(), repr(saved)) == (held.digests(), repr(held))
    assert sweep.run(store=tmp_path / "store", progress=seen.append).digests() == held.digests()
    assert (seen[-1].found, seen[-1].total) == (6, 6)
    assert sweep.save(tmp_path / "without").digests() == held.digests()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["held", "saved", "small.toml", "store", "without"]
    with pytest.raises(wl.InputError, match="allowed without a cluster: a folder"):
        sweep.save(tmp_path / "saved", store="s3://bucket/runs")


def test_results_are_loaded_from_their_folder(small: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    results = wl.Sweep(wl.Scenario.load(small), runs=2).run()
    results.save(tmp_path / "out")
    loaded = wl.Results.load(tmp_path / "out")
    for name in results.names:
        assert loaded[name].columns == results[name].columns
        assert len(loaded[name]) == len(results[name])
        assert loaded[name].to_polars().equals(results[name].to_polars())
        assert loaded[name].lazy().collect().equals(results[name].lazy().collect())
        assert pa.table(loaded[name]).equals(pa.table(results[name]))
    assert loaded.transfers["goodput_bps"].equals(results.transfers["goodput_bps"])
    assert loaded.summary().equals(results.summary())
    loaded.save(tmp_path / "copy")
    loaded.save(tmp_path / "out")
    sums = [(tmp_path / folder / "SHA256SUMS").read_text() for folder in ("out", "copy")]
    assert sums[0] == sums[1]
    with pytest.raises(KeyError, match="there is no table 'los'"):
        loaded["los"]
    with pytest.raises(wl.InputError, match=r"runs\.parquet: there is no such file; allowed: a folder that"):
        wl.Results.load(tmp_path)
    octets = bytearray((tmp_path / "copy" / "losses.parquet").read_bytes())
    octets[len(octets) // 2] ^= 1
    (tmp_path / "copy" / "losses.parquet").write_bytes(octets)
    with pytest.raises(wl.InputError, match=r"losses\.parquet: it is not as it was written"):
        wl.Results.load(tmp_path / "copy")


def test_variants_meet_the_same_channel(small: Path) -> None:
    scenario = wl.Scenario.load(small).replace({"output.drops": True})
    drops = wl.Sweep(scenario).vary("flow[0].scheme", ["newreno", "sack"], name="variant").run().drops.to_polars()
    first = drops.filter(pl.col("cause") == "erased").group_by("variant", maintain_order=True).first()
    assert len(first) == 2
    assert first["at_ns"].n_unique() == 1


def test_only_keeps_some_points_and_says_what_there_is(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("path.rate", ["500 kbps", "1 Mbps"])
    assert len(sweep.only("rate", ["1 Mbps"])) == 1
    with pytest.raises(wl.InputError, match="did you mean `rate`"):
        sweep.only("rat", ["1 Mbps"])


def test_a_selection_of_nothing_is_refused(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("path.rate", ["500 kbps", "1 Mbps"])
    assert sweep.at([1]).run().runs["point"].to_list() == [1]
    for selected, found in (
        (sweep.at([]), "found no point; allowed: numbers of its 2 points, from 0 to 1"),
        (sweep.at([0, 5]), "no such point; found 5; allowed: numbers of its 2 points"),
        (sweep.with_run_counts({9: 5}), "the runs of point 9: no such point; allowed: points from 0 to 1"),
        (sweep.with_run_counts({0: 0}), "the runs of point 0: found 0; allowed: 1 or more"),
    ):
        with pytest.raises(wl.InputError, match=found):
            selected.run()
    for labels, found in (([], "axis `rate`: found no step"), (["7 Mbps"], 'no such step; found "7 Mbps"')):
        with pytest.raises(wl.InputError, match=f'{found}; allowed: "500 kbps", "1 Mbps"'):
            sweep.only("rate", labels)


def test_numbers_of_runs_end(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small))
    last = sweep.with_runs(2, first=2**32 - 3)
    assert last.run().runs["run"].to_list() == [2**32 - 3, 2**32 - 2]
    with pytest.raises(wl.InputError, match="found 2 from number 4294967295 on; allowed: numbers from 0 to 4294967294"):
        sweep.with_runs(2, first=2**32 - 1)


def test_a_field_belongs_to_one_axis_and_arguments_to_none(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("path.delay", ["1 ms", "2 ms"])
    with pytest.raises(wl.InputError, match=r"path\.delay: axis `b` replaces what axis `delay` sets"):
        sweep.vary("path.delay", ["2 ms", "3 ms"], name="b").run()
    with pytest.raises(wl.InputError, match=r"--set: path\.delay: axis `delay` replaces it at its steps"):
        sweep.with_arguments(["path.delay=9 ms"]).run()
    changed = sweep.with_arguments(["flow[0].size=300 kB"]).run().transfers["octets_delivered"]
    assert changed.to_list() == [300_000, 300_000]


def test_an_axis_does_not_take_the_name_of_a_column(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("flow[0].scheme", ["newreno", "sack"])
    with pytest.raises(wl.InputError, match='this column exists already; found "scheme"'):
        sweep.run()
    starts = wl.Sweep(wl.Scenario.load(small)).vary("flow[0].start", ["0 s", "1 s"])
    with pytest.raises(wl.InputError, match='found "start_ns", which has the values of "start" as numbers'):
        starts.run()
    later = wl.Sweep(wl.Scenario.load(small)).vary("flow[0].start", ["0 s", "1 s"], name="later").run()
    assert later.transfers.to_polars().select("later_ns", "start_ns").rows() == [(0, 0), (1_000_000_000,) * 2]


def test_a_point_that_is_no_scenario_is_told_before_anything_runs(small: Path, tmp_path: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("path.rate", ["1 Mbps", "0 Mbps"])
    with pytest.raises(wl.InputError, match="a bit rate above zero"):
        sweep.run(store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_a_pattern_file_of_ones_own_decides_the_errors(small: Path, tmp_path: Path) -> None:
    wl.write_pattern(tmp_path / "own.bits", ber=1e-5, bits=2_000_000, seed=1)
    scenario = wl.Scenario.load(small).replace({"path.forward.channel.pattern": "own.bits"})
    damaged = [wl.Scenario(scenario.to_dict(), folder=tmp_path).run(run).losses.to_polars() for run in (0, 1)]
    assert "payload-damaged" in damaged[0]["true_cause"].to_list()
    # The pattern leaves nothing to chance.
    assert damaged[0].drop("run").equals(damaged[1].drop("run"))
    assert json.dumps(scenario.to_dict()["path"]["forward"]["channel"]).count("loss") == 0
