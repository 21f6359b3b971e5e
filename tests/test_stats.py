"""Estimates against numbers worked out by hand or taken from tables."""

import math

import numpy as np
import pytest

from whyloss.stats import Maximum, function_of_means, mean, proportion


def test_mean_has_students_interval() -> None:
    # 2, 4, 6: mean 4, s = 2, standard error 2/sqrt(3); t(0.975, 2) = 4.3027 (table).
    estimate = mean([2.0, 4.0, 6.0])
    assert estimate.value == 4.0
    assert estimate.n == 3
    low, high = estimate.interval()
    assert (low, high) == pytest.approx((4 - 4.3027 * 2 / math.sqrt(3), 4 + 4.3027 * 2 / math.sqrt(3)), rel=1e-4)


def test_thirty_runs_use_2_045() -> None:
    values = np.arange(30.0)
    low, high = mean(values).interval()
    assert (high - low) / 2 == pytest.approx(2.0452 * values.std(ddof=1) / math.sqrt(30), rel=1e-4)


@pytest.mark.parametrize("sample", [[], [5.0]])
def test_one_run_says_nothing_about_the_spread(sample: list[float]) -> None:
    assert mean(sample).interval() == (-math.inf, math.inf)


def test_equal_runs_have_an_interval_of_no_width() -> None:
    assert mean([3.0] * 30).interval() == (3.0, 3.0)


def test_pairing_removes_what_both_share() -> None:
    shared = np.array([0.0, 100.0, 200.0, 300.0])
    higher = shared + np.array([1.0, 2.0, 1.0, 2.0])
    low, high = mean(higher - shared).interval()
    assert 0 < low < 1.5 < high < 3


def test_linear_function_of_means_is_the_paired_interval() -> None:
    random = np.random.default_rng(1)
    a, b = random.normal(10, 1, 30), random.normal(8, 1, 30)
    jackknife = function_of_means(lambda x, y: 2 * x - y, [a, b])
    direct = mean(2 * a - b)
    assert jackknife.value == pytest.approx(direct.value)
    assert jackknife.interval() == pytest.approx(direct.interval())


def test_interval_of_a_ratio_holds_as_often_as_it_says() -> None:
    random = np.random.default_rng(2004)
    hits = 0
    for _ in range(400):
        a, b = random.normal(20, 4, 30), random.normal(10, 1, 30)
        low, high = function_of_means(lambda x, y: x / y, [a, b]).interval()
        hits += low <= 2.0 <= high
    assert 0.92 <= hits / 400 <= 0.98  # 95 % within three standard errors of 400 trials


def test_samples_of_different_length_do_not_pair() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        function_of_means(lambda x, y: x - y, [[1.0, 2.0], [1.0, 2.0, 3.0]])


def test_proportion_follows_the_rule_of_three() -> None:
    # No event in n trials: the exact two-sided 95 % bound is 1 - 0.025^(1/n), about 3.7/n.
    estimate = proportion(0, 1000)
    assert estimate.value == 0.0
    low, high = estimate.interval()
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025 ** (1 / 1000))


def test_no_trials_leave_everything_open() -> None:
    assert math.isnan(proportion(0, 0).value)
    assert proportion(0, 0).interval() == (0.0, 1.0)


def test_the_interval_of_a_maximum_widens_with_the_number_of_candidates() -> None:
    one = mean([9.0, 10.0, 11.0, 10.0])
    alone, among = Maximum((one,)), Maximum((one, mean([1.0, 2.0, 3.0, 2.0])))
    assert alone.interval() == one.interval()
    assert among.value == one.value
    assert among.interval()[0] < one.interval()[0]
    assert among.interval()[1] > one.interval()[1]
