"""Tsaoussidis & Zhang from end to end, small."""

import math

import pytest

from whyloss import papers

READINGS = ["as-printed", "send-overhead"]
REPETITIONS = 2


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> papers.Reproduction:
    out = tmp_path_factory.mktemp("tsaoussidis2002")
    figures = ["7", "11", "11a", "12", "15", "16", "18", "18a", "22a", "24", "25", "26", "26a"]
    paper = papers.load("tsaoussidis2002")
    return paper.reproduce(figures, quick=True, out=out, store=out / "store", repetitions=REPETITIONS)


def curves(found: papers.Reproduction, figure: str, reading: int = 0) -> dict[str, list[float]]:
    """The values of each curve of a figure."""
    drawn = next(drawn for drawn in found.readings[reading].figures if drawn.id == figure)
    return {curve.label: [estimate.value for estimate in curve.y] for curve in drawn.measured()}


def test_every_figure_stands_twice(found: papers.Reproduction) -> None:
    assert [one.reading.name for one in found.readings] == READINGS
    printed, delayed = (curves(found, "24", reading) for reading in (0, 1))
    assert printed.keys() == delayed.keys() == {"TCP-Real", "Reno beside TCP-Real", "Reno beside Reno"}
    assert printed != delayed


def test_the_link_carries_no_more_than_it_can(found: papers.Reproduction) -> None:
    # 1000 of 1040 octets are data.
    for figure in ("11", "15"):
        for values in curves(found, figure).values():
            assert all(0 < value <= 10 * 1000 / 1040 for value in values)
    own, beside = (curves(found, "24")[label] for label in ("TCP-Real", "Reno beside TCP-Real"))
    assert all(9 < a + b <= 10 * 1000 / 1040 for a, b in zip(own, beside, strict=True))


def test_fairness_counts_every_flow_of_a_network_that_is_written_out(found: papers.Reproduction) -> None:
    # Fifty flows with round trips from 30 to 500 ms do not share equally, nor do ten of which one is wired.
    for values in curves(found, "7").values():
        assert all(1 / 50 <= value < 0.95 for value in values)
    wired, _, one_wired, wireless = curves(found, "16")["Reno"]
    assert one_wired < min(wired, wireless)
    assert curves(found, "15")["Reno"][2] > 8  # megabits of all ten


def test_errors_cost_a_single_flow_of_reno_most_of_the_link(found: papers.Reproduction) -> None:
    drawn = curves(found, "11")
    assert drawn["Reno"][0] > 8.5
    assert drawn["Reno"][1] < 0.2 * drawn["Reno"][0]
    assert drawn["TCP-Real"][1] > 2 * drawn["Reno"][1]


def test_ns2_is_beside_ours(found: papers.Reproduction) -> None:
    figure = next(figure for figure in found.figures if figure.id == "11")
    references = [curve for curve in figure.curves if curve.reference]
    assert [curve.label for curve in references] == ["Reno, ns-2", "SACK, ns-2", "NewReno, ns-2", "GAIMD, ns-2"]
    assert all(estimate.n == 5 for curve in references for estimate in curve.y)
    assert curves(found, "11a")["Reno"][0] == pytest.approx(1, abs=0.05)


def test_hand_offs_stop_all_and_some_come_back_sooner(found: papers.Reproduction) -> None:
    drawn = curves(found, "12")
    assert len(drawn) == 6
    for label in ("Reno", "SACK"):
        assert drawn[label][1] < 2 < drawn[label][-1]  # half a second after a hand-off began, and before the next


def test_a_buffer_only_helps(found: papers.Reproduction) -> None:
    without, buffered = curves(found, "18"), curves(found, "18a")
    assert without.keys() == buffered.keys()
    for label, values in without.items():
        assert all(0 < value <= more <= 100 for value, more in zip(values, buffered[label], strict=True))


def test_two_streams_on_the_way_back_leave_acknowledgements_no_place(found: papers.Reproduction) -> None:
    for label in ("Reno", "SACK"):
        pauses, none = curves(found, "22a")[label]
        assert pauses > 1
        assert none < 0.1


def test_reno_neither_gains_nor_harms_in_its_own_place(found: papers.Reproduction) -> None:
    for label, values in curves(found, "26a").items():
        assert label.endswith((": gain", ": harm"))
        assert all(math.isfinite(value) and -100 <= value <= 200 for value in values)
    # What a rival has and what it leaves are one link.
    drawn = curves(found, "26a")
    assert drawn["TFRC (2000): gain"][1] < 0
    assert drawn["TFRC (2000): harm"][1] < 0


def test_claims_whose_figures_were_drawn_are_judged(found: papers.Reproduction) -> None:
    judged = [claim.id for claim in found.claims]
    assert judged == ["TR-5", "TR-6", "TR-8", "TR-9", "TR-14", "TR-15"]
    window = next(claim for claim in found.claims if claim.id == "TR-15")
    assert window.n >= 1
    assert window.measured > 3.2
