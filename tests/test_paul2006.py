"""Paul from end to end, small."""

import math

import pytest

from whyloss import papers

READINGS = ["wire-a", "wire-b", "wifi", "time"]
REPETITIONS = 2


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> papers.Reproduction:
    out = tmp_path_factory.mktemp("paul2006")
    paper = papers.load("paul2006")
    figures = ["13", "17", "36", "36a", "40"]
    return paper.reproduce(figures, out=out, store=out / "store", repetitions=REPETITIONS, readings=READINGS)


def curves(found: papers.Reproduction, reading: str, figure: str) -> dict[str, list[float]]:
    """The values of each curve of a figure."""
    one = found.readings[READINGS.index(reading)]
    drawn = next(drawn for drawn in one.figures if drawn.id == figure)
    return {curve.label: [estimate.value for estimate in curve.y] for curve in drawn.measured()}


def test_one_run_stands_beside_all(found: papers.Reproduction) -> None:
    figure = found.figures[0]
    assert [curve.label for curve in figure.curves] == [
        "Selective-TCP, one run",
        "Selective-TCP, all runs",
        "NewReno, one run",
        "NewReno, all runs",
    ]
    one, all_ = figure.curves[:2]
    assert one.x == tuple(range(100, 300, 4))
    assert all_.x == tuple(range(100, 300, 20))
    for at, spread in zip(all_.x, all_.y, strict=True):
        assert spread.n == REPETITIONS
        low, high = spread.interval(1.0)
        assert low <= one.y[one.x.index(at)].value <= high  # the run that is drawn is one of them


def test_six_tcps_are_drawn_once_and_as_all_runs(found: papers.Reproduction) -> None:
    one, all_ = (curves(found, "wire-a", figure) for figure in ("36", "36a"))
    assert [len(one), len(all_)] == [6, 6]
    assert all(label.endswith("one run") for label in one)
    assert all(label.endswith("all runs") for label in all_)


def test_without_errors_the_last_hop_is_full(found: papers.Reproduction) -> None:
    whole = 196 * 1_000_000 / (8 * 1040)  # up to the last point of the curve
    for label in ("Selective-TCP, no errors, one run", "NewReno, no errors, one run"):
        # Two sinks with a link each, or one link that the stream of 512 kbit/s takes its part of.
        assert curves(found, "wire-a", "17")[label][-1] == pytest.approx(whole, rel=0.01)
        assert curves(found, "wire-b", "17")[label][-1] == pytest.approx(whole * 0.488, rel=0.02)
        # An exchange of RTS, CTS, data and ACK takes half as long again as the data alone.
        assert curves(found, "wifi", "17")[label][-1] < 0.35 * whole


def test_a_chain_that_stands_still_while_the_sender_waits_costs_most(found: papers.Reproduction) -> None:
    label = "NewReno, all runs"
    packets = {reading: curves(found, reading, "13")[label][-1] for reading in READINGS}
    assert packets["wire-a"] < 0.3 * packets["time"]
    assert all(packets[reading] > packets["wire-a"] for reading in ("wire-b", "wifi", "time"))


def test_claims_whose_figures_were_drawn_are_judged(found: papers.Reproduction) -> None:
    for one in found.readings:
        assert [claim.id for claim in one.claims] == ["ST-1", "ST-5", "ST-9"]
        ratio, median, share = one.claims[0].comparisons
        assert ratio.estimate.n == REPETITIONS
        assert math.isfinite(median.estimate.value)
        assert 0 <= share.estimate.value <= 1
        assert str(median.expected) == str(share.expected) == "any"  # told, not judged


def test_gain_and_harm_stand_in_every_reading(found: papers.Reproduction) -> None:
    for one in found.readings:
        drawn = next(figure for figure in one.figures if figure.id == "40")
        assert drawn.x_ticks == ("Selective-TCP", "Reno", "SACK", "Westwood")
        assert all(math.isfinite(y.value) and y.n == REPETITIONS for curve in drawn.curves for y in curve.y)


def test_readings_differ_as_they_say(found: papers.Reproduction) -> None:
    paper = papers.load("paul2006")
    assert paper.readings == READINGS
    assert paper.pack.headline == ["wire-a"]
    assert found.readings[0].claims[1].comparisons[0].estimate.value == 1.0  # no errors: nothing to differ in
