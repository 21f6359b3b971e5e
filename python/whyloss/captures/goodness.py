"""Whether a scenario looks like a capture: both seen at the sender, beside how much runs of the scenario differ."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from whyloss.captures import series
from whyloss.captures.fates import run_lengths
from whyloss.stats import LEVEL, Mean, mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from whyloss.captures.series import Series
    from whyloss.scenario import Scenario

__all__ = ["Goodness", "compare", "describe", "simulate"]

#: Goodput of the fitted path may be this far from the captured one, whatever the spread of its runs.
TOLERANCE = 0.10
#: So far beyond what runs are from each other the distributions of round trips may be. Times that differ by less than
#: this, or by this share of the shortest round trip, are the same: where nothing waits all round trips are alike, and
#: hundredths of a millisecond would decide.
FAR, ALIKE_S, ALIKE = 0.35, 1e-3, 0.02
#: Of so many fits that are right, all but one are believed: the captured run is one more run of the fitted path.
BELIEVED = 0.99
#: Samples of two-sample tests, spread over the capture; neighbours depend on each other.
SAMPLES = 400


@dataclass(frozen=True)
class Goodness:
    """How much the fitted path's simulation looks like the capture."""

    captured_goodput_bps: float
    goodput_bps: Mean
    #: Where the goodput of one more run would lie, at the level of :data:`BELIEVED`.
    goodput_range_bps: tuple[float, float]
    #: Distance of the distributions of round trips, after Kolmogorov and Smirnov, of what differs by more than
    #: :data:`ALIKE_S`; NaN where there are none.
    round_trips: float
    #: Kolmogorov and Smirnov's statistic and probability of the lengths of runs of losses; NaN where there are none.
    runs: tuple[float, float]
    #: The largest distance of round trips that one run has from the others.
    round_trips_range: float
    lost: float
    captured_lost: float

    @property
    def goodput_ratio(self) -> float:
        """Goodput of the fitted path over the captured one."""
        return self.goodput_bps.value / self.captured_goodput_bps

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against believing the fit: the capture is not what a run of the fitted path could have been."""
        said = []
        low, high = self.goodput_range_bps
        if abs(self.goodput_ratio - 1) > TOLERANCE and not low <= self.captured_goodput_bps <= high:
            said.append(
                f"the captured goodput is {self.captured_goodput_bps / 1e6:.4g} Mbit/s, "
                f"runs of the fitted path have {low / 1e6:.4g} to {high / 1e6:.4g}"
            )
        if self.round_trips > FAR + self.round_trips_range:
            said.append(
                f"round trips differ: distance {self.round_trips:.2f} of the distributions, "
                f"runs of the fitted path have up to {self.round_trips_range:.2f}"
            )
        return tuple(said)


def simulate(scenario: Scenario, runs: int, *, progress: Callable[[int], object] | None = None) -> list[Series]:
    """Runs a scenario with a ``[path]`` and captures it at the sender each time."""
    found = []
    for run in range(runs):
        found.append(captured(scenario, run))
        if progress is not None:
            progress(run + 1)
    return found


def captured(scenario: Scenario, run: int) -> Series:
    """One run of a scenario with a ``[path]``, captured at the sender."""
    with tempfile.TemporaryDirectory(prefix="whyloss-fit-") as folder:
        scenario.replace({"output.capture": ["server"]}).run(run, captures=folder)
        return series.read(*sorted(Path(folder).iterdir()))


def compare(captured: Series, simulated: Sequence[Series]) -> Goodness:
    """Two-sample tests of what was captured against what was simulated."""
    goodput = np.array([one.goodput_bps for one in simulated])
    trips = [_spread(one.round_trips_s) for one in simulated]
    own = _spread(captured.round_trips_s)
    alike = max(ALIKE_S, ALIKE * float(own.min(initial=math.inf)) if len(own) else 0.0)
    distances = [
        _distance(trips[at], np.concatenate(trips[:at] + trips[at + 1 :]), alike)
        for at in range(len(trips) if len(trips) > 1 else 0)
    ]
    low, high = _one_more(np.log(goodput))
    return Goodness(
        captured_goodput_bps=captured.goodput_bps,
        goodput_bps=mean(goodput),
        goodput_range_bps=(math.exp(low), math.exp(high)),
        round_trips=_distance(own, np.concatenate(trips), alike),
        round_trips_range=max(distances, default=0.0),
        runs=_two_samples(run_lengths(captured.lost), np.concatenate([run_lengths(one.lost) for one in simulated])),
        lost=float(np.mean([one.lost.mean() for one in simulated])),
        captured_lost=float(captured.lost.mean()),
    )


def describe(goodness: Goodness) -> list[str]:
    """Goodness of fit in lines for people."""
    low, high = goodness.goodput_bps.interval(LEVEL)
    lines = [
        f"goodput: captured {goodness.captured_goodput_bps / 1e6:.4g} Mbit/s, "
        f"fitted {goodness.goodput_bps.value / 1e6:.4g} "
        f"({low / 1e6:.4g} to {high / 1e6:.4g}), {goodness.goodput_bps.n} runs",
        f"lost: captured {goodness.captured_lost:.3%}, fitted {goodness.lost:.3%}",
    ]
    low, high = goodness.goodput_range_bps
    if math.isfinite(high) and low > 0:
        lines.insert(1, f"one more run would have {low / 1e6:.4g} to {high / 1e6:.4g} Mbit/s ({BELIEVED:.0%})")
    if math.isfinite(goodness.round_trips):
        lines.append(
            f"round trips: distance {goodness.round_trips:.3f}, of runs up to {goodness.round_trips_range:.3f}"
        )
    distance, chance = goodness.runs
    if math.isfinite(distance):
        lines.append(f"runs of losses: distance {distance:.3f}, p = {chance:.2g} (Kolmogorov-Smirnov)")
    lines += [f"DOUBT: {doubt}" for doubt in goodness.doubts]
    return lines


def _one_more(values: NDArray[np.float64]) -> tuple[float, float]:
    """Where one more value would lie: Student's prediction interval. Without a spread it is the values themselves."""
    if len(values) == 0:
        return 0.0, 0.0
    if len(values) < 2:
        return float(values[0]), float(values[0])
    half = float(stats.t.ppf(0.5 + BELIEVED / 2, len(values) - 1) * values.std(ddof=1))
    half *= math.sqrt(1 + 1 / len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def _spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[:: max(len(values) // SAMPLES, 1)]


def _distance(ours: NDArray[np.float64], theirs: NDArray[np.float64], alike: float) -> float:
    """How far one distribution function is above the other at least, if times are moved by ``alike`` (Levy's)."""
    if len(ours) == 0 or len(theirs) == 0:
        return math.nan
    ours, theirs = np.sort(ours), np.sort(theirs)

    def above(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
        share = np.arange(1, len(one) + 1) / len(one)
        return float((share - np.searchsorted(other, one + alike, side="right") / len(other)).max())

    return max(above(ours, theirs), above(theirs, ours), 0.0)


def _two_samples(
    ours: NDArray[np.float64] | NDArray[np.int64], theirs: NDArray[np.float64] | NDArray[np.int64]
) -> tuple[float, float]:
    if len(ours) == 0 or len(theirs) == 0:
        return math.nan, math.nan
    test = stats.ks_2samp(ours, theirs, method="asymp")
    return float(test.statistic), float(test.pvalue)
