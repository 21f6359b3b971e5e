"""What a sweep will cost, from a sample of its runs: how many runs, how long on how many cores, how large."""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from whyloss import stats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whyloss import _native

__all__ = ["Forecast", "forecast", "total"]

#: Points that are tried, and seconds that trying them may take.
POINTS = 64
SECONDS = 10.0


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
    """Borders of the 95 % interval of ``core_s``, as the points differ."""
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

    It takes ``budget_s`` seconds or a little more, less where all points can be tried in less. Cores are counted by
    the time that this process has them, so that others on the machine do not blur it.
    """
    stretches = sweep.missing(store) if store.is_dir() else _all(sweep)
    missing = sum(count for _, _, count in stretches)
    points = list(dict.fromkeys(point for point, _, _ in stretches))
    spread = [
        points[(2 * k + 1) * len(points) // (2 * min(POINTS, len(points)))] for k in range(min(POINTS, len(points)))
    ]
    firsts = {point: first for point, first, _ in reversed(stretches)}
    # Points that are far from each other come first, in case time runs out.
    order = sorted(range(len(spread)), key=lambda k: int(f"{k:016b}"[::-1], 2))
    costs, fixed, each, tried, began = [], [], [], 0, time.monotonic()
    for k in order:
        point = sweep.point(spread[k])
        one, seconds = _try(point, firsts[spread[k]], 1)
        three, more = _try(point, firsts[spread[k]], 3)
        costs.append((seconds + more) / 4)
        each.append(max(three - one, 0) / 2)
        fixed.append(max(one - each[-1], 0))
        tried += 4
        if time.monotonic() - began > budget_s and len(costs) > 1:
            break
    if not costs:
        return Forecast(sweep.total(), 0, len(sweep.points()), 0, 0.0, 0.0, 0.0, 0.0)
    cost = stats.mean(costs)
    whole = len(costs) == len(points)
    low, high = (cost.value, cost.value) if whole else cost.interval()
    octets = missing * sum(each) / len(each) + len(points) * sum(fixed) / len(fixed)
    return Forecast(
        runs=sweep.total(),
        missing=missing,
        points=len(sweep.points()),
        tried=tried,
        core_s=missing * cost.value,
        low_s=missing * max(low, 0.0),
        high_s=missing * high if math.isfinite(high) else math.inf,
        store_octets=octets,
    )


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
