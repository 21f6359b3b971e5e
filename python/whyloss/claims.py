"""Verdicts on what a paper claims.

A claim is put as one or more *comparisons*: a measured value with its interval, and the region in which the claim says
it lies. An interval wholly inside the region supports the claim, one wholly outside speaks against it, and one that
straddles the border leaves it open. Comparisons are joined by :func:`every`, :func:`some` and :func:`at_least`, with
the error probability split (Bonferroni) wherever a verdict could otherwise profit from trying often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from whyloss.stats import LEVEL, Estimate, mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Claim", "Comparison", "Group", "Region", "Test", "Verdict", "at_least", "every", "judge", "some"]


class Verdict(StrEnum):
    """What the measurement says about a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Region:
    """The closed range of values that agree with a claim."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        """As in ``≥ 0``."""
        low, high = (f"{border:g}".replace("-", "−") for border in (self.low, self.high))
        match math.isfinite(self.low), math.isfinite(self.high):
            case True, True:
                return low if low == high else f"{low} … {high}"
            case True, False:
                return f"≥ {low}"
            case False, True:
                return f"≤ {high}"
            case _:
                return "any"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One measured value and where it should lie."""

    what: str
    """What was measured and where, e.g. ``ld − normal, 1 Mbps, 10 ms, BER 8.3e-06``."""
    estimate: Estimate
    expected: Region
    unit: str = ""
    counted: str = "runs"
    """What the estimate's ``n`` counts."""
    asserted: bool = False
    """It is the number that the claim is known for."""

    def verdict(self, confirm: float = 1 - LEVEL, refute: float = 1 - LEVEL) -> Verdict:
        """The verdict with error probability ``confirm`` for a yes and ``refute`` for a no."""
        low, high = self.estimate.interval(1 - confirm)
        if self.expected.low <= low and high <= self.expected.high:
            return Verdict.REPRODUCED
        low, high = self.estimate.interval(1 - refute)
        if high < self.expected.low or self.expected.high < low:
            return Verdict.NOT_REPRODUCED
        return Verdict.UNDECIDED

    def as_dict(self) -> dict[str, Any]:
        """The comparison as plain values, for JSON; what is not finite becomes ``None``."""
        low, high = self.estimate.interval()
        row = {
            "what": self.what,
            "verdict": self.verdict(),
            "measured": self.estimate.value,
            "low": low,
            "high": high,
            "n": self.estimate.n,
            "expected": str(self.expected),
            "region_low": self.expected.low,
            "region_high": self.expected.high,
            "unit": self.unit,
            "counted": self.counted,
        }
        return {name: _plain(value) for name, value in row.items()}

    def margin(self) -> float:
        """How far the value lies inside the region, in half widths of its interval; negative outside."""
        value = self.estimate.value
        low, high = self.estimate.interval()
        inside = min(value - self.expected.low, self.expected.high - value)
        width = (high - low) / 2
        if not math.isfinite(width) or math.isnan(inside):
            return 0.0
        return inside / width if width > 0 else math.copysign(math.inf, inside)

    def leaves(self) -> Iterator[Comparison]:
        """This comparison."""
        yield self

    def deciding(self, confirm: float = 1 - LEVEL, refute: float = 1 - LEVEL) -> tuple[Comparison, float]:
        """The comparison that decides, this one, and the level of the interval that does.

        What is undecided is so by the wider one: it straddles the border.
        """
        error = {Verdict.REPRODUCED: confirm, Verdict.NOT_REPRODUCED: refute}.get(self.verdict(confirm, refute))
        return self, 1 - (min(confirm, refute) if error is None else error)


@dataclass(frozen=True, slots=True)
class Group:
    """Comparisons of which at least ``k`` must hold."""

    k: int
    tests: tuple[Test, ...]

    def verdict(self, confirm: float = 1 - LEVEL, refute: float = 1 - LEVEL) -> Verdict:
        """The joint verdict.

        That *all* hold needs no correction: each one has to pass on its own. That *one* fails among many does, and so
        does that one holds among many.
        """
        m = len(self.tests)
        if m == 0:
            return Verdict.UNDECIDED
        confirm, refute = self._shares(confirm, refute)
        verdicts = [test.verdict(confirm, refute) for test in self.tests]
        if verdicts.count(Verdict.REPRODUCED) >= self.k:
            return Verdict.REPRODUCED
        if verdicts.count(Verdict.NOT_REPRODUCED) > m - self.k:
            return Verdict.NOT_REPRODUCED
        return Verdict.UNDECIDED

    def leaves(self) -> Iterator[Comparison]:
        """Every comparison in it."""
        for test in self.tests:
            yield from test.leaves()

    def deciding(self, confirm: float = 1 - LEVEL, refute: float = 1 - LEVEL) -> tuple[Comparison, float]:
        """The comparison on which the verdict hangs, and the level of its interval that decides.

        It is the k-th best of the tests' own; the next one to it if that comes out otherwise.
        """
        verdict = self.verdict(confirm, refute)
        confirm, refute = self._shares(confirm, refute)
        own = [(*test.deciding(confirm, refute), test.verdict(confirm, refute)) for test in self.tests]
        own.sort(key=lambda one: one[0].margin(), reverse=True)
        ranks = [rank for rank, one in enumerate(own) if one[2] == verdict]
        comparison, level, _ = own[min(ranks, key=lambda rank: abs(rank - (self.k - 1)))]
        return comparison, level

    def _shares(self, confirm: float, refute: float) -> tuple[float, float]:
        """What each test gets of the error probabilities."""
        m = len(self.tests)
        return (confirm if self.k == m else confirm / m), (refute if self.k == 1 else refute / m)


Test: TypeAlias = Comparison | Group
"""One comparison, or several joined."""


def every(tests: Iterable[Test]) -> Group:
    """All of ``tests`` hold."""
    tests = tuple(tests)
    return Group(len(tests), tests)


def some(tests: Iterable[Test]) -> Group:
    """At least one of ``tests`` holds."""
    return Group(1, tuple(tests))


def at_least(k: int, tests: Iterable[Test]) -> Group:
    """At least ``k`` of ``tests`` hold."""
    return Group(k, tuple(tests))


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim with its verdict. ``measured``, ``low``, ``high``, ``n`` belong to the comparison that decides."""

    id: str
    text: str
    """What the paper says, in our words."""
    asserts: str
    """The number or order asserted, and how it is tested."""
    where: str
    verdict: Verdict
    decisive: Comparison
    comparisons: tuple[Comparison, ...] = field(repr=False)
    level: float = LEVEL
    """The level of the interval that decides. It is above 95 % where one comparison among many decides."""

    @property
    def measured(self) -> float:
        """The point estimate of the deciding comparison, in its unit."""
        return self.decisive.estimate.value

    @property
    def low(self) -> float:
        """The lower border of the interval that decides."""
        return self.decisive.estimate.interval(self.level)[0]

    @property
    def high(self) -> float:
        """The upper border of the interval that decides."""
        return self.decisive.estimate.interval(self.level)[1]

    @property
    def n(self) -> int:
        """The observations on which it rests: runs, unless its text counts something else."""
        return self.decisive.estimate.n

    @property
    def expected(self) -> str:
        """Where the claim puts the value."""
        return str(self.decisive.expected)

    @property
    def what(self) -> str:
        """What was measured."""
        return self.decisive.what

    @property
    def unit(self) -> str:
        """The unit of the value; empty for a pure number."""
        return self.decisive.unit

    def as_dict(self) -> dict[str, Any]:
        """The claim as plain values, for JSON; what is not finite becomes ``None``."""
        names = (
            "id",
            "verdict",
            "measured",
            "low",
            "high",
            "level",
            "n",
            "expected",
            "unit",
            "what",
            "text",
            "asserts",
            "where",
        )
        return {name: _plain(getattr(self, name)) for name in names}


def judge(name: str, text: str, asserts: str, where: str, test: Test, level: float = LEVEL) -> Claim:
    """Computes the verdict of ``test`` on the claim ``name``, at ``level``.

    The comparison shown is the one that decides, or the number that the claim is known for where that comes out the
    same.
    """
    comparisons = tuple(test.leaves())
    error = 1 - level
    verdict = test.verdict(error, error)
    decisive, deciding = Comparison("nothing was measured", mean([]), Region()), level
    if comparisons:
        decisive, deciding = test.deciding(error, error)
    for comparison in comparisons:
        if comparison.asserted and comparison.verdict(error, error) == verdict:
            decisive, deciding = comparison, level
            break
    return Claim(name, text, asserts, where, verdict, decisive, comparisons, deciding)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
