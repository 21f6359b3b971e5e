"""Pictures of scores: trade-off curves and reliability curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from whyloss.plots import STYLE, export

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from whyloss.scoring.calibration import Calibration
    from whyloss.scoring.score import Score

__all__ = ["reliability", "roc"]

_COLOURS = (
    "#1f6fb4",
    "#d1495b",
    "#2e8b57",
    "#8a5cb8",
    "#e08e0b",
    "#17838f",
    "#7a5c3e",
    "#c2569b",
    "#555f6b",
    "#94a81a",
)
_DASHES = ("-", "--", ":", "-.")
#: Points of a curve that lie nearer to each other than this cannot be told apart in print.
_NEAR = 0.002


def _differentiator(score: Score) -> str:
    return score.differentiator


def roc(scores: Sequence[Score], path: Path, title: str = "", name: Callable[[Score], str] = _differentiator) -> None:
    """Draws A_w over A_c of each of ``scores``, with the point at which it ran, into an SVG or PNG file.

    In the legend, ``name`` and the area under the curve. Scores without a curve, as one class of losses is missing, are
    left out.
    """
    with mpl.rc_context(STYLE):
        canvas, axes = _square(len(scores), title)
        axes.plot([0, 100], [100, 0], color="#9aa3ad", linewidth=0.8, linestyle=(0, (1, 2)))
        for position, score in enumerate(scores):
            if score.tradeoff.defined:
                _curve(axes, score, name(score), _look(position))
        axes.set_xlabel("A_c: congestion losses judged right, %")
        axes.set_ylabel("A_w: corruption losses judged right, %")
        _finish(
            canvas, axes, len(scores), "dot: as it ran; number: area under the curve (1 always right, 0.5 by chance)"
        )
        export(canvas, path)


def reliability(calibrations: Mapping[str, Calibration], path: Path, title: str = "") -> None:
    """Draws how often losses were corruption over what the scores said, into an SVG or PNG file."""
    with mpl.rc_context(STYLE):
        canvas, axes = _square(len(calibrations), title)
        axes.plot([0, 100], [0, 100], color="#9aa3ad", linewidth=0.8, linestyle=(0, (1, 2)))
        for position, (name, found) in enumerate(calibrations.items()):
            axes.plot(
                [100 * one.score for one in found.bins],
                [100 * one.observed for one in found.bins],
                label=f"{name} (error {found.expected_error:.3f}, Brier {found.brier:.3f})",
                **_look(position),
                marker="o",
                markersize=4,
            )
        axes.set_xlabel("score, %")
        axes.set_ylabel("losses with it that were corruption, %")
        _finish(canvas, axes, len(calibrations), "on the diagonal, a score is the probability that it says")
        export(canvas, path)


def _curve(axes: Axes, score: Score, name: str, look: dict[str, Any]) -> None:
    curve = score.tradeoff.corners(_NEAR)
    label = f"{name} ({score.tradeoff.auc:.3f})"
    axes.plot(100 * curve.a_c, 100 * curve.a_w, label=label, **look)
    a_c, a_w = score.confusion.a_c, score.confusion.a_w
    if a_c is not None and a_w is not None:
        axes.plot([100 * a_c], [100 * a_w], **look, marker="o", markeredgecolor="white", clip_on=False)


def _look(position: int) -> dict[str, Any]:
    """How the curve at this position looks: no two alike."""
    dashes = _DASHES[position // len(_COLOURS) % len(_DASHES)]
    return {"color": _COLOURS[position % len(_COLOURS)], "linestyle": dashes, "linewidth": 1.3}


def _square(entries: int, title: str) -> tuple[Canvas, Axes]:
    lines = (entries + 1) // 2
    canvas = Canvas(figsize=(5.2, 5.0 + 0.19 * lines), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.add_subplot()
    axes.set_title(title, fontsize=10, loc="left")
    return canvas, axes


def _finish(canvas: Canvas, axes: Axes, entries: int, words: str) -> None:
    axes.set_xlim(0, 101)
    axes.set_ylim(0, 101)
    axes.set_aspect("equal")
    axes.set_axisbelow(True)
    columns = min(2, max(entries, 1))
    canvas.legend(loc="outside lower center", ncols=columns, fontsize=8, title=words, title_fontsize=8)
