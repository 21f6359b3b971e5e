"""Draws the ladder diagram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.lines import Line2D

from whyloss.plots import export
from whyloss.traces import canvas
from whyloss.traces.looks import ACKED, GREY, INK, cause_label, colour, shape
from whyloss.traces.rungs import rungs

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from whyloss.traces.ladder import Arrow, Ladder
    from whyloss.traces.rungs import Rungs

__all__ = ["draw_ladder"]

_WIDE = 100.0
#: Between the hosts, in millimetres.
_LEAST = 16.0
_DOTS = (0, (2, 2))


def draw_ladder(shown: Ladder, path: Path, width: float = 160.0) -> None:
    """Draws a ladder diagram into an SVG or PNG file, ``width`` millimetres wide."""
    with mpl.rc_context({**canvas.style(width), "axes.grid": False}):
        found = rungs(shown, 3.4 if width >= _WIDE else 3.0)
        legend = _legend(shown)
        picture = canvas.canvas(width, found.height + 16 + 4.2 * canvas.rows(legend, width))
        axes = picture.add_subplot()
        axes.set_axis_off()
        _ladder(axes, shown, found, width)
        picture.suptitle(canvas.text(shown.title, width), x=0.01, ha="left", fontsize=mpl.rcParams["axes.titlesize"])
        picture.legend(handles=legend, loc="outside lower left", ncols=canvas.columns(legend, width), **canvas.LEGEND)
        export(picture, path)


def _ladder(axes: Axes, shown: Ladder, found: Rungs, width: float) -> None:
    """In millimetres: hosts at fixed places, time as :mod:`whyloss.traces.rungs` has laid it out."""
    small = 7.0 if width >= _WIDE else 5.8
    left, right = (
        max([14.0, *(canvas.breadth(label.text, small) + 4 for label in found.labels if label.forward == forward)])
        for forward in (True, False)
    )
    hosts = (left, max(width - right, left + _LEAST))
    axes.set_xlim(0, hosts[1] + right)
    axes.set_ylim(found.height, -7)
    for x, name in zip(hosts, shown.hosts, strict=True):
        axes.text(x, -3.5, canvas.text(name, 0.3 * width), ha="center", fontsize=small + 1, fontweight="bold")
        axes.plot([x, x], [-1, found.height], color=INK, linewidth=1.0, zorder=1)
    for y, words in found.breaks:
        for x in hosts:
            axes.plot([x], [y], marker="s", markersize=4, color="white", zorder=2)
            for shift in (-0.6, 0.6):
                axes.plot([x - 1.2, x + 1.2], [y + shift + 0.5, y + shift - 0.5], color=INK, linewidth=0.8, zorder=3)
        blank = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        axes.text(sum(hosts) / 2, y, words, ha="center", va="center", fontsize=small, color=GREY, bbox=blank, zorder=4)
    for arrow, start, end in zip(shown.arrows, found.starts, found.ends, strict=True):
        _arrow(axes, arrow, hosts, (start, end), small)
    for label in found.labels:
        at, side = (hosts[0], -1) if label.forward else (hosts[1], 1)
        reached = label.at
        axes.plot([at, at + side * 2.4], [reached, label.place], color=GREY, linewidth=0.5)
        axes.text(
            at + side * 2.9,
            label.place,
            label.text,
            ha="right" if label.forward else "left",
            va="center",
            fontsize=small,
            color=INK,
            fontweight="bold" if label.cause else "normal",
        )


def _arrow(axes: Axes, arrow: Arrow, hosts: tuple[float, float], ys: tuple[float, float], small: float) -> None:
    here, there = hosts if arrow.forward else hosts[::-1]
    start, end = ys
    arrived, under_way = arrow.fate == "arrived", arrow.fate == "in-flight"
    # How far a lost packet came is not known in octets or metres: the cross stands in the middle.
    stop = there if arrived else here + (0.9 if under_way else 0.5) * (there - here)
    tone = colour(arrow.repairs.cause) if arrow.repairs else INK if arrow.forward else ACKED
    what = "again" if arrow.repairs else "data" if arrow.forward else "ack"
    drawn = axes.annotate(
        "",
        xy=(stop, end),
        xytext=(here, start),
        arrowprops={
            "arrowstyle": "-|>" if arrived else "-",
            "color": tone,
            "linewidth": 1.5 if arrow.repairs else 0.8,
            "linestyle": _DOTS if under_way else "-",
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 7,
        },
    )
    if drawn.arrow_patch is not None:
        drawn.arrow_patch.set_gid(f"arrow-{what}")
    if arrow.repairs:
        gid = f"resent-{arrow.repairs.cause}-{arrow.repairs.verdict}"
        look = canvas.marker(arrow.repairs.cause, arrow.repairs.verdict, filled=False, size=5.5)
        axes.plot([here], [start], gid=gid, zorder=5, **look)
    if arrived or under_way:
        return
    cross: dict[str, Any] = {"linestyle": "none", "marker": "x", "markersize": 7, "markeredgewidth": 2}
    axes.plot([stop], [end], color=colour(arrow.fate), gid=f"cross-{arrow.fate}", zorder=6, **cross)
    judged = f", {shape(arrow.lost.verdict)[2]}" if arrow.lost else ""
    words = cause_label(arrow.fate) + judged
    beside = canvas.breadth(words, small) < abs(there - stop) - 3
    axes.text(
        stop + ((2 if arrow.forward else -2) if beside else 0),
        end + (0 if beside else 2.4),
        words if beside else cause_label(arrow.fate),
        fontsize=small - 0.5,
        color=INK,
        va="center",
        ha=("left" if arrow.forward else "right") if beside else "center",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
        zorder=4,
    )


def _legend(shown: Ladder) -> list[Line2D]:
    found = [
        Line2D([], [], color=INK, linewidth=0.8, label="data"),
        Line2D([], [], color=ACKED, linewidth=0.8, label="acknowledgement"),
    ]
    if any(arrow.fate == "in-flight" for arrow in shown.arrows):
        found.append(Line2D([], [], color=INK, linewidth=0.8, linestyle=_DOTS, label="under way at the end"))
    lost = [arrow.fate for arrow in shown.arrows if arrow.fate not in ("arrived", "in-flight")]
    again = [arrow.repairs for arrow in shown.arrows if arrow.repairs]
    if lost:
        cross: dict[str, Any] = {"linestyle": "none", "marker": "x", "markersize": 6, "markeredgewidth": 2}
        found.append(Line2D([], [], color=GREY, label=f"lost ({len(lost)})", **cross))
    if again:
        found.append(canvas.handle("o", GREY, f"hollow: sent again ({len(again)})", filled=False))
    found += canvas.keys([*((fate, "") for fate in lost), *((mark.cause, mark.verdict) for mark in again)])
    if shown.more:
        found.append(Line2D([], [], linestyle="none", label=f"{shown.more} more packets follow"))
    return found
