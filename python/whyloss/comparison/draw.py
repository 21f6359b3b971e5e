"""Draws a comparison of schemes: a panel for each quantity, a line for each scheme."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.ticker import MaxNLocator

from whyloss import _native
from whyloss.plots import export
from whyloss.traces import canvas
from whyloss.traces.looks import FLOWS, GREY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

__all__ = ["Panel", "draw"]

_ENDINGS = (".svg", ".png", ".pdf")
_LINE, _FRAME = 7.5, 34.0


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity of all schemes."""

    name: str
    label: str
    values: Sequence[tuple[float, float, float]]
    """Of each scheme the estimate and the ends of its interval."""
    least: float | None = None
    """The axis reaches from 0 to this at least; of what can be negative nothing, and 0 is marked."""


def draw(
    title: str, basis: str, schemes: Sequence[str], panels: Sequence[Panel], path: str | PathLike[str], width: float
) -> Path:
    """Draws panels beside each other into an SVG, PNG or PDF file, ``width`` millimetres wide.

    Raises:
        whyloss.InputError: the name ends in something else.
    """
    place = Path(path)
    if place.suffix not in _ENDINGS:
        raise _native.InputError(f"found {place.name!r}; allowed: a name that ends in .svg, .png or .pdf")
    count = len(schemes)
    with mpl.rc_context(canvas.style(width)):
        picture = canvas.canvas(width, _FRAME + _LINE * count)
        for number, panel in enumerate(panels):
            axes = picture.add_subplot(1, len(panels), number + 1)
            for position, (value, low, high) in enumerate(panel.values):
                tone = FLOWS[position % len(FLOWS)]
                if high - low < float("inf"):
                    axes.plot([low, high], [position] * 2, color=tone, linewidth=2.4, alpha=0.55)
                axes.plot([value], [position], "o", color=tone, markersize=4.5, gid=f"{panel.name}-{position}")
            if panel.least is None:
                axes.axvline(0, color=GREY, linewidth=0.8)
            else:
                axes.set_xlim(0, max(panel.least, axes.get_xlim()[1]))
            axes.set_ylim(count - 0.5, -0.5)
            names = [canvas.text(scheme, 40) for scheme in schemes]
            axes.set_yticks(range(count), names if number == 0 else [""] * count)
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
            axes.set_xlabel(panel.label)
            axes.xaxis.set_major_locator(MaxNLocator(3))
            axes.set_axisbelow(True)
        size = mpl.rcParams["axes.titlesize"]
        picture.suptitle(canvas.text(title, width, size), x=0.01, ha="left", fontsize=size)
        picture.supxlabel(canvas.text(basis, width), x=0.01, ha="left", fontsize=mpl.rcParams["legend.fontsize"])
        export(picture, place)
    return place
