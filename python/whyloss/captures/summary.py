"""What is said first: one sentence for the whole capture, a paragraph on it, the worst connections, the causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from whyloss.captures import words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whyloss.captures.shape import Explained

__all__ = ["ARRIVED", "Summary", "flows", "summarise"]

#: Causes of repairs of packets that were not lost.
ARRIVED = ("reordering", "spurious-timeout", "ack-loss", "capture")
_TIMERS = ("timeout", "backed-off-timeout")
#: From this share of a connection's time on, the wait for timers is what to say first.
_MUCH = 0.2
#: Fewer lost packets in a thousand are not worth the first sentence, unless time was lost with them.
_RARE = 1e-3
#: Round trips that grew to so many times the shortest show a queue that is too long.
_BLOATED = 4.0
_OCTETS_OF_A_SHORT_FLOW = 30_000


@dataclass(frozen=True, slots=True)
class Summary:
    """What a reader wants first."""

    sentence: str
    """Why is this slow?"""
    about: list[str]
    """What the capture is, and how far to trust it: sentences."""
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
        about=_about(explained.facts, worst),
        worst=worst,
        causes=_causes(losses),
    )


def flows(explained: Explained) -> pl.DataFrame:
    """Directions of connections with what their repairs cost, those that lost most time first.

    Beside the columns of the table ``connections``: ``duration_s``, ``timeouts``, ``waited_s`` (seconds that passed
    until timers expired), ``lost`` (packets of which no copy that was sent first arrived), ``cause`` (the most frequent
    one).
    """
    keys = ["connection", "side"]
    timers = (
        explained.retransmissions.to_polars()
        .filter(pl.col("trigger").is_in(_TIMERS))
        .group_by(keys)
        .agg(pl.len().cast(pl.Int64).alias("timeouts"), pl.col("after_s").sum().alias("waited_s"))
    )
    losses = explained.losses.to_polars().with_columns(pl.col("cause").is_in(ARRIVED).not_().alias("gone"))
    lost = losses.group_by(keys).agg(
        pl.col("gone").sum().cast(pl.Int64).alias("lost"),
        pl.col("cause").mode().sort().first().alias("cause"),
    )
    found = (
        explained.connections.to_polars()
        .join(timers, on=keys, how="left", maintain_order="left")
        .join(lost, on=keys, how="left", maintain_order="left")
        .with_columns(
            (pl.col("ended_s") - pl.col("began_s")).alias("duration_s"),
            pl.col("timeouts", "lost").fill_null(0),
            pl.col("waited_s").fill_null(0.0),
        )
        .with_columns(pl.min_horizontal("waited_s", "duration_s"))
    )
    order = ["waited_s", "lost", "retransmissions", "acknowledged_octets", "connection"]
    return found.sort(order, descending=[True, True, True, True, False])


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
    fate = _fate(own, first)
    if fate:
        parts.append(fate)
    if not parts or (not first["waited_s"] and first["lost"] < _RARE * first["segments"]):
        if not len(own) and len(lossy) == 0 and connections == 1:
            parts.append("nothing was lost")
        parts.append(_limit(first))
    return lead + "; ".join(parts) + "."


def _fate(own: pl.DataFrame, flow: Mapping[str, Any]) -> str:
    """``41 of 55 lost packets were damaged, not dropped``."""
    gone = own.filter(pl.col("cause").is_in(ARRIVED).not_())
    arrived = len(own) - len(gone)
    if len(gone) >= arrived and len(gone):
        cause, most = _most(gone)
        share = f" ({100 * len(gone) / max(flow['segments'], 1):.2g} % of what was sent)"
        return f"{words.of(most, len(gone), 'lost packet')} {_agree(words.FATES[cause], most)}{share}"
    if arrived:
        cause, most = _most(own.filter(pl.col("cause").is_in(ARRIVED)))
        return f"{words.of(most, len(own), 'repaired packet')} {_agree(words.FATES[cause], most)}"
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
    """What limits a connection that lost nothing, as far as the counts show."""
    if flow["closed_windows"]:
        times = words.count(flow["closed_windows"], "time")
        return f"the receiver's application reads too slowly: its window was closed {times}"
    shortest, longest = flow["rtt_min_s"], flow["ack_delay_max_s"]
    if shortest and longest and longest > _BLOATED * shortest and longest - shortest > 0.1:
        return f"a queue of {words.seconds(longest - shortest)} builds up before it is emptied"
    if flow["acknowledged_octets"] < _OCTETS_OF_A_SHORT_FLOW:
        return (
            f"{words.amount(flow['acknowledged_octets'])} in {words.seconds(flow['duration_s'])}: too little to be slow"
        )
    return f"{words.amount(flow['acknowledged_octets'])} in {words.seconds(flow['duration_s'])}"


def _about(facts: Mapping[str, Any], worst: pl.DataFrame) -> list[str]:
    """The capture itself, before anything is believed."""
    length = max(facts["ended_ns"] - facts["began_ns"], 0) / 1e9
    files = words.count(len(facts["files"]), "file")
    told = [
        f"{files}, {words.count(facts['packets'], 'packet')} in {words.seconds(length)}, "
        f"{words.count(facts['segments'], 'TCP segment')} of {words.count(facts['connections'], 'connection')}."
    ]
    places = worst.filter(pl.col("place") != "unknown")["place"].value_counts().sort("count", descending=True)
    if len(places):
        where = {"sender": "at the sender", "receiver": "at the receiver", "middle": "between both ends"}
        said = where.get(places["place"][0], places["place"][0])
        agreed = "" if len(places) == 1 else f" for {places['count'][0]} of {places['count'].sum()} directions of data"
        told.append(f"It was taken {said}{agreed}.")
    if facts["missed"]:
        told.append(f"Its own counters say that it missed {words.count(facts['missed'], 'packet')}.")
    holes = int(worst["holes"].sum())
    if holes:
        unseen = words.amount(int(worst["unseen_octets"].sum()))
        told.append(f"It has {words.count(holes, 'hole')}: {unseen} were acknowledged that it did not see.")
    if facts["backward"]:
        told.append(f"Its clock went back {words.count(facts['backward'], 'time')}.")
    if facts["cut"]:
        told.append(f"{words.count(facts['cut'], 'packet')} are cut: checksums of those cannot be verified.")
    return told
