"""Draws the time-sequence diagram."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from whyloss.plots import export
from whyloss.traces import canvas
from whyloss.traces.looks import ACKED, GREY, INK, SACKED

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from whyloss.traces.sequence import TimeSequence

__all__ = ["draw_sequence"]

_DASHES = (0, (4, 2))
#: From so many marks on they are smaller.
_CROWD = 60


def draw_sequence(shown: TimeSequence, path: Path, width: float = 160.0) -> None:
    """Draws a time-sequence diagram into an SVG or PNG file, ``width`` millimetres wide."""
    with mpl.rc_context(canvas.style(width)):
        legend = _legend(shown)
        picture = canvas.canvas(width, 0.58 * max(width, 110) + 4.2 * canvas.rows(legend, width))
        axes = picture.add_subplot()
        name, unit = canvas.unit("octets", shown.top)
        _sequence(axes, shown, unit)
        axes.set_title(canvas.text(shown.title, width), loc="left")
        axes.set_xlabel("time (s)")
        axes.set_ylabel(f"position in the data stream ({name})")
        axes.set_axisbelow(True)
        picture.legend(handles=legend, loc="outside lower left", ncols=canvas.columns(legend, width), **canvas.LEGEND)
        export(picture, path)


def _sequence(axes: Axes, shown: TimeSequence, unit: float) -> None:
    bottom, top = (edge / unit for edge in shown.limits)
    if len(shown.acks):
        at, ack, edge = shown.acks.T
        # A window far above the data is cut off: the axis would press all else flat.
        look: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 0.9}
        axes.plot(at, np.minimum(edge / unit, 2 * top), color=GREY, linestyle=_DASHES, gid="window", **look)
        axes.plot(at, ack / unit, color=ACKED, gid="acks", **look)
    if len(shown.sack):
        axes.add_collection(_bars(shown.sack, unit, "sack", color=SACKED, linewidths=1.4))
    axes.add_collection(_bars(shown.sent, unit, "segments", color=INK, linewidths=1.0))
    crowd = len(shown.marks) >= _CROWD
    # In a crowd what is hollow lets the others show through.
    smaller = {"markersize": 3.6, "markeredgewidth": 0.9, "markerfacecolor": "none"}
    for (kind, cause, verdict), found in canvas.grouped(shown.marks, lambda m: (m.kind, m.cause, m.verdict)).items():
        look = canvas.marker(cause, verdict, filled=kind == "lost", size=3.6 if crowd else 5.5)
        if crowd and kind == "resent":
            look |= smaller
        axes.plot(
            [mark.at_ns / 1e9 for mark in found],
            [(mark.offset + mark.octets / 2) / unit for mark in found],
            gid=f"{kind}-{cause}-{verdict}",
            zorder=4 if kind == "lost" else 5,
            **look,
        )
    axes.set_xlim(shown.start, shown.end)
    axes.set_ylim(bottom, top)


def _bars(rows: NDArray[np.float64], unit: float, gid: str, **look: Any) -> LineCollection:
    """Vertical bars: when, from where, to where."""
    ends = np.stack([rows[:, [0, 1]], rows[:, [0, 2]]], axis=1)
    ends[:, :, 1] /= unit
    bars = LineCollection(list(ends), **look)
    bars.set_gid(gid)
    return bars


def _legend(shown: TimeSequence) -> list[Line2D]:
    upright: dict[str, Any] = {"marker": "|", "linestyle": "none", "markersize": 7}
    segments = "data segment" if shown.every == 1 else f"data segment (1 of {shown.every})"
    found = [Line2D([], [], color=INK, label=segments, **upright)]
    if len(shown.acks):
        above = " (above)" if float(shown.acks[:, 2].min()) > shown.limits[1] else ""
        found.append(Line2D([], [], color=ACKED, linewidth=0.9, label="acknowledged"))
        found.append(Line2D([], [], color=GREY, linewidth=0.9, linestyle=_DASHES, label=f"advertised window{above}"))
    if len(shown.sack):
        found.append(Line2D([], [], color=SACKED, markeredgewidth=1.6, label="SACK block", **upright))
    kinds: Counter[str] = Counter(mark.kind for mark in shown.marks)
    for kind, words in (("lost", "filled: lost"), ("resent", "hollow: sent again")):
        if kinds[kind]:
            found.append(canvas.handle("o", GREY, f"{words} ({kinds[kind]})", filled=kind == "lost"))
    return [*found, *canvas.keys((mark.cause, mark.verdict) for mark in shown.marks)]
