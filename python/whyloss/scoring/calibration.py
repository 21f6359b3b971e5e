"""Whether a score that says to be a probability is one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Bin", "Calibration", "calibration"]


@dataclass(frozen=True, slots=True)
class Bin:
    """Losses with scores in a range."""

    score: float
    """Mean score."""
    observed: float
    """Share that was corruption."""
    losses: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Scores as probabilities of corruption against how often corruption it was."""

    bins: tuple[Bin, ...]
    """The reliability curve, by rising score; empty bins are left out."""
    losses: int
    """Losses that it rests on."""
    without_score: int
    """Losses without a score, which count nowhere here."""
    expected_error: float
    """Expected calibration error: the mean distance of score and observed share, bins weighted by their losses."""
    brier: float
    """Brier score: the mean squared distance of score and truth; 0 is perfect, 1/4 is always saying 1/2."""

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self)


def calibration(scores: ArrayLike, corruption: ArrayLike, bins: int = 10) -> Calibration | None:
    """How well ``scores`` say how probable corruption is; ``None`` without scores or if one is not in [0, 1].

    Args:
        scores: one number a loss, NaN for no opinion.
        corruption: for each loss whether it was corruption; the others were congestion.
        bins: bins of equal width over [0, 1]. A score on a border belongs to the bin above it.
    """
    if bins < 1:
        raise ValueError(f"{bins} bins; at least one is needed")
    score = np.asarray(scores, dtype=np.float64)
    truth = np.asarray(corruption, dtype=np.float64)
    scored = ~np.isnan(score)
    without = int(score.size - scored.sum())
    score, truth = score[scored], truth[scored]
    if score.size == 0 or score.min() < 0 or score.max() > 1:
        return None
    index = np.minimum((score * bins).astype(np.int64), bins - 1)
    n = np.bincount(index, minlength=bins)
    said = np.bincount(index, score, minlength=bins)
    was = np.bincount(index, truth, minlength=bins)
    curve = tuple(Bin(float(said[k] / n[k]), float(was[k] / n[k]), int(n[k])) for k in np.flatnonzero(n))
    return Calibration(
        curve,
        int(score.size),
        without,
        float(np.abs(said - was).sum() / score.size),
        float(np.mean((score - truth) ** 2)),
    )
