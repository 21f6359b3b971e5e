"""Estimates with intervals: means over repetitions, paired comparisons, ratios of means, proportions.

A *sample* is a one-dimensional array with one value a repetition. Two samples are paired by position: value *k* of each
comes from the same channel realisation, so a comparison of schemes is not blurred by the luck of the channel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["LEVEL", "Estimate", "Maximum", "Mean", "Proportion", "Sample", "function_of_means", "mean", "proportion"]

#: The level of every interval that is shown.
LEVEL = 0.95

Sample: TypeAlias = NDArray[np.float64]
"""One value a repetition."""


class Estimate(Protocol):
    """A measured value and how sure we are of it."""

    @property
    def value(self) -> float:
        """The point estimate."""

    @property
    def n(self) -> int:
        """How many independent observations it rests on."""

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """The confidence interval at ``level``."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its standard error; its interval is Student's.

    With fewer than two observations nothing is known about the spread, and the interval is unbounded.
    """

    value: float
    error: float
    n: int

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Student's t interval with ``n - 1`` degrees of freedom."""
        if self.n < 2 or not math.isfinite(self.value):
            return -math.inf, math.inf
        half = float(stats.t.ppf(0.5 + level / 2, self.n - 1)) * self.error
        return self.value - half, self.value + half


@dataclass(frozen=True, slots=True)
class Exact:
    """A number without a spread: it holds by definition, or it is an extreme or a pooled share of what was run."""

    value: float
    n: int

    def interval(self, level: float = LEVEL) -> tuple[float, float]:  # noqa: ARG002
        """The number itself, twice."""
        return self.value, self.value


@dataclass(frozen=True, slots=True)
class Proportion:
    """How often something happened in ``n`` independent trials; its interval is Clopper and Pearson's (1934)."""

    count: int
    n: int

    @property
    def value(self) -> float:
        """The share observed; not a number without trials."""
        return self.count / self.n if self.n else math.nan

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """The exact interval, which never covers less than ``level``."""
        if self.n == 0:
            return 0.0, 1.0
        interval = stats.binomtest(self.count, self.n).proportion_ci(level, method="exact")
        return float(interval.low), float(interval.high)


@dataclass(frozen=True, slots=True)
class Maximum:
    """The largest of several values that are known by estimate.

    The largest estimate is too large on average. The interval takes that in: it runs from the highest lower border to
    the highest upper border of the intervals, each widened so that they hold together (Bonferroni).
    """

    estimates: tuple[Mean, ...]

    @property
    def value(self) -> float:
        """The largest point estimate."""
        return max(estimate.value for estimate in self.estimates)

    @property
    def n(self) -> int:
        """Observations of the estimate that rests on the fewest."""
        return min(estimate.n for estimate in self.estimates)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """The interval of the largest true value."""
        each = 1 - (1 - level) / len(self.estimates)
        intervals = [estimate.interval(each) for estimate in self.estimates]
        return max(low for low, _ in intervals), max(high for _, high in intervals)


def mean(sample: ArrayLike) -> Mean:
    """The mean of ``sample``. Of a paired difference: ``mean(a - b)``."""
    values = np.asarray(sample, dtype=np.float64)
    if values.size < 2:
        return Mean(float(values[0]) if values.size else math.nan, math.inf, values.size)
    return Mean(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(values.size), values.size)


def proportion(count: int, n: int) -> Proportion:
    """The share ``count`` of ``n`` independent trials."""
    return Proportion(count, n)


def function_of_means(function: Callable[..., float], samples: Sequence[ArrayLike]) -> Mean:
    """A smooth function of the means of paired samples, e.g. a ratio of two means.

    The spread comes from the jackknife (Tukey 1958): pseudo-value *k* is ``n·θ − (n−1)·θ₋ₖ``, where ``θ₋ₖ`` leaves
    repetition *k* out of every sample. For a linear function this is the ordinary paired t interval. The value is that
    of the function at the means, with the jackknife's correction of its bias.
    """
    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    n = arrays[0].size
    if any(array.size != n for array in arrays):
        raise ValueError(f"paired samples differ in length: {[array.size for array in arrays]}")
    if n < 2:
        return Mean(function(*(float(array.mean()) for array in arrays)) if n else math.nan, math.inf, n)
    whole = function(*(float(array.mean()) for array in arrays))
    without = [(array.sum() - array) / (n - 1) for array in arrays]
    pseudo = [n * whole - (n - 1) * function(*(float(array[k]) for array in without)) for k in range(n)]
    return mean(pseudo)
