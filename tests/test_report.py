"""Figures and the report: whole, offline, the same for the same data."""

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import plotly.graph_objects
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from PIL import Image

from whyloss import Scenario, plots, records, report, traces
from whyloss.figures import Curve, Figure, Style
from whyloss.report import render, render_run
from whyloss.report.html import interval, number
from whyloss.stats import mean
from whyloss.traces import looks

PLOTLY = "c23b03591a6bdad0bd0f47a0c5c52305a5519812b73ce254be65cd841553c9c2"


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


def test_many_pictures_are_drawn_by_several_processes_with_the_same_bytes(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = [path.read_bytes() for path in plots.save(figure, tmp_path / "alone")]
    mine: list[Path] = []
    save = plots.save

    def counted(figure: Figure, stem: Path) -> list[Path]:
        mine.append(stem)
        return save(figure, stem)

    monkeypatch.setattr(plots, "save", counted)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    stems = [tmp_path / f"{number}" for number in range(16)]
    plots.save_all([(figure, stem) for stem in stems])
    assert mine == stems[::2]
    assert all([stem.with_suffix(end).read_bytes() for end in (".svg", ".png")] == here for stem in stems)


def test_what_another_process_cannot_draw_is_told(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    stems = [tmp_path / f"{number}" for number in range(16)]
    stems[7] = tmp_path / "no such folder" / "7"
    with pytest.raises(FileNotFoundError, match="no such folder"):
        plots.save_all([(figure, stem) for stem in stems])


def test_no_process_goes_on_drawing_when_drawing_is_stopped(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    def stopped(_figure: Figure, _stem: Path) -> list[Path]:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.cpu_count", lambda: 3)
    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(plots, "save", stopped)
    with pytest.raises(KeyboardInterrupt):
        plots.save_all([(figure, tmp_path / f"{number}") for number in range(24)])
    assert len(started) == 2
    assert all(process.returncode not in (None, 0) for process in started)
    assert not list(tmp_path.glob(".*part*"))


def test_pictures_are_the_same_bytes_for_the_same_data(figure: Figure, tmp_path: Path) -> None:
    first = [path.read_bytes() for path in plots.save(figure, tmp_path / "a")]
    again = [path.read_bytes() for path in plots.save(figure, tmp_path / "b")]
    assert first == again
    assert first[0].startswith(b"<?xml")
    assert first[1].startswith(b"\x89PNG")


@pytest.mark.parametrize("line", [False, True], ids=["things", "quantity"])
def test_names_of_positions_are_level_and_apart(line: bool) -> None:
    names = tuple(f"name {number}" if line else f"a scheme with a long name {number}" for number in range(7))
    ys = tuple(mean([float(number), number + 1.0]) for number in range(7))
    curve = Curve("all", tuple(map(float, range(7))), ys, Style("#2f72b8", "square", line=line))
    canvas = Canvas(figsize=(5.6, 3.7), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.add_subplot()
    plots.draw(Figure("4", "T", "", "", "Goodput (kbps)", (curve,), x_ticks=names), axes)
    canvas.draw_without_rendering()
    labels = axes.get_xticklabels() if line else axes.get_yticklabels()
    assert tuple(label.get_text() for label in labels) == names
    assert {label.get_rotation() for label in labels} == {0}
    boxes = [label.get_window_extent() for label in labels]
    assert not any(one.overlaps(other) for one, other in pairwise(boxes))
    assert (axes.get_ylabel() if line else axes.get_xlabel()) == "Goodput (kbps)"
    bars: Any = axes.containers[0]
    points = bars.lines[0].get_xydata()
    assert [tuple(point) for point in points] == [
        (x, y.value) if line else (y.value, x) for x, y in zip(curve.x, ys, strict=True)
    ]


def test_report_needs_nothing_from_outside() -> None:
    page = render(record([plain_figure()]))
    assert page.startswith("<!doctype html>")
    markup = re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL)
    assert all(
        re.match(r"#|data:|(points\.csv|reproduction\.json|figures/)$", target)
        for target in re.findall(r'(?:src|href)="([^"]*)"', markup)
    )
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


#: As much of a browser as the scripts of a page ask for: no plot ever comes near the screen.
BROWSER = """
const heard = {}, calls = [], classes = new Set();
globalThis.addEventListener = (name, what) => (heard[name] ??= []).push(what);
globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
globalThis.getComputedStyle = () => ({ fontFamily: "x", getPropertyValue: (name) => `${name.slice(2)}-resolved` });
globalThis.IntersectionObserver = class { observe() {} unobserve() {} };
globalThis.location = { hash: "" };
const plots = PLOTS.map((figure) => ({ dataset: { figure }, style: {}, offsetParent: {}, on() {} }));
globalThis.document = {
  documentElement: { classList: { add: (name) => classes.add(name), remove: (name) => classes.delete(name) } },
  body: {},
  getElementById: (id) => (id === "data" ? { textContent: DATA } : null),
  querySelectorAll: (what) => (what === ".plot" ? plots : []),
};
globalThis.Plotly = { react: (element, traces, layout) => calls.push({
  figure: element.dataset.figure, height: element.style.height, traces, layout, printing: classes.has("printing") }) };
"""
PRINT = """
const before = calls.length;
heard.beforeprint.forEach((what) => what());
const printed = calls.slice(before);
heard.afterprint.forEach((what) => what());
console.log(JSON.stringify({ before, printed, after: calls.slice(before + printed.length), left: [...classes] }));
"""


def printed(page: str, tmp_path: Path) -> dict[str, Any]:
    """What is drawn when nobody has scrolled, and the page is printed."""
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    script = page[page.rindex("<script>") + len("<script>") : page.rindex("</script>")]
    numbers = re.findall(r'data-figure="(\d+)"', page)
    values = f"const DATA = {json.dumps(data[1])}, PLOTS = {json.dumps(numbers)};"
    path = tmp_path / "page.js"
    path.write_text(f"{values}\n{BROWSER}\n(() => {{ {script} }})();\n{PRINT}", encoding="utf-8")
    done = subprocess.run(["node", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node runs the scripts of the page")


@needs_node
def test_a_printed_report_has_all_its_plots(tmp_path: Path) -> None:
    result = printed(render(record([plain_figure(), plain_figure("other")])), tmp_path)
    assert result["before"] == 0
    assert [call["figure"] for call in result["printed"]] == ["0", "1"]
    assert all(call["printing"] and call["height"].endswith("px") for call in result["printed"])
    assert result["printed"][1]["traces"][-1]["name"] == "other"
    # Afterwards they are as the screen has them.
    assert [call["printing"] for call in result["after"]] == [False, False]
    assert result["left"] == []


def test_without_javascript_the_pictures_beside_the_report_are_shown(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    Image.new("RGB", (896, 592), "#2f72b8").save(tmp_path / "figures" / "figure-4.png")
    Image.new("RGB", (896, 592), "#d5622a").save(tmp_path / "secret.png")
    outside = plain_figure() | {"id": "4/../../../secret"}
    page = render(record([plain_figure(), outside]), tmp_path)
    fallbacks = re.findall(r"<noscript>(.*?)</noscript>", page, re.DOTALL)
    assert len(fallbacks) == 2
    pictures = re.findall(r'<img class="still" src="data:image/webp;base64,([^"]+)"', page)
    assert "needs JavaScript" in fallbacks[1]
    (shown,) = (Image.open(io.BytesIO(base64.b64decode(picture))) for picture in pictures)
    assert (shown.size, shown.getpixel((5, 5))) == ((560, 370), (0x2F, 0x72, 0xB8))


def test_a_report_of_many_figures_stays_small(tmp_path: Path) -> None:
    """As many figures, curves and points as the largest paper has, each point with all its digits."""
    xs = tuple(float(x) for x in range(60))
    (tmp_path / "figures").mkdir()
    drawn = []
    for index in range(34):
        curves = tuple(
            Curve(f"curve {i}", xs, tuple(mean([x / 3 + i, x / 7 + index]) for x in xs), Style(colour, line=i < 2))
            for i, colour in enumerate(("#2f72b8", "#d5622a", "#6b7280", "#2b9a6c"))
        )
        figure = Figure(str(index), "Goodput", "", "Time (s)", "Packets in order", curves)
        if index < 2:  # drawing takes a while
            plots.save(figure, tmp_path / "figures" / f"figure-{index}")
        else:
            shutil.copy(tmp_path / "figures" / "figure-1.png", tmp_path / "figures" / f"figure-{index}.png")
        drawn.append(records.plain_figure(figure))
    page = render(record(drawn), tmp_path)
    assert page.count('class="still"') == 34
    assert len(page) < 2_800_000


def test_a_report_has_the_digits_that_a_plot_shows() -> None:
    """The values stay what they are, and what has no interval says none."""
    figure = plain_figure()
    points = {"y": [1234.56789, 2.0], "low": [1234.1234567, 2.0], "high": [1235.0, 2.0]}
    figure["curves"][0] |= {"x": [0.0, 1.0], "n": [3, 3], **points}
    page = render(record([figure]))
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    curve = json.loads(data[1])[0]["curves"][0]
    assert (curve["y"], curve["low"], curve["high"]) == ([1234.57, 2.0], [1234.12, None], [1235.0, None])


def test_the_plotting_library_is_the_one_that_was_published() -> None:
    """plotly.js-basic-dist-min 3.7.0, as the registry of npm has it."""
    path = Path(report.__file__).parent / "plotly-basic.min.js"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == PLOTLY


@pytest.fixture
def shown() -> dict[str, Any]:
    """The record of a run with losses, whose flow has an awkward name."""
    document = {
        "scenario": {"name": "lossy </script>", "seed": 5},
        "path": {"rate": "2 Mbps", "delay": "20 ms", "queue": "12 pkt", "forward": {"channel": {"ber": 2e-6}}},
        "flow": [{"name": "<b>one", "size": "300 kB", "scheme": "checksum-ld"}],
    }
    return traces.page(traces.rerun(Scenario(document)))


def test_the_report_of_a_run_has_tables_figures_and_pictures(shown: dict[str, Any]) -> None:
    page = render_run(shown)
    assert "&lt;b&gt;one" in page
    assert "<b>one" not in re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL)
    assert re.findall(r'data-figure="(\d+)"', page) == ["0", "1"]
    assert page.count('<noscript><img class="still" src="data:image/png;base64,') == 2
    for row in shown["losses"]:
        assert re.search(rf"<td>{row['cause']}</td><td>{row['verdict']}</td><td>{row['judgement']}</td>", page)
    markup = re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL)
    assert all(
        re.match(r"#|data:|(points\.csv|reproduction\.json|figures/)$", target)
        for target in re.findall(r'(?:src|href)="([^"]*)"', markup)
    )


def test_the_plots_of_a_run_are_what_plotly_takes(shown: dict[str, Any]) -> None:
    flow = shown["transfers"][0]
    for figure in shown["flows"][0]["figures"]:
        plain = json.loads(re.sub(r'"--\w+"', '"#123456"', json.dumps(figure)))
        # Refuses any name or value that plotly does not know.
        plotly.graph_objects.Figure(data=plain["traces"], layout=plain["layout"])
    sequence = shown["flows"][0]["figures"][1]
    marks = {trace["meta"]: len(trace["x"]) for trace in sequence["traces"] if "meta" in trace}
    assert sum(count for name, count in marks.items() if name.startswith("resent-")) == flow["retransmissions"] > 0
    for trace in sequence["traces"]:
        if "meta" in trace:
            cause = trace["meta"].partition("-")[2].rpartition("-")[0]
            assert trace["marker"]["color"] in (looks.colour(cause), "--ink")
            assert trace["marker"]["symbol"].endswith("-open") == trace["meta"].startswith("resent")


@needs_node
def test_a_printed_report_of_a_run_has_all_its_plots(shown: dict[str, Any], tmp_path: Path) -> None:
    result = printed(render_run(shown), tmp_path)
    assert (result["before"], [call["figure"] for call in result["printed"]]) == (0, ["0", "1"])
    # Colours that fit the paper are put in place of their names.
    text = json.dumps(result["printed"])
    assert '"--' not in text
    assert "ink-resolved" in text
    assert {"xaxis", "yaxis", "yaxis2"} <= set(result["printed"][0]["layout"])


def test_a_run_without_packets_has_a_report_that_says_so(tmp_path: Path) -> None:
    document = {"path": {"rate": "2 Mbps", "delay": "5 ms"}, "flow": [{"size": "20 kB"}]}
    Scenario(document).run().save(tmp_path / "bare")
    page = render_run(traces.page(traces.open_run(tmp_path / "bare")))
    assert page.count('class="note"') == 2
    assert "output.segments = {}" in page
    assert "data-figure=" not in page
