"""Verdicts on known data: each can come out each way."""

import json
import math

import numpy as np
import pytest

from whyloss.claims import Comparison, Group, Region, Verdict, at_least, every, judge, some
from whyloss.stats import mean, proportion

ABOVE_ZERO = Region(low=0.0)


def compare(centre: float, spread: float = 1.0, n: int = 30, region: Region = ABOVE_ZERO) -> Comparison:
    """A comparison whose sample has exactly the mean ``centre`` and the standard deviation ``spread``."""
    sample = np.linspace(-1, 1, n)
    sample *= spread / sample.std(ddof=1) if n > 1 else 1.0
    return Comparison("test", mean(sample + centre), region)


@pytest.mark.parametrize(
    ("centre", "verdict"),
    # Half width of the interval: 2.045 / sqrt(30) = 0.373.
    [
        (0.40, Verdict.REPRODUCED),
        (0.35, Verdict.UNDECIDED),
        (-0.35, Verdict.UNDECIDED),
        (-0.40, Verdict.NOT_REPRODUCED),
    ],
)
def test_the_interval_decides(centre: float, verdict: Verdict) -> None:
    assert compare(centre).verdict() == verdict


@pytest.mark.parametrize(
    ("centre", "verdict"),
    [
        (25.0, Verdict.REPRODUCED),
        (20.1, Verdict.UNDECIDED),
        (15.0, Verdict.NOT_REPRODUCED),
        (60.0, Verdict.NOT_REPRODUCED),
    ],
)
def test_a_region_has_two_ends(centre: float, verdict: Verdict) -> None:
    assert compare(centre, region=Region(20.0, 50.0)).verdict() == verdict


def test_one_run_decides_nothing() -> None:
    assert compare(1000.0, n=1).verdict() == Verdict.UNDECIDED


def test_more_runs_decide() -> None:
    assert compare(0.2, n=10).verdict() == Verdict.UNDECIDED
    assert compare(0.2, n=200).verdict() == Verdict.REPRODUCED


def test_every_needs_each() -> None:
    assert every([compare(1), compare(2)]).verdict() == Verdict.REPRODUCED
    assert every([compare(1), compare(0.1)]).verdict() == Verdict.UNDECIDED
    assert every([compare(1), compare(-2)]).verdict() == Verdict.NOT_REPRODUCED


def test_some_needs_one() -> None:
    assert some([compare(-1), compare(2)]).verdict() == Verdict.REPRODUCED
    assert some([compare(-1), compare(0.1)]).verdict() == Verdict.UNDECIDED
    assert some([compare(-1), compare(-2)]).verdict() == Verdict.NOT_REPRODUCED


def test_at_least_counts() -> None:
    assert at_least(2, [compare(1), compare(1), compare(-1)]).verdict() == Verdict.REPRODUCED
    assert at_least(2, [compare(1), compare(-1), compare(-1)]).verdict() == Verdict.NOT_REPRODUCED
    assert at_least(2, [compare(1), compare(0.1), compare(-1)]).verdict() == Verdict.UNDECIDED


def test_trying_often_needs_a_stronger_case() -> None:
    # 0.4 is significant alone (half width 0.373) but not as the best of twenty (half width 0.60).
    assert some([compare(0.4)]).verdict() == Verdict.REPRODUCED
    assert some([compare(0.4), *[compare(-0.1)] * 19]).verdict() == Verdict.UNDECIDED
    assert every([compare(-0.4), *[compare(1.0)] * 19]).verdict() == Verdict.UNDECIDED
    assert every([compare(-0.7), *[compare(1.0)] * 19]).verdict() == Verdict.NOT_REPRODUCED


def test_the_interval_shown_is_the_one_that_decides() -> None:
    # Alone it would speak against the claim; among twenty it does not, and the interval shown says why.
    claim = judge("X-4", "", "", "", every([compare(-0.4), *[compare(1.0)] * 19]))
    assert claim.verdict == Verdict.UNDECIDED
    assert claim.low < claim.measured < 0 < claim.high
    assert claim.level == pytest.approx(1 - 0.05 / 20)
    refuted = judge("X-5", "", "", "", every([compare(-0.7), *[compare(1.0)] * 19]))
    assert (refuted.verdict, refuted.level) == (Verdict.NOT_REPRODUCED, claim.level)
    assert refuted.high < 0


def test_no_verdict_contradicts_its_interval() -> None:
    random = np.random.default_rng(11)
    for _ in range(300):
        tests = [compare(random.normal(0, 0.6), n=int(random.integers(2, 40))) for _ in range(random.integers(1, 9))]
        nested: list[Comparison | Group] = [some(tests[:3]), *tests[3:]]
        claim = judge("X-6", "", "", "", at_least(int(random.integers(1, len(nested) + 1)), nested))
        region = claim.decisive.expected
        inside = region.low <= claim.low and claim.high <= region.high
        outside = claim.high < region.low or region.high < claim.low
        expected = {(True, False): Verdict.REPRODUCED, (False, True): Verdict.NOT_REPRODUCED}
        assert claim.verdict == expected.get((inside, outside), Verdict.UNDECIDED)


def test_true_null_is_rarely_refuted_among_many() -> None:
    random = np.random.default_rng(7)
    refuted = 0
    for _ in range(200):
        tests = [Comparison("null", mean(random.normal(0, 1, 30)), ABOVE_ZERO) for _ in range(20)]
        refuted += every(tests).verdict() == Verdict.NOT_REPRODUCED
    assert refuted <= 14  # 2.5 % of 200 is 5; three standard errors above is 12


def test_nothing_to_compare_is_undecided() -> None:
    claim = judge("X-0", "", "", "", every([]))
    assert claim.verdict == Verdict.UNDECIDED
    assert claim.n == 0


def test_the_weakest_link_is_shown() -> None:
    weak = Comparison("weak", mean([0.9, 1.0, 1.1]), ABOVE_ZERO, "kbps")
    claim = judge("X-1", "more", "a > b", "Figure 1", every([compare(50), weak, compare(9)]))
    assert (claim.what, claim.n, claim.unit) == ("weak", 3, "kbps")
    assert claim.measured == pytest.approx(1.0)
    assert claim.verdict == Verdict.REPRODUCED
    assert claim.low == pytest.approx(1.0 - 4.3027 * 0.1 / math.sqrt(3), rel=1e-4)


def test_the_asserted_number_is_shown_unless_another_comparison_fails() -> None:
    known = Comparison("known for", mean([5.0, 5.1, 4.9]), ABOVE_ZERO, asserted=True)
    assert judge("X-3", "", "", "", every([known, compare(0.5)])).what == "known for"
    assert judge("X-3", "", "", "", every([known, compare(-2)])).what == "test"


def test_counting_with_certainty() -> None:
    never = Region(0.0, 0.01)
    assert Comparison("none of many", proportion(0, 1000), never).verdict() == Verdict.REPRODUCED
    assert Comparison("none of few", proportion(0, 20), never).verdict() == Verdict.UNDECIDED
    assert Comparison("many", proportion(50, 1000), never).verdict() == Verdict.NOT_REPRODUCED


def test_json_has_the_agreed_fields_and_no_infinity() -> None:
    row = judge("X-2", "more", "a > b", "Figure 1", compare(1.0, n=1)).as_dict()
    assert {"id", "verdict", "measured", "low", "high", "n", "expected"} <= set(row)
    assert row["low"] is None
    assert json.loads(json.dumps(row, allow_nan=False))["verdict"] == "undecided"
