"""The ladder diagram: two hosts, time downwards, an arrow for each packet between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from whyloss.traces.marks import marks
from whyloss.traces.tables import Run, Span, TraceError, need

if TYPE_CHECKING:
    from whyloss.traces.marks import Mark

__all__ = ["MOST_ARROWS", "Arrow", "Ladder", "ladder"]

#: Arrows that can be told apart on a page.
MOST_ARROWS = 80


@dataclass(frozen=True, slots=True)
class Arrow:
    """A packet. Times in nanoseconds."""

    forward: bool
    """From the flow's sender to its receiver."""
    sent_ns: int
    ended_ns: int | None
    """When it arrived or was lost; ``None`` if it was under way at the end."""
    fate: str
    """``arrived``, ``in-flight``, or the true cause of its loss."""
    label: str
    """What it is beside its data."""
    data: tuple[int, int] | None
    """Start and end of its data in the data stream."""
    repairs: Mark | None
    """For a retransmission, the loss that it repairs."""
    lost: Mark | None
    """For data that was lost, what the sender made of it."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """What a ladder diagram shows."""

    title: str
    hosts: tuple[str, str]
    arrows: list[Arrow]
    more: int
    """Packets that follow and are not drawn."""


def ladder(run: Run, flow: str, span: Span | None = None, packets: int | None = None) -> Ladder:
    """The packets of a flow that left within ``span``, the first ``packets`` of them if that is given.

    Raises:
        TraceError: there are none, or more than can be read.
    """
    span = span or Span()
    need(run, "segments", "a ladder diagram")
    run.check(span)
    rows = run.packets(flow)
    within = rows.filter(span.holds("sent_at_ns")).sort("sent_at_ns", maintain_order=True)
    if not len(within):
        raise TraceError(f"{run.name}: {flow} sent nothing in this stretch of time, or its packets were not kept")
    chosen = within if packets is None else within.head(packets)
    if len(chosen) > MOST_ARROWS:
        last = int(within["sent_at_ns"][MOST_ARROWS - 1])
        raise TraceError(
            f"{run.name}: {len(chosen)} packets lie in this stretch of time, and a ladder diagram holds {MOST_ARROWS} "
            f"at most; narrow it with --from and --to (the first {MOST_ARROWS} end at {last / 1e9:.6g} s) "
            f"or with --packets {MOST_ARROWS}"
        )
    transfer = run.flows.filter(pl.col("flow") == flow)["transfer"][0]
    ends = run.rows("transfers", pl.col("transfer") == transfer)
    data = rows.filter((pl.col("direction") == "forward") & (pl.col("data_octets") > 0))
    shown = Span(int(chosen["sent_at_ns"][0]), int(chosen["sent_at_ns"][-1]) + 1)
    found = marks(run, flow, shown, data)
    known: dict[tuple[str, int, int], Mark] = {(mark.kind, mark.at_ns, mark.offset): mark for mark in found}
    arrows = [_arrow(row, known) for row in chosen.iter_rows(named=True)]
    return Ladder(f"{run.name}: {flow}", (str(ends["from"][0]), str(ends["to"][0])), arrows, len(within) - len(chosen))


def _arrow(row: dict[str, Any], known: dict[tuple[str, int, int], Mark]) -> Arrow:
    forward = row["direction"] == "forward"
    key = (row["sent_at_ns"], row["offset"])
    return Arrow(
        forward=forward,
        sent_ns=row["sent_at_ns"],
        ended_ns=row["ended_at_ns"],
        fate=row["fate"],
        label=_label(row),
        data=(row["offset"], row["offset"] + row["data_octets"]) if row["data_octets"] else None,
        repairs=known.get(("resent", *key)) if forward else None,
        lost=known.get(("lost", *key)) if forward else None,
    )


def _label(row: dict[str, Any]) -> str:
    flags = row["flags"] or ""
    named = [name for bit, name in (("S", "SYN"), ("F", "FIN"), ("R", "RST")) if bit in flags]
    if not row["data_octets"] and row["ack"] is not None and (not named or row["direction"] == "reverse"):
        named.append(f"ACK {row['ack']:,}".replace(",", "\u2009"))
    if row["sack"]:
        named.append("SACK")
    return " ".join(named)
