"""What varies on a path beside its queue: extra delays, packets that overtake others, times at which nothing passes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, stats

from whyloss.captures.bottleneck import LOW
from whyloss.captures.fates import run_lengths
from whyloss.stats import LEVEL, Proportion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whyloss.captures.bottleneck import Bottleneck
    from whyloss.captures.series import Series

__all__ = ["Jitter", "Outage", "Reordering", "jitter", "outages", "reordering"]

#: Unexplained delays below this are not worth a law.
SMALL_S = 3e-4
#: Round trips that laws are compared on, spread over the capture.
LOOKED_AT = 4000
#: Parts of a capture whose differences tell how sure a mean is.
PARTS = 8
#: Times that delays are drawn, so that what is measured is compared with a law and not with one sample of it.
DRAWS = 4


@dataclass(frozen=True)
class Jitter:
    """Extra delays of packets that do not overtake each other."""

    law: str
    mean_s: float
    interval_s: tuple[float, float]
    #: ``normal`` only.
    deviation_s: float | None
    #: Largest distance between the distributions of what was measured and what the law gives (Kolmogorov and Smirnov).
    distance: float
    #: What even the least delayed have of it, as packets keep their order: it is no part of the base delay.
    least_s: float


@dataclass(frozen=True)
class Reordering:
    """A share of the packets comes late."""

    share: float
    interval: tuple[float, float]
    late_s: float
    packets: int


@dataclass(frozen=True)
class Outage:
    """A time in which nothing passed, in seconds of the capture."""

    start_s: float
    end_s: float
    #: From the last packet that arrived to the first that was lost, and from the last that was lost to the first that
    #: arrived.
    start_interval_s: tuple[float, float]
    end_interval_s: tuple[float, float]
    packets: int


def outages(series: Series, fitted: Bottleneck) -> tuple[list[Outage], NDArray[np.bool_]]:
    """Runs of losses that are too long for the process of the other losses, and which copies they took."""
    members = np.zeros(len(series), dtype=bool)
    of = np.flatnonzero(~fitted.refused & ~series.open)
    lost, at = series.lost[of], fitted.departed_s[of]
    edges = np.diff(np.concatenate(([0], lost.astype(np.int8), [0])))
    runs = list(zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True))
    least_s = max(0.1, 1.5 * fitted.base_s)
    long = [(a, b) for a, b in runs if b - a >= 3 and at[b - 1] - at[a] >= least_s]
    found: list[Outage] = []
    if not long:
        return found, members
    others = np.ones(len(of), dtype=bool)
    for a, b in long:
        others[a:b] = False
    lengths = run_lengths(lost & others)
    # The chance that a loss of the others is followed by another one, with one more of each as if seen: rule of
    # succession.
    again = (lengths.sum() - len(lengths) + 1) / (lengths.sum() + 2)
    for a, b in long:
        if again ** (b - a - 1) * len(runs) > 1e-3:
            continue
        before = at[a - 1] if a else at[a]
        after = at[b] if b < len(at) else at[b - 1]
        begin, end = (before + at[a]) / 2, (at[b - 1] + after) / 2
        found.append(Outage(begin, end, (before, at[a]), (at[b - 1], after), int(b - a)))
        members[of[a:b]] = True
    return found, members


def reordering(series: Series, fitted: Bottleneck) -> Reordering | None:
    """Copies that were acknowledged after later ones, though nobody sent them again, or needlessly."""
    first = ~series.again & ~series.lost & ~series.open
    known = first & np.isfinite(series.acked_s)
    of = np.flatnonzero(known)
    # One connection's acknowledgements say nothing of the order of another's.
    late = np.zeros(len(of), dtype=bool)
    for connection in np.unique(series.connection[of]):
        mine = np.flatnonzero(series.connection[of] == connection)
        acked = series.acked_s[of[mine]]
        later = np.minimum.accumulate(acked[::-1])[::-1]
        late[mine[:-1]] = acked[:-1] > later[1:] + 1e-9
    needless = first & ~np.isfinite(series.acked_s)
    count, n = int(late.sum()) + int(needless.sum()), int(first.sum())
    if count < 3 or not late.any():
        return None
    overdue = (series.acked_s - fitted.departed_s)[of[late]] - fitted.base_s
    share = Proportion(count, n)
    return Reordering(count / n, share.interval(LEVEL), float(max(np.median(overdue), 0.0)), count)


def jitter(series: Series, fitted: Bottleneck) -> Jitter | None:
    """The law whose delays, added behind the bottleneck to what was sent, leave round trips like those measured.

    Returns None if what is unexplained is negligible.
    """
    timed = np.flatnonzero(series.timed)
    measured = fitted.residuals_s
    if len(timed) > LOOKED_AT:
        some = np.linspace(0, len(timed) - 1, LOOKED_AT).astype(int)
        timed, measured = timed[some], measured[some]
    low, middle, high = np.percentile(measured, [LOW, 50, 95])
    if middle - low < SMALL_S and high - low < 2 * SMALL_S:
        return None
    taken = ~fitted.refused & ~series.lost
    left = fitted.departed_s
    # A row each time that delays are drawn.
    uniform = np.random.default_rng(1).random((DRAWS, len(series)))
    units = {
        "uniform": 2 * uniform,
        "exponential": stats.expon.ppf(uniform),
        "pareto": stats.lomax.ppf(uniform, 3) * 2,
    }
    choices: list[tuple[str, NDArray[np.float64], float | None]] = [(law, unit, None) for law, unit in units.items()]
    for share in (0.15, 0.25, 0.35, 0.45):
        low_u, high_u = stats.norm.cdf(-1 / share), stats.norm.cdf(1 / share)
        choices.append(("normal", 1 + share * stats.norm.ppf(low_u + uniform * (high_u - low_u)), share))

    def extra(unit: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
        arrived = np.where(taken, left + mean * unit, -math.inf)
        return (np.maximum.accumulate(arrived, axis=1) - left)[:, timed]

    def distance(unit: NDArray[np.float64], mean: float, inside: NDArray[np.bool_]) -> float:
        ours, theirs = extra(unit, mean)[:, inside].ravel(), measured[inside]
        ours, theirs = np.sort(ours - np.percentile(ours, LOW)), np.sort(theirs - np.percentile(theirs, LOW))
        # Kolmogorov and Smirnov's, without the probability, which takes most of the time.
        everywhere = np.concatenate((ours, theirs))
        above = np.searchsorted(ours, everywhere, side="right") / len(ours)
        return float(np.abs(above - np.searchsorted(theirs, everywhere, side="right") / len(theirs)).max())

    def search(unit: NDArray[np.float64], inside: NDArray[np.bool_], near: float, width: float) -> tuple[float, float]:
        grid = near + np.linspace(-width, width, 13)
        costs = [distance(unit, math.exp(x), inside) for x in grid]
        middle = float(grid[int(np.argmin(costs))])
        step = float(grid[1] - grid[0])
        best = optimize.minimize_scalar(
            lambda x: distance(unit, math.exp(x), inside), bounds=(middle - step, middle + step), method="bounded"
        )
        return math.exp(best.x), float(best.fun)

    everything = np.ones(len(measured), dtype=bool)
    near = math.log(max(float(measured.mean() - low), 1e-5))
    found = [(law, ratio, unit, *search(unit, everything, near, 1.5)) for law, unit, ratio in choices]
    law, ratio, unit, mean, least = min(found, key=lambda it: it[4])
    means = []
    for part in np.array_split(np.arange(len(measured)), PARTS):
        inside = np.zeros(len(measured), dtype=bool)
        inside[part] = True
        if len(part) >= 30:
            means.append(search(unit, inside, math.log(mean), 0.7)[0])
    half = math.inf
    if len(means) > 1:
        half = float(stats.t.ppf(0.5 + LEVEL / 2, len(means) - 1) * np.std(means, ddof=1) / math.sqrt(len(means)))
    return Jitter(
        law=law,
        mean_s=mean,
        interval_s=(max(mean - half, 0.0), mean + half),
        deviation_s=None if ratio is None else ratio * mean,
        distance=least,
        least_s=float(np.percentile(extra(unit, mean), LOW)),
    )
