"""The tests of Paul's claims.

Regions follow from the print alone: a ratio with 0.1 on either side, a throughput with 20 %, "comparable" and "almost
identical" within 10 %, a share with 5 points. Where the paper orders TCPs, the one that is said to be better has the
larger mean. Runs of the same number meet the same random numbers, so all ratios are paired.

Medians and the share of pairs that show what the paper shows in one are given beside; no verdict hangs on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whyloss.claims import Comparison, Region, Test, every
from whyloss.stats import LEVEL, Mean, function_of_means, mean, proportion

from .study import CONGESTED, FREE, LABELS, runs, sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whyloss.stats import Sample

    from .study import Data

#: Tolerances, see above.
RATIO = 0.1
LEVELS = 0.2
COMPARABLE = Region(0.9, 1.1)
POINTS = 5.0
#: The gain that the paper is known for.
GAIN = 1.45
SHOWN = Region()
AT_LEAST_AS_MUCH = Region(low=1.0)


@dataclass(frozen=True, slots=True)
class MedianRatio:
    """The ratio of two medians of paired samples; its interval is the bootstrap's over pairs (Efron 1979)."""

    top: Sample
    bottom: Sample

    @property
    def value(self) -> float:
        """The ratio."""
        return float(np.median(self.top) / np.median(self.bottom))

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.top)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """From 2000 resamplings, always the same ones."""
        picks = np.random.default_rng(2006).integers(0, self.n, (2000, self.n))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.median(self.top[picks], axis=1) / np.median(self.bottom[picks], axis=1)
        low, high = np.quantile(ratios, [0.5 - level / 2, 0.5 + level / 2])
        return float(low), float(high)


def _over(top: Sample, bottom: Sample) -> Mean:
    return function_of_means(lambda a, b: a / b, [top, bottom])


def _about(value: float, tolerance: float = RATIO) -> Region:
    return Region(round(value - tolerance, 3), round(value + tolerance, 3))


def _gain(data: Data, column: str, wired: str, printed: float) -> Iterator[Test]:
    ours, theirs = sample(data, column, "selective", wired), sample(data, column, "newreno", wired)
    yield Comparison("mean of Selective-TCP / mean of NewReno", _over(ours, theirs), _about(printed), asserted=True)
    yield Comparison("median of Selective-TCP / median of NewReno", MedianRatio(ours, theirs), SHOWN)
    yield Comparison(
        f"share of pairs of runs with a ratio of at least {GAIN}",
        proportion(int(np.count_nonzero(ours >= GAIN * theirs)), len(ours)),
        SHOWN,
    )


def _levels(data: Data, wired: str, printed: dict[str, float]) -> Iterator[Test]:
    for name, kbps in printed.items():
        region = _about(kbps, LEVELS * kbps)
        yield Comparison(
            f"throughput of {LABELS[name]}", mean(sample(data, "throughput_kbps", name, wired)), region, "kbps"
        )


def goodput_congested(data: Data) -> Test:
    """ST-1: 45 % more goodput than NewReno with the congested link."""
    return every(_gain(data, "goodput_kbps", CONGESTED, GAIN))


def throughput_congested(data: Data) -> Test:
    """ST-2: 161.5 and 110.91 kbit/s."""
    levels = _levels(data, CONGESTED, {"selective": 161.5, "newreno": 110.91})
    return every([*_gain(data, "throughput_kbps", CONGESTED, 161.5 / 110.91), *levels])


def windows(data: Data) -> Test:
    """ST-3: a larger window, and a threshold that changes less often."""
    tests: list[Test] = []
    for wired in (CONGESTED, FREE):
        of = {name: runs(data, name, wired) for name in ("selective", "newreno")}
        cwnd, changes = (
            _over(*(of[name][column].to_numpy().astype(np.float64) for name in ("selective", "newreno")))
            for column in ("cwnd", "ssthresh_changes")
        )
        tests += [
            Comparison(f"window, Selective-TCP / NewReno, {wired}", cwnd, AT_LEAST_AS_MUCH, asserted=True),
            Comparison(f"changes of the threshold, Selective-TCP / NewReno, {wired}", changes, Region(high=1.0)),
        ]
    return every(tests)


def free(data: Data) -> Test:
    """ST-4: 45 % more goodput without the congested link; 169.15 and 115.65 kbit/s."""
    levels = _levels(data, FREE, {"selective": 169.15, "newreno": 115.65})
    ratio = _over(*(sample(data, "throughput_kbps", name, FREE) for name in ("selective", "newreno")))
    printed = Comparison("throughput, Selective-TCP / NewReno", ratio, _about(169.15 / 115.65))
    return every([*_gain(data, "goodput_kbps", FREE, GAIN), printed, *levels])


def no_errors(data: Data) -> Test:
    """ST-5: without errors within 5 % of NewReno; the detector is right in 95 %."""
    pair = (sample(data, "goodput_kbps", name, CONGESTED, "none") for name in ("selective", "newreno"))
    right, all_ = (sample(data, column, "selective") for column in ("judged_right", "judged"))
    accuracy = function_of_means(lambda a, b: 100 * a / b, [right, all_])
    return every(
        [
            Comparison(
                "goodput without errors, Selective-TCP / NewReno", _over(*pair), Region(0.95, 1.05), asserted=True
            ),
            Comparison("losses that the receiver judged rightly, 5 % burst", accuracy, Region(95 - POINTS, 100), "%"),
        ]
    )


def cost_of_errors(data: Data) -> Test:
    """ST-6: without errors half as much again as under bursts."""
    pair = (sample(data, "goodput_kbps", "selective", FREE, errors) for errors in ("none", "burst"))
    return every([Comparison("goodput of Selective-TCP, no errors / 5 % burst", _over(*pair), _about(1.5))])


def packet_control_congested(data: Data) -> Test:
    """ST-7: as good as packet control, both 40 to 50 % better than NewReno; better than it in long runs."""
    of = {name: sample(data, "throughput_kbps", name) for name in ("selective", "packet-control", "newreno")}
    gain = Region(1.4 - RATIO, 1.5 + RATIO)
    long = (sample(data, "goodput_kbps", name, study="long") for name in ("selective", "packet-control"))
    return every(
        [
            Comparison("Selective-TCP / packet control", _over(of["selective"], of["packet-control"]), COMPARABLE),
            Comparison("packet control / NewReno", _over(of["packet-control"], of["newreno"]), gain, asserted=True),
            Comparison("Selective-TCP / NewReno", _over(of["selective"], of["newreno"]), gain),
            Comparison("Selective-TCP / packet control, 600 s", _over(*long), AT_LEAST_AS_MUCH),
        ]
    )


def packet_control_free(data: Data) -> Test:
    """ST-8: 30 % more throughput than packet control."""
    pair = (sample(data, "throughput_kbps", name, FREE) for name in ("selective", "packet-control"))
    return every([Comparison("Selective-TCP / packet control", _over(*pair), _about(1.3))])


def _order(data: Data, wired: str, pairs: list[tuple[str, str]]) -> list[Test]:
    of = {name: sample(data, "goodput_kbps", name, wired) for name in LABELS}
    return [
        Comparison(f"{LABELS[more]} / {LABELS[less]}", _over(of[more], of[less]), AT_LEAST_AS_MUCH)
        for more, less in pairs
    ]


def order_congested(data: Data) -> Test:
    """ST-9: packet control, Selective-TCP, Reno, NewReno, and far behind Westwood and SACK."""
    pairs = [
        ("packet-control", "selective"),
        ("selective", "reno"),
        ("reno", "newreno"),
        ("newreno", "westwood"),
        ("newreno", "sack"),
    ]
    return every(_order(data, CONGESTED, pairs))


def order_free(data: Data) -> Test:
    """ST-10: Selective-TCP, Westwood, then Reno, NewReno and SACK alike, then packet control."""
    alike = ("reno", "newreno", "sack")
    pairs = [
        ("selective", "westwood"),
        *(("westwood", name) for name in alike),
        *((n, "packet-control") for n in alike),
    ]
    of = {name: sample(data, "goodput_kbps", name, FREE) for name in alike}
    same = [
        Comparison(f"{LABELS[name]} / NewReno", _over(of[name], of["newreno"]), COMPARABLE) for name in ("reno", "sack")
    ]
    return every([*_order(data, FREE, pairs), *same])


def largest_window(data: Data) -> Test:
    """ST-11: Selective-TCP has the largest window, Westwood one like the others."""
    tests: list[Test] = []
    for wired in (CONGESTED, FREE):
        of = {name: sample(data, "cwnd", name, wired) for name in LABELS}
        for name in [name for name in LABELS if name != "selective"]:
            ratio = _over(of["selective"], of[name])
            tests.append(Comparison(f"window, Selective-TCP / {LABELS[name]}, {wired}", ratio, AT_LEAST_AS_MUCH))
        others = (of["reno"] + of["newreno"] + of["sack"]) / 3
        ratio = _over(of["westwood"], others)
        tests.append(Comparison(f"window, Westwood / mean of the others, {wired}", ratio, COMPARABLE))
    return every(tests)


def best_parameters(data: Data) -> Test:
    """ST-12: k = 10 and 50 ms are better than any other that was tried."""
    ours = sample(data, "goodput_kbps", "selective", study="settings")
    others = (
        "k = 2",
        "k = 5",
        "k = 20",
        "k = 50",
        "snack_delay = 25 ms",
        "snack_delay = 35 ms",
        "snack_delay = 100 ms",
    )
    # The paper tried no delay longer than 50 ms.
    return every(
        Comparison(
            f"k = 10 and 50 ms / {name}",
            _over(ours, sample(data, "goodput_kbps", name, study="settings")),
            SHOWN if name.endswith("100 ms") else AT_LEAST_AS_MUCH,
        )
        for name in others
    )


def congestion_helps(data: Data) -> Test:
    """ST-13: Selective-TCP is better with the congested link than without."""
    pair = (sample(data, "goodput_kbps", "selective", wired) for wired in (CONGESTED, FREE))
    return every([Comparison("goodput of Selective-TCP, 2 / 4 Mbps", _over(*pair), AT_LEAST_AS_MUCH)])
