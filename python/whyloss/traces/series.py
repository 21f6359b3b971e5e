"""Time series of a run: windows, what is in flight, rates, positions in the stream, queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from whyloss.traces.tables import Needed, Run, Span, TraceError, need
from whyloss.traces.thin import thin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["DEFAULT", "MOST_FLOWS", "QUANTITIES", "Decision", "Line", "Panel", "Series", "series", "tables_of"]

#: What can be shown, and in which panel.
QUANTITIES: dict[str, tuple[str, str]] = {
    "cwnd": ("window", "congestion window"),
    "ssthresh": ("window", "slow-start threshold"),
    "flight": ("window", "in flight"),
    "goodput": ("rate", "goodput"),
    "throughput": ("rate", "throughput"),
    "sequence": ("sequence", "sent"),
    "queue": ("queue", "packets waiting"),
}
DEFAULT = ("cwnd", "ssthresh", "flight", "goodput", "queue")
#: Of several flows, not all at once: nobody could follow the lines.
_DEFAULT_OF_SEVERAL = ("cwnd", "goodput", "queue")
MOST_FLOWS = 6
MOST_QUEUES = 6
#: Points of a line, at most.
MOST_POINTS = 2000
#: Stretches of time over which rates are averaged.
_BINS = 80
_PER_S = 1e9
_LABELS = {"window": "octets", "rate": "bit/s", "sequence": "octets", "queue": "packets"}
_MOST_DECISIONS = 1000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel. Times in seconds; octets, bit/s or packets."""

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    quantity: str
    flow: int | None = None
    """Position of its flow among those shown; ``None`` for a queue."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A loss on which the sender decided something about its window, or an expired retransmission timer."""

    at: float
    cwnd: float
    cause: str
    verdict: str
    did: str
    """To the window: ``reduced`` or ``kept``."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines that share a vertical axis."""

    kind: str
    """``window``, ``rate``, ``sequence`` or ``queue``."""
    unit: str
    lines: list[Line]
    decisions: list[Decision]


@dataclass(frozen=True, slots=True)
class Series:
    """Panels that share a horizontal axis, in seconds."""

    title: str
    start: float
    end: float
    panels: list[Panel]


def tables_of(what: Sequence[str]) -> set[str]:
    """The tables that these quantities need."""
    kept = {"samples"} if {"cwnd", "ssthresh", "flight", "goodput", "queue"} & set(what) else set()
    return kept | ({"segments"} if {"throughput", "sequence"} & set(what) else set())


def series(run: Run, flows: Sequence[str] = (), span: Span | None = None, what: Sequence[str] | None = None) -> Series:
    """The time series ``what`` of ``flows``, all of them if none is named.

    If nothing is said of ``what``: :data:`DEFAULT`, and of several flows less.

    Raises:
        TraceError: there are too many flows to tell apart, or the run did not write down what is asked for.
    """
    span = span or Span()
    if what is None:
        several = len(flows) > 1 or (not flows and len(run.names) > 1)
        what = _DEFAULT_OF_SEVERAL if several else DEFAULT
    unknown = [name for name in what if name not in QUANTITIES]
    if unknown or not what:
        found = repr(unknown[0]) if unknown else "nothing"
        raise TraceError(f"--what: found {found}; allowed: {', '.join(QUANTITIES)}")
    chosen = [run.flow(name) for name in dict.fromkeys(flows)] if flows else run.names
    if len(chosen) > MOST_FLOWS:
        raise TraceError(
            f"{run.name}: {len(chosen)} flows, and a figure shows {MOST_FLOWS} at most; choose with --flow, "
            "which can be given several times"
        )
    run.check(span)
    tables: tuple[Needed, ...] = ("samples", "segments")
    for table in tables:
        if table in tables_of(what):
            asked = ", ".join(name for name in what if table in tables_of([name]))
            need(run, table, f"--what {asked}")
    start, end = span.start_ns / _PER_S, run.end_of(span) / _PER_S
    panels = []
    for kind, unit in _LABELS.items():
        wanted = [name for name in QUANTITIES if name in what and QUANTITIES[name][0] == kind]
        if not wanted:
            continue
        lines = _queues(run, span) if kind == "queue" else _of_flows(run, chosen, span, wanted)
        decided = _decisions(run, chosen[0], span) if kind == "window" and "cwnd" in wanted and len(chosen) == 1 else []
        if lines:
            panels.append(Panel(kind, unit, lines, decided))
    if not panels:
        raise TraceError(f"{run.name}: there is nothing to draw in this stretch of time")
    shown = ", ".join(chosen)
    return Series(f"{run.name}: {shown}", start, end, panels)


def _of_flows(run: Run, flows: Sequence[str], span: Span, wanted: Sequence[str]) -> list[Line]:
    lines = []
    for position, flow in enumerate(flows):
        prefix = f"{flow}: " if len(flows) > 1 else ""
        # The sample before the stretch is where its first rate starts from.
        samples = run.of_flow("samples", flow, span) if set(wanted) - {"throughput", "sequence"} else pl.DataFrame()
        packets = run.packets(flow) if {"throughput", "sequence"} & set(wanted) else pl.DataFrame()
        for name in wanted:
            for label, x, y in _curves(name, run, span, samples, packets):
                if len(x):
                    lines.append(Line(prefix + label, *thin(x, y, MOST_POINTS), name, position))
    return lines


Curve = tuple[str, "NDArray[np.float64]", "NDArray[np.float64]"]
_COLUMNS = {"cwnd": "cwnd_octets", "ssthresh": "ssthresh_octets", "flight": "pipe_octets"}


def _curves(name: str, run: Run, span: Span, samples: pl.DataFrame, packets: pl.DataFrame) -> list[Curve]:
    label = QUANTITIES[name][1]
    if name in _COLUMNS:
        x, y = _numbers(samples, "at_ns") / _PER_S, _numbers(samples, _COLUMNS[name])
        return [(label, x, y)] if not np.isnan(y).all() else []
    if name == "goodput":
        return [(label, *_rate(samples))] if len(samples) > 1 else []
    if name == "throughput":
        arrived = packets.filter(
            (pl.col("direction") == "forward") & (pl.col("fate") == "arrived"), span.holds("ended_at_ns")
        )
        return [(label, *_arrivals(arrived, run, span))]
    data = packets.filter((pl.col("direction") == "forward") & (pl.col("data_octets") > 0), span.holds("sent_at_ns"))
    heard = packets.filter(
        (pl.col("direction") == "reverse") & (pl.col("fate") == "arrived"), span.holds("ended_at_ns")
    )
    heard = heard.sort("ended_at_ns").filter(pl.col("ack").is_not_null())
    sent = data.select("sent_at_ns", (pl.col("offset") + pl.col("data_octets")).alias("end"))
    return [
        ("sent", _numbers(sent, "sent_at_ns") / _PER_S, _numbers(sent, "end")),
        ("acknowledged", _numbers(heard, "ended_at_ns") / _PER_S, _numbers(heard, "ack")),
    ]


def _numbers(table: pl.DataFrame, column: str) -> NDArray[np.float64]:
    return table[column].cast(pl.Float64).to_numpy().astype(np.float64)


def _rate(samples: pl.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Octets delivered in stretches of equal length, in bit/s, at the middle of each."""
    at, octets = _numbers(samples, "at_ns"), _numbers(samples, "octets_delivered")
    bins = min(_BINS, len(at) - 1)
    picked = np.unique(np.linspace(0, len(at) - 1, bins + 1).astype(int))
    at, octets = at[picked], octets[picked]
    return (at[1:] + at[:-1]) / 2 / _PER_S, np.diff(octets) * 8 * _PER_S / np.diff(at)


def _arrivals(arrived: pl.DataFrame, run: Run, span: Span) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    edges = np.linspace(span.start_ns, run.end_of(span), _BINS + 1)
    octets, _ = np.histogram(_numbers(arrived, "ended_at_ns"), edges, weights=_numbers(arrived, "data_octets"))
    return (edges[1:] + edges[:-1]) / 2 / _PER_S, octets * 8 * _PER_S / np.diff(edges)


def _queues(run: Run, span: Span) -> list[Line]:
    rows = run.rows("queues", span.holds("at_ns"))
    ways: list[tuple[Any, ...]] = (
        rows.group_by("link", "direction", maintain_order=True)
        .agg(pl.col("queue_packets").max().alias("most"))
        .filter(pl.col("most") > 0)
        .sort("most", descending=True, maintain_order=True)
        .head(MOST_QUEUES)
        .rows()
    )
    lines = []
    for link, direction, _ in ways:
        own = rows.filter((pl.col("link") == link) & (pl.col("direction") == direction))
        x, y = thin(_numbers(own, "at_ns") / _PER_S, _numbers(own, "queue_packets"), MOST_POINTS)
        lines.append(Line(f"{link}, {direction}", x, y, "queue"))
    return lines


def _decisions(run: Run, flow: str, span: Span) -> list[Decision]:
    """Losses that decided about the window, and timeouts, at the window that the sample before them shows."""
    losses = run.of_flow("losses", flow, span).filter(pl.col("judgement") != "covered")
    timeouts = run.of_flow("timeouts", flow, span)
    if len(losses) + len(timeouts) > _MOST_DECISIONS:
        return []
    collapse = pl.when("collapsed").then(pl.lit("reduced")).otherwise(pl.lit("kept")).alias("judgement")
    columns = ["at_ns", "true_cause", "verdict", "judgement"]
    decided = pl.concat([losses.select(columns), timeouts.with_columns(collapse).select(columns)])
    samples = run.of_flow("samples", flow)
    at, cwnd = _numbers(samples, "at_ns"), _numbers(samples, "cwnd_octets")
    found = []
    for when, cause, verdict, did in decided.sort("at_ns", maintain_order=True).iter_rows():
        before = max(int(np.searchsorted(at, when, side="right")) - 1, 0)
        found.append(Decision(when / _PER_S, float(cwnd[before]), cause, verdict, did))
    return found
