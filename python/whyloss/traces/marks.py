"""Lost transmissions and retransmissions, each with what really happened and what the sender made of it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from whyloss.traces.looks import NO_VERDICT
from whyloss.traces.tables import Run, Span, TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MOST_MARKS", "Mark", "marks"]

#: Marks that a figure holds at most.
MOST_MARKS = 5000


@dataclass(frozen=True, slots=True)
class Mark:
    """A transmission that was lost, or one that repairs a loss."""

    kind: Literal["lost", "resent"]
    at_ns: int
    """When it left."""
    offset: int
    """Its first octet of data in the data stream."""
    octets: int
    cause: str
    """The true cause: of its own loss, or of the loss that it repairs; ``arrived`` if nothing was lost."""
    verdict: str
    """What the sender's ruling differentiator made of that loss; ``none`` if it judged none."""
    trigger: str
    """Why the sender took it for lost; empty if it did not."""


def marks(run: Run, flow: str, span: Span, data: pl.DataFrame) -> list[Mark]:
    """The marks of a flow. ``data``: its packets with data, in the order in which they left.

    Raises:
        TraceError: there are more than :data:`MOST_MARKS`.
    """
    told = _Told(run, flow)
    within = data.filter(span.holds("sent_at_ns"))
    lost = within.filter(~pl.col("fate").is_in(["arrived", "in-flight"]))
    resent = within.filter(pl.col("retransmission"))
    count = len(lost) + len(resent)
    if count > MOST_MARKS:
        raise TraceError(
            f"{run.name}: {count} losses and retransmissions lie in this stretch of time, and a figure holds "
            f"{MOST_MARKS} at most; choose a shorter one with --from and --to"
        )
    found = [told.lost(row) for row in lost.iter_rows(named=True)]
    before = _Before(data) if len(resent) else None
    found += [told.resent(row, before) for row in resent.iter_rows(named=True) if before]
    return sorted(found, key=lambda mark: (mark.at_ns, mark.offset, mark.kind))


class _Told:
    """What the sender noticed: rows of the tables ``losses`` and ``timeouts``."""

    def __init__(self, run: Run, flow: str) -> None:
        losses = run.of_flow("losses", flow)
        timeouts = run.of_flow("timeouts", flow).with_columns(pl.lit("timeout").alias("trigger"))
        columns = ["at_ns", "offset", "sent_at_ns", "true_cause", "verdict", "trigger"]
        self._losses = losses.select(*columns, "octets").sort("at_ns", maintain_order=True).to_dicts()
        expired = timeouts.select(columns).with_columns(pl.lit(1).alias("octets"))
        self._timeouts = expired.sort("at_ns", maintain_order=True).to_dicts()
        # A loss says more than the timeout that came with it.
        self._of_transmission = {(row["offset"], row["sent_at_ns"]): row for row in [*self._timeouts, *self._losses]}
        self._by_offset: dict[int, list[dict[str, Any]]] = {}
        for row in sorted([*self._timeouts, *self._losses], key=lambda row: row["at_ns"]):
            self._by_offset.setdefault(row["offset"], []).append(row)
        self._offsets = sorted(self._by_offset)

    def lost(self, row: dict[str, Any]) -> Mark:
        """The mark of a transmission that was lost."""
        judged = self._of_transmission.get((row["offset"], row["sent_at_ns"]))
        verdict, trigger = (judged["verdict"], judged["trigger"]) if judged else (NO_VERDICT, "")
        return Mark("lost", row["sent_at_ns"], row["offset"], row["data_octets"], row["fate"], verdict, trigger)

    def resent(self, row: dict[str, Any], before: _Before) -> Mark:
        """The mark of a retransmission: it repairs the loss of its octets that the sender noticed last."""
        at, offset = row["sent_at_ns"], row["offset"]
        place = bisect_right(self._offsets, offset) - 1
        known = self._by_offset[self._offsets[place]] if place >= 0 else []
        noticed = [loss for loss in known if loss["at_ns"] <= at and offset < loss["offset"] + loss["octets"]]
        if noticed:
            # Of those of one moment a loss says more than a timeout.
            loss = max(noticed, key=lambda loss: (loss["at_ns"], loss["octets"]))
            cause, verdict, trigger = loss["true_cause"], loss["verdict"], loss["trigger"]
        else:
            cause, verdict, trigger = before.fate(offset, at), NO_VERDICT, ""
        return Mark("resent", at, offset, row["data_octets"], cause, verdict, trigger)


class _Before:
    """What became of the transmissions of each octet."""

    def __init__(self, data: pl.DataFrame) -> None:
        self._of: dict[int, list[tuple[int, int, str]]] = {}
        rows: Iterable[tuple[int, int, int, str]] = data.select(
            "offset", "data_octets", "sent_at_ns", "fate"
        ).iter_rows()
        for offset, octets, sent, fate in rows:
            self._of.setdefault(offset, []).append((sent, octets, fate))
        self._offsets = sorted(self._of)

    def fate(self, offset: int, at_ns: int) -> str:
        """What became of the last transmission of this octet before ``at_ns``; ``unknown`` if the log has none."""
        place = bisect_right(self._offsets, offset) - 1
        if place < 0:
            return "unknown"
        start = self._offsets[place]
        known = [fate for sent, octets, fate in self._of[start] if sent < at_ns and offset < start + octets]
        return known[-1] if known else "unknown"
