"""Turns the plain record of a reproduction, or of a single run, into one HTML file."""

from __future__ import annotations

import base64
import io
import json
import math
import re
from collections import Counter
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["render", "render_plot", "render_run"]

_VERDICTS = ("reproduced", "not reproduced", "undecided")


#: The plotting library with the plots that reports have: the partial bundle "basic" of plotly.js, as it is published.
_PLOTLY = "plotly-basic.min.js"
#: A picture that is put into the page for those who run no scripts: its width and the number of its colours.
_WIDTH, _COLOURS = 560, 16
#: Octets of a picture's file, at most.
_MOST = 2_000_000
#: Digits of the numbers that plots show.
_DIGITS = 6


def render(record: dict[str, Any], folder: Path | None = None) -> str:
    """The report of ``record``, the content of a ``reproduction.json``, as a whole HTML document.

    The plotting library travels inside the file (about 1 MB), so it opens anywhere and keeps working. Readers without
    JavaScript see the pictures that lie in ``figures`` of ``folder``, smaller.
    """
    figures = [figure for reading in record["readings"] for figure in reading["figures"]]
    return _page(
        "report",
        record,
        [{**figure, "curves": [_short(curve) for curve in figure["curves"]]} for figure in figures],
        readings=_with_places(record["readings"]),
        rows=_side_by_side([reading["claims"] for reading in record["readings"]]),
        evidence=lambda name: _side_by_side([reading["evidence"][name] for reading in record["readings"]]),
        errata_html=Markup(
            MarkdownIt("commonmark", {"html": False}).enable("table").render(_visible(record["errata"]))
        ),
        has_reference=any(curve["reference"] for figure in figures for curve in figure["curves"]),
        still=_still(folder),
    )


def render_run(record: dict[str, Any]) -> str:
    """The report of a single run, as :func:`whyloss.traces.page` tells it, as a whole HTML document."""
    figures = [figure for flow in record["flows"] for figure in flow["figures"]]
    numbers = iter(range(len(figures)))
    flows = [
        {**flow, "figures": [{**figure, "index": next(numbers)} for figure in flow["figures"]]}
        for flow in record["flows"]
    ]
    wanted = ("title", "traces", "layout", "height")
    drawn = [{name: figure[name] for name in wanted} for figure in figures]
    return _page("run", record, drawn, flows=flows)


def render_plot(record: dict[str, Any]) -> str:
    """A single figure to zoom into, as :func:`whyloss.traces.figure` tells it, as a whole HTML document."""
    drawn = [{name: record[name] for name in ("title", "traces", "layout", "height")}]
    return _page("plot", record, drawn, script="run")


def _page(
    name: str, record: dict[str, Any], figures: list[dict[str, Any]], script: str | None = None, **more: Any
) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("whyloss.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        number=number,
        interval=interval,
        glyph=_glyph,
        rate=rate,
        points=_points,
        slug=lambda text: text.replace(" ", "-"),
    )
    return environment.get_template(f"{name}.html.j2").render(
        {**record, **more},
        figures_json=_script(figures),
        style=_text("report.css"),
        script=_text("page.js") + _text(f"{script or name}.js"),
        plotly=_text(_PLOTLY),
    )


def _still(folder: Path | None) -> Callable[[dict[str, Any], dict[str, Any]], str]:
    """What gives the picture of a reading's figure as a data URL; nothing if there is none."""

    def picture(reading: dict[str, Any], figure: dict[str, Any]) -> str:
        if folder is None:
            return ""
        pictures = (folder / "figures").resolve()
        path = (pictures / reading["name"] / f"figure-{figure['id']}.png").resolve()
        if not path.is_relative_to(pictures) or not path.is_file() or path.stat().st_size > _MOST:
            return ""
        return f"data:image/webp;base64,{base64.b64encode(_small(path)).decode('ascii')}"

    return picture


def _small(path: Path) -> bytes:
    """The picture in some fifteen kilobytes."""
    octets = io.BytesIO()
    with Image.open(path) as picture:
        height = round(picture.height * _WIDTH / picture.width)
        small = picture.convert("RGB").resize((_WIDTH, height), Image.Resampling.LANCZOS)
        few = small.quantize(_COLOURS, dither=Image.Dither.NONE).convert("RGB")
        few.save(octets, "WEBP", lossless=True)
    return octets.getvalue()


def _short(curve: dict[str, Any]) -> dict[str, Any]:
    """A curve with the digits that a plot can show; where all runs agree there is no interval to draw."""
    rows = zip(curve["y"], curve["low"], curve["high"], strict=True)
    bounds = [(None, None) if low == y == high else (low, high) for y, low, high in rows]
    low, high = ([_rounded(bound[side]) for bound in bounds] for side in (0, 1))
    return {**curve, "y": [_rounded(y) for y in curve["y"]], "low": low, "high": high}


def _points(curve: dict[str, Any]) -> list[tuple[float | None, ...]]:
    """The points of a curve: x, mean, the ends of its interval, and the number of runs."""
    return list(zip(*(curve[column] for column in ("x", "y", "low", "high", "n")), strict=True))


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _with_places(readings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The readings with their tally, and the position of their first figure among all of them."""
    placed, first = [], 0
    for reading in readings:
        counts = Counter(claim["verdict"] for claim in reading["claims"])
        tally = [(verdict, counts[verdict]) for verdict in _VERDICTS]
        placed.append({**reading, "counts": tally, "first_figure": first})
        first += len(reading["figures"])
    return placed


def _side_by_side(columns: list[list[dict[str, Any]]]) -> list[tuple[dict[str, Any], ...]]:
    """A row for each thing that all readings judged or measured."""
    return list(zip(*columns, strict=True))


def _visible(text: str) -> str:
    """Markdown without its comments."""
    return re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)


def number(value: float | None) -> str:
    """A number with as many digits as a reader wants: three that count, or all of a large one."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−") if abs(value) >= 1e-3 else f"{value:.1e}".replace("-", "−")


def rate(bps: float) -> str:
    """A bit rate with its unit."""
    for unit, size in (("Gbps", 1e9), ("Mbps", 1e6), ("kbps", 1e3)):
        if bps >= size:
            return f"{bps / size:.4g} {unit}"
    return f"{bps:.4g} bps"


def interval(row: dict[str, Any]) -> str:
    """``low … high`` of a claim or comparison, with its level where that is not 95 %."""
    if row["low"] is None or row["high"] is None:
        return "no interval (too few runs)"
    return f"{number(row['low'])} … {number(row['high'])}{level(row)}"


def level(row: dict[str, Any]) -> str:
    """`` at 99.8 %``, where an interval is not of 95 %; with as many digits as tell it from certainty."""
    error = 1 - row.get("level", 0.95)
    if math.isclose(error, 0.05):
        return ""
    return f" at {100 * (1 - error):.{max(1, -math.floor(math.log10(error)) - 2 + 1)}f} %"


def _glyph(row: dict[str, Any]) -> Markup:
    """A small picture: the region that agrees with the claim, and the interval measured."""
    low, high, value = row["low"], row["high"], row["measured"]
    if low is None or high is None or value is None:
        return Markup("")
    borders = [edge for edge in (row["region_low"], row["region_high"]) if edge is not None]
    left, right = min([low, *borders]), max([high, *borders])
    pad = 0.15 * (right - left) or 1.0
    left, right = left - pad, right + pad

    def at(x: float) -> float:
        return round(float(100 * (x - left) / (right - left)), 2)

    start = 0.0 if row["region_low"] is None else at(row["region_low"])
    end = 100.0 if row["region_high"] is None else at(row["region_high"])
    return Markup(
        f'<svg class="glyph" viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="region" x="{start}" y="1" width="{max(end - start, 0.8):.2f}" height="12"/>'
        f'<line class="bar" x1="{at(low)}" x2="{at(high)}" y1="7" y2="7"/>'
        f'<line class="dot" x1="{at(value)}" x2="{at(value)}" y1="3" y2="11"/></svg>'
    )


def _script(value: Any) -> Markup:
    """JSON that may stand inside a script element."""
    return Markup(json.dumps(value, separators=(",", ":"), allow_nan=False).replace("</", "<\\/"))


def _text(name: str) -> Markup:
    return Markup(resources.files("whyloss.report").joinpath(name).read_text(encoding="utf-8"))
