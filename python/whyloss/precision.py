"""Runs until the answer is sure enough: each point of a sweep gets as many as it needs, within a budget.

:meth:`whyloss.Sweep.until` asks for it, :meth:`whyloss.Sweep.known` does it.

Who looks at an interval again and again, and stops when it is narrow, stops too early too often. So every look spends a
part of the error ``e`` that the whole may make: look *k* spends ``e / (k (k + 1))``. These parts sum up to ``e``, so
that the intervals of a point all hold together with a probability of ``1 - e`` at least, if each holds with its own
(Bonferroni, over endless looks). Where the looks are counted before, each spends the same part (:func:`looks`,
:func:`equal_level`).

Intervals are Student's: right for values that spread as normal ones do, and roughly right for means of many others.
They say nothing where nearly all values are the same, for what is rare may not have come yet. There the share of runs
that have another value is bounded instead (Clopper and Pearson 1934; of *n* equal runs below ``ln(1 / e) / n``, the
rule of three), and the point is known once that bound is no more than the precision too: see :func:`judge`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from whyloss import stats
from whyloss._native import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from whyloss import _native
    from whyloss.results import Results

__all__ = [
    "FEW",
    "FIRST",
    "GROWTH",
    "Judged",
    "Known",
    "Look",
    "Looking",
    "Precise",
    "equal_level",
    "judge",
    "look_level",
    "looks",
]

#: Runs before the first look, and by what their number grows from one look to the next.
FIRST = 10
GROWTH = 1.5

#: Where fewer runs than this differ from what most have, the spread of the values is not known.
FEW = 10


@dataclass(frozen=True, slots=True)
class Precise:
    """A point of a sweep, or its difference from another one, and how well it is known."""

    point: int
    labels: Mapping[str, Any]
    """Its step on each axis."""
    value: float
    low: float
    high: float
    """Borders of an interval that holds over all looks; infinite where nearly all values are the same."""
    differ: float | None
    """Where nearly all values are the same: the share of runs that have another one, at most."""
    runs: int
    measured: int
    """Runs that have a value; of a difference, those that have one on both sides."""
    reached: bool
    """Whether the precision was reached before the budget ended."""

    def as_dict(self) -> dict[str, Any]:
        """One plain row: the steps on the axes beside the rest. What is not finite becomes ``None``."""
        row = {"point": self.point, **self.labels, **asdict(self)}
        del row["labels"]
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }


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


class Judged(NamedTuple):
    """What values say of their mean."""

    value: float
    low: float
    high: float
    differ: float | None
    """Where nearly all of them are the same: the share of those that are not, at most. The mean has no borders then."""
    reached: bool
    """Whether the mean is known as well as was asked for."""


def judge(values: Sequence[float], half: float, share: float, level: float) -> Judged:
    """Whether the mean of ``values`` is known to ± ``half``, at ``level``.

    Where fewer than :data:`FEW` of them differ from what most are, it takes more: that no more than ``share`` of all
    runs differ.
    """
    estimate = stats.mean(values)
    low, high = estimate.interval(level)
    reached = (high - low) / 2 <= half
    others = len(values) - max(Counter(values).values(), default=0)
    if others >= min(FEW, len(values) / 2):
        return Judged(estimate.value, low, high, None, reached)
    # One border, which all of the error goes to.
    _, differ = stats.proportion(others, len(values)).interval(2 * level - 1)
    return Judged(estimate.value, -math.inf, math.inf, differ, reached and differ <= share)


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
        self._wish, self._axes, self._open = wish, tuple(axes), set(points)
        self._values: dict[int, dict[int, float]] = {point: {} for point in self._open}
        self._labels: dict[int, dict[str, Any]] = {}
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
            whyloss.InputError: no point has the steps that others are to be compared with, or all have; or a point has
                nothing to measure in any of its first runs.
        """
        assert self._look is not None
        self.spent += len(self._look.points) * self._look.runs
        self._count += self._look.runs
        self._number += 1
        for row in results.runs.lazy().select("point", *self._axes).collect().unique("point").iter_rows(named=True):
            self._labels.setdefault(row["point"], {axis: row[axis] for axis in self._axes})
        # A run without a row, as of losses where there are none, has nothing that could be measured.
        measured = pl.col(self._wish.column).cast(pl.Float64).fill_nan(None).mean().alias("value")
        rows = results[self._wish.table].lazy().select("point", "run", self._wish.column).collect()
        each = rows.group_by("point", "run").agg(measured).drop_nulls()
        for row in each.sort("point", "run").iter_rows(named=True):
            self._values[row["point"]][row["run"]] = row["value"]
        if self._wish.against and not self._bases:
            self._bases = _bases(self._labels, self._wish.against)
            self._open -= set(self._bases.values())
        for point in sorted(self._open):
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
        own, base = self._values[point], self._bases.get(point)
        # Pairs are of the same run: who has nothing to measure in one leaves it out on both sides.
        other = own if base is None else self._values[base]
        both = [run for run in own if run in other]
        if not both and self._number == 1:
            raise InputError(self._nothing(point, base))
        values = [own[run] if base is None else own[run] - other[run] for run in both]
        measure = abs(stats.mean([other[run] for run in both]).value)
        share = self._wish.share
        value, low, high, differ, reached = judge(values, share * measure, share, look_level(self._number))
        return Precise(point, self._labels[point], value, low, high, differ, self._count, len(both), reached)

    def _nothing(self, point: int, base: int | None) -> str:
        """What is said of a point of which nothing can ever be known."""
        steps = ", ".join(f"{axis} {step}" for axis, step in self._labels[point].items())
        where = f"point {point} ({steps})" if steps else f"point {point}"
        pairs = "" if base is None else f" together with the same run of point {base}"
        quantity = f"{self._wish.table}.{self._wish.column}"
        return (
            f"{where}: `{quantity}` has no value in any of its {self._count} runs{pairs}; "
            "allowed: a quantity that has some at every point"
        )


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
    if not found:
        raise InputError(f"all points have the steps {json.dumps(against)}; allowed: a step that others do not have")
    return found
