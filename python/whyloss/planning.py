"""What a sweep will cost, from a sample of its runs: how many runs, how long on how many cores, how large."""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from whyloss import stats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whyloss import _native

__all__ = ["Forecast", "Tried", "forecast", "time_of", "total"]

#: Points that are tried, and seconds that trying them may take.
POINTS = 64
SECONDS = 10.0

#: Runs of a point that are tried, in batches of so many: one alone and several tell what a run adds to the store.
BATCHES = (1, 1, 2)
RUNS = sum(BATCHES)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is to be expected of a sweep, or of several one after the other."""

    runs: int
    """Runs of the whole sweep."""
    missing: int
    """Those that are not in the store yet."""
    points: int
    """Points of the whole sweep."""
    tried: int
    """Runs that this rests on."""
    core_s: float
    """Seconds of one core that the missing runs take."""
    low_s: float
    high_s: float
    """Borders of the 95 % interval of ``core_s``, as runs of a point and points differ."""
    store_octets: float
    """What the missing runs add to the store."""

    def wall_s(self, cores: int) -> float:
        """Seconds on so many cores that have nothing else to do."""
        return self.core_s / max(1, min(cores, self.missing))


def total(found: Iterable[Forecast]) -> Forecast:
    """What several sweeps cost together: what is not known of one does not depend on the others."""
    each = list(found)
    core_s = math.fsum(one.core_s for one in each)
    return Forecast(
        runs=sum(one.runs for one in each),
        missing=sum(one.missing for one in each),
        points=sum(one.points for one in each),
        tried=sum(one.tried for one in each),
        core_s=core_s,
        low_s=max(core_s - math.hypot(*(one.core_s - one.low_s for one in each)), 0.0),
        high_s=core_s + math.hypot(*(one.high_s - one.core_s for one in each)),
        store_octets=math.fsum(one.store_octets for one in each),
    )


def forecast(sweep: _native.Sweep, store: Path, budget_s: float = SECONDS) -> Forecast:
    """Tries some runs at points spread over the sweep; nothing of them is kept.

    What a run costs at a point counts as often as runs of it are missing. It takes ``budget_s`` seconds or a little
    more, less where all points can be tried in less. Cores are counted by the time that this process has them, so that
    others on the machine do not blur it.
    """
    stretches = sweep.missing(store) if store.is_dir() else _all(sweep)
    missing = Counter[int]()
    for point, _, count in stretches:
        missing[point] += count
    points = list(missing)
    spread = [
        points[(2 * k + 1) * len(points) // (2 * min(POINTS, len(points)))] for k in range(min(POINTS, len(points)))
    ]
    firsts = {point: first for point, first, _ in reversed(stretches)}
    # Points that are far from each other come first, in case time runs out.
    order = sorted(range(len(spread)), key=lambda k: int(f"{k:016b}"[::-1], 2))
    tries: list[Tried] = []
    began = time.monotonic()
    for k in order:
        tries.append(Tried.of(sweep.point(spread[k]), firsts[spread[k]], missing[spread[k]]))
        if time.monotonic() - began > budget_s and len(tries) > 1:
            break
    if not tries:
        return Forecast(sweep.total(), 0, len(sweep.points()), 0, 0.0, 0.0, 0.0, 0.0)
    seconds = time_of(tries, missing.total(), len(points))
    low, high = seconds.interval()
    each = sum(one.missing * one.each for one in tries) / sum(one.missing for one in tries)
    fixed = sum(one.fixed for one in tries) / len(tries)
    return Forecast(
        runs=sweep.total(),
        missing=missing.total(),
        points=len(sweep.points()),
        tried=RUNS * len(tries),
        core_s=seconds.value,
        low_s=max(low, 0.0),
        high_s=high,
        store_octets=missing.total() * each + len(points) * fixed,
    )


def time_of(tries: list[Tried], missing: int, points: int) -> stats.Mean:
    """Seconds of one core that all ``missing`` runs of ``points`` points take: a ratio estimate of two stages.

    Cochran 1977, Sampling Techniques, chapter 11; degrees of freedom as Satterthwaite 1946 counts them, rounded down.
    """
    scale, count = points / len(tries), len(tries)
    cost = sum(one.missing * one.cost for one in tries) / sum(one.missing for one in tries)
    # Variances with their degrees of freedom: of each point's own cost, and of points that were not tried.
    parts = [(scale * one.missing**2 * one.spread / RUNS, len(BATCHES) - 1) for one in tries]
    if count < points:
        between = sum((one.missing * (one.cost - cost)) ** 2 for one in tries) / (count - 1)
        parts.append((points * (scale - 1) * between, count - 1))
    variance = math.fsum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts) if variance else 1
    return stats.Mean(missing * cost, math.sqrt(variance), 1 + int(freedom))


@dataclass(frozen=True, slots=True)
class Tried:
    """What some runs of a point have cost."""

    missing: int
    """Runs of it that are not there."""
    cost: float
    """Seconds of a run."""
    spread: float
    """Variance of these seconds between runs."""
    each: float
    """Octets of a run in the store."""
    fixed: float
    """Octets of the point besides."""

    @classmethod
    def of(cls, point: _native.Sweep, first: int, missing: int) -> Tried:
        """Tries runs from number ``first`` on of a point that lacks so many."""
        begins = accumulate(BATCHES, initial=first)
        octets, seconds = zip(
            *(_try(point, begin, runs) for begin, runs in zip(begins, BATCHES, strict=False)), strict=True
        )
        cost = sum(seconds) / RUNS
        spread = sum(runs * (took / runs - cost) ** 2 for runs, took in zip(BATCHES, seconds, strict=True))
        each = max(octets[-1] - octets[0], 0) / (BATCHES[-1] - BATCHES[0])
        return cls(missing, cost, spread / (len(BATCHES) - 1), each, max(octets[0] - each, 0))


def _all(sweep: _native.Sweep) -> list[tuple[int, int, int]]:
    """Everything, where there is no store."""
    with tempfile.TemporaryDirectory() as nothing:
        return sweep.missing(Path(nothing))


def _try(point: _native.Sweep, first: int, count: int) -> tuple[float, float]:
    """Octets in the store of so many runs, and seconds that they take one core."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        point.with_runs(first, count).run(Path(folder), 1, None)
        seconds = time.process_time() - began
        return sum(path.stat().st_size for path in Path(folder).rglob("*.part")), seconds
