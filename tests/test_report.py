"""Figures and the report: whole, offline, the same for the same data."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from whyloss import plots
from whyloss.figures import Curve, Figure, Style
from whyloss.report import render
from whyloss.report.html import interval, number
from whyloss.stats import mean


@pytest.fixture
def figure() -> Figure:
    xs = (0.0, 1e-6, 2e-6)
    ours = Curve("1 flow", xs, tuple(mean([9.0, 10.0, 11.0]) for _ in xs), Style("#2f72b8", "square"))
    alone = Curve("single run", xs, tuple(mean([5.0]) for _ in xs), Style("#d5622a", "circle", filled=False))
    theirs = Curve("elsewhere", xs, tuple(mean([8.0, 9.0]) for _ in xs), Style("#777777", dashed=True), reference=True)
    return Figure("4", "1 Mbps, 10 ms", "", "Bit error ratio", "Throughput (kbps)", (ours, alone, theirs), 20.0)


def claim(verdict: str = "reproduced") -> dict[str, Any]:
    row = {
        "verdict": verdict,
        "measured": 0.4,
        "low": 0.1,
        "high": 0.7,
        "n": 30,
        "expected": "≥ 0",
        "unit": "kbps",
        "what": "a − b",
        "region_low": 0.0,
        "region_high": None,
        "counted": "runs",
    }
    return {**row, "id": "X-1", "text": "a beats <b>", "asserts": "a > b", "where": "Figure 4", "comparisons": [row]}


def reading(figures: list[dict[str, Any]], name: str = "", verdict: str = "reproduced") -> dict[str, Any]:
    reasons = [{"words": "as fast <as>", "where": "4.1", "so": "It is.", "measure": "pace"}] if name else []
    evidence = {"pace": [claim()["comparisons"][0] | {"what": f"pace of {name}"}]} if name else {}
    plain = {"name": name, "title": name.title(), "summary": "", "reasons": reasons, "evidence": evidence}
    return {**plain, "claims": [claim(verdict)], "skipped": [], "figures": figures}


def record(figures: list[dict[str, Any]], **other: Any) -> dict[str, Any]:
    paper = {
        "name": "x",
        "short": "X 2004",
        "title": "On <x>",
        "authors": "X",
        "venue": "V",
        "year": 2004,
        "doi": "",
        "summary": "S",
        "repetitions": 30,
    }
    plain = {
        "paper": paper,
        "quick": False,
        "stacks": [],
        "readings": [reading(figures)],
        "reference_label": "elsewhere",
        "errata": "# Errata\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n",
        "rerun": ["whyloss reproduce x"],
        "provenance": {"whyloss": "0.1.0", "repetitions": 30},
    }
    return plain | other


def plain_figure(label: str = "1 flow") -> dict[str, Any]:
    curve = {
        "label": label,
        "reference": False,
        "style": {"colour": "#2f72b8", "marker": "square", "filled": True, "dashed": False},
        "x": [0.0],
        "y": [1.0],
        "low": [None],
        "high": [None],
        "n": [1],
    }
    return {
        "id": "4",
        "title": "T",
        "caption": "",
        "x_label": "x",
        "y_label": "y",
        "y_limit": None,
        "printed": True,
        "curves": [curve],
    }


def test_pictures_are_the_same_bytes_for_the_same_data(figure: Figure, tmp_path: Path) -> None:
    first = [path.read_bytes() for path in plots.save(figure, tmp_path / "a")]
    again = [path.read_bytes() for path in plots.save(figure, tmp_path / "b")]
    assert first == again
    assert first[0].startswith(b"<?xml")
    assert first[1].startswith(b"\x89PNG")


def test_report_needs_nothing_from_outside() -> None:
    page = render(record([plain_figure()]))
    assert page.startswith("<!doctype html>")
    markup = re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL)
    assert all(re.match(r"#|data:", target) for target in re.findall(r'(?:src|href)="([^"]*)"', markup))
    assert "@import" not in markup
    assert "<script src" not in page


def test_report_shows_claims_and_escapes_what_it_shows() -> None:
    page = render(record([plain_figure()]))
    assert "a beats &lt;b&gt;" in page
    assert "On &lt;x&gt;" in page
    assert '<span class="verdict">reproduced</span>' in page
    assert "0.1 … 0.7" in page
    assert "<td>1</td>" in page


def test_report_has_a_switch_between_readings_and_hides_none() -> None:
    both = [reading([plain_figure()], "first"), reading([plain_figure("other")], "second", "undecided")]
    page = render(record([], readings=both))
    row = re.search(r"<tr><td><b>X-1</b>.*?</tr>", page, re.DOTALL)
    assert row is not None
    assert re.findall(r'class="verdict">([^<]*)<', row[0]) == ["reproduced", "undecided"]
    assert re.findall(r'name="reading" value="(\w+)"', page) == ["first", "second"]
    assert page.count('<div data-reading="second">') == 2
    # Every plot finds its data, and no two elements share a name.
    assert re.findall(r'data-figure="(\d+)"', page) == ["0", "1"]
    named = re.findall(r'\sid="([^"]+)"', re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL))
    assert len(named) == len(set(named))
    assert "<q>as fast &lt;as&gt;</q>" in page
    assert page.count("<td>pace of first</td><td>0.4 kbps") == 2


def test_report_of_one_reading_has_no_switch() -> None:
    assert 'name="reading"' not in render(record([plain_figure()]))


def test_data_cannot_end_the_script() -> None:
    page = render(record([plain_figure(label="</script><b>")]))
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])[0]["curves"][0]["label"] == "</script><b>"


def test_a_single_run_has_no_interval() -> None:
    assert interval({"low": None, "high": None}) == "no interval (too few runs)"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.02871, "0.0287"), (-12.345, "−12.3"), (1234.5, "1,234"), (3.2e-6, "3.2e−06"), (None, "–")],
)
def test_numbers_have_the_digits_that_count(value: float | None, text: str) -> None:
    assert number(value) == text
