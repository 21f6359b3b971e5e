"""The tests of Park & Chung's claims.

Where the paper gives a number, the region is that number with a tolerance that was fixed before anything was measured:
10 points for an accuracy ("about 10 %", "67 %"), 2 points for an improvement, a factor of two for a count. "Little
difference" is within 5 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whyloss.claims import Comparison, Region, Test, every, some
from whyloss.stats import Mean, Sample, function_of_means, mean

from .study import PAPER, accuracies, improvement, share, variant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .study import Data

#: Tolerances, see above.
POINTS = 10.0
GAIN_POINTS = 2.0
LITTLE = 5.0
SCENARIOS = "scenarios"


def _about(value: float, tolerance: float = POINTS) -> Region:
    return Region(low=max(0.0, value - tolerance), high=min(100.0, value + tolerance))


def _counts(data: Data, group: str, name: str, column: str) -> Sample:
    return variant(data, group, name)[column].to_numpy().astype(np.float64)


def accuracy_of_each(data: Data) -> Test:
    """PC-1: the accuracies of Figure 1, and LDA_EQ's mean accuracy the highest."""
    return every([*_accuracy_values(data), *_highest(data)])


def _accuracy_values(data: Data) -> Iterator[Test]:
    printed = {"lda-eq": (67.0, 93.0), "ncpld": (10.0, 90.0), "veno": (10.0, 90.0), "jtcp": (80.0, 15.0)}
    for name, (w, c) in printed.items():
        a_w, a_c, _ = accuracies(data, "M", name)
        yield Comparison(f"A_w of {name}", a_w, _about(w), "%", SCENARIOS, asserted=name == "lda-eq")
        yield Comparison(f"A_c of {name}", a_c, _about(c), "%", SCENARIOS)


def _highest(data: Data) -> Iterator[Test]:
    _, _, best = accuracies(data, "M", "lda-eq")
    for name in PAPER:
        if name != "lda-eq":
            a_w, a_c, a_t = accuracies(data, "M", name)
            error = 0.5 * float(np.hypot(a_w.error, a_c.error))
            estimate = Mean(best - a_t, error, min(a_w.n, a_c.n))
            yield Comparison(f"A_t of lda-eq less that of {name}", estimate, Region(low=0.0), "%", SCENARIOS)


def _hops(data: Data, group: str, name: str) -> Iterator[tuple[str, object]]:
    runs = variant(data, group, name)
    for hops in sorted(runs["hops"].unique().to_list(), key=int):
        yield str(hops), runs.filter(runs["hops"] == hops)


def accuracy_by_hops(data: Data) -> Test:
    """PC-2: A_w of Veno 0 to 4.5 %, of JTCP 65 to 95 %, at every number of hops."""
    return every(list(_accuracy_by_hops(data)))


def _accuracy_by_hops(data: Data) -> Iterator[Test]:
    for name, region in (("veno", Region(0.0, 4.5)), ("jtcp", Region(65.0, 95.0))):
        for hops, runs in _hops(data, "W", name):
            a_w = share(runs, "corruption_right", "corruption")  # type: ignore[arg-type]
            percent = Mean(100 * a_w.value, 100 * a_w.error, a_w.n)
            yield Comparison(f"A_w of {name}, {hops} hops", percent, region, "%", SCENARIOS)


def improvement_in_w(data: Data) -> Test:
    """PC-3: by hops, Veno changes goodput by -4 to +1 %, JTCP by -5 to -1 %."""
    return every(list(_improvement_in_w(data)))


def _improvement_in_w(data: Data) -> Iterator[Test]:
    for name, (low, high) in (("veno", (-4.0, 1.0)), ("jtcp", (-5.0, -1.0))):
        gains = improvement(data, "W", name)
        for hops in sorted(gains["hops"].unique().to_list(), key=int):
            sample = gains.filter(gains["hops"] == hops)["gain"].to_numpy()
            region = Region(low - GAIN_POINTS, high + GAIN_POINTS)
            yield Comparison(f"improvement by {name}, {hops} hops", mean(sample), region, "%", SCENARIOS)


def retransmits_and_timeouts(data: Data) -> Test:
    """PC-4: fast retransmits that halve and timeouts in a scenario of W."""
    tests: list[Test] = []
    for name, halvings, timeouts in (("veno", 35, 42), ("jtcp", 4, 43)):
        for column, number in (("halvings", halvings), ("timeouts", timeouts)):
            estimate = mean(_counts(data, "W", name, column))
            region = Region(number / 2, number * 2)
            tests.append(Comparison(f"{column} of {name}", estimate, region, "", SCENARIOS, asserted=name == "jtcp"))
    return every(tests)


def timeouts_stay(data: Data) -> Test:
    """PC-5: JTCP halves at most a third as often as Veno; the number of timeouts stays within 15 % of TCP's."""
    jtcp, veno = (_counts(data, "W", name, "halvings") for name in ("jtcp", "veno"))
    tests: list[Test] = [
        Comparison("halvings, JTCP / Veno", _ratio(jtcp, veno), Region(high=1 / 3), "", SCENARIOS),
    ]
    tcp = _counts(data, "W", "tcp", "timeouts")
    for name in ("veno", "jtcp"):
        ratio = _ratio(_counts(data, "W", name, "timeouts"), tcp)
        tests.append(Comparison(f"timeouts, {name} / TCP", ratio, Region(0.85, 1.15), "", SCENARIOS))
    return every(tests)


def _ratio(top: Sample, bottom: Sample) -> Mean:
    return function_of_means(lambda a, b: a / b, [top, bottom])


def misclassification_in_c(data: Data) -> Test:
    """PC-6: M_c of JTCP 73 to 100 % at every number of hops."""
    tests: list[Test] = []
    for hops, runs in _hops(data, "C", "jtcp"):
        right = share(runs, "congestion_right", "congestion")  # type: ignore[arg-type]
        missed = Mean(100 - 100 * right.value, 100 * right.error, right.n)
        tests.append(Comparison(f"M_c of jtcp, {hops} hops", missed, Region(73.0, 100.0), "%", SCENARIOS))
    return every(tests)


def improvement_in_c(data: Data) -> Test:
    """PC-7: JTCP changes goodput by -16 to +12 %, by nothing on average."""
    gain = improvement(data, "C", "jtcp")["gain"].to_numpy()
    inside = 100 * ((gain >= -16 - GAIN_POINTS) & (gain <= 12 + GAIN_POINTS)).astype(float)
    return every(
        [
            Comparison(
                "mean improvement", mean(gain), Region(-GAIN_POINTS, GAIN_POINTS), "%", SCENARIOS, asserted=True
            ),
            Comparison("scenarios between −16 and +12 %", mean(inside), Region(low=95.0), "%", SCENARIOS),
        ]
    )


def timeouts_in_c(data: Data) -> Test:
    """PC-8: several hundred timeouts in a scenario of C, some of them with nothing lost."""
    return every(
        [
            Comparison("timeouts", mean(_counts(data, "C", "tcp", "timeouts")), Region(low=200.0), "", SCENARIOS),
            Comparison(
                "of them with nothing lost",
                mean(_counts(data, "C", "tcp", "timeouts_spurious")),
                Region(low=1.0),
                "",
                SCENARIOS,
            ),
        ]
    )


def improvement_in_m(data: Data) -> Test:
    """PC-9: on average every differentiator changes goodput by -1 to +2 %."""
    tests: list[Test] = []
    for name in PAPER:
        gain = improvement(data, "M", name)["gain"].to_numpy()
        region = Region(-1.0 - GAIN_POINTS, 2.0 + GAIN_POINTS)
        tests.append(Comparison(f"mean improvement by {name}", mean(gain), region, "%", SCENARIOS))
    return every(tests)


def verdicts_must_reach_the_timeout(data: Data) -> Test:
    """PC-10: with the right verdict alone goodput stays within 5 % of TCP's; with the verdict at timeouts it rises."""
    alone = improvement(data, "W", "oracle")["gain"].to_numpy()
    both = improvement(data, "W", "oracle + aware")["gain"].to_numpy()
    return every(
        [
            some(
                [
                    Comparison(
                        "improvement by the true cause on fast recovery",
                        mean(alone),
                        Region(-LITTLE, LITTLE),
                        "%",
                        SCENARIOS,
                    )
                ]
            ),
            Comparison("more with it at timeouts", mean(both - alone), Region(low=0.0), "%", SCENARIOS, asserted=True),
        ]
    )
