"""The time-sequence diagram: what was sent, acknowledged, offered and lost, in octets of the data stream over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whyloss.traces.marks import marks
from whyloss.traces.tables import Run, Span, TraceError, need

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whyloss.traces.marks import Mark

__all__ = ["MOST_DRAWN", "TimeSequence", "time_sequence"]

#: Segments, and acknowledgements, that a figure draws at most; of more only every second, third, … is drawn.
MOST_DRAWN = 10_000
_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class TimeSequence:
    """What a time-sequence diagram shows. Times in seconds, positions in octets of the data stream."""

    title: str
    start: float
    end: float
    sent: NDArray[np.float64]
    """A row a segment: when it left, where its data starts and where it ends."""
    acks: NDArray[np.float64]
    """A row an acknowledgement that reached the sender: when, what it acknowledges, the right edge of the window."""
    sack: NDArray[np.float64]
    """A row a SACK block, where it was new: when it reached the sender, where it starts and ends."""
    marks: list[Mark]
    every: int
    """Each segment is drawn if this is 1, every second one if it is 2, …; marks are always drawn all."""

    @property
    def top(self) -> float:
        """Where the data ends that was sent."""
        return float(
            max((self.sent[:, 2].max() if len(self.sent) else 0, *(m.offset + m.octets for m in self.marks)), default=1)
        )

    @property
    def limits(self) -> tuple[float, float]:
        """Bottom and top of the figure."""
        height = max(self.top - self.bottom, 1.0)
        return self.bottom - 0.04 * height, self.top + 0.06 * height

    @property
    def bottom(self) -> float:
        """Where the data starts that was sent or acknowledged."""
        lows = [part[:, 1].min() for part in (self.sent, self.acks) if len(part)]
        return float(min(lows, default=0))


def time_sequence(run: Run, flow: str, span: Span | None = None) -> TimeSequence:
    """What a flow's sender sent and heard.

    Raises:
        TraceError: the run kept no packets, or the flow sent none in this stretch, or too many were lost to be marked.
    """
    span = span or Span()
    need(run, "segments", "a time-sequence diagram")
    run.check(span)
    data, back = _packets(run, flow)
    found = marks(run, flow, span, data)
    within = data.filter(span.holds("sent_at_ns"))
    heard = back.filter(span.holds("ended_at_ns"))
    if not len(within) and not len(heard):
        raise TraceError(f"{run.name}: {flow} sent nothing in this stretch of time, or its packets were not kept")
    every = max(1, -(-len(within) // MOST_DRAWN))
    every_ack = max(1, -(-len(heard) // MOST_DRAWN))
    sent = within.select(
        pl.col("sent_at_ns") / _PER_S,
        pl.col("offset").cast(pl.Float64),
        (pl.col("offset") + pl.col("data_octets")).cast(pl.Float64).alias("end"),
    ).to_numpy()
    acks = heard.select(
        pl.col("ended_at_ns") / _PER_S,
        pl.col("ack").cum_max().cast(pl.Float64),
        (pl.col("ack") + pl.col("window_octets")).cast(pl.Float64).alias("edge"),
    ).to_numpy()
    return TimeSequence(
        title=f"{run.name}: {flow}",
        start=span.start_ns / _PER_S,
        end=run.end_of(span) / _PER_S,
        sent=sent[::every],
        acks=acks[::every_ack],
        sack=_blocks(heard)[:MOST_DRAWN],
        marks=found,
        every=every,
    )


def _packets(run: Run, flow: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Packets with data, in the order in which they left, and acknowledgements in the order in which they arrived."""
    rows = run.packets(flow)
    data = rows.filter((pl.col("direction") == "forward") & (pl.col("data_octets") > 0))
    arrived = (pl.col("direction") == "reverse") & (pl.col("fate") == "arrived") & pl.col("ack").is_not_null()
    return data, rows.filter(arrived).sort("ended_at_ns", maintain_order=True)


def _blocks(heard: pl.DataFrame) -> NDArray[np.float64]:
    """SACK blocks, each where it first said something that no acknowledgement just before it had said."""
    rows: list[tuple[float, float, float]] = []
    known: set[tuple[int, int]] = set()
    for at, text in heard.select("ended_at_ns", "sack").filter(pl.col("sack").is_not_null()).iter_rows():
        blocks = {(int(start), int(end)) for start, _, end in (block.partition("-") for block in text.split())}
        rows += [(at / _PER_S, start, end) for start, end in sorted(blocks - known)]
        known = blocks
    return np.array(rows, dtype=np.float64).reshape(-1, 3)
