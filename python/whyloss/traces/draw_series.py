"""Draws time series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from whyloss.plots import export
from whyloss.traces import canvas
from whyloss.traces.looks import FLOWS, GREY, LINES
from whyloss.traces.tables import printable

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from whyloss.traces.series import Line, Panel, Series

__all__ = ["draw_series"]

_HEIGHTS = {"window": 44.0, "rate": 28.0, "sequence": 44.0, "queue": 28.0}
_FILL = "#d3d9e0"


def draw_series(shown: Series, path: Path, width: float = 160.0) -> None:
    """Draws time series into an SVG or PNG file, ``width`` millimetres wide: a panel for each kind of quantity."""
    heights = [_HEIGHTS[panel.kind] for panel in shown.panels]
    with mpl.rc_context(canvas.style(width)):
        legends = [_legend(panel) for panel in shown.panels]
        lines = sum(canvas.rows(legend, 0.85 * width) for legend in legends)
        picture = canvas.canvas(width, 18 + sum(heights) + 4.2 * lines)
        grid = picture.add_gridspec(len(heights), 1, height_ratios=heights)
        first: Axes | None = None
        for number, (panel, legend) in enumerate(zip(shown.panels, legends, strict=True)):
            axes = picture.add_subplot(grid[number], sharex=first) if first else picture.add_subplot(grid[number])
            first = first or axes
            _panel(axes, panel)
            ncols = canvas.columns(legend, 0.85 * width)
            axes.legend(handles=legend, loc="lower left", bbox_to_anchor=(0, 1), ncols=ncols, **canvas.LEGEND)
            axes.tick_params(labelbottom=number == len(heights) - 1)
            axes.set_xlim(shown.start, shown.end)
        picture.suptitle(canvas.text(shown.title, width), x=0.01, ha="left", fontsize=mpl.rcParams["axes.titlesize"])
        axes.set_xlabel("time (s)")
        export(picture, path)


def _panel(axes: Axes, panel: Panel) -> None:
    top = max((float(np.nanmax(line.y)) for line in panel.lines if len(line.y)), default=1.0)
    name, unit = canvas.unit(panel.unit, top)
    for line in sorted(panel.lines, key=lambda line: line.quantity != "flight"):
        look = _look(line, panel)
        if _is_filled(line, panel):
            axes.fill_between(line.x, line.y / unit, step="post", color=look["color"], linewidth=0)
        else:
            axes.plot(line.x, line.y / unit, drawstyle=_steps(line), **look)
    for (cause, verdict, did), found in canvas.grouped(panel.decisions, lambda d: (d.cause, d.verdict, d.did)).items():
        axes.plot(
            [decision.at for decision in found],
            [decision.cwnd / unit for decision in found],
            gid=f"decision-{did}-{cause}-{verdict}",
            **canvas.marker(cause, verdict, filled=did != "kept", size=4.5),
        )
    axes.set_ylabel("queue (packets)" if panel.kind == "queue" else f"{panel.kind} ({name})")
    axes.set_ylim(0, max(top / unit * 1.12, 1e-9))
    axes.yaxis.set_major_locator(MaxNLocator(4 if panel.kind in ("rate", "queue") else 5))
    axes.set_axisbelow(True)


def _several(panel: Panel) -> bool:
    return len({line.flow for line in panel.lines}) > 1


def _is_filled(line: Line, panel: Panel) -> bool:
    """What is in flight runs along the window nearly always: an area shows both, a second line would hide one."""
    return line.quantity == "flight" and not _several(panel)


def _steps(line: Line) -> str:
    return "default" if line.quantity in ("goodput", "throughput") else "steps-post"


def _look(line: Line, panel: Panel) -> dict[str, Any]:
    tone, dashes, thick = LINES[line.quantity]
    if line.quantity == "queue" or (_several(panel) and line.flow is not None):
        place = panel.lines.index(line) if line.flow is None else line.flow
        tone = FLOWS[place % len(FLOWS)]
        dashes = (0, (1, 1)) if line.quantity == "throughput" else dashes
    if line.quantity == "sequence" and line.label.endswith("acknowledged"):
        dashes, tone = (0, (3, 1.5)), tone if _several(panel) else FLOWS[0]
    return {"color": _FILL if _is_filled(line, panel) else tone, "linestyle": dashes, "linewidth": thick}


def _legend(panel: Panel) -> list[Line2D]:
    """What the lines and marks of a panel mean."""
    found = []
    for line in panel.lines:
        look = _look(line, panel)
        if _is_filled(line, panel):
            look |= {"linewidth": 5.0, "linestyle": "-", "solid_capstyle": "butt"}
        found.append(Line2D([], [], label=printable(line.label), **look))
    found += canvas.keys((decision.cause, decision.verdict) for decision in panel.decisions)
    for did, words in (("reduced", "filled: window reduced"), ("kept", "hollow: window kept")):
        if any(decision.did == did for decision in panel.decisions):
            found.append(canvas.handle("o", GREY, words, filled=did == "reduced"))
    return found
