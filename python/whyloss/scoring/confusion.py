"""Counts of verdicts by what really happened, and the accuracies that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["CONGESTION", "CORRUPTION", "METRICS", "NOTHING", "TRUTHS", "UNKNOWN", "VERDICTS", "Confusion", "metric"]

#: What really happened, in the order of the rows; ``nothing`` is a segment that arrived.
TRUTHS = ("congestion", "corruption", "nothing")
#: What was said, in the order of the columns.
VERDICTS = ("congestion", "corruption", "unknown")

CONGESTION, CORRUPTION = 0, 1
NOTHING = 2
UNKNOWN = 2

#: What can be computed from counts; see the properties of :class:`Confusion`.
METRICS = ("a_c", "a_w", "a_t", "m_c", "m_w", "weighted", "matthews", "decided")


def metric(name: str, counts: ArrayLike) -> NDArray[np.float64]:
    """The metric ``name`` of each matrix of ``counts``, whose last two axes are truth and verdict; NaN if undefined.

    ``unknown`` counts as ``congestion``: that is what a sender makes of it.
    """
    n = np.asarray(counts, dtype=np.float64)
    congestion, corruption = n[..., CONGESTION, :].sum(-1), n[..., CORRUPTION, :].sum(-1)
    forgiven, found = n[..., CONGESTION, CORRUPTION], n[..., CORRUPTION, CORRUPTION]
    with np.errstate(divide="ignore", invalid="ignore"):
        a_c, a_w = (congestion - forgiven) / congestion, found / corruption
        match name:
            case "a_c":
                value = a_c
            case "a_w":
                value = a_w
            case "a_t":
                value = (a_c + a_w) / 2
            case "m_c":
                value = forgiven / congestion
            case "m_w":
                value = (corruption - found) / corruption
            case "weighted":
                value = (congestion - forgiven + found) / (congestion + corruption)
            case "matthews":
                missed, right = corruption - found, congestion - forgiven
                product = (
                    np.sqrt(corruption) * np.sqrt(congestion) * np.sqrt(found + forgiven) * np.sqrt(missed + right)
                )
                value = (found * right - forgiven * missed) / product
            case "decided":
                value = 1 - n[..., :NOTHING, UNKNOWN].sum(-1) / (congestion + corruption)
            case _:
                raise ValueError(f"there is no metric {name!r}; there are {', '.join(METRICS)}")
    return np.where(np.isfinite(value), value, np.nan)


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often each verdict met each truth."""

    counts: tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]
    """One row a truth (:data:`TRUTHS`), one column a verdict (:data:`VERDICTS`)."""

    @classmethod
    def of(cls, counts: ArrayLike) -> Confusion:
        """From a 3 × 3 matrix."""
        rows = np.asarray(counts, dtype=np.int64)
        if rows.shape != (3, 3):
            raise ValueError(f"counts have the shape {rows.shape}; a confusion matrix here has 3 truths and 3 verdicts")
        a, b, c = ((int(row[0]), int(row[1]), int(row[2])) for row in rows)
        return cls((a, b, c))

    def __getitem__(self, key: tuple[str, str]) -> int:
        """The count of a truth and a verdict: ``confusion["corruption", "congestion"]``."""
        truth, verdict = key
        return self.counts[TRUTHS.index(truth)][VERDICTS.index(verdict)]

    def total(self, truth: str) -> int:
        """Judgements on what was really ``truth``."""
        return sum(self.counts[TRUTHS.index(truth)])

    def metric(self, name: str) -> float | None:
        """One of :data:`METRICS`; ``None`` if undefined."""
        value = float(metric(name, self.counts))
        return None if math.isnan(value) else value

    @property
    def a_c(self) -> float | None:
        """Accuracy on congestion losses: the share not taken for corruption."""
        return self.metric("a_c")

    @property
    def a_w(self) -> float | None:
        """Accuracy on corruption losses: the share taken for corruption."""
        return self.metric("a_w")

    @property
    def a_t(self) -> float | None:
        """Total accuracy: the unweighted mean of both, 1/2 for whoever always says the same."""
        return self.metric("a_t")

    @property
    def m_c(self) -> float | None:
        """Misclassified share of congestion losses: 1 - A_c."""
        return self.metric("m_c")

    @property
    def m_w(self) -> float | None:
        """Misclassified share of corruption losses: 1 - A_w."""
        return self.metric("m_w")

    @property
    def weighted(self) -> float | None:
        """Share of all losses judged right: both accuracies weighted by the losses of their class."""
        return self.metric("weighted")

    @property
    def matthews(self) -> float | None:
        """Matthews correlation of verdict and truth, from -1 to 1; undefined if either is always the same."""
        return self.metric("matthews")

    @property
    def decided(self) -> float | None:
        """Share of the losses whose verdict was not ``unknown``."""
        return self.metric("decided")

    def as_dict(self) -> dict[str, Any]:
        """Counts and metrics as plain data."""
        counts = {truth: dict(zip(VERDICTS, row, strict=True)) for truth, row in zip(TRUTHS, self.counts, strict=True)}
        return {"counts": counts, **{name: self.metric(name) for name in METRICS}}
