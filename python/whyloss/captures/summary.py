"""What is said first: one sentence for the whole capture, a paragraph on it, the worst connections, the causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from whyloss.captures import words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from whyloss.captures.shape import Explained

__all__ = ["ARRIVED", "Summary", "cells", "flows", "summarise"]

#: Causes of repairs of packets that were not lost.
ARRIVED = ("reordering", "spurious-timeout", "ack-loss", "capture")
_TIMERS = ("timeout", "backed-off-timeout")
_TIMED = ("retransmission-timer",)
#: From this share of a connection's time on, the wait for timers is what to say first.
_MUCH = 0.2
#: Fewer lost packets in a thousand are not worth the first sentence, unless time was lost with them.
_RARE = 1e-3
#: As few packets sent again, needed or not, are told after what limits the connection.
_FEW = 2e-3
#: Round trips that grew to so many times the shortest show a queue that is too long.
_BLOATED = 4.0
_LONG = 0.1
_OCTETS_OF_A_SHORT_FLOW = 30_000
#: Limits of what may be under way.
_HELD = ("receive-window", "congestion-window", "send-buffer")


@dataclass(frozen=True, slots=True)
class Summary:
    """What a reader wants first."""

    sentence: str
    """Why is this slow?"""
    about: str
    """What the capture is, and how far to trust it."""
    worst: pl.DataFrame
    """Directions of connections, those that lost most time first."""
    causes: pl.DataFrame
    """Lost packets by cause, the most frequent first: ``cause``, ``packets``, ``expected``."""


def summarise(explained: Explained) -> Summary:
    """Reads the tables of an explanation as a person would."""
    worst = flows(explained)
    losses = explained.losses.to_polars()
    return Summary(
        sentence=_sentence(explained.facts, worst, losses),
        about=explained.facts["capture_paragraph"],
        worst=worst,
        causes=_causes(losses),
    )


def flows(explained: Explained) -> pl.DataFrame:
    """Directions of connections with what their repairs cost, those that lost most time first.

    Beside the columns of the table ``connections``: ``duration_s``, ``timeouts``, ``waited_s`` (seconds that passed
    until they expired), ``lost`` (packets that did not arrive when they were sent first), ``cause`` (the most frequent
    one), ``most_limit`` and ``most_time_s`` (what limited it for how long).
    """
    keys = ["connection", "side"]
    timers = (
        explained.retransmissions.to_polars()
        .filter(pl.col("trigger").is_in(_TIMERS))
        .group_by(keys)
        .agg(pl.len().cast(pl.Int64).alias("timeouts"))
    )
    losses = explained.losses.to_polars().with_columns(pl.col("cause").is_in(ARRIVED).not_().alias("gone"))
    spent = explained["limits"].to_polars().sort("time_s", descending=True, maintain_order=True)
    limited = spent.group_by(keys, maintain_order=True).agg(
        pl.col("limit", "time_s").first().name.prefix("most_"),
        pl.col("time_s").filter(pl.col("limit").is_in(_TIMED)).sum().alias("timed_s"),
    )
    lost = losses.group_by(keys).agg(
        pl.col("gone").sum().cast(pl.Int64).alias("lost"),
        pl.col("cause").mode().sort().first().alias("cause"),
    )
    found = (
        explained.connections.to_polars()
        .join(timers, on=keys, how="left", maintain_order="left")
        .join(lost, on=keys, how="left", maintain_order="left")
        .join(limited, on=keys, how="left", maintain_order="left")
        .with_columns(
            (pl.col("ended_s") - pl.col("began_s")).alias("duration_s"),
            pl.col("timeouts", "lost").fill_null(0),
            pl.when(pl.col("timeouts") > 0).then(pl.col("timed_s")).fill_null(0.0).alias("waited_s"),
        )
    )
    order = ["waited_s", "lost", "retransmissions", "acknowledged_octets", "connection"]
    return found.sort(order, descending=[True, True, True, True, False])


def cells(flow: Mapping[str, Any], rate: Callable[[float], str]) -> list[str]:
    """A row of :func:`flows` in words, for a table; ``rate`` tells a bit rate."""
    return [
        str(flow["connection"]),
        flow["sender"],
        flow["receiver"],
        flow["place"],
        words.amount(flow["acknowledged_octets"]),
        "" if flow["goodput_bps"] is None else rate(flow["goodput_bps"]),
        "" if flow["rtt_min_s"] is None else words.seconds(flow["rtt_min_s"]),
        *(str(flow[name] or "") for name in ("lost", "retransmissions", "timeouts")),
        words.seconds(flow["waited_s"]) if flow["waited_s"] else "",
        words.cause(flow["cause"]) if flow["cause"] else "",
        flow["most_limit"] or "",
    ]


def _causes(losses: pl.DataFrame) -> pl.DataFrame:
    probabilities = [name for name in losses.columns if name.startswith("p_")]
    expected = {name.removeprefix("p_").replace("_", "-"): losses[name].sum() for name in probabilities}
    counted = losses.group_by("cause").agg(pl.len().cast(pl.Int64).alias("packets"))
    likely = pl.DataFrame(
        {"cause": list(expected), "expected": list(expected.values())},
        schema={"cause": pl.String, "expected": pl.Float64},
    )
    joined = likely.join(counted, on="cause", how="left", maintain_order="left").with_columns(
        pl.col("packets").fill_null(0)
    )
    shown = joined.filter((pl.col("packets") > 0) | (pl.col("expected") >= 0.5))
    return shown.select("cause", "packets", "expected").sort("packets", "expected", descending=True)


def _sentence(facts: Mapping[str, Any], worst: pl.DataFrame, losses: pl.DataFrame) -> str:
    if facts["packets"] == 0:
        return "The capture holds no packets."
    if facts["segments"] == 0:
        if unknown := facts.get("unknown_links"):
            return f"No TCP can be read in it: packets of link type {', '.join(map(str, unknown))} are not known here."
        return f"There is no TCP in it: {words.count(facts['packets'], 'packet')} of other protocols."
    carrying = worst.filter(pl.col("octets") > 0)
    if not len(carrying):
        return _without_data(facts, losses)
    return _told(carrying, losses)


def _without_data(facts: Mapping[str, Any], losses: pl.DataFrame) -> str:
    """Handshakes, acknowledgements, resets: no data in either direction."""
    several = words.count(facts["connections"], "connection")
    if len(losses):
        repeated = words.count(len(losses), "repetition")
        return f"No data passed in {several}: {repeated} of SYNs that nobody answered in time."
    return f"No data passed in {several}: handshakes, acknowledgements and resets are all that was captured."


def _told(carrying: pl.DataFrame, losses: pl.DataFrame) -> str:
    """Which connection decides, what cost it its time, and why."""
    connections = carrying["connection"].n_unique()
    first = carrying.row(0, named=True)
    lossy = carrying.filter(pl.col("lost") > 0)
    name = f"{first['sender']} → {first['receiver']}"
    lead = f"{name}: "
    if connections > 1:
        share = f"{lossy['connection'].n_unique()} of {connections} connections lost packets"
        lead = f"{share}; the worst, {name}: " if len(lossy) else f"{connections} connections, none lost a packet; "
    own = losses.filter((pl.col("connection") == first["connection"]) & (pl.col("side") == first["side"]))
    parts = []
    if first["duration_s"] > 0 and first["waited_s"] >= _MUCH * first["duration_s"]:
        waited = words.span(first["waited_s"], first["duration_s"])
        parts.append(f"{waited} went to {words.count(first['timeouts'], 'timeout')}")
    fate, limit = _fate(own, first), ""
    if not len(own) and not len(lossy) and connections == 1:
        fate = "nothing was lost"
    if first["lost"] <= _RARE * first["segments"]:
        limit = _limit(first)
    elif not first["lost"] or _queue(first):
        limit = _queue(first).removeprefix("; ")
    # What limits it is the answer, unless packets that were sent again had a part in it.
    few = 0 < len(own) <= _FEW * first["segments"]
    parts += [limit, fate] if few else [fate, limit]
    return lead + "; ".join(part for part in parts if part) + "."


def _fate(own: pl.DataFrame, flow: Mapping[str, Any]) -> str:
    """``41 of 55 lost packets were damaged, not dropped``."""
    gone = own.filter(pl.col("cause").is_in(ARRIVED).not_())
    arrived = len(own) - len(gone)
    if len(gone) >= arrived and len(gone):
        cause, most = _most(gone)
        share = f" ({words.share(len(gone), flow['segments'])} of what was sent)"
        return f"{words.of(most, len(gone), 'lost packet')} {_agree(words.FATES[cause], most)}{share}"
    if arrived:
        early = ""
        if flow["timeouts"] and (own["cause"] == "spurious-timeout").any():
            early = f" ({words.count(flow['timeouts'], 'timeout')} came too early)"
        verb = "was" if len(own) == 1 else "were"
        return f"{words.of(arrived, len(own), 'packet')} that {verb} sent again had arrived{early}"
    return ""


def _agree(words_of_many: str, number: int) -> str:
    if number != 1:
        return words_of_many
    return (
        words_of_many.replace("were ", "was ")
        .replace("have ", "has ")
        .replace("their ", "its ")
        .replace("acknowledgements", "acknowledgement")
        .replace("them", "it")
    )


def _most(losses: pl.DataFrame) -> tuple[str, int]:
    counted = losses.group_by("cause").len().sort("len", "cause", descending=[True, False])
    return counted["cause"][0], int(counted["len"][0])


def _limit(flow: Mapping[str, Any]) -> str:
    """What limits a connection that lost nothing worth the name."""
    data = f"{words.amount(flow['acknowledged_octets'])} in {words.seconds(flow['duration_s'])}"
    if flow["acknowledged_octets"] < _OCTETS_OF_A_SHORT_FLOW:
        return f"{data}: too little to be slow"
    if not flow["most_limit"]:
        return data
    limit = words.LIMITS.get(flow["most_limit"], flow["most_limit"])
    return f"{limit}{_held(flow)} ({words.span(flow['most_time_s'], flow['duration_s'])}){_queue(flow)}"


def _held(flow: Mapping[str, Any]) -> str:
    """What passes in a round trip, if what is under way is what limits."""
    if flow["most_limit"] not in _HELD or not flow["rtt_min_s"] or not flow["goodput_bps"] or _queue(flow):
        return ""
    octets = words.amount(flow["goodput_bps"] / 8 * flow["rtt_min_s"])
    return f" to {octets} a round trip of {words.seconds(flow['rtt_min_s'])}"


def _queue(flow: Mapping[str, Any]) -> str:
    """That a queue is too long, if one is."""
    shortest, longest = flow["rtt_min_s"], flow["ack_delay_max_s"]
    if not shortest or not longest or longest < _BLOATED * shortest or longest - shortest < _LONG:
        return ""
    return f"; round trips grew from {words.seconds(shortest)} to {words.seconds(longest)}"
