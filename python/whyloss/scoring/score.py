"""All that is known of a differentiator on some losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from whyloss.scoring.bootstrap import Bootstrapped, Resampling
from whyloss.scoring.confusion import METRICS, Confusion, metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whyloss.scoring.judged import Judged
    from whyloss.scoring.tradeoff import Tradeoff

__all__ = ["Score", "scores"]


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """How good a differentiator is on some losses."""

    differentiator: str
    group: dict[str, Any]
    """Which losses, where they were grouped."""
    runs: int
    """Runs that had any."""
    confusion: Confusion
    """Its verdicts against the truth, as the rules count."""
    timeout: Confusion
    """The same at the expiries of the retransmission timer alone, whatever the rules say of them."""
    tradeoff: Tradeoff
    """Its scores at every threshold."""
    coverage: float | None
    """See :meth:`whyloss.scoring.Judged.coverage`."""
    estimates: dict[str, Bootstrapped]
    """``auc`` and all of :data:`~whyloss.scoring.confusion.METRICS`, each with its draws."""

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float] | None:
        """The bootstrap interval of a metric or of ``auc``; ``None`` if undefined or known from a single run only."""
        low, high = self.estimates[name].interval(level)
        return (low, high) if math.isfinite(low) else None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as ``whyloss score --json`` prints it."""
        return {
            "differentiator": self.differentiator,
            "group": self.group,
            "runs": self.runs,
            **self.confusion.as_dict(),
            **self.tradeoff.as_dict(),
            "coverage": self.coverage,
            "timeout": self.timeout.as_dict(),
            "intervals": {name: self.interval(name) for name in self.estimates},
        }


def scores(
    judged: Judged,
    *,
    by: Sequence[str] = (),
    differentiators: Sequence[str] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> Iterator[Score]:
    """Scores ``differentiators``, or all, on all losses or on each group of them.

    Args:
        judged: the losses, with the rules by which they count.
        by: columns whose values make groups: an axis of a sweep, ``run``, ``flow``, ``scheme``, …
        differentiators: their names; all that judged if nothing is said.
        draws: draws of the bootstrap over runs; 0 for no intervals.
        seed: of its random numbers. All differentiators of a group get the same draws, so that they pair.
    """
    for group, part in judged.split(by):
        cluster, clusters = part.clusters()
        resampling = Resampling(clusters if draws else 1, draws, seed)
        if not draws:
            cluster = np.zeros_like(cluster)
        timeouts = part.with_rules(timeouts="only")
        for name in differentiators or part.differentiators:
            yield _score(name, group, part, timeouts, resampling, cluster, clusters)


def _score(
    name: str,
    group: dict[str, Any],
    part: Judged,
    timeouts: Judged,
    resampling: Resampling,
    cluster: np.ndarray[Any, np.dtype[np.int64]],
    clusters: int,
) -> Score:
    counts = np.zeros((resampling.clusters, 3, 3), dtype=np.int64)
    found = part.counts(name, cluster)
    counts[: len(found)] = found
    confusion = Confusion.of(counts.sum(axis=0))
    drawn = resampling.sums(counts)
    estimates = {
        one: Bootstrapped(float(metric(one, confusion.counts)), metric(one, drawn), clusters) for one in METRICS
    }
    curve = part.tradeoff(name)
    scored, corruption = part.lost(name)
    areas = resampling.areas(scored, corruption, cluster[part.judged_and_lost(name)])
    auc = curve.auc
    estimates["auc"] = Bootstrapped(math.nan if auc is None else auc, areas, clusters)
    return Score(name, group, part.runs, confusion, timeouts.confusion(name), curve, part.coverage(name), estimates)
