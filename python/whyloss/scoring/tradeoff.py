"""One accuracy against the other, over all thresholds that a differentiator could have had."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Point", "Tradeoff", "tradeoff"]


@dataclass(frozen=True, slots=True)
class Point:
    """What a threshold gives."""

    threshold: float
    """A loss is taken for corruption if its score is larger; -inf takes every score."""
    a_c: float
    a_w: float

    @property
    def a_t(self) -> float:
        """The unweighted mean of both."""
        return (self.a_c + self.a_w) / 2


@dataclass(frozen=True, slots=True, eq=False)
class Tradeoff:
    """The curve of A_w over A_c, from nothing taken for corruption (1, 0) to everything (0, 1).

    The three arrays belong together; thresholds fall, A_c never rises and A_w never falls along them. A last point
    whose threshold is NaN closes the curve where some losses got no score: no threshold takes them for corruption.
    """

    thresholds: NDArray[np.float64]
    a_c: NDArray[np.float64]
    a_w: NDArray[np.float64]
    congestion: int
    """Congestion losses that it rests on."""
    corruption: int
    """Corruption losses that it rests on."""

    @property
    def defined(self) -> bool:
        """Whether there were losses of both classes."""
        return self.congestion > 0 and self.corruption > 0

    @property
    def auc(self) -> float | None:
        """Area under the curve: how often a corruption loss scores above a congestion loss, ties as one half.

        1 is perfect, 1/2 is guessing, 0 is always wrong; ``None`` if one class is missing.
        """
        if not self.defined:
            return None
        return float(np.sum(np.diff(1 - self.a_c) * (self.a_w[1:] + self.a_w[:-1]) / 2))

    @property
    def best(self) -> Point | None:
        """The point of the largest A_t, for errors that cost the same; of equals, that with the largest A_c."""
        return self._largest(self.a_c + self.a_w, np.ones(self.a_c.size, dtype=bool))

    def bounded(self, a_c: float) -> Point | None:
        """The point of the largest A_w among those whose A_c is at least ``a_c``; of equals, the largest A_c."""
        if not 0 <= a_c <= 1:
            raise ValueError(f"A_c is bounded by {a_c}; allowed is a share from 0 to 1")
        return self._largest(self.a_w, self.a_c >= a_c)

    def at(self, threshold: float) -> Point | None:
        """The point of ``threshold``."""
        if not self.defined:
            return None
        reachable = self.thresholds[~np.isnan(self.thresholds)]
        # Between two scores every threshold is worth the same: that of the next score below.
        index = min(int(np.searchsorted(-reachable, -threshold)), reachable.size - 1)
        return Point(threshold, float(self.a_c[index]), float(self.a_w[index]))

    def corners(self, step: float = 0.0) -> Tradeoff:
        """The same curve without the points on straight lines between others.

        With ``step``, those also go that lie nearer than that to the one before in both directions.
        """
        keep = np.ones(self.a_c.size, dtype=bool)
        if self.a_c.size > 2:
            dx, dy = np.diff(self.a_c), np.diff(self.a_w)
            keep[1:-1] = (dx[1:] * dy[:-1] - dx[:-1] * dy[1:]) != 0
        if step > 0:
            last = 0
            for index in np.flatnonzero(keep)[1:-1]:
                near = abs(self.a_c[index] - self.a_c[last]) < step and abs(self.a_w[index] - self.a_w[last]) < step
                keep[index] = not near
                last = last if near else index
        return Tradeoff(self.thresholds[keep], self.a_c[keep], self.a_w[keep], self.congestion, self.corruption)

    def as_dict(self) -> dict[str, Any]:
        """What counts about the curve as plain data, without its points."""

        def plain(point: Point | None) -> dict[str, float | None] | None:
            if point is None:
                return None
            threshold = point.threshold if math.isfinite(point.threshold) else None
            return {"threshold": threshold, "a_c": point.a_c, "a_w": point.a_w, "a_t": point.a_t}

        return {"auc": self.auc, "best": plain(self.best), "at_a_c_95": plain(self.bounded(0.95))}

    def _largest(self, value: NDArray[np.float64], allowed: NDArray[np.bool_]) -> Point | None:
        if not self.defined:
            return None
        # The first of equals has the largest A_c. A point that no threshold reaches does not count.
        index = int(np.argmax(np.where(allowed & ~np.isnan(self.thresholds), value, -np.inf)))
        return Point(float(self.thresholds[index]), float(self.a_c[index]), float(self.a_w[index]))


def tradeoff(scores: ArrayLike, corruption: ArrayLike) -> Tradeoff:
    """The curve of ``scores`` (large is more like corruption; NaN is no opinion) against the truth.

    Args:
        scores: one number a loss.
        corruption: for each loss whether it was corruption; the others were congestion.
    """
    score = np.asarray(scores, dtype=np.float64)
    truth = np.asarray(corruption, dtype=bool)
    if score.shape != truth.shape or score.ndim != 1:
        raise ValueError(f"scores and truths are paired: found {score.shape} and {truth.shape}")
    total_w = int(truth.sum())
    total_c = truth.size - total_w
    scored = ~np.isnan(score)
    score, truth = score[scored], truth[scored]
    order = np.argsort(score)[::-1]
    score, truth = score[order], truth[order]
    # Losses of equal score pass a threshold together: a point after the last of each.
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True)) if score.size else np.empty(0, dtype=np.intp)
    taken_w = np.concatenate([[0], np.cumsum(truth)[ends]])
    taken_c = np.concatenate([[0], np.cumsum(~truth)[ends]])
    # The point after k distinct scores has the next lower score for its threshold, as a score has to be larger.
    thresholds = np.append(score[ends], -np.inf)
    if not scored.all():
        taken_w, taken_c = np.append(taken_w, total_w), np.append(taken_c, total_c)
        thresholds = np.append(thresholds, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        a_c, a_w = (total_c - taken_c) / np.float64(total_c), taken_w / np.float64(total_w)
    return Tradeoff(thresholds, a_c, a_w, total_c, total_w)
