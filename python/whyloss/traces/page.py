"""What the report of a single run shows, as plain values."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from whyloss import _native
from whyloss.traces.draw_sequence import draw_sequence
from whyloss.traces.draw_series import draw_series
from whyloss.traces.interactive import sequence_plot, series_plot
from whyloss.traces.looks import cause_label
from whyloss.traces.sequence import TimeSequence, time_sequence
from whyloss.traces.series import DEFAULT, Series, series, tables_of
from whyloss.traces.tables import SETTING_OF, Run, TraceError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["MOST_SHOWN", "figure", "page"]

#: Flows whose figures a report has; the tables have all.
MOST_SHOWN = 8
_MOST_ROWS = 500
_OF_SERIES = (
    "Marks on the window: losses, when the sender noticed them. Colour: what really happened. Shape: the verdict. "
    "Filled: the window was reduced, hollow: it was kept, small: a later loss of an episode that had decided. A bar: "
    "the retransmission timer ran so long, then expired. Goodput counts what is in order, so it stands still while a "
    "gap is repaired, and then leaps."
)
_OF_SEQUENCE = (
    "Each upright bar is a segment, from its first to its last octet, at the time when it left. Filled marks: lost; "
    "hollow marks: sent again. Colour: the true cause of the loss, or of the loss that is repaired. Shape: the verdict "
    "on it."
)
_OF_LINKS = (
    "offered_packets",
    "delivered_packets",
    "damaged_packets",
    "dropped_queue",
    "dropped_policer",
    "dropped_erased",
    "dropped_down",
    "max_queue_packets",
)


def page(run: Run) -> dict[str, Any]:
    """The record that :func:`whyloss.report.render_run` makes a page of: tables, and figures of each flow."""
    notes = []
    shown = run.names[:MOST_SHOWN]
    if len(run.names) > len(shown):
        notes.append(f"Figures show the first {len(shown)} of {len(run.names)} flows; `whyloss plot --flow` draws any.")
    if run.left_out:
        notes.append(f"Packets were kept up to a bound; {run.left_out} more were not (output.segments.at_most).")
    flows = []
    for flow in shown:
        figures: list[dict[str, Any]] = []
        refused: list[str] = []
        for make in (_series, _sequence):
            try:
                figures.append(make(run, flow))
            except TraceError as mistake:
                refused.append(str(mistake))
        flows.append({"name": printable(flow), "figures": figures, "notes": refused})
    return {
        "name": run.name,
        "number": run.number,
        "seed": run.seed,
        "ended_at_s": run.ended_at_ns / 1e9,
        "outcome": run.rows("runs")["outcome"][0],
        "notes": notes,
        "transfers": _transfers(run),
        "losses": _losses(run),
        "timeouts": _timeouts(run),
        "links": _links(run),
        "flows": flows,
        "settings": SETTING_OF,
        "whyloss": _native.VERSION,
    }


def _series(run: Run, flow: str) -> dict[str, Any]:
    wanted = [name for name in DEFAULT if tables_of([name]) <= {"samples"}]
    if run.has("segments"):
        wanted.append("throughput")
    return figure(series(run, [flow], what=wanted))


def _sequence(run: Run, flow: str) -> dict[str, Any]:
    return figure(time_sequence(run, flow))


def figure(made: Series | TimeSequence) -> dict[str, Any]:
    """A figure as plotly takes it, with its title, what to see in it, and a picture of it."""
    if isinstance(made, Series):
        plot = series_plot(made)
        title, caption, still = "Windows, round trips, queues and rates", _OF_SERIES, _still(draw_series, made)
    else:
        plot = sequence_plot(made)
        title, caption, still = "Time-sequence diagram", _OF_SEQUENCE, _still(draw_sequence, made)
    return {"title": title, "caption": caption, "numbers": _numbers(plot), **plot, **still}


def _numbers(plot: dict[str, Any]) -> list[dict[str, Any]]:
    """What each curve and each kind of mark of a plot shows, for a table behind it."""
    rows = []
    for trace in plot["traces"]:
        axis = "yaxis" + trace.get("yaxis", "y")[1:]
        points = [(x, y) for x, y in zip(trace["x"], trace["y"], strict=True) if x is not None and y is not None]
        if points:
            values = [y for _, y in points]
            rows.append(
                {
                    "name": trace["name"],
                    "axis": plot["layout"][axis]["title"]["text"],
                    "points": len(points),
                    "from_s": points[0][0],
                    "to_s": points[-1][0],
                    "low": min(values),
                    "high": max(values),
                }
            )
    return rows


def _still(draw: Callable[[Any, Path, float], None], made: Any) -> dict[str, str]:
    """The same figure as a picture, for readers without JavaScript."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "picture.png")
        draw(made, path, 180.0)
        octets = base64.b64encode(path.read_bytes()).decode("ascii")
    return {"picture": f"data:image/png;base64,{octets}"}


def _transfers(run: Run) -> list[dict[str, Any]]:
    counters = ["losses", "retransmissions", "reductions", "timeouts"]
    sums = run.flows.group_by("transfer").agg(pl.col(counters).sum())
    rows = run.rows("transfers").join(sums, on="transfer", how="left", maintain_order="left")
    return [
        {
            **{name: printable(str(row[name])) for name in ("transfer", "scheme", "from", "to")},
            **{name: row[name] for name in ("octets_delivered", "goodput_bps", *counters)},
            "took_s": None if row["finished_ns"] is None else (row["finished_ns"] - row["start_ns"]) / 1e9,
        }
        for row in rows.head(_MOST_ROWS).to_dicts()
    ]


def _losses(run: Run) -> list[dict[str, Any]]:
    """Losses by what happened, what the sender made of it, and what it did."""
    return _counted(run, "losses", ["flow", "true_cause", "verdict", "judgement"])


def _timeouts(run: Run) -> list[dict[str, Any]]:
    return _counted(run, "timeouts", ["flow", "true_cause", "verdict", "outcome"])


def _counted(run: Run, table: str, by: Sequence[str]) -> list[dict[str, Any]]:
    rows = run.rows(table).group_by(by).len("count").sort(by).head(_MOST_ROWS).to_dicts()
    return [{**row, "flow": printable(row["flow"]), "cause": cause_label(row["true_cause"])} for row in rows]


def _links(run: Run) -> list[dict[str, Any]]:
    rows = run.rows("links").filter(pl.col("offered_packets") > 0).head(_MOST_ROWS).to_dicts()
    return [
        {"link": printable(f"{row['link']}, {row['direction']}"), **{name: row[name] for name in _OF_LINKS}}
        for row in rows
    ]
