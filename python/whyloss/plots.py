"""Figures as SVG and PNG by matplotlib, byte for byte the same for the same data."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from whyloss import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from whyloss.figures import Curve, Figure

__all__ = ["STYLE", "beside", "draw", "export", "save", "save_all"]

#: The settings that all pictures share.
# matplotlib types the names of its settings one by one; a plain dict is not one of them.
STYLE: Any = {
    "svg.hashsalt": "whyloss",  # else ids in the file are random
    "svg.fonttype": "path",  # looks the same where the font is missing
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#d9dde3",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}
_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^"}
_MARGIN = 1.04
#: Below this the horizontal axis counts in millionths.
_SMALL = 1e-3
#: Figures that are worth a process of their own: starting one takes as long as drawing two or three.
_SHARE = 8


def save(figure: Figure, stem: Path) -> list[Path]:
    """Writes ``stem.svg`` and ``stem.png`` and returns their paths."""
    with mpl.rc_context(STYLE):
        # As high as its names need.
        height = max(3.7, 1.6 + 0.22 * len(figure.x_ticks)) if beside(figure) else 3.7
        canvas = Canvas(figsize=(5.6, height), layout="constrained")
        FigureCanvasAgg(canvas)
        draw(figure, canvas.add_subplot())
        # More than three names do not fit beside each other.
        canvas.legend(loc="outside lower center", ncols=3 if len(figure.measured()) <= 3 else 2, fontsize=8)
        svg, png = stem.with_suffix(".svg"), stem.with_suffix(".png")
        export(canvas, svg)
        export(canvas, png)
    return [svg, png]


def save_all(pictures: Sequence[tuple[Figure, Path]]) -> None:
    """Saves many figures, each under the stem beside it, on all cores."""
    count = max(1, min(os.cpu_count() or 1, len(pictures) // _SHARE))
    mine, *others = (pictures[first::count] for first in range(count))
    with ExitStack() as stack:
        drawing = [(stack.enter_context(_elsewhere(share)), share) for share in others]
        _save_here(mine)
        for process, share in drawing:
            if process.wait() != 0:
                # Whatever is wrong is wrong here too, and is told; if not, the pictures are there.
                _save_here(share)


def _save_here(pictures: Sequence[tuple[Figure, Path]]) -> None:
    for figure, stem in pictures:
        save(figure, stem)


@contextmanager
def _elsewhere(pictures: Sequence[tuple[Figure, Path]]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that saves ``pictures``; it does not outlive the block.

    ``multiprocessing`` would import the user's script again, which need not be written for that.
    """
    with TemporaryFile() as file:
        pickle.dump(pictures, file)
        file.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-c", "from whyloss import plots; plots._save_what_is_sent()"],
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            process_group=0,  # Ctrl-C is for the process that waits
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _save_what_is_sent() -> None:
    """What a process of :func:`_elsewhere` does."""
    # As an exception, so that no half-written file stays.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    _save_here(pickle.load(sys.stdin.buffer))


def export(canvas: Canvas, path: Path) -> None:
    """Writes ``canvas`` as SVG, PNG or PDF, as ``path`` ends, without anything that differs from day to day."""
    with files.aside(path) as part:
        if path.suffix == ".png":
            canvas.savefig(part, format="png", dpi=160, metadata={"Software": "whyloss"})
        elif path.suffix == ".pdf":
            dateless = {"CreationDate": None, "ModDate": None, "Producer": "whyloss", "Creator": "whyloss"}
            canvas.savefig(part, format="pdf", metadata=dateless)
        else:
            canvas.savefig(part, format="svg", metadata={"Date": None, "Creator": "whyloss"})


def draw(figure: Figure, axes: Axes) -> None:
    """Draws ``figure`` into ``axes``: points with their intervals, joined by lines; without a legend.

    Things that no line joins stand at the side, one below the other, where their names can be read; the values then go
    to the right.
    """
    aside = beside(figure)
    for curve in figure.measured():
        _curve(curve, axes, aside)
    axes.set_title(figure.title, fontsize=10, loc="left")
    labels = (figure.y_label, figure.x_label) if aside else (figure.x_label, figure.y_label)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    if figure.y_from_zero:
        limit = None if figure.y_limit is None else figure.y_limit * _MARGIN
        (axes.set_xlim if aside else axes.set_ylim)(0, limit)
    axes.set_axisbelow(True)
    if aside:
        axes.set_yticks(range(len(figure.x_ticks)), figure.x_ticks, fontsize=8)
        axes.set_ylim(len(figure.x_ticks) - 0.5, -0.5)
    elif figure.x_ticks:
        axes.set_xticks(range(len(figure.x_ticks)), figure.x_ticks, fontsize=8)
    else:
        small = max((abs(x) for curve in figure.measured() for x in curve.x), default=0) < _SMALL
        limits = (-6, -6) if small else (-3, 4)
        axes.ticklabel_format(axis="x", style="sci", scilimits=limits, useMathText=True)


def beside(figure: Figure) -> bool:
    """Whether the names of a figure's positions stand at its side."""
    return bool(figure.x_ticks) and not any(curve.style.line for curve in figure.measured())


def _curve(curve: Curve, axes: Axes, beside: bool) -> None:
    values = [estimate.value for estimate in curve.y]
    intervals = [estimate.interval() for estimate in curve.y]
    # A single run has no interval: the point stands without a bar.
    bars = [
        [value - low if low > float("-inf") else 0.0 for value, (low, _) in zip(values, intervals, strict=True)],
        [high - value if high < float("inf") else 0.0 for value, (_, high) in zip(values, intervals, strict=True)],
    ]
    across, up = (values, curve.x) if beside else (curve.x, values)
    axes.errorbar(
        across,
        up,
        xerr=bars if beside else None,
        yerr=None if beside else bars,
        label=curve.label,
        color=curve.style.colour,
        marker=_MARKERS[curve.style.marker],
        markersize=5,
        markerfacecolor=curve.style.colour if curve.style.filled else "white",
        linestyle="none" if not curve.style.line else "--" if curve.style.dashed else "-",
        linewidth=1.3,
        elinewidth=1,
        capsize=2.5,
    )
