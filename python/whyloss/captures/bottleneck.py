"""The bottleneck of a path from the times of packets and acknowledgements: its rate, its delay, its queue.

A sender's own packets tell when the queue was how long: a packet leaves when those before it have left. Rate and delay
are those with which this explains the measured round trips best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from whyloss.captures.aqm import Discipline, discipline
from whyloss.stats import LEVEL

if TYPE_CHECKING:
    from whyloss.captures.series import Series

__all__ = ["LOW", "Bottleneck", "Queue", "bottleneck", "departures", "overflow"]

Times = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Round trips at least that a rate is fitted to.
ENOUGH = 20
#: Parts of a capture whose differences tell how sure rate and delay are.
PARTS = 8
#: Twice the logarithm of the likelihood ratio from which on losses follow the queue.
CLEAR = 15.0
#: How much worse a queue that drops early may explain round trips, and what is worth no word of it.
WORSE, TINY_S = 1.05, 2e-5
#: Share of the packets that come to a full queue and are accepted all the same, as the model of the queue is not exact.
MISTAKEN = 0.02
#: Neighbouring acknowledgements that a rate is taken over.
TOGETHER = (1, 8, 40)
#: Rates that differ by less are one.
SAME = 1e-5
#: Speeds of lines that a sender may have, how much faster than the bottleneck they are at least, and which share of
#: what is unexplained remains if one is there.
LINES_BPS, FASTER, CLEARER = (1e9, 1e8, 1e7), 1.5, 0.98
#: Percent of what is unexplained that lies below its level by chance.
LOW = 2
#: Queue limits that are tried first, and copies that they are tried on.
TRIED, LOOKED_AT = 12, 40_000


@dataclass(frozen=True)
class Queue:
    """How much may wait."""

    packets: int
    #: The most packets that waited when one came and was accepted, and the fewest when one was refused.
    accepted: int
    refused: int
    #: Losses that it explains.
    losses: int
    #: Share of packets that were lost of those that found it full: 1 with a queue that drops at its tail.
    share: float


@dataclass(frozen=True)
class Bottleneck:
    """What a path does to all packets."""

    rate_bps: float
    #: The line from the sender to the bottleneck, if it is slow enough to be seen.
    line_bps: float | None
    rate_interval_bps: tuple[float, float]
    #: The shortest round trip without any queue and without the transmission of the data.
    base_s: float
    base_interval_s: tuple[float, float]
    #: None if no queue overflowed.
    queue: Queue | None
    #: None if nothing shows that the queue drops before it is full.
    discipline: Discipline | None
    #: The most packets that waited, and the most time that one took longer than the shortest.
    most_waiting: int
    longest_wait_s: float
    #: What the model leaves unexplained of each round trip, in the order of the series' timed copies.
    residuals_s: Times
    #: When each copy's transmission was over, by the model, less half of the base delay.
    departed_s: Times
    #: Packets waiting when each copy came.
    waiting: NDArray[np.int64]
    #: Copies that the queue refused.
    refused: Flags
    #: When the link could deliver so many octets, from the first packet on, if its rate varies.
    trace_s: Times | None = None
    trace_octets: int = 0

    @property
    def residual_spread_s(self) -> float:
        """The range in which the middle half of what is unexplained lies."""
        low, high = np.percentile(self.residuals_s, [25, 75])
        return float(high - low)


def departures(time_s: Times, octets: NDArray[np.int64], taken: Flags, rate_bps: float) -> Times:
    """When each packet has been transmitted, if those ``taken`` come to an empty link and wait for each other."""
    work = np.where(taken, octets * 8 / rate_bps, 0.0)
    done = np.cumsum(work)
    return done + np.maximum.accumulate(time_s - (done - work))


def bottleneck(series: Series) -> Bottleneck:
    """Fits rate, delay and queue to a series that was captured at its sender.

    Raises ValueError if too few round trips can be measured.
    """
    timed, nearest, everything = series.timed, series, np.ones(len(series), dtype=bool)
    if timed.sum() < ENOUGH:
        raise ValueError(f"{int(timed.sum())} round trips can be measured; a rate needs {ENOUGH}")
    # What the queue refuses does not fill it: rate and queue are found in turn, from more than one beginning. Jitter
    # blurs the spacing of neighbours.
    spacings = [_rate_of_acknowledgements(series, together) for together in TOGETHER]
    # Where the link is idle for most of the time, most acknowledgements are still those of packets that came together.
    spacings.append(_rate_of_acknowledgements(series, 1, by_time=False))
    starts = spacings + [_best_rate(series, timed, ~series.lost, spacing) for spacing in spacings]
    starts = [start for at, start in enumerate(starts) if all(abs(start / other - 1) > SAME for other in starts[:at])]
    cost, rate, limit = min((_settle(series, timed, start) for start in starts), key=itemgetter(0))
    line = None
    for speed in LINES_BPS:
        # A line between the capture and the bottleneck, as that of the sender's network card, spaces what is sent
        # together.
        if speed > rate * FASTER:
            spaced = replace(series, time_s=departures(series.time_s, series.packet_octets, everything, speed))
            tried = min((_settle(spaced, timed, start) for start in (rate, spacings[0])), key=itemgetter(0))
            if tried[0] < cost * CLEARER:
                (cost, rate, limit), line, nearest = tried, speed, spaced
    series = nearest
    refused = _refused(series, rate, limit)
    found = _managed(series, timed, (rate, *spacings), cost, limit)
    if found is not None:
        (rate, managed), limit, refused = found, None, series.lost & ~series.open
    taken = ~refused
    departed = departures(series.time_s, series.packet_octets, taken, rate)
    waiting = _waiting(series.time_s, departed, taken)
    residuals = (series.acked_s - departed)[timed]
    base = _level(residuals)
    rates, bases = _parts(series, timed, taken, rate)
    queue = _queue(series, limit, refused, waiting)
    return Bottleneck(
        rate_bps=rate,
        line_bps=line,
        rate_interval_bps=_around(rate, rates),
        base_s=base,
        base_interval_s=_around(base, bases),
        queue=queue,
        discipline=None if found is None else managed,
        most_waiting=int(waiting[taken].max()),
        longest_wait_s=float((departed - series.time_s)[taken].max()),
        residuals_s=residuals - base,
        departed_s=departed,
        waiting=waiting,
        refused=refused,
    )


def _rate_of_acknowledgements(series: Series, together: int, *, by_time: bool = True) -> float:
    """The commonest rate at which so many acknowledgements cover octets: packets that waited for each other have it."""
    known = np.isfinite(series.acked_s)
    acks, where = np.unique(series.ack[known], return_inverse=True)
    octets = np.bincount(where, weights=series.packet_octets[known])
    at = np.zeros(len(acks))
    at[where] = series.acked_s[known]
    order = np.argsort(at, kind="stable")
    at, octets = at[order], octets[order]
    together = min(together, max(len(at) // 10, 1))
    total = np.append(0, np.cumsum(octets))
    gaps, octets = at[together:] - at[:-together], (total[together + 1 :] - total[1:-together])
    # What a hole held back is acknowledged at once when it is filled.
    usual = (gaps > 0) & (octets <= 3 * np.median(octets))
    if not usual.any():
        raise ValueError("acknowledgements come all at once; no rate can be seen in them")
    logs = np.log(octets[usual] * 8 / gaps[usual])
    # An idle time weighs no more than a few usual ones.
    weights = np.minimum(gaps[usual], 4 * np.median(gaps[usual])) if by_time else np.ones(len(logs))
    low, high = np.percentile(logs, [1, 99])
    grid = np.linspace(low, high + 1e-9, 400)
    density = np.zeros(len(grid))
    for start in range(0, len(logs), 4096):
        part = slice(start, start + 4096)
        density += np.exp(-0.5 * ((grid[:, None] - logs[part]) / 0.03) ** 2) @ weights[part]
    commonest = float(grid[np.argmax(density)])
    near = np.abs(logs - commonest) < 0.03
    return math.exp(_weighted_median(logs[near], weights[near]))


def _weighted_median(values: Times, weights: Times) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def _cost(series: Series, timed: Flags, taken: Flags, rate: float) -> float:
    left = (series.acked_s - departures(series.time_s, series.packet_octets, taken, rate))[timed]
    return float(np.abs(left - np.median(left)).mean())


def _best_rate(series: Series, timed: Flags, taken: Flags, near: float) -> float:
    """The rate that leaves least of the round trips unexplained."""

    def cost(log_rate: float) -> float:
        return _cost(series, timed, taken, math.exp(log_rate))

    # A rate that is a little too low lets the queue of a long busy time grow without bound: the valley is narrow.
    offsets = np.unique(np.concatenate((np.linspace(-0.7, 0.7, 57), np.linspace(-0.03, 0.03, 61))))
    grid = math.log(near) + offsets
    for _ in range(3):
        costs = [cost(x) for x in grid]
        at = int(np.argmin(costs))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
        grid = np.linspace(low, high, 21)
    return math.exp(optimize.minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-9}).x)


def _level(residuals: Times) -> float:
    """The level below which nothing lies but chance."""
    low, quarter, middle = np.percentile(residuals, [LOW, 25, 50])
    # Where nothing varies, what lies below is where the model of the queue is wrong by a packet.
    return float(middle if middle - quarter < 1e-4 else low)


def _parts(series: Series, timed: Flags, taken: Flags, rate: float) -> tuple[Times, Times]:
    """Rate and delay of each part of the capture by itself."""
    edges = np.linspace(0, len(series), PARTS + 1).astype(int)
    rates, bases = [], []
    departed = departures(series.time_s, series.packet_octets, taken, rate)
    for start, end in pairwise(edges):
        inside = np.zeros(len(series), dtype=bool)
        inside[start:end] = True
        inside &= timed
        if inside.sum() < ENOUGH:
            continue

        def cost(log_rate: float, inside: Flags = inside) -> float:
            return _cost(series, inside, taken, math.exp(log_rate))

        bounds = (math.log(rate) - 0.05, math.log(rate) + 0.05)
        rates.append(math.exp(optimize.minimize_scalar(cost, bounds=bounds, method="bounded").x))
        bases.append(_level((series.acked_s - departed)[inside]))
    return np.array(rates), np.array(bases)


def _around(value: float, parts: Times) -> tuple[float, float]:
    """Student's interval around a value from those of parts."""
    if len(parts) < 2:
        return -math.inf, math.inf
    half = float(stats.t.ppf(0.5 + LEVEL / 2, len(parts) - 1)) * float(parts.std(ddof=1)) / math.sqrt(len(parts))
    return value - half, value + half


def _waiting(time_s: Times, departed: Times, taken: Flags) -> NDArray[np.int64]:
    """How many packets each finds waiting, the one in transmission not counted."""
    ends = departed[taken]
    before: NDArray[np.int64] = np.cumsum(taken) - taken
    gone = np.searchsorted(ends, time_s, side="right")
    return np.asarray(np.maximum(before - np.minimum(gone, before) - 1, 0))


def _settle(series: Series, timed: Flags, rate: float) -> tuple[float, float, int | None]:
    """Rate and queue limit that agree with each other, after what they leave unexplained."""
    limit = _limit(series, rate)
    for _ in range(4):
        rate = _best_rate(series, timed, ~_refused(series, rate, limit), rate)
        before, limit = limit, _limit(series, rate)
        if limit == before:
            break
    return _cost(series, timed, ~_refused(series, rate, limit), rate), rate, limit


def overflow(series: Series, rate_bps: float) -> tuple[Queue | None, Flags, NDArray[np.int64]]:
    """The queue in front of a link of a known rate, which copies it refused, and how many each found waiting."""
    limit = _limit(series, rate_bps)
    refused = _refused(series, rate_bps, limit)
    departed = departures(series.time_s, series.packet_octets, ~refused, rate_bps)
    waiting = _waiting(series.time_s, departed, ~refused)
    return _queue(series, limit, refused, waiting), refused, waiting


def _queue(series: Series, limit: int | None, refused: Flags, waiting: NDArray[np.int64]) -> Queue | None:
    if limit is None:
        return None
    arrived = ~refused & ~series.lost
    count, full = int(refused.sum()), int((arrived & (waiting >= limit)).sum())
    return Queue(limit, int(waiting[arrived].max()), int(waiting[refused].min()), count, count / (count + full))


def _managed(
    series: Series, timed: Flags, rates: tuple[float, ...], cost: float, limit: int | None
) -> tuple[float, Discipline] | None:
    """The rate and the discipline of a queue that drops before it is full, if that is what the losses look like.

    What it drops takes no time on the link: with all losses dropped in front of it, it must explain the round trips at
    least as well. The search begins at ``rates``, of which the first is that of the limit.
    """
    taken = ~series.lost
    before = min(
        (_best_rate(series, timed, taken, rate) for rate in rates), key=lambda it: _cost(series, timed, taken, it)
    )
    left = _cost(series, timed, taken, before)
    if left > cost * WORSE + TINY_S:
        return None
    found = discipline(series.time_s, series.packet_octets, series.lost, ~series.open, before)
    if found is None or found.gain < CLEAR:
        return None
    # Where round trips do not decide, the losses do.
    if left > cost / 2 and limit is not None and _gain(series, rates[0], limit) >= found.gain:
        return None
    return before, found


def _refused(series: Series, rate: float, limit: int | None) -> Flags:
    """Which lost packets found ``limit`` waiting; those that did not filled the queue as those that arrived."""
    return _replay(series, rate, limit, len(series))[0]


def _replay(series: Series, rate: float, limit: int | None, most: int) -> tuple[Flags, int]:
    """What a queue with this limit refuses of the first copies, and how many it accepted against the limit.

    Where a packet arrived though the queue was full by the model, a packet before it, lost and taken for transmitted,
    had been refused: the model was wrong by little when that came, and would stay wrong for as long as the link is
    busy.
    """
    refused = np.zeros(min(most, len(series)), dtype=bool)
    if limit is None:
        return refused, 0
    ends: list[float] = []
    doubtful: list[int] = []
    gone, last, against = 0, -math.inf, 0
    octets, lost = (series.packet_octets * 8 / rate).tolist(), series.lost.tolist()
    unknown = series.open.tolist()
    for place, time in enumerate(series.time_s[: len(refused)].tolist()):
        while gone < len(ends) and ends[gone] <= time:
            gone += 1
        if gone == len(ends):
            doubtful.clear()
        if len(ends) - gone - 1 >= limit:
            if unknown[place]:
                # Nothing speaks for either; the model says that it was refused.
                continue
            if lost[place]:
                refused[place] = True
                continue
            against += 1
            if doubtful:
                wrong = doubtful.pop()
                refused[wrong] = True
                ends[gone:] = [end - octets[wrong] for end in ends[gone + 1 :]]
                last -= octets[wrong]
        if lost[place]:
            doubtful.append(place)
        last = max(time, last) + octets[place]
        ends.append(last)
    return refused, against


def _limit(series: Series, rate: float) -> int | None:
    """The queue limit under which the fates are likeliest; None if they are no more likely under any."""
    known = ~series.open[:LOOKED_AT]
    lost = series.lost[:LOOKED_AT]
    if not (lost & known).any():
        return None
    time, octets = series.time_s[:LOOKED_AT], series.packet_octets[:LOOKED_AT]

    def gain(limit: int) -> float:
        return _gain(series, rate, limit)

    taken = ~lost
    found = _waiting(time, departures(time, octets, taken, rate), taken)[lost & known]
    levels = np.unique(found[found > 0])
    if len(levels) > TRIED:
        levels = np.unique(np.quantile(levels, np.linspace(0, 1, TRIED)).astype(int))
    gains = {int(level): gain(int(level)) for level in levels}
    for _ in range(3):
        if not gains:
            return None
        best = max(gains, key=lambda level: gains[level])
        near = sorted(gains)
        at = near.index(best)
        low = near[at - 1] if at else max(best - 4, 1)
        high = near[at + 1] if at + 1 < len(near) else best + 4
        for level in np.unique(np.linspace(low, high, 6).astype(int)):
            if int(level) not in gains:
                gains[int(level)] = gain(int(level))
    best = max(gains, key=lambda level: gains[level])
    return best if gains[best] > CLEAR else None


def _gain(series: Series, rate: float, limit: int) -> float:
    """Twice the logarithm of the likelihood ratio of a queue limit to losses that know nothing of the queue.

    A queue that drops at its tail refuses all that find it full; the model of it may be wrong by one packet now and
    then.
    """
    known, lost = ~series.open[:LOOKED_AT], series.lost[:LOOKED_AT]
    losses = float((lost & known).sum())
    refused, against = _replay(series, rate, limit, LOOKED_AT)
    count = float(refused.sum())
    by_queue = count * math.log(1 - MISTAKEN) + against * math.log(MISTAKEN)
    rest = float(known.sum()) - count - against
    if rest <= 0:
        return -math.inf
    return 2 * (by_queue + float(_binomial(losses - count, rest)) - float(_binomial(losses, float(known.sum()))))


def _binomial(count: NDArray[np.float64] | float, n: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """The logarithm of the likelihood of ``count`` in ``n``, at its greatest."""
    count, n = np.asarray(count, dtype=float), np.asarray(n, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        hit = np.where(count > 0, count * np.log(count / n), 0.0)
        miss = np.where(n - count > 0, (n - count) * np.log((n - count) / n), 0.0)
    return hit + miss
