"""Park & Chung from end to end, small."""

from pathlib import Path

import pytest

from whyloss import papers
from whyloss.pack import Pack, PackError


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> papers.Reproduction:
    out = tmp_path_factory.mktemp("park2010")
    return papers.load("park2010").reproduce(["1", "2b", "6", "7"], quick=True, out=out, store=out / "store")


def test_all_figures_are_drawn(found: papers.Reproduction) -> None:
    assert [figure.id for figure in found.figures] == ["1", "2b", "6", "7"]
    for reading in ("ratio", "literal"):
        assert all((found.out / "figures" / reading / f"figure-{figure.id}.svg").is_file() for figure in found.figures)


def test_readings_differ_in_jtcp_alone(found: papers.Reproduction) -> None:
    ratio, literal = ([curve.y for curve in one.figures[0].measured()] for one in found.readings)
    for n in range(7):
        same = all(a[n].value == b[n].value for a, b in zip(ratio, literal, strict=True))
        assert same == (n != 4)  # TCP, NCPLD, Veno, West, JTCP, RELDS, LDA_EQ
    # In seconds hardly any jitter exceeds 1/W, and rounds without any are no congestion: more losses are called errors.
    assert literal[0][4].value > ratio[0][4].value
    assert literal[1][4].value < ratio[1][4].value


def test_only_claims_on_what_was_run_are_judged(found: papers.Reproduction) -> None:
    assert [claim.id for claim in found.claims] == ["PC-1", "PC-3"]
    assert "PC-10" in found.skipped


def test_tcp_takes_everything_for_congestion(found: papers.Reproduction) -> None:
    a_w, a_c, a_t = (curve.y[0].value for curve in found.figures[0].measured())
    assert (a_w, a_c, a_t) == (0.0, 100.0, 50.0)


def test_each_hop_more_carries_less(found: papers.Reproduction) -> None:
    for curve in found.figures[1].measured():
        assert curve.x == (1.0, 3.0, 5.0)
        values = [estimate.value for estimate in curve.y]
        assert values == sorted(values, reverse=True)
        assert values[0] < 1_300  # what one hop at 2 Mbit/s carries with RTS/CTS and no errors


def test_tradeoffs_fall_from_corner_to_corner(found: papers.Reproduction) -> None:
    for curve in found.figures[2].measured():
        assert curve.x[0] == 100.0
        assert curve.y[0].value == 0.0
        assert (curve.x[-1], curve.y[-1].value) == (0.0, 100.0)
        assert list(curve.x) == sorted(curve.x, reverse=True)
    assert "theta = " in found.figures[2].caption


def test_gain_and_harm_of_each_differentiator(found: papers.Reproduction) -> None:
    ratio, literal = (one.figures[3] for one in found.readings)
    assert ratio.x_ticks == ("NCPLD", "Veno", "West", "JTCP", "RELDS-r", "LDA_EQ", "oracle")
    gain, harm = ({label: y.value for label, y in zip(ratio.x_ticks, c.y, strict=True)} for c in ratio.measured())
    assert gain["oracle"] > 0 < harm["oracle"]
    # Only JTCP is read in two ways.
    for ours, theirs in zip(ratio.measured(), literal.measured(), strict=True):
        differ = [n for n, (a, b) in enumerate(zip(ours.y, theirs.y, strict=True)) if a.value != b.value]
        assert differ == [3]


def test_a_figure_needs_series_or_a_function(tmp_path: Path) -> None:
    (tmp_path / "paper.toml").write_text(
        """
[paper]
name = "x"
short = "x"
title = "x"
authors = "x"
venue = "x"
year = 2000
summary = "x"
repetitions = 1
quick_repetitions = 1

[[figure]]
id = "1"
title = "x"
""",
        encoding="utf-8",
    )
    with pytest.raises(PackError, match="figure 1: give either series, or harm, or studies and draw"):
        Pack.load(tmp_path)
