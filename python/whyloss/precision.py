"""Runs until the answer is sure enough: each point of a sweep gets as many as it needs, within a budget.

Who looks at an interval again and again, and stops when it is narrow, stops too early too often. So every look spends a
part of the error ``e`` that the whole may make: look *k* spends ``e / (k (k + 1))``. These parts sum up to ``e``, so
that no interval of any look misses with a probability of ``1 - e`` at least (Bonferroni, over endless looks).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from whyloss import stats
from whyloss._native import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from distributed import Client

    from whyloss.sweep import Sweep

__all__ = ["FIRST", "Precise", "look_level", "run", "share"]

#: Runs before the first look, and by what their number grows from one look to the next.
FIRST = 10
GROWTH = 1.5


@dataclass(frozen=True, slots=True)
class Precise:
    """A point of a sweep, or its difference from another one, and how well it is known."""

    point: int
    labels: Mapping[str, Any]
    """Its step on each axis."""
    value: float
    low: float
    high: float
    """Borders of an interval that holds over all looks."""
    runs: int
    reached: bool
    """Whether the precision was reached before the budget ended."""


def share(text: str) -> float:
    """A precision such as ``2 %``, as a share.

    Raises:
        whyloss.InputError: it is none.
    """
    digits = text.strip().removesuffix("%").strip()
    try:
        found = float(digits) / 100 if text.strip().endswith("%") else math.nan
    except ValueError:
        found = math.nan
    if not 0 < found < 1:
        raise InputError(f"found a precision of {text!r}; allowed: above 0 % and below 100 %, such as '2 %'")
    return found


def look_level(look: int, level: float = stats.LEVEL) -> float:
    """The level of the interval at look number ``look``, from 1, such that all looks together have ``level``."""
    return 1 - (1 - level) / (look * (look + 1))


def run(
    sweep: Sweep,
    precision: str,
    *,
    quantity: str = "transfers.goodput_bps",
    against: Mapping[str, Any] | None = None,
    budget: int = 1_000_000,
    store: str | PathLike[str] | None = None,
    client: Client | None = None,
) -> list[Precise]:
    """Runs each point until the half-width of its interval is ``precision`` of its mean, or the budget ends.

    Args:
        sweep: its points; how many runs it says itself does not count, the number of the first one does.
        precision: such as ``2 %``.
        quantity: table and column; of several rows of a run, their mean.
        against: step on some axes, such as ``{"variant": "plain"}``: what counts is then the difference of each point
            from the one that has these steps and is like it otherwise, run by run, as a share of that one's mean.
        budget: runs of all points together, at most.
        store: folder in which finished runs are kept and found again.
        client: a cluster that computes, as :meth:`whyloss.Sweep.run` takes it.

    Raises:
        whyloss.InputError: there is no such quantity, axis or step, or no such precision.
    """
    wanted = share(precision)
    table, _, column = quantity.partition(".")
    axes, first = sweep.axes, sweep.first_run
    values: dict[int, list[float]] = {}
    labels: dict[int, dict[str, Any]] = {}
    spent, count, look = 0, 0, 0
    open_points = set(sweep.native.points())
    found: dict[int, Precise] = {}
    base: dict[int, int] = {}
    while open_points:
        look += 1
        target = max(FIRST, math.ceil(count * GROWTH))
        # A pair is compared run by run, so that what others are compared with goes on as long as one of them does.
        needed = open_points | {base[point] for point in open_points if point in base}
        target = min(target, count + (budget - spent) // len(needed))
        if target <= count:
            break
        results = sweep.at(needed).with_runs(target - count, first + count).run(client, store=store)
        if table not in results.names or column not in results[table].columns:
            raise InputError(f"found the quantity {quantity!r}; allowed: TABLE.COLUMN, such as transfers.goodput_bps")
        spent += len(needed) * (target - count)
        count = target
        rows = results[table].to_polars()
        each = rows.group_by("point", "run", *axes).agg(pl.col(column).mean().cast(pl.Float64)).sort("point", "run")
        for row in each.iter_rows(named=True):
            labels.setdefault(row["point"], {axis: row[axis] for axis in axes})
            values.setdefault(row["point"], []).append(row[column])
        if against is not None and not base:
            base = _bases(labels, against)
            open_points -= set(base.values())
        for point in sorted(open_points):
            found[point] = _look(point, labels[point], values, base.get(point), wanted, look)
        open_points -= {point for point in open_points if found[point].reached}
    return [found[point] for point in sorted(found)]


def _look(
    point: int, labels: dict[str, Any], values: dict[int, list[float]], base: int | None, wanted: float, look: int
) -> Precise:
    own = values[point]
    if base is None:
        estimate, measure = stats.mean(own), abs(stats.mean(own).value)
    else:
        other = values[base][: len(own)]
        estimate = stats.mean([one - two for one, two in zip(own, other, strict=True)])
        measure = abs(stats.mean(other).value)
    low, high = estimate.interval(look_level(look))
    return Precise(point, labels, estimate.value, low, high, len(own), (high - low) / 2 <= wanted * measure)


def _bases(labels: dict[int, dict[str, Any]], against: Mapping[str, Any]) -> dict[int, int]:
    """For each point the one that it is compared with."""
    places = {tuple(steps.items()): point for point, steps in labels.items()}
    unknown = [axis for axis in against if axis not in next(iter(labels.values()))]
    if unknown:
        raise InputError(f"no such axis; found {unknown[0]!r}; allowed: {', '.join(next(iter(labels.values())))}")
    found = {}
    for point, steps in labels.items():
        base = places.get(tuple({**steps, **against}.items()))
        if base is None:
            raise InputError(f"no point has the steps {dict(against)!r} beside those of point {point}")
        if base != point:
            found[point] = base
    return found
