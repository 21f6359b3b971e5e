"""Runs until the answer is sure enough."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

import whyloss as wl
from whyloss import precision, stats

if TYPE_CHECKING:
    from pathlib import Path


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


def test_points_get_the_runs_that_they_need(small: Path, tmp_path: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("path.forward.channel.loss", ["0.1 %", "5 %"])
    found = precision.run(sweep, "4 %", store=tmp_path / "store")
    assert all(point.reached for point in found)
    assert precision.FIRST <= found[0].runs < found[1].runs
    for point in found:
        assert (point.high - point.low) / 2 <= 0.04 * point.value
    kept = sweep.at([1]).with_runs(found[1].runs).run(store=tmp_path / "store").transfers.to_polars()
    assert kept["goodput_bps"].mean() == pytest.approx(found[1].value)


def test_a_budget_ends_it_and_pairs_are_compared_run_by_run(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("flow[0].scheme", ["newreno", "sack"], name="variant")
    (found,) = precision.run(sweep, "0.1 %", against={"variant": "newreno"}, budget=25)
    assert (found.labels, found.runs, found.reached) == ({"variant": "sack"}, 12, False)
    rows = sweep.with_runs(12).run().transfers.to_polars()
    of = {name: rows.filter(variant=name)["goodput_bps"].to_numpy() for name in ("newreno", "sack")}
    assert found.value == pytest.approx(float((of["sack"] - of["newreno"]).mean()))


def test_what_is_no_precision_or_quantity_is_told(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small))
    for text in ("2", "0 %", "100 %", "much"):
        with pytest.raises(wl.InputError, match="allowed: above 0 % and below 100 %"):
            precision.run(sweep, text)
    with pytest.raises(wl.InputError, match=r"TABLE\.COLUMN"):
        precision.run(sweep, "5 %", quantity="goodput")
    with pytest.raises(wl.InputError, match="no such axis"):
        precision.run(sweep, "5 %", against={"variant": "newreno"})
