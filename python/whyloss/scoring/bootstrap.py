"""Intervals by the bootstrap: what other runs could have shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Bootstrapped", "Resampling"]

#: Steps in which scores are told apart when an area is drawn again. Areas of draws are off by less than one in as many.
_STEPS = 512
#: Scores at most that the steps are chosen from.
_LOOKED_AT = 1 << 16
#: Draws that are computed in one go: Ctrl-C waits for no more, and memory holds no more.
_AT_ONCE = 1 << 10


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrapped:
    """A value with what it was in each draw; an :class:`whyloss.stats.Estimate`.

    Values of the same :class:`Resampling` pair draw by draw, so their difference has an interval of its own.
    """

    value: float
    """The value of all runs together; NaN if undefined."""
    draws: NDArray[np.float64]
    """One value a draw; NaN where undefined."""
    n: int
    """How many clusters of losses it rests on."""

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The percentile interval (Efron 1979); unbounded with fewer than two clusters."""
        known = self.draws[np.isfinite(self.draws)]
        if self.n < 2 or known.size == 0 or math.isnan(self.value):
            return -math.inf, math.inf
        low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    def __sub__(self, other: Bootstrapped) -> Bootstrapped:
        """The difference of two values that rest on the same draws."""
        if self.draws.size != other.draws.size:
            raise ValueError(f"values of {self.draws.size} and {other.draws.size} draws do not pair")
        return Bootstrapped(self.value - other.value, self.draws - other.draws, min(self.n, other.n))


class Resampling:
    """Draws of clusters with replacement: how often each cluster is in each draw.

    Losses of one run depend on each other, so a run is drawn whole. Run *k* has the same random numbers at all points
    of a sweep: its losses at all points are one cluster.
    """

    __slots__ = ("clusters", "draws", "weights")

    def __init__(self, clusters: int, draws: int = 1000, seed: int = 0) -> None:
        """Draws ``clusters`` out of as many, ``draws`` times; the same seed gives the same draws."""
        self.clusters = clusters
        self.draws = draws if clusters > 1 else 0
        rng = np.random.default_rng(seed)
        self.weights: NDArray[np.float64] = np.empty((self.draws, clusters))
        for block in self._blocks():
            count = len(self.weights[block])
            self.weights[block] = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=count)

    def sums(self, values: NDArray[np.int64]) -> NDArray[np.float64]:
        """For each draw the sum over its clusters of ``values``, whose first axis is the cluster."""
        found = [self._sums(values, block) for block in self._blocks()]
        return np.concatenate([np.empty((0, *values.shape[1:])), *found])

    def _blocks(self) -> list[slice]:
        return [slice(begin, begin + _AT_ONCE) for begin in range(0, self.draws, _AT_ONCE)]

    def _sums(self, values: NDArray[np.int64], block: slice) -> NDArray[np.float64]:
        flat = values.reshape(self.clusters, -1).astype(np.float64)
        weights = self.weights[block]
        return (weights @ flat).reshape(len(weights), *values.shape[1:])

    def areas(
        self, scores: NDArray[np.float64], corruption: NDArray[np.bool_], cluster: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """For each draw the area under the trade-off curve; NaN is the lowest score."""
        if self.draws == 0 or scores.size == 0:
            return np.full(self.draws, np.nan)
        known = np.where(np.isnan(scores), -np.inf, scores)
        borders = np.unique(known[:: 1 + known.size // _LOOKED_AT])
        if borders.size > _STEPS:
            borders = borders[np.linspace(0, borders.size - 1, _STEPS).astype(np.int64)]
        step = np.searchsorted(borders, known, side="right")
        steps = borders.size + 1
        size = self.clusters * steps
        counted = [
            np.bincount((cluster * steps + step)[mask], minlength=size).reshape(self.clusters, steps)
            for mask in (corruption, ~corruption)
        ]
        found = []
        for block in self._blocks():
            w, c = (self._sums(counts, block) for counts in counted)
            below = np.cumsum(c, axis=1) - c
            with np.errstate(invalid="ignore", divide="ignore"):
                found.append((w * (below + c / 2)).sum(axis=1) / (w.sum(axis=1) * c.sum(axis=1)))
        return np.concatenate(found)
