"""The figures of a run as plotly takes them: to zoom into and to point at.

A colour that begins with ``--`` is a variable of the page's style sheet, so that it fits light and dark paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whyloss.traces.canvas import grouped, unit
from whyloss.traces.draw_series import axis_label, ink, scale
from whyloss.traces.looks import ACKED, LINES, SACKED, cause_label, colour, shape
from whyloss.traces.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from whyloss.traces.marks import Mark
    from whyloss.traces.sequence import TimeSequence
    from whyloss.traces.series import Line, Panel, Series

__all__ = ["sequence_plot", "series_plot"]

_GAP = 0.09
_WEIGHTS = {"window": 1.6, "rtt": 1.0, "queue": 1.0, "rate": 1.0, "delivered": 1.0, "sequence": 1.6}
_PIXELS = 150
#: From so many marks on they are smaller.
_CROWD = 100


def series_plot(shown: Series) -> dict[str, Any]:
    """Panels below each other that share their time."""
    weights = [_WEIGHTS[panel.kind] for panel in shown.panels]
    gap = min(_GAP, 0.24 / len(weights))
    free = 1 - gap * (len(weights) - 1)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    top = 1.0
    titles = []
    for number, (panel, weight) in enumerate(zip(shown.panels, weights, strict=True), start=1):
        bottom = top - free * weight / sum(weights)
        axis = "y" if number == 1 else f"y{number}"
        name, size, highest = scale(panel, shown)
        layout[f"yaxis{'' if number == 1 else number}"] = {
            "title": {"text": axis_label(panel, name), "standoff": 6},
            "domain": [max(round(bottom, 4), 0), round(top, 4)],
            "range": [0, highest],
        }
        if panel.title:
            place = {"x": 0, "y": min(round(top, 4), 1), "xref": "paper", "yref": "paper", "yanchor": "top"}
            titles.append({"text": f"<b>{_plain(panel.title)}</b>", "showarrow": False, "xanchor": "left", **place})
        traces += _expiries(panel, highest, axis)
        traces += [_line(line, panel, shown, size, axis) for line in panel.lines]
        traces += _decisions(panel, size, axis)
        top = bottom - gap
    last = "y" if len(weights) == 1 else f"y{len(weights)}"
    title = {"text": "time (s)", "standoff": 8}
    layout["xaxis"] = {"title": title, "range": [shown.start, shown.end], "anchor": last, "automargin": True}
    if titles:
        layout["annotations"] = titles
    return {"traces": traces, "layout": layout, "height": round(_PIXELS * sum(weights))}


def _line(line: Line, panel: Panel, shown: Series, size: float, axis: str) -> dict[str, Any]:
    _, dashes, _ = LINES[line.quantity]
    tone = ink(line, panel, shown)
    step = "linear" if line.quantity in ("goodput", "throughput") else "hv"
    look = {"color": _ink(tone), "width": 1.6, "shape": step, "dash": "solid" if dashes == "-" else "dash"}
    filled = {"fill": "tozeroy", "fillcolor": "rgba(143,152,165,.3)"} if line.quantity == "flight" else {}
    if filled:
        look |= {"width": 0.5, "dash": "solid"}
    label = f"{panel.title}: {line.label}" if panel.title else line.label
    hover = f"%{{y:.4~g}}<extra>{_plain(label)}</extra>"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": _plain(label),
        "x": _short(line.x),
        "y": _short(line.y / size),
        "yaxis": axis,
        "line": look,
        "hovertemplate": hover,
        **filled,
    }


def _expiries(panel: Panel, top: float, axis: str) -> list[dict[str, Any]]:
    """A bar for each expired timer, from when it began to run."""
    made = []
    found = grouped(panel.expiries, lambda e: (e.cause, e.verdict, "reduced" if e.collapsed else "kept"))
    for (cause, verdict, did), expiries in found.items():
        x: list[float | None] = []
        y: list[float | None] = []
        for expiry in expiries:
            x += [expiry.began, expiry.began, expiry.at, expiry.at, None]
            y += [0, top, top, 0, None]
        tone = _ink(colour(cause))
        name = f"{_of(panel)}timeout, window {did}: {cause_label(cause)}, {shape(verdict)[2]}"
        face = {"fill": "toself"} if did == "reduced" else {}
        made.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": x,
                "y": y,
                "yaxis": axis,
                "line": {"color": tone, "width": 1},
                "opacity": 0.4,
                "hovertemplate": f"%{{x:.4f}} s<extra>{name}</extra>",
                **face,
            }
        )
    return made


def _of(panel: Panel) -> str:
    return f"{_plain(panel.title)}: " if panel.title else ""


def _decisions(panel: Panel, size: float, axis: str) -> list[dict[str, Any]]:
    made = []
    for (cause, verdict, did), found in grouped(panel.decisions, lambda d: (d.cause, d.verdict, d.did)).items():
        words = "later loss of an episode" if did == "covered" else f"window {did}"
        name = f"{_of(panel)}{words}: {cause_label(cause)}, {shape(verdict)[2]}"
        look = _marker(cause, verdict, filled=did == "reduced")
        if did == "covered" or len(panel.decisions) >= _CROWD:
            look["marker"]["size"] = 6
            look["marker"]["line"]["width"] = min(look["marker"]["line"]["width"], 1)
        made.append(
            {
                **look,
                "name": name,
                "x": [decision.at for decision in found],
                "y": [decision.cwnd / size for decision in found],
                "yaxis": axis,
                "hovertemplate": f"%{{x:.4f}} s<extra>{name}</extra>",
            }
        )
    return made


def sequence_plot(shown: TimeSequence) -> dict[str, Any]:
    """The time-sequence diagram; each mark tells what it is."""
    name, size = unit("octets", shown.top)
    traces = []
    if len(shown.acks):
        at, acked, edge = shown.acks.T
        # Left out at first: it is often far above, and the axis would press the data flat.
        window = {"color": "--soft", "width": 1, "shape": "hv", "dash": "dash"}
        hidden = {} if float(edge.min()) <= shown.limits[1] else {"visible": "legendonly"}
        traces.append({**_curve("advertised window", at, edge / size, window), **hidden})
        traces.append(_curve("acknowledged", at, acked / size, {"color": ACKED, "width": 1.4, "shape": "hv"}))
    if len(shown.sack):
        traces.append(_bars("SACK block", shown.sack, size, SACKED))
    words = "data segment" if shown.every == 1 else f"data segment (1 of {shown.every})"
    traces.append(_bars(words, shown.sent, size, "--ink"))
    for (kind, cause, verdict), found in grouped(shown.marks, lambda m: (m.kind, m.cause, m.verdict)).items():
        words = f"{'lost' if kind == 'lost' else 'sent again'}: {cause_label(cause)}, {shape(verdict)[2]}"
        traces.append(
            {
                **_marker(cause, verdict, filled=kind == "lost"),
                "name": words,
                "x": [mark.at_ns / 1e9 for mark in found],
                "y": [(mark.offset + mark.octets / 2) / size for mark in found],
                "text": _told(found),
                "hovertemplate": f"%{{x:.6f}} s<br>%{{text}}<extra>{words}</extra>",
                "meta": f"{kind}-{cause}-{verdict}",
            }
        )
    bottom, top = (edge / size for edge in shown.limits)
    layout = {
        "xaxis": {"title": {"text": "time (s)"}, "range": [shown.start, shown.end]},
        "yaxis": {"title": {"text": f"position in the data stream ({name})", "standoff": 6}, "range": [bottom, top]},
        "hovermode": "closest",
    }
    return {"traces": traces, "layout": layout, "height": 460}


def _told(found: Iterable[Mark]) -> list[str]:
    return [
        f"octets {mark.offset:,} to {mark.offset + mark.octets:,}"
        + (f"<br>taken for lost by {mark.trigger}" if mark.trigger else "")
        for mark in found
    ]


def _curve(name: str, x: NDArray[np.float64], y: NDArray[np.float64], look: dict[str, Any]) -> dict[str, Any]:
    hover = f"%{{x:.6f}} s, %{{y:.6~g}}<extra>{name}</extra>"
    plain: dict[str, Any] = {"type": "scatter", "mode": "lines", "name": name, "line": look, "hovertemplate": hover}
    return {**plain, "x": _short(x), "y": _short(y)}


def _bars(name: str, rows: NDArray[np.float64], size: float, tone: str) -> dict[str, Any]:
    """Upright bars as one line with gaps."""
    x: list[float | None] = []
    y: list[float | None] = []
    for at, start, end in rows:
        x += [round(float(at), 9), round(float(at), 9), None]
        y += [float(start) / size, float(end) / size, None]
    hover = f"%{{x:.6f}} s, %{{y:.6~g}}<extra>{name}</extra>"
    look = {"color": tone, "width": 1.6}
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": look, "hovertemplate": hover}


def _marker(cause: str, verdict: str, *, filled: bool) -> dict[str, Any]:
    tone = _ink(colour(cause))
    symbol = shape(verdict)[1] + ("" if filled else "-open")
    return {
        "type": "scatter",
        "mode": "markers",
        "marker": {"color": tone, "symbol": symbol, "size": 10, "line": {"color": tone, "width": 0 if filled else 2}},
    }


def _ink(tone: str) -> str:
    """Black is the colour of writing, which is light on dark paper."""
    return "--ink" if tone in ("#000000", LINES["sequence"][0]) else tone


def _short(values: NDArray[np.float64]) -> list[float | None]:
    """With the digits that can be seen; what is no number is a gap."""
    return [float(f"{value:.9g}") if value - value == 0 else None for value in values.tolist()]


def _plain(text: str) -> str:
    """Text in which plotly finds no markup."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
