"""Runs until the answer is sure enough."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

import whyloss as wl
from whyloss import precision, stats
from whyloss.verifying import verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ended


def test_the_looks_spend_the_error_once() -> None:
    spent = sum(1 - precision.look_level(look) for look in range(1, 100_000))
    assert spent == pytest.approx(0.05, rel=1e-4)
    assert precision.look_level(1) == pytest.approx(0.975)


def test_stopping_when_it_looks_narrow_misses_no_more_often_than_said() -> None:
    """Values with a mean of 10: without the correction this stopping rule misses far more than one in twenty."""
    random = np.random.default_rng(5)
    missed = {True: 0, False: 0}
    for _ in range(400):
        values = random.exponential(10.0, 3000)
        for corrected in missed:
            count = 10
            for look in itertools.count(1):
                level = precision.look_level(look) if corrected else stats.LEVEL
                low, high = stats.mean(values[:count]).interval(level)
                if (high - low) / 2 <= 0.15 * values[:count].mean() or count * 1.5 > 3000:
                    break
                count = int(count * 1.5) + 1
            missed[corrected] += not low <= 10 <= high
    # 400 trials at 5 %: above 37 is less likely than one in a thousand.
    assert missed[True] <= 37
    assert missed[False] > missed[True]


def test_the_looks_end_with_the_most_runs_and_share_the_error() -> None:
    assert precision.looks(8, 128) == [8, 16, 32, 64, 128]
    assert precision.looks(10, 30, 1.5) == [10, 15, 23, 30]
    assert precision.looks(10, 4) == [4]
    assert 4 * (1 - precision.equal_level(4)) == pytest.approx(0.05)


def test_points_get_the_runs_that_they_need(small: Path, tmp_path: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("path.forward.channel.loss", ["0.1 %", "5 %"])
    known = sweep.until("4 %").known(store=tmp_path / "store")
    found = known.points
    assert all(point.reached for point in found)
    assert precision.FIRST <= found[0].runs < found[1].runs
    for point in found:
        assert (point.high - point.low) / 2 <= 0.04 * point.value
    kept = sweep.at([1]).with_runs(found[1].runs).run(store=tmp_path / "store").transfers.to_polars()
    assert kept["goodput_bps"].mean() == pytest.approx(found[1].value)
    # The tables have all runs of each point, once, and can be run again.
    rows = known.results.runs.to_polars().group_by("point").agg(pl.col("run").sort()).sort("point")
    assert [list(range(point.runs)) for point in found] == rows["run"].to_list()
    folder = known.results.save(tmp_path / "out")
    again = verify(folder, runs=None)
    assert (again.same, again.runs) == (True, sum(point.runs for point in found))
    assert verify(folder, runs=5).same
    # What a sweep is asked for, it does: no store and no threads change that.
    assert sweep.until(0.04).run(threads=1).digests() == known.results.digests()


def test_a_budget_ends_it_and_pairs_are_compared_run_by_run(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("flow[0].scheme", ["newreno", "sack"], name="variant")
    known = sweep.until("0.1 %", against={"variant": "newreno"}, budget=25).known()
    (found,) = known.points
    assert (found.labels, found.runs, found.reached) == ({"variant": "sack"}, 12, False)
    rows = sweep.with_runs(12).run().transfers.to_polars()
    assert rows.equals(known.results.transfers.to_polars())
    of = {name: rows.filter(variant=name)["goodput_bps"].to_numpy() for name in ("newreno", "sack")}
    assert found.value == pytest.approx(float((of["sack"] - of["newreno"]).mean()))


def test_what_is_no_precision_or_quantity_is_told(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("path.rate", ["1 Mbps", "2 Mbps"])
    for given in ("2", "0 %", "100 %", "much", 0, 1.5):
        with pytest.raises(wl.InputError, match="allowed: above 0 % and below 100 %"):
            sweep.until(given)
    with pytest.raises(wl.InputError, match=r"TABLE\.COLUMN"):
        sweep.until("5 %", quantity="goodput")
    with pytest.raises(wl.InputError, match=r"did you mean `transfers\.goodput_bps`"):
        sweep.until("5 %", quantity="transfers.goodput_bsp")
    with pytest.raises(wl.InputError, match=r"TABLE\.COLUMN"):
        sweep.until("5 %", quantity="transfers.scheme")
    with pytest.raises(wl.InputError, match=r"against\.variant: no such axis; .*rate"):
        sweep.until("5 %", against={"variant": "newreno"})
    with pytest.raises(
        wl.InputError, match=r'against\.rate: no such step; found "3 Mbps"; allowed: "1 Mbps", "2 Mbps"'
    ):
        sweep.until("5 %", against={"rate": "3 Mbps"})
    with pytest.raises(wl.InputError, match=r"budget: .*4 to 1000000"):
        sweep.until("5 %", budget=3)


FILE = """
[sweep]
base = "small.toml"
{wish}

[[axis]]
field = "path.forward.channel.loss"
values = ["0.1 %", "5 %"]
[[axis]]
name = "variant"
[[axis.variant]]
name = "newreno"
set."flow[0].scheme" = "newreno"
[[axis.variant]]
name = "sack"
set."flow[0].scheme" = "sack"
"""


def test_a_sweep_file_asks_for_it_and_the_command_obeys(
    small: Path, tmp_path: Path, whyloss: Callable[..., Ended]
) -> None:
    (tmp_path / "small.toml").write_text(small.read_text())
    file = tmp_path / "until.toml"
    file.write_text(FILE.format(wish='precision = "8 %"\nagainst = { variant = "newreno" }\nbudget = 400'))
    store = ("--store", tmp_path / "store")
    done = whyloss("sweep", file, *store, "--out", tmp_path / "out", "--json")
    assert done.status == 0, done.err
    told = done.json
    assert [point["variant"] for point in told["points"]] == ["sack", "sack"]
    assert all(point["reached"] for point in told["points"])
    assert told["runs"] == 2 * sum(point["runs"] for point in told["points"]) < 400
    kept = json.loads((tmp_path / "out" / "precision.json").read_text())
    assert kept == {name: value for name, value in told.items() if name != "out"}
    shown = whyloss("sweep", file, *store, "--out", tmp_path / "out", "--against", "variant=sack", "--budget", "60")
    assert "newreno" in shown.out
    assert "less that of variant sack" in shown.out
    plan = whyloss("sweep", file, *store, "--plan")
    assert "runs before the first look; ± 8 % takes as many more as it needs, 400 at most" in plan.err
    plain = whyloss("sweep", file, *store, "--precision", "30%", "--quantity", "flows.losses", "--against", "variant")
    assert (plain.status, "allowed: AXIS=STEP" in plain.err) == (2, True)
    short = whyloss("sweep", file, *store, "--precision", "0.1%", "--budget", "8")
    assert "budget ended" in short.out
    assert "not known to ± 0.1 %: 2 of 2 points" in short.err


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("runs = 3\nprecision = 0.02", "sweep.runs: with `precision` there are as many runs as it takes"),
        ('precision = "200 %"', "sweep.precision"),
        ("budget = 9", "sweep.budget: this goes with `precision` only"),
        ('precision = "2 %"\nquantity = "flows.goodput"', "until.toml:5: sweep.quantity: no such quantity"),
        ('precision = "2 %"\nagainst = { loss = "9 %" }', "until.toml:5: sweep.against.loss: no such step"),
    ],
)
def test_mistakes_in_a_sweep_file_name_their_place(small: Path, tmp_path: Path, wish: str, said: str) -> None:
    (tmp_path / "small.toml").write_text(small.read_text())
    (tmp_path / "until.toml").write_text(FILE.format(wish=wish))
    with pytest.raises(wl.InputError) as told:
        wl.Sweep.load(tmp_path / "until.toml")
    assert said in str(told.value)


def test_options_without_a_precision_are_refused(small: Path, tmp_path: Path, whyloss: Callable[..., Ended]) -> None:
    (tmp_path / "small.toml").write_text(small.read_text())
    (tmp_path / "until.toml").write_text(FILE.format(wish="runs = 2"))
    done = whyloss("sweep", tmp_path / "until.toml", "--budget", "9")
    assert (done.status, "goes with --precision only" in done.err) == (2, True)
