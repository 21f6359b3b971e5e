"""Active queue management told from a queue that drops at its tail: by where losses stand in the delay.

What a queue manages drops while others wait longer and arrive. The packets as they were sent are put through CoDel
(RFC 8289) and PIE (RFC 8033); that under which the fates are likeliest is taken, if it is clearly likelier than losses
that know nothing of the delay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = ["Discipline", "codel", "discipline", "pie"]

Times = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Targets and intervals that are tried; of those that explain as much the first, which the RFCs name.
TARGETS_S = {"codel": (5e-3, 2.5e-3, 10e-3, 20e-3), "pie": (15e-3, 5e-3, 10e-3, 20e-3, 30e-3)}
INTERVALS_S = (100e-3, 50e-3, 200e-3)
#: The greatest share of packets that an exact replay says wrongly, and how far it may miss the packet.
MISTAKEN, NEAR = 0.02, 3
#: Copies that are looked at.
LOOKED_AT = 40_000


@dataclass(frozen=True)
class Discipline:
    """A queue that drops before it is full."""

    kind: str
    target_s: float
    #: ``codel`` only.
    interval_s: float | None
    #: Twice the logarithm of the likelihood ratio to losses that know nothing of the delay.
    gain: float
    #: Share of the losses that the replay of ``codel`` drops as well; of ``pie`` the mean probability at them.
    explained: float


def discipline(
    time_s: Times, octets: NDArray[np.int64], lost: Flags, known: Flags, rate_bps: float
) -> Discipline | None:
    """The discipline under which the fates are likeliest; None without any loss."""
    part = slice(0, LOOKED_AT)
    time_s, octets, lost, known = time_s[part], octets[part], lost[part] & known[part], known[part]
    count, n = int(lost.sum()), int(known.sum())
    if count == 0 or count == n:
        return None
    without = count * math.log(count / n) + (n - count) * math.log(1 - count / n)
    found = []
    for target, interval in product(TARGETS_S["codel"], INTERVALS_S):
        dropped = codel(time_s, octets, rate_bps, target, interval)
        if not dropped.any():
            continue
        hit = min(_matched(np.flatnonzero(dropped), np.flatnonzero(lost)), count)
        wrong, missed = max(int(dropped.sum()) - hit, 0), count - hit
        rest = n - count - wrong
        likely = hit * math.log(1 - MISTAKEN) + wrong * math.log(MISTAKEN)
        # Each hit stood anywhere near the packet.
        likely -= hit * math.log(2 * NEAR + 1)
        likely += missed * math.log(max(missed, 0.5) / (missed + rest)) + rest * math.log(rest / (missed + rest))
        found.append(Discipline("codel", target, interval, 2 * (likely - without), hit / count))
    for target in TARGETS_S["pie"]:
        chance = np.clip(pie(time_s, octets, lost, rate_bps, target), 1e-4, 0.99)
        likely = float(np.log(chance[lost]).sum() + np.log1p(-chance[known & ~lost]).sum())
        found.append(Discipline("pie", target, None, 2 * (likely - without), float(chance[lost].mean())))
    return max(found, key=lambda it: it.gain)


def codel(time_s: Times, octets: NDArray[np.int64], rate_bps: float, target_s: float, interval_s: float) -> Flags:
    """Which of the packets CoDel drops (RFC 8289, section 5) in front of a link with this rate."""
    came, length = time_s.tolist(), octets.tolist()
    sent = np.append(0, np.cumsum(octets)).tolist()
    longest = max(length)
    dropped = np.zeros(len(came), dtype=bool)
    free, above_at, next_at, count, last_count, dropping = -math.inf, None, 0.0, 0, 0, False
    head, tail = 0, 0

    def may_drop(now: float) -> bool:
        nonlocal above_at, tail
        while tail < len(came) and came[tail] <= now:
            tail += 1
        if now - came[head] < target_s or sent[tail] - sent[head + 1] <= longest:
            above_at = None
            return False
        if above_at is None:
            above_at = now + interval_s
        return now >= above_at

    while head < len(came):
        if came[head] > free:
            # It had nothing to send: the queue was empty.
            above_at, dropping = None, False
        now = max(free, came[head])
        above = may_drop(now)
        if dropping:
            dropping = above
            while dropping and now >= next_at and head + 1 < len(came) and came[head + 1] <= now:
                count += 1
                dropped[head] = True
                head += 1
                if may_drop(now):
                    next_at += interval_s / math.sqrt(count)
                else:
                    dropping = False
        elif above and head + 1 < len(came) and came[head + 1] <= now:
            delta = count - last_count
            count = delta if delta > 1 and now - next_at < 16 * interval_s else 1
            dropping, next_at, last_count = True, now + interval_s / math.sqrt(count), count
            dropped[head] = True
            head += 1
            may_drop(now)
        free = now + length[head] * 8 / rate_bps
        head += 1
    return dropped


def pie(time_s: Times, octets: NDArray[np.int64], lost: Flags, rate_bps: float, target_s: float) -> Times:
    """With which probability PIE drops each packet (RFC 8033, section 4), after those that were lost before it."""
    # RFC 8033, 4: the defaults.
    interval_s, burst_s, alpha, beta, packet = 15e-3, 150e-3, 0.125, 1.25, 1500
    scales = ((1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0))
    chance = np.zeros(len(time_s))
    probability, old, allowance, next_at, done = 0.0, 0.0, burst_s, float(time_s[0]) + interval_s, -math.inf
    work = octets * 8 / rate_bps
    for place, now in enumerate(time_s.tolist()):
        while next_at <= now:
            delay = max(done - next_at, 0.0)
            change = alpha * (delay - target_s) + beta * (delay - old)
            change /= next((scale for below, scale in scales if probability < below), 1.0)
            probability += min(change, 0.02) if probability >= 0.1 else change
            calm = delay < target_s / 2 and old < target_s / 2
            probability = min(max(probability * (0.98 if calm else 1.0), 0.0), 1.0)
            old, allowance = delay, max(allowance - interval_s, 0.0)
            if calm and probability == 0:
                allowance = burst_s
            next_at += interval_s
        waits = max(done - now, 0.0)
        quiet = old < target_s / 2 and probability < 0.2
        if allowance <= 0 and not quiet and waits * rate_bps / 8 > 2 * packet:
            chance[place] = probability
        if not lost[place]:
            done = max(done, now) + float(work[place])
    return chance


def _matched(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> int:
    """How many of ``ours`` have one of ``theirs`` near."""
    at = np.searchsorted(theirs, ours - NEAR)
    return int((theirs[np.minimum(at, len(theirs) - 1)] - ours <= NEAR)[at < len(theirs)].sum())
