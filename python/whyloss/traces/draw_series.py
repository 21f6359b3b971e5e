"""Draws time series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from whyloss.plots import export
from whyloss.traces import canvas
from whyloss.traces.looks import FLOWS, GREY, INK, LINES, colour
from whyloss.traces.rungs import spread
from whyloss.traces.tables import printable

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from whyloss.traces.series import Line, Panel, Series

__all__ = ["axis_label", "draw_series", "ink", "run_colour", "scale"]

_HEIGHTS = {"window": 44.0, "rtt": 24.0, "queue": 24.0, "rate": 28.0, "delivered": 28.0, "sequence": 44.0}
#: Of several runs each has a panel of windows.
_LOWER = 32.0
_FILL = "#d3d9e0"
#: Distance of words beside lines, in their height.
_APART = 1.25
_POINT = 25.4 / 72
#: The part of a line at its end whose middle its words stand beside.
_END = 0.06
_SIZES = {"reduced": 4.5, "kept": 4.5, "covered": 3.0}
#: From so many marks on they are smaller.
_CROWD = 100


def draw_series(shown: Series, path: Path, width: float = 160.0) -> None:
    """Draws time series into an SVG, PNG or PDF file, ``width`` millimetres wide: a panel for each kind of quantity."""
    heights = [_LOWER if panel.title else _HEIGHTS[panel.kind] for panel in shown.panels]
    with mpl.rc_context(canvas.style(width)):
        legend = _legend(shown)
        rows = canvas.rows(legend, width) if legend else 0
        picture = canvas.canvas(width, 16 + sum(heights) + 4.4 * rows)
        grid = picture.add_gridspec(len(heights), 1, height_ratios=heights)
        first: Axes | None = None
        for number, (panel, height) in enumerate(zip(shown.panels, heights, strict=True)):
            axes = picture.add_subplot(grid[number], sharex=first) if first else picture.add_subplot(grid[number])
            first = first or axes
            _panel(axes, panel, shown, height)
            axes.tick_params(labelbottom=number == len(heights) - 1)
            axes.set_xlim(shown.start, shown.end)
        picture.suptitle(canvas.text(shown.title, width), x=0.01, ha="left", fontsize=mpl.rcParams["axes.titlesize"])
        axes.set_xlabel("time (s)")
        if legend:
            ncols = canvas.columns(legend, width)
            picture.legend(handles=legend, loc="outside lower left", ncols=ncols, **canvas.LEGEND)
        export(picture, path)


def scale(panel: Panel, shown: Series) -> tuple[str, float, float]:
    """Unit of a panel, its size, and the top of its axis in it; panels of windows have the same."""
    alike = [other for other in shown.panels if other.kind == panel.kind]
    tops = [float(np.nanmax(line.y)) for other in alike for line in other.lines if np.isfinite(line.y).any()]
    top = max(tops, default=1.0)
    name, size = canvas.unit(panel.unit, top)
    return name, size, max(top / size * 1.12, 1e-9)


def axis_label(panel: Panel, unit: str) -> str:
    """What stands beside the axis of a panel."""
    quantities = {line.quantity for line in panel.lines}
    if panel.kind == "rtt":
        what = "SRTT"
    elif panel.kind == "sequence":
        what = "position"
    else:
        what = panel.lines[0].quantity if panel.kind == "rate" and len(quantities) == 1 else panel.kind
    return f"{what} ({unit})"


def ink(line: Line, panel: Panel, shown: Series) -> str:
    """The colour of a line: that of its flow or run where there are several, else of its quantity."""
    if panel.title and line.quantity == "cwnd":
        return INK  # the marks on it are coloured
    if line.flow is not None and (shown.several_runs or len({other.flow for other in panel.lines}) > 1):
        return LINES[line.quantity][0] if panel.title else run_colour(line.flow)
    if line.quantity == "queue":
        return run_colour(panel.lines.index(line))
    return LINES[line.quantity][0]


def run_colour(position: int) -> str:
    """The colour of a flow, or run, by its position among those shown."""
    return FLOWS[position % len(FLOWS)]


def _panel(axes: Axes, panel: Panel, shown: Series, height: float) -> None:
    name, unit, top = scale(panel, shown)
    # Below everything, and as high as the panel.
    for expiry in panel.expiries:
        tone = colour(expiry.cause)
        face: dict[str, Any] = (
            {"facecolor": tone, "alpha": 0.3} if expiry.collapsed else {"facecolor": "none", "alpha": 0.8}
        )
        axes.axvspan(
            max(expiry.began, shown.start),
            expiry.at,
            edgecolor=tone,
            linewidth=0.7,
            zorder=0.5,
            gid=f"timeout-{expiry.cause}-{expiry.verdict}",
            **face,
        )
    for line in sorted(panel.lines, key=lambda line: line.quantity != "flight"):
        if _is_filled(line, panel):
            axes.fill_between(line.x, line.y / unit, step="post", color=_FILL, linewidth=0)
        else:
            _, dashes, thick = LINES[line.quantity]
            if line.quantity == "sequence" and line.label.endswith("acknowledged"):
                dashes = (0, (3, 1.5))
            steps = "default" if line.quantity in ("goodput", "throughput") else "steps-post"
            tone = ink(line, panel, shown)
            axes.plot(line.x, line.y / unit, drawstyle=steps, color=tone, linestyle=dashes, linewidth=thick)
    smaller = 0.75 if len(panel.decisions) >= _CROWD else 1.0
    for (cause, verdict, did), found in canvas.grouped(panel.decisions, lambda d: (d.cause, d.verdict, d.did)).items():
        axes.plot(
            [decision.at for decision in found],
            [decision.cwnd / unit for decision in found],
            gid=f"decision-{did}-{cause}-{verdict}",
            **canvas.marker(cause, verdict, filled=did == "reduced", size=smaller * _SIZES[did])
            | ({"markeredgewidth": 0.7} if did == "covered" or smaller < 1 else {}),
        )
    axes.set_ylabel(axis_label(panel, name))
    axes.set_ylim(0, top)
    axes.yaxis.set_major_locator(MaxNLocator(5 if height >= _HEIGHTS["window"] else 3))
    axes.set_axisbelow(True)
    if panel.title:
        axes.set_title(
            canvas.text(panel.title, 80), loc="left", fontweight="bold", color=ink(panel.lines[0], panel, shown)
        )
    if len(panel.lines) > 1:
        _words(axes, panel, shown, height, unit, top)
    elif panel.kind == "queue":
        # Which queue: inside, where it takes nothing of the width.
        size = mpl.rcParams["legend.fontsize"]
        words = canvas.text(panel.lines[0].label, 60)
        axes.text(0.995, 0.97, words, transform=axes.transAxes, color=GREY, fontsize=size, ha="right", va="top")


def _is_filled(line: Line, panel: Panel) -> bool:
    """What is in flight runs along the window nearly always: an area shows both, a second line would hide one."""
    return line.quantity == "flight" and len({other.flow for other in panel.lines}) == 1


def _words(axes: Axes, panel: Panel, shown: Series, height: float, unit: float, top: float) -> None:
    """Says beside each line what it is; words do not cover each other."""
    size = mpl.rcParams["legend.fontsize"]
    ends = [(_end(line.y) / unit / top * height, line) for line in panel.lines]
    ends.sort(key=lambda end: end[0])
    places = spread([place for place, _ in ends], size * _POINT * _APART)
    for (_, line), place in zip(ends, places, strict=True):
        axes.annotate(
            canvas.text(line.short or line.label, 30),
            (1.0, place / height),
            xycoords="axes fraction",
            xytext=(4, 0),
            textcoords="offset points",
            color=GREY if _is_filled(line, panel) else ink(line, panel, shown),
            fontsize=size,
            va="center",
            annotation_clip=False,
        )


def _end(y: NDArray[np.float64]) -> float:
    known = y[np.isfinite(y)]
    if not len(known):
        return 0.0
    return float(np.median(known[-max(1, round(_END * len(known))) :]))


def _legend(shown: Series) -> list[Artist]:
    """What the marks and bars mean."""
    decisions = [decision for panel in shown.panels for decision in panel.decisions]
    expiries = [expiry for panel in shown.panels for expiry in panel.expiries]
    found: list[Artist] = []
    found += canvas.keys([*((one.cause, one.verdict) for one in decisions), *((one.cause, "") for one in expiries)])
    every = max((panel.every for panel in shown.panels), default=1)
    some = "" if every == 1 else f" (1 of {every})"
    for did, words in (("reduced", "filled: window reduced"), ("kept", "hollow: window kept")):
        if any(decision.did == did for decision in decisions):
            found.append(canvas.handle("o", GREY, words + some, filled=did == "reduced"))
    if any(decision.did == "covered" for decision in decisions):
        small = canvas.handle("o", GREY, "small: later loss of an episode", filled=False)
        small.set_markersize(_SIZES["covered"])
        found.append(small)
    if expiries:
        found.append(Patch(facecolor=GREY, alpha=0.4, label="bar: the timer ran, then expired"))
    if any(not expiry.collapsed for expiry in expiries):
        found.append(Patch(facecolor="none", edgecolor=GREY, label="hollow bar: window kept"))
    for one in found:
        one.set_label(printable(str(one.get_label())))
    return found
