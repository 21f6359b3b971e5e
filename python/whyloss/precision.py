"""Runs until the answer is sure enough: each point of a sweep gets as many as it needs, within a budget.

:meth:`whyloss.Sweep.until` asks for it, :meth:`whyloss.Sweep.known` does it.

Who looks at an interval again and again, and stops when it is narrow, stops too early too often. So every look spends a
part of the error ``e`` that the whole may make: look *k* spends ``e / (k (k + 1))``. These parts sum up to ``e``, so
that no interval of any look misses with a probability of ``1 - e`` at least (Bonferroni, over endless looks). Where the
looks are counted before, each spends the same part (:func:`looks`, :func:`equal_level`).
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from whyloss import stats
from whyloss._native import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from whyloss import _native
    from whyloss.results import Results

__all__ = ["FIRST", "GROWTH", "Known", "Look", "Looking", "Precise", "equal_level", "look_level", "looks"]

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

    def as_dict(self) -> dict[str, Any]:
        """One plain row: the steps on the axes beside the rest. What is not finite becomes ``None``."""
        row = {"point": self.point, **self.labels, **asdict(self)}
        del row["labels"]
        return {name: None if value in (math.inf, -math.inf) else value for name, value in row.items()}


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of all points, and the runs that it rests on."""

    points: tuple[Precise, ...]
    results: Results
    """The tables of all runs; points that are harder to know have more of them."""


def look_level(look: int, level: float = stats.LEVEL) -> float:
    """The level of the interval at look number ``look``, from 1, such that all looks together have ``level``."""
    return 1 - (1 - level) / (look * (look + 1))


def looks(first: int, most: int, growth: float = 2.0) -> list[int]:
    """After how many runs to look: after ``first``, ``growth`` times as many, and so on, and after ``most``."""
    ends = [min(first, most)]
    while ends[-1] < most:
        ends.append(min(max(ends[-1] + 1, math.ceil(ends[-1] * growth)), most))
    return ends


def equal_level(number: int, level: float = stats.LEVEL) -> float:
    """The level of each of ``number`` looks, such that all together have ``level``."""
    return 1 - (1 - level) / number


class Look(NamedTuple):
    """Runs to be made before the next look."""

    points: set[int]
    first: int
    """Number of the first of them, from the first run that there is."""
    runs: int
    """Of each point."""


class Looking:
    """Which points need more runs: asked and told in turn, until all are known well enough or the budget ends."""

    def __init__(self, wish: _native.Precision, axes: Sequence[str], points: Iterable[int]) -> None:
        """Begins with no runs. ``axes`` are the columns that say what a point is."""
        self.spent = 0
        """Runs that were made."""
        self._wish, self._axes = wish, tuple(axes)
        self._values: dict[int, list[float]] = {}
        self._labels: dict[int, dict[str, Any]] = {}
        self._open = set(points)
        self._found: dict[int, Precise] = {}
        self._bases: dict[int, int] = {}
        self._count = self._number = 0
        self._look: Look | None = None

    def next(self) -> Look | None:
        """What to run before the next look; nothing if there is none."""
        # A pair is compared run by run, so that what others are compared with goes on as long as one of them does.
        needed = self._open | {self._bases[point] for point in self._open if point in self._bases}
        if not needed:
            return None
        target = max(FIRST, math.ceil(self._count * GROWTH)) - self._count
        runs = min(target, (self._wish.budget - self.spent) // len(needed))
        self._look = Look(needed, self._count, runs) if runs > 0 else None
        return self._look

    def take(self, results: Results) -> None:
        """Looks at what was run.

        Raises:
            whyloss.InputError: no point has the steps that others are to be compared with.
        """
        assert self._look is not None
        self.spent += len(self._look.points) * self._look.runs
        self._count += self._look.runs
        self._number += 1
        for row in results.runs.lazy().select("point", *self._axes).collect().unique("point").iter_rows(named=True):
            self._labels.setdefault(row["point"], {axis: row[axis] for axis in self._axes})
        # A run without a row, as of losses where there are none, has nothing that could be measured.
        measured = pl.col(self._wish.column).cast(pl.Float64).mean().alias("value")
        rows = results[self._wish.table].lazy().select("point", "run", self._wish.column).collect()
        each = rows.group_by("point", "run").agg(measured).drop_nulls()
        for row in each.sort("point", "run").iter_rows(named=True):
            self._values.setdefault(row["point"], []).append(row["value"])
        if self._wish.against and not self._bases:
            self._bases = _bases(self._labels, self._wish.against)
            self._open -= set(self._bases.values())
        for point in self._open:
            self._found[point] = self._precise(point)
        self._open -= {point for point in self._open if self._found[point].reached}

    @property
    def counts(self) -> dict[int, int]:
        """How many runs each point has."""
        counts = {point: one.runs for point, one in self._found.items()}
        for point, other in self._bases.items():
            counts[other] = max(counts.get(other, 0), counts[point])
        return counts

    def known(self, results: Results) -> Known:
        """What is known, with the tables of all runs."""
        return Known(tuple(self._found[point] for point in sorted(self._found)), results)

    def _precise(self, point: int) -> Precise:
        own = self._values.get(point, [])
        estimate, measure = stats.mean(own), abs(stats.mean(own).value)
        if point in self._bases:
            other = self._values.get(self._bases[point], [])
            if len(own) != len(other):
                raise InputError(f"point {point}: some runs have nothing to measure, so that pairs cannot be compared")
            estimate = stats.mean([one - two for one, two in zip(own, other, strict=True)])
            measure = abs(stats.mean(other).value)
        low, high = estimate.interval(look_level(self._number))
        reached = (high - low) / 2 <= self._wish.share * measure
        return Precise(point, self._labels[point], estimate.value, low, high, self._count, reached)


def _bases(labels: dict[int, dict[str, Any]], against: Mapping[str, Any]) -> dict[int, int]:
    """For each point the one that it is compared with."""
    places = {tuple(steps.items()): point for point, steps in labels.items()}
    found = {}
    for point, steps in labels.items():
        base = places.get(tuple({**steps, **against}.items()))
        if base is None:
            raise InputError(f"no point has the steps {json.dumps(against)} beside those of point {point}")
        if base != point:
            found[point] = base
    return found
