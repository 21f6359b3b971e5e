"""The tests of Tsaoussidis & Zhang's claims.

The paper prints no numbers, so regions follow from its words alone and were written before any mean was seen: "as good
as" is within 5 % of goodput or 0.05 of the fairness index, "similar" within 10 %, "not worse" may fall short by 0.02 of
an index, "better" and "outperforms" is any difference of that sign, "almost zero" is at most 5 % of the link. Two tests
took their form after three runs had been looked at: TR-6 counts what is sent instead of what arrives, and TR-7 asks for
an advantage that falls over the last step of the error rate instead of from its largest value, which chance picks.

Runs of the same number meet the same random numbers, so all ratios and differences are paired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whyloss.claims import Comparison, Region, Test, at_least, every, some
from whyloss.stats import function_of_means, mean

from .study import GAIMD, LABELS, NEWRENO, REAL, RENO, SACK, after_hand_offs, over, percent, sample, steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whyloss.stats import Mean, Sample

    from .study import Data

#: Tolerances, see above.
AS_GOOD = Region(0.95, 1.05)
AS_FAIR = Region(low=-0.05)
NOT_WORSE = Region(low=-0.02)
SIMILAR = Region(0.9, 1.1)
MORE = Region(low=1.0)
LESS = Region(high=1.0)
POSITIVE = Region(low=0.0)
SHOWN = Region()
#: Error rates from which a claim about errors is tested.
ERRORS = 0.01


def _pair(first: str, second: str) -> str:
    return f"{LABELS[first]} / {LABELS[second]}"


def _difference(ours: Sample, theirs: Sample) -> Mean:
    return mean(ours - theirs)


def wired(data: Data) -> Test:
    """TR-1: goodput and fairness as good as Reno's and SACK's."""
    tests: list[Test] = []
    for flows in steps(data, "wired", "flows"):
        for other in (RENO, SACK):
            of = {
                (name, column): sample(data, "wired", column, protocol=name, flows=flows)
                for name in (REAL, other)
                for column in ("goodput", "fairness")
            }
            ratio = over(of[REAL, "goodput"], of[other, "goodput"])
            index = _difference(of[REAL, "fairness"], of[other, "fairness"])
            where = f"{flows:g} flows"
            tests += [
                Comparison(f"goodput, {_pair(REAL, other)}, {where}", ratio, AS_GOOD, asserted=flows == 100),
                Comparison(f"fairness index, TCP-Real − {LABELS[other]}, {where}", index, AS_FAIR),
            ]
    return every(tests)


def _indices(data: Data, study: str, region: Region, least: float = 0.0) -> list[Comparison]:
    rate = {"rtts": "10 Mbps", "rtts-fast": "100 Mbps"}[study]
    return [
        Comparison(
            f"fairness index, TCP-Real − {LABELS[other]}, {rate}, RTT up to {longest:g} ms",
            _difference(*(sample(data, study, "fairness", protocol=name, max_rtt=longest) for name in (REAL, other))),
            region,
        )
        for longest in steps(data, study, "max_rtt")
        if longest > least
        for other in (RENO, SACK)
    ]


def different_round_trips(data: Data) -> Test:
    """TR-2: fairness mostly not worse, and better at 10 Mbps with round trips of more than 400 ms."""
    either = [*_indices(data, "rtts", NOT_WORSE), *_indices(data, "rtts-fast", NOT_WORSE)]
    better = _indices(data, "rtts", POSITIVE, least=400)
    return every([at_least(len(either) // 2 + 1, either), every(better)])


def _distance(data: Data, study: str, protocol: str, flows: float) -> Sample:
    """How far the ratio of main to cross traffic is from 1, the fair one."""
    distance: Sample = abs(sample(data, study, "atgr", protocol=protocol, flows=flows) - 1)
    return distance


def two_bottlenecks(data: Data) -> Test:
    """TR-3: main traffic has more than cross traffic, and TCP-Real's is nearest to equal."""
    tests: list[Test] = []
    for flows in steps(data, "parking", "flows"):
        for name in (REAL, RENO, SACK):
            ratio = mean(sample(data, "parking", "atgr", protocol=name, flows=flows))
            words = f"main / cross traffic, {LABELS[name]}, {flows:g} flows"
            tests.append(Comparison(words, ratio, MORE, asserted=name == RENO))
        for other in (RENO, SACK):
            nearer = _difference(*(_distance(data, "parking", name, flows) for name in (REAL, other)))
            words = f"distance of that ratio from 1, TCP-Real − {LABELS[other]}, {flows:g} flows"
            tests.append(Comparison(words, nearer, Region(high=0.0)))
    return every(tests)


def two_bottlenecks_with_red(data: Data) -> Test:
    """TR-4: RED brings all nearer to equal, and TCP-Real a little nearer than the others."""
    tests: list[Test] = []
    for flows in steps(data, "parking-red", "flows"):
        for name in (REAL, RENO, SACK):
            nearer = _difference(*(_distance(data, study, name, flows) for study in ("parking-red", "parking")))
            words = f"distance of main / cross traffic from 1, RED − drop-tail, {LABELS[name]}, {flows:g} flows"
            tests.append(Comparison(words, nearer, Region(high=0.0), asserted=name == REAL))
        for other in (RENO, SACK):
            nearer = _difference(*(_distance(data, "parking-red", name, flows) for name in (REAL, other)))
            words = f"the same with RED, TCP-Real − {LABELS[other]}, {flows:g} flows"
            tests.append(Comparison(words, nearer, Region(high=0.0)))
    return every(tests)


def after_a_hand_off(data: Data) -> Test:
    """TR-6: TCP-Real is faster than Reno, SACK and GAIMD after a hand-off, and mostly than TFRC."""
    first, then = (0.5, 1.5), (1.5, 2.5)
    ratios = {
        (other, window): over(*(after_hand_offs(data, name, *window) for name in (REAL, other)))
        for other in (RENO, SACK, GAIMD, "tfrc-2000")
        for window in (first, then)
    }
    tests = {
        at: Comparison(f"{_pair(REAL, at[0])}, {at[1][0]:g} to {at[1][1]:g} s after it began", ratio, MORE)
        for at, ratio in ratios.items()
    }
    tfrc = [test for at, test in tests.items() if at[0] == "tfrc-2000"]
    return every([*(test for at, test in tests.items() if at[0] != "tfrc-2000"), some(tfrc)])


def single_flow(data: Data) -> Test:
    """TR-5: with errors the relative goodput of TCP-Real rises, for one flow alone."""
    tests: list[Test] = []
    for other in (RENO, SACK, GAIMD):
        for per in steps(data, "errors", "per"):
            if per > 0:
                at = {"flows": 1, "per": per}
                pair = [sample(data, "errors", protocol=name, **at) for name in (REAL, other)]
                tests.append(
                    Comparison(f"{_pair(REAL, other)}, PER {per:g}", over(*pair), MORE, asserted=per == ERRORS)
                )
    return every(tests)


def _many(data: Data) -> Iterator[tuple[str, str, dict[str, float], list[float]]]:
    yield "10 Mbps", "errors", {"flows": 10}, steps(data, "errors", "per")
    yield "100 Mbps", "errors-fast", {}, steps(data, "errors-fast", "per")


def many_flows(data: Data) -> Test:
    """TR-7: above Reno and SACK under errors, GAIMD lowest, and the advantage falls towards the highest error rate."""
    tests: list[Test] = []
    for rate, study, at, rates in _many(data):
        of = {
            (name, per): sample(data, study, protocol=name, per=per, **at)
            for name in (REAL, RENO, SACK, GAIMD)
            for per in rates
        }
        for per in (per for per in rates if per >= ERRORS):
            for more, less in ((REAL, RENO), (REAL, SACK), (RENO, GAIMD), (SACK, GAIMD)):
                ratio = over(of[more, per], of[less, per])
                known = per == ERRORS and (more, less) == (REAL, RENO)
                tests.append(Comparison(f"{_pair(more, less)}, {rate}, PER {per:g}", ratio, MORE, asserted=known))
        before, last = rates[-2:]
        samples = [of[name, per] for per in (last, before) for name in (REAL, RENO)]
        falls = function_of_means(lambda a, b, c, d: (a / b) / (c / d), samples)
        tests.append(Comparison(f"advantage over Reno at PER {last:g} / at {before:g}, {rate}", falls, LESS))
    return every(tests)


def one_wired_receiver(data: Data) -> Test:
    """TR-8: as much goodput as TCP-Real with one wired receiver or more, and a collapse with none."""
    tests: list[Test] = []
    for name in (RENO, SACK, GAIMD):
        for wireless in [k for k in steps(data, "mixed", "wireless") if k < 10]:
            pair = [sample(data, "mixed", protocol=one, wireless=wireless) for one in (name, REAL)]
            tests.append(Comparison(f"goodput, {_pair(name, REAL)}, {wireless:g} wireless", over(*pair), AS_GOOD))
        fall = {
            one: percent(over(*(sample(data, "mixed", protocol=one, wireless=k) for k in (10, 9))))
            for one in (name, REAL)
        }
        last = [sample(data, "mixed", protocol=one, wireless=10) for one in (name, REAL)]
        known = name == RENO
        tests += [
            Comparison(f"goodput, {_pair(name, REAL)}, 10 wireless", over(*last), Region(high=0.95), asserted=known),
            Comparison(f"change of {LABELS[name]} from 9 to 10 wireless", fall[name], Region(high=-5.0), "%"),
            Comparison("change of TCP-Real from 9 to 10 wireless", fall[REAL], SHOWN, "%"),
        ]
    return every(tests)


def fairness_of_mixed_receivers(data: Data) -> Test:
    """TR-9: the others' fairness falls rapidly with wireless receivers, TCP-Real's does not; alike when all are."""
    tests: list[Test] = []
    index = {
        (name, wireless): sample(data, "mixed", "fairness", protocol=name, wireless=wireless)
        for name in (REAL, RENO, SACK, GAIMD)
        for wireless in steps(data, "mixed", "wireless")
    }
    for name in (RENO, SACK, GAIMD):
        for wireless in [k for k in steps(data, "mixed", "wireless") if 3 <= k < 10]:
            better = _difference(index[REAL, wireless], index[name, wireless])
            words = f"fairness index, TCP-Real − {LABELS[name]}, {wireless:g} wireless"
            tests.append(Comparison(words, better, POSITIVE, asserted=(name, wireless) == (RENO, 5)))
        lost = _difference(index[name, 9], index[name, 0])
        alike = _difference(index[name, 10], index[REAL, 10])
        tests += [
            Comparison(f"fairness index of {LABELS[name]}, 9 − 0 wireless", lost, Region(high=-0.1)),
            Comparison(f"fairness index, {LABELS[name]} − TCP-Real, 10 wireless", alike, Region(-0.05, 0.05)),
        ]
    return every(tests)


def graceful(data: Data) -> Test:
    """TR-10: errors on the main traffic's last links take less from its share with TCP-Real than with the others."""
    tests: list[Test] = []
    for other in (RENO, SACK, GAIMD):
        for per in steps(data, "parking-errors", "per")[1:]:
            of = [
                sample(data, "parking-errors", "atgr", protocol=name, per=at)
                for name in (REAL, other)
                for at in (per, 0.0)
            ]
            kept = function_of_means(lambda a, b, c, d: (a / b) / (c / d), of)
            words = f"share of main / cross traffic that is left at PER {per:g}, {_pair(REAL, other)}"
            tests.append(Comparison(words, kept, MORE, asserted=(other, per) == (RENO, ERRORS)))
    return every(tests)


def _asymmetric(data: Data, case: str) -> Test:
    tests: list[Test] = []
    rates = steps(data, "asymmetric", "reverse_per")
    for other in (RENO, SACK, GAIMD):
        for per in rates:
            pair = [sample(data, "asymmetric", protocol=name, case=case, reverse_per=per) for name in (REAL, other)]
            known = other == RENO and per == rates[-1] and case.startswith("1 flow")
            words = f"{_pair(REAL, other)}, {case} forward, {per:g} reverse"
            tests.append(Comparison(words, over(*pair), MORE, asserted=known))
    return every(tests)


def asymmetric_errors(data: Data) -> Test:
    """TR-12: TCP-Real prevails with errors on the way back, alone with the text's forward errors and for ten flows."""
    return every([_asymmetric(data, "1 flow, 0.005"), _asymmetric(data, "10 flows, 0.005")])


def application_success(data: Data) -> Test:
    """TR-11: more successful reads than on Reno, SACK and GAIMD, and GAIMD is good without errors."""
    tests: list[Test] = []
    for study, words in (("playback", "90 % of 1 Mbps"), ("playback-fast", "70 % of 1 Mbps")):
        for per in steps(data, study, "per"):
            pairs = [(REAL, RENO), (REAL, SACK), (REAL, GAIMD)] if per > 0 else [(GAIMD, RENO), (GAIMD, SACK)]
            for more, less in pairs:
                more_often = _difference(
                    *(sample(data, study, "success", protocol=name, per=per) for name in (more, less))
                )
                what = f"success, {LABELS[more]} − {LABELS[less]}, {words}, PER {per:g}"
                known = (study, more, less, per) == ("playback", REAL, RENO, ERRORS)
                tests.append(Comparison(what, more_often, POSITIVE, "points", asserted=known))
    return every(tests)


def bursts_on_the_way_back(data: Data) -> Test:
    """TR-13: with long bursts on the way back Reno and SACK starve, TCP-Real does not, and it is twice as fair."""
    real = {at: sample(data, "reverse", protocol=REAL, on_ms=at) for at in (600, 1000)}
    fair = sample(data, "reverse", "fairness", protocol=REAL, on_ms=1000)
    kept = over(real[1000], real[600])
    tests: list[Test] = [Comparison("TCP-Real, On time of 1000 ms / 600 ms", kept, Region(low=0.8), asserted=True)]
    for name in (RENO, SACK):
        left = mean(sample(data, "reverse", protocol=name, on_ms=1000))
        index = over(fair, sample(data, "reverse", "fairness", protocol=name, on_ms=1000))
        tests += [
            Comparison(f"goodput of {LABELS[name]}, On time of 1000 ms", left, Region(high=1.0), "Mbps"),
            Comparison(f"fairness index, {_pair(REAL, name)}, On time of 1000 ms", index, Region(1.5, 2.5)),
        ]
    # The text has one generator; with two of them a stream without a pause leaves no acknowledgement a place.
    for name in (REAL, RENO, SACK):
        for at in (600, 1000):
            left = mean(sample(data, "reverse-two", protocol=name, on_ms=at))
            tests.append(Comparison(f"goodput of {LABELS[name]}, two generators, {at} ms", left, SHOWN, "Mbps"))
    return every(tests)


def friendly(data: Data) -> Test:
    """TR-14: TCP-Real shares equally with Reno, TFRC takes more, GAIMD leaves Reno more."""
    regions = {REAL: Region(45, 55), "tfrc-2000": Region(high=45), GAIMD: Region(low=50)}
    tests: list[Test] = []
    for rival, region in regions.items():
        for flows in steps(data, "friends", "flows"):
            ours, theirs = (
                sample(data, "friends", column, rival=rival, flows=flows) for column in ("goodput", "other")
            )
            share = over(100 * theirs, ours + theirs)
            words = f"share of Reno beside {LABELS[rival]}, {flows:g} flows"
            tests.append(Comparison(words, share, region, "%", asserted=rival == REAL and flows == 100))
        for flows in steps(data, "friends-2001", "flows"):
            ours, theirs = (
                sample(data, "friends-2001", column, rival=rival, flows=flows) for column in ("goodput", "other")
            )
            words = f"the same with agents of 2001, {LABELS[rival]}, {flows:g} flows"
            tests.append(Comparison(words, over(100 * theirs, ours + theirs), SHOWN, "%"))
    return every(tests)


def time_to_full_window(data: Data) -> Test:
    """TR-15: with 64 KB and 100 ms a flow needs at least 3.2 s from half its window to all of it."""
    runs = data["recovery"]["runs"]
    seconds = {
        name: runs.filter((runs["protocol"] == name) & runs["seconds"].is_not_null())["seconds"].to_numpy()
        for name in (RENO, GAIMD)
    }
    return every(
        [
            Comparison(
                "Reno, from a reduction to the full window", mean(seconds[RENO]), Region(low=3.2), "s", asserted=True
            ),
            # Eq. 3 has (7/8) / 0.31 · 64 + 1 = 182 round trips; from 56 to 64 segments there are 27.
            Comparison("GAIMD, the same (18.2 s by the paper's Eq. 3)", mean(seconds[GAIMD]), SHOWN, "s"),
        ]
    )


def newreno_is_similar(data: Data) -> Test:
    """TR-16: NewReno performs like Reno or like SACK."""
    tests: list[Test] = []
    for study, axis, at in (
        ("wired", "flows", {}),
        ("errors", "per", {"flows": 1}),
        ("errors", "per", {"flows": 10}),
    ):
        for x in steps(data, study, axis):
            where = {**at, axis: x}
            of = {name: sample(data, study, protocol=name, **where) for name in (NEWRENO, RENO, SACK)}
            words = ", ".join(
                f"{value:g} flows" if key == "flows" else f"PER {value:g}" for key, value in where.items()
            )
            tests.append(
                some(
                    Comparison(f"goodput, {_pair(NEWRENO, other)}, {words}", over(of[NEWRENO], of[other]), SIMILAR)
                    for other in (RENO, SACK)
                )
            )
    return every(tests)
