"""What the pictures of a run have in common: size, text, marks and their legend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from whyloss.plots import STYLE
from whyloss.traces.looks import CAUSES, GREY, SHAPES, colour, shape
from whyloss.traces.tables import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matplotlib.artist import Artist

__all__ = [
    "LEGEND",
    "breadth",
    "canvas",
    "columns",
    "grouped",
    "handle",
    "keys",
    "marker",
    "rows",
    "style",
    "text",
    "unit",
]

#: From here on a picture is as wide as a page, not as a column of one.
_PAGE = 100.0
_MM = 1 / 25.4
_POINT = 25.4 / 72
#: Width of a letter of text, about, in parts of its height.
_LETTER = 0.5
_UNITS = {
    "octets": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("octets", 1.0)),
    "bit/s": (("Gbps", 1e9), ("Mbps", 1e6), ("kbps", 1e3), ("bps", 1.0)),
}
LEGEND: dict[str, Any] = {
    "handlelength": 1.6,
    "handletextpad": 0.5,
    "columnspacing": 1.4,
    "borderaxespad": 0.2,
    "labelspacing": 0.35,
}


def style(width: float) -> Any:
    """The settings for a picture of this width in millimetres."""
    base = _base(width)
    small = dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), base - 0.5)
    return {**STYLE, "font.size": base, "axes.titlesize": base + 0.5, "axes.labelsize": base, **small}


def _base(width: float) -> float:
    return 8.0 if width >= _PAGE else 7.0


def canvas(width: float, height: float) -> Canvas:
    """An empty picture of this size in millimetres."""
    made = Canvas(figsize=(width * _MM, height * _MM), layout="constrained")
    FigureCanvasAgg(made)
    return made


def text(words: str, width: float, size: float = 8.5) -> str:
    """Words that fit into ``width`` millimetres and show as they are.

    matplotlib takes what stands between dollar signs for a formula.
    """
    room = max(8, int(width / (size * _POINT * _LETTER)))
    shown = printable(words)
    return (shown if len(shown) <= room else shown[: room - 1] + "…").replace("$", r"\$")


def breadth(words: str, size: float) -> float:
    """Millimetres that words of this size in points take, about."""
    return len(words) * size * _POINT * 1.06 * _LETTER


def columns(handles: Sequence[Artist], width: float) -> int:
    """Entries of a legend that fit beside each other."""
    longest = max((len(str(one.get_label())) for one in handles), default=10)
    return max(1, min(4, len(handles), int(width / (longest * (_base(width) - 0.5) * _POINT * _LETTER + 7.5))))


def rows(handles: Sequence[Artist], width: float) -> int:
    """Lines that a legend takes."""
    return -(-len(handles) // columns(handles, width))


def unit(kind: str, top: float) -> tuple[str, float]:
    """Name and size of the unit in which values up to ``top`` are short numbers."""
    return next((known for known in _UNITS.get(kind, ()) if top >= known[1]), (kind, 1.0))


def marker(cause: str, verdict: str, *, filled: bool, size: float) -> dict[str, Any]:
    """How the mark of a loss looks."""
    return {
        "linestyle": "none",
        "marker": shape(verdict)[0],
        "markersize": size,
        "markerfacecolor": colour(cause) if filled else "white",
        "markeredgecolor": "white" if filled else colour(cause),
        "markeredgewidth": 0.4 if filled else 1.3,
    }


def handle(symbol: str, tone: str, label: str, *, filled: bool) -> Line2D:
    """A mark in a legend."""
    return Line2D(
        [],
        [],
        linestyle="none",
        marker=symbol,
        markersize=5.5,
        markerfacecolor=tone if filled else "white",
        markeredgecolor=tone,
        markeredgewidth=1.2,
        label=label,
    )


def keys(pairs: Iterable[tuple[str, str]]) -> list[Line2D]:
    """What the colours and the shapes of these causes and verdicts mean."""
    known = list(pairs)
    causes = dict.fromkeys(CAUSES[cause] for cause in CAUSES if any(cause == own for own, _ in known))
    verdicts = [verdict for verdict in SHAPES if any(verdict == own for _, own in known)]
    bar = {"linestyle": "none", "marker": "_", "markersize": 9, "markeredgewidth": 4}
    return [
        *(Line2D([], [], color=tone, label=f"cause: {words}", **bar) for tone, words in causes),  # type: ignore[arg-type]
        *(handle(shape(verdict)[0], GREY, shape(verdict)[2], filled=True) for verdict in verdicts),
    ]


def grouped(items: Iterable[Any], key: Callable[[Any], tuple[str, ...]]) -> dict[tuple[str, ...], list[Any]]:
    """The items by key, the keys in order: pictures of the same run are the same."""
    groups: dict[tuple[str, ...], list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return dict(sorted(groups.items()))
