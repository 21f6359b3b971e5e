"""Time series of a run: windows, what is in flight, rates, positions in the stream, queues."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from whyloss.traces.tables import Needed, Run, Span, TraceError, need
from whyloss.traces.thin import thin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "DEFAULT",
    "MOST_FLOWS",
    "QUANTITIES",
    "Decision",
    "Expiry",
    "Line",
    "Panel",
    "Series",
    "compared",
    "series",
    "tables_of",
]

#: What can be shown: in which panel, in words, and in the word that stands beside a line.
QUANTITIES: dict[str, tuple[str, str, str]] = {
    "cwnd": ("window", "congestion window", "cwnd"),
    "ssthresh": ("window", "slow-start threshold", "ssthresh"),
    "flight": ("window", "in flight", "in flight"),
    "srtt": ("rtt", "smoothed round-trip time", "SRTT"),
    "queue": ("queue", "packets waiting", "queue"),
    "goodput": ("rate", "goodput", "goodput"),
    "throughput": ("rate", "throughput", "throughput"),
    "delivered": ("delivered", "delivered in order", "delivered"),
    "sequence": ("sequence", "sent", "sent"),
}
DEFAULT = ("cwnd", "ssthresh", "flight", "srtt", "queue", "goodput")
#: Of several flows or runs, not all at once: nobody could follow the lines.
_DEFAULT_OF_SEVERAL = ("cwnd", "srtt", "queue", "goodput")
MOST_FLOWS = 6
MOST_QUEUES = 6
#: Points of a line, at most.
MOST_POINTS = 2000
#: Stretches of time over which rates are averaged.
_BINS = 80
_PER_S = 1e9
_UNITS = {
    "window": "octets",
    "rtt": "ms",
    "queue": "packets",
    "rate": "bit/s",
    "delivered": "octets",
    "sequence": "octets",
}
#: Losses of a panel that are marked, at most; of more only every second, third, …
_MOST_DECISIONS = 2000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel. Times in seconds; octets, milliseconds, bit/s or packets."""

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    quantity: str
    flow: int | None = None
    """Position of its flow, or run, among those shown; ``None`` for a queue of a single run."""
    short: str = ""
    """What stands beside the line."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A loss that the sender noticed, at the window that it had."""

    at: float
    cwnd: float
    cause: str
    verdict: str
    did: str
    """To the window: ``reduced``, ``kept``, or ``covered`` by an earlier loss of the episode."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """A retransmission timer that expired."""

    began: float
    """When it began to run: a timeout before it expired."""
    at: float
    cause: str
    verdict: str
    collapsed: bool
    """Whether the window fell to its least."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines that share a vertical axis."""

    kind: str
    """``window``, ``rtt``, ``queue``, ``rate``, ``delivered`` or ``sequence``."""
    unit: str
    lines: list[Line]
    decisions: list[Decision]
    expiries: list[Expiry]
    title: str = ""
    """Whose it is, where every run has a panel of its own."""
    every: int = 1
    """Each loss is marked if this is 1, every second one if it is 2, …"""


@dataclass(frozen=True, slots=True)
class Series:
    """Panels that share a horizontal axis, in seconds."""

    title: str
    start: float
    end: float
    panels: list[Panel]
    several_runs: bool = False


@dataclass(frozen=True, slots=True)
class _Subject:
    """A flow of a run, and what a figure calls it."""

    run: Run
    flow: str
    label: str


def tables_of(what: Sequence[str]) -> set[str]:
    """The tables that these quantities need."""
    unlogged = {"throughput", "sequence"}
    kept = {"samples"} if (set(QUANTITIES) - unlogged) & set(what) else set()
    return kept | ({"segments"} if unlogged & set(what) else set())


def series(run: Run, flows: Sequence[str] = (), span: Span | None = None, what: Sequence[str] | None = None) -> Series:
    """The time series ``what`` of ``flows``, all of them if none is named.

    If nothing is said of ``what``: :data:`DEFAULT`, and of several flows less.

    Raises:
        TraceError: there are too many flows to tell apart, or the run did not write down what is asked for.
    """
    chosen = [run.flow(name) for name in dict.fromkeys(flows)] if flows else run.names
    if len(chosen) > MOST_FLOWS:
        raise TraceError(
            f"{run.name}: {len(chosen)} flows, and a figure shows {MOST_FLOWS} at most; choose with --flow, "
            "which can be given several times"
        )
    subjects = [_Subject(run, flow, flow) for flow in chosen]
    return _series(f"{run.name}: {', '.join(chosen)}", subjects, span, what)


def compared(
    runs: Sequence[Run], flow: str | None = None, span: Span | None = None, what: Sequence[str] | None = None
) -> Series:
    """The time series ``what`` of one flow of each of several runs: a panel of windows for each, all else together.

    Args:
        runs: the runs, which are told apart by their names.
        flow: the flow by its name or position in each; the first if nothing is said.
        span: the stretch of time; the whole of the longest run if nothing is said.
        what: the quantities; windows, round trips, queue and goodput if nothing is said.

    Raises:
        TraceError: there are too many runs to tell apart, or one did not write down what is asked for.
    """
    if not 1 <= len(runs) <= MOST_FLOWS:
        raise TraceError(f"found {len(runs)} runs; allowed: 1 to {MOST_FLOWS} in a figure")
    counts = Counter(run.name for run in runs)
    labels = [run.name if counts[run.name] == 1 else f"{run.name} ({n})" for n, run in enumerate(runs, 1)]
    subjects = [
        _Subject(run, run.flow(flow or ("0" if run.names else None)), label)
        for run, label in zip(runs, labels, strict=True)
    ]
    return _series(", ".join(labels), subjects, span, what)


def _series(title: str, subjects: Sequence[_Subject], span: Span | None, what: Sequence[str] | None) -> Series:
    span = span or Span()
    if what is None:
        what = _DEFAULT_OF_SEVERAL if len(subjects) > 1 else DEFAULT
    unknown = [name for name in what if name not in QUANTITIES]
    if unknown or not what:
        found = repr(unknown[0]) if unknown else "nothing"
        raise TraceError(f"--what: found {found}; allowed: {', '.join(QUANTITIES)}")
    runs = list({id(subject.run): subject.run for subject in subjects}.values())
    tables: tuple[Needed, ...] = ("samples", "segments")
    for run in runs:
        run.check(span)
        for table in tables:
            if table in tables_of(what):
                asked = ", ".join(name for name in what if table in tables_of([name]))
                need(run, table, f"--what {asked}")
    panels: list[Panel] = []
    for kind, unit in _UNITS.items():
        wanted = [name for name in QUANTITIES if name in what and QUANTITIES[name][0] == kind]
        if not wanted:
            continue
        if kind == "window" and len(runs) > 1:
            for position, subject in enumerate(subjects):
                lines = _lines([subject], span, wanted, position)
                losses, expiries, every = _noticed(subject, span) if "cwnd" in wanted else ([], [], 1)
                panels.append(Panel(kind, unit, lines, losses, expiries, subject.label, every))
            continue
        if kind == "queue":
            lines = _queues(runs[0], span) if len(runs) == 1 else _busiest(subjects, span)
        else:
            lines = _lines(subjects, span, wanted)
        marked = kind == "window" and "cwnd" in wanted and len(subjects) == 1
        if marked:
            losses, expiries, every = _noticed(subjects[0], span)
            panels.append(Panel(kind, unit, lines, losses, expiries, "", every))
        elif lines:
            panels.append(Panel(kind, unit, lines, [], []))
    panels = [panel for panel in panels if panel.lines]
    if not panels:
        raise TraceError(f"{runs[0].name}: there is nothing to draw in this stretch of time")
    end = max(run.end_of(span) for run in runs) / _PER_S
    return Series(title, span.start_ns / _PER_S, end, panels, several_runs=len(runs) > 1)


def _lines(subjects: Sequence[_Subject], span: Span, wanted: Sequence[str], first: int = 0) -> list[Line]:
    lines = []
    several = len(subjects) > 1
    for position, subject in enumerate(subjects, first):
        run, flow = subject.run, subject.flow
        prefix = f"{subject.label}: " if several else ""
        samples = run.of_flow("samples", flow, span) if set(wanted) - {"throughput", "sequence"} else pl.DataFrame()
        packets = run.packets(flow) if {"throughput", "sequence"} & set(wanted) else pl.DataFrame()
        for name in wanted:
            short = subject.label if several and len(wanted) == 1 else f"{prefix}{QUANTITIES[name][2]}"
            for label, x, y in _curves(name, run, span, samples, packets):
                if len(x):
                    beside = f"{prefix}{label}" if name == "sequence" else short
                    lines.append(Line(prefix + label, *thin(x, y, MOST_POINTS), name, position, beside))
    return lines


Curve = tuple[str, "NDArray[np.float64]", "NDArray[np.float64]"]
#: Where a quantity stands in the samples, and in what part of its unit.
_COLUMNS = {
    "cwnd": ("cwnd_octets", 1.0),
    "ssthresh": ("ssthresh_octets", 1.0),
    "flight": ("pipe_octets", 1.0),
    "srtt": ("srtt_ns", 1e6),
    "delivered": ("octets_delivered", 1.0),
}


def _curves(name: str, run: Run, span: Span, samples: pl.DataFrame, packets: pl.DataFrame) -> list[Curve]:
    label = QUANTITIES[name][1]
    if name in _COLUMNS:
        column, size = _COLUMNS[name]
        x, y = _numbers(samples, "at_ns") / _PER_S, _numbers(samples, column) / size
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
        lines.append(Line(f"{link}, {direction}", x, y, "queue", None, f"{link}, {direction}"))
    return lines


def _busiest(subjects: Sequence[_Subject], span: Span) -> list[Line]:
    """Of each run the queue that was longest."""
    lines = []
    for position, subject in enumerate(subjects):
        for line in _queues(subject.run, span)[:1]:
            label = f"{subject.label}: {line.label}"
            lines.append(Line(label, line.x, line.y, "queue", position, subject.label))
    return lines


def _noticed(subject: _Subject, span: Span) -> tuple[list[Decision], list[Expiry], int]:
    """Losses that the sender noticed and timers that expired, at the window that the sample before them shows."""
    run, flow = subject.run, subject.flow
    losses = run.of_flow("losses", flow, span).sort("at_ns", maintain_order=True)
    every = max(1, -(-len(losses) // _MOST_DECISIONS))
    samples = run.of_flow("samples", flow)
    at, cwnd = _numbers(samples, "at_ns"), _numbers(samples, "cwnd_octets")
    found = []
    columns = ("at_ns", "true_cause", "verdict", "judgement")
    for when, cause, verdict, did in losses.select(columns).gather_every(every).iter_rows():
        before = max(int(np.searchsorted(at, when, side="right")) - 1, 0)
        found.append(Decision(when / _PER_S, float(cwnd[before]), cause, verdict, did))
    timers = run.of_flow("timeouts", flow, span).sort("at_ns", maintain_order=True).head(_MOST_DECISIONS)
    expiries = [
        Expiry((when - rto) / _PER_S, when / _PER_S, cause, verdict, collapsed)
        for when, rto, cause, verdict, collapsed in timers.select(
            "at_ns", "rto_ns", "true_cause", "verdict", "collapsed"
        ).iter_rows()
    ]
    return found, expiries, every
