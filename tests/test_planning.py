"""What a sweep will cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

import whyloss as wl
from whyloss import planning
from whyloss.planning import forecast, total

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ended


def _core_s(sweep: wl.Sweep) -> float:
    began = time.process_time()
    sweep.run(threads=1)
    return time.process_time() - began


def test_a_forecast_is_near_what_it_takes(small: Path, tmp_path: Path) -> None:
    scenario = wl.Scenario.load(small).replace({"flow[0].size": "3 MB"})
    sweep = wl.Sweep(scenario, runs=40).vary("path.rate", ["2 Mbps", "4 Mbps", "8 Mbps"])
    found = forecast(sweep.native, tmp_path / "store")
    assert (found.runs, found.missing, found.points, found.tried) == (120, 120, 3, 12)
    # Runs of some milliseconds in a process that does other things too: the least of a few looks is theirs.
    said = min(forecast(sweep.native, tmp_path / "store").core_s for _ in range(3))
    took = min(_core_s(sweep) for _ in range(3))
    assert 0.4 * took < said < 2.5 * took
    sweep.run(store=tmp_path / "store")
    octets = sum(path.stat().st_size for path in (tmp_path / "store").rglob("*.part"))
    assert 0.7 * octets < found.store_octets < 1.4 * octets
    assert forecast(sweep.native, tmp_path / "store").missing == 0


def test_the_command_says_what_to_expect(small: Path, tmp_path: Path, whyloss: Callable[..., Ended]) -> None:
    (tmp_path / "sweep.toml").write_text(f'[sweep]\nbase = "{small.name}"\nruns = 1000\n')
    told = whyloss("sweep", "sweep.toml", "--plan", "--cores", "10", "--json").json
    assert (told["runs"], told["in_store"], told["cores"]) == (1000, 0, 10)
    assert told["wall_s"] * 10 == told["core_s"]
    assert not (tmp_path / "out").exists()


def test_several_sweeps_cost_what_they_cost_one_after_the_other(small: Path, tmp_path: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small), runs=5)
    one, other = (
        forecast(sweep.with_runs(count).vary("path.rate", ["1 Mbps", "2 Mbps"]).native, tmp_path) for count in (5, 7)
    )
    both = total([one, other])
    assert (both.runs, both.missing, both.points, both.tried) == (24, 24, 4, 16)
    assert both.core_s == one.core_s + other.core_s
    assert both.store_octets == one.store_octets + other.store_octets
    assert total([]).core_s == 0


def test_a_point_counts_as_often_as_runs_of_it_are_missing(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One point of long runs, nearly all of them there, beside one of short runs."""
    sweep = wl.Sweep(wl.Scenario.load(small), runs=20).vary("flow[0].size", ["100 kB", "1 kB"])
    sweep.at([0]).with_runs(18).run(store=tmp_path)

    def tried(point: Any, _first: int, count: int) -> tuple[float, float]:
        long = point.scenarios()[0].to_json() == sweep.scenarios[0].native.to_json()
        return (1e6, 10.0 * count) if long else (1e3 + 10 * count, 0.1 * count)

    monkeypatch.setattr(planning, "_try", tried)
    found = forecast(sweep.native, tmp_path)
    assert (found.missing, found.tried) == (22, 8)
    assert found.core_s == pytest.approx(2 * 10 + 20 * 0.1)
    assert found.store_octets == pytest.approx(20 * 10 + (1e6 + 1e3))


@pytest.mark.parametrize(("points", "of"), [(1, 1), (3, 3), (20, 20), (20, 200)])
def test_the_interval_of_a_forecast_has_what_it_takes(points: int, of: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a point differ by a fifth, and points among each other: nineteen intervals of twenty have the truth."""
    random = np.random.default_rng(2)
    held = 0
    for _ in range(400):
        costs, missing = random.uniform(1, 3, of), random.integers(1, 100, of)

        def tried(_point: Any, _first: int, count: int) -> tuple[float, float]:
            return 0.0, float(random.normal(cost, 0.2 * cost, count).sum())  # noqa: B023

        monkeypatch.setattr(planning, "_try", tried)
        tries = []
        for k in random.choice(of, points, replace=False):
            cost = costs[k]
            tries.append(planning.Tried.of(cast("Any", None), 0, int(missing[k])))
        low, high = planning.time_of(tries, int(missing.sum()), of).interval()
        held += low <= (costs * missing).sum() <= high
    # Of 400 at 95 %, fewer than 365 are less likely than one in a thousand.
    assert held >= 365
    assert held < 400 or points == 1


def test_all_points_of_a_sweep_are_tried_where_there_is_time(small: Path, tmp_path: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("scenario.seed", list(range(20)), "seeds")
    assert forecast(sweep.native, tmp_path, budget_s=60.0).tried == 80
    assert forecast(sweep.native, tmp_path, budget_s=0.0).tried == 8


def test_the_cost_of_a_paper_is_told_and_nothing_of_it_is_run(tmp_path: Path, whyloss: Callable[..., Ended]) -> None:
    what = ("reproduce", "garcia2004", "--figure", "4", "--quick", "--store", "store")
    told = whyloss(*what, "--plan", "--cores", "4", "--json").json
    assert (told["paper"], told["in_store"], told["cores"]) == ("garcia2004", 0, 4)
    assert told["core_s"] == 4 * told["wall_s"] > 0
    assert not (tmp_path / "store").exists()
    ended = whyloss(*what, "--json")
    assert ended.status == 0, ended.err
    octets = sum(path.stat().st_size for path in (tmp_path / "store").rglob("*.part"))
    assert 0.75 * octets < told["store_octets"] < 1.25 * octets
    again = whyloss(*what, "--plan", "--json").json
    assert again["in_store"] == again["runs"] == told["runs"]
    assert again["core_s"] == 0


def test_what_does_not_go_with_a_plan_is_told(whyloss: Callable[..., Ended]) -> None:
    for more, said in (
        (("--cores", "4"), "--cores: goes with --plan only"),
        (("--plan", "--until-decided"), "--plan: does not go with --until-decided"),
        (("--plan", "--on", "kernel"), "--plan: does not go with --on kernel"),
        (("--plan", "--on", "slurm"), "--plan: does not go with --on slurm"),
    ):
        ended = whyloss("reproduce", "paul2006", *more)
        assert (ended.status, said in ended.err) == (2, True), ended.err
