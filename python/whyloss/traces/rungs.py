"""Where the arrows of a ladder diagram stand, so that nothing covers anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whyloss.traces.ladder import Arrow, Ladder

__all__ = ["Label", "Rungs", "rungs", "spread"]

#: Millimetres for each arrow, as long as time runs evenly.
_PER_ARROW = 3.6
#: A time in which nothing happens takes no more than this, in millimetres; then it is marked as a break.
_LONGEST_GAP = 20.0


@dataclass(frozen=True, slots=True)
class Label:
    """Text beside the start of an arrow, or of several that leave together."""

    forward: bool
    at: float
    """Where the arrow starts."""
    place: float
    """Where the text stands: it never covers another."""
    text: str
    cause: str
    """The true cause of the loss that the arrow repairs; empty if it repairs none."""


@dataclass(frozen=True, slots=True)
class Rungs:
    """Places in millimetres from the top, in the order of the arrows."""

    starts: list[float]
    ends: list[float]
    labels: list[Label]
    breaks: list[tuple[float, str]]
    """Where time was cut short, and by how much."""
    height: float


def rungs(shown: Ladder, line: float) -> Rungs:
    """Lays out time downwards. ``line``: height of a line of text in millimetres."""
    sent = [arrow.sent_ns for arrow in shown.arrows]
    known = [arrow.ended_ns for arrow in shown.arrows if arrow.ended_ns is not None]
    last = max([*sent, *known])
    ended = [arrow.ended_ns if arrow.ended_ns is not None else last for arrow in shown.arrows]
    times = np.unique(np.array([*sent, *ended], dtype=np.int64))
    gaps = np.diff(times).astype(np.float64)
    room = _PER_ARROW * len(sent)
    scale = _scale(gaps, room)
    steps = np.minimum(gaps * scale, _LONGEST_GAP)
    places = np.concatenate([[0.0], np.cumsum(steps)])
    at = dict(zip(times.tolist(), places.tolist(), strict=True))
    breaks = [
        ((at[int(start)] + at[int(end)]) / 2, _span(int(end - start)))
        for start, end, gap in zip(times[:-1], times[1:], gaps, strict=True)
        if gap * scale > _LONGEST_GAP
    ]
    starts, ends = [at[time] for time in sent], [at[time] for time in ended]
    labels = []
    for forward in (True, False):
        bursts = _bursts([arrow for arrow in shown.arrows if arrow.forward == forward])
        wanted = [at[burst[0].sent_ns] for burst in bursts]
        for burst, start, place in zip(bursts, wanted, spread(wanted, line), strict=True):
            cause = burst[0].repairs.cause if burst[0].repairs else ""
            labels.append(Label(forward, start, place, _words(burst), cause))
    height = max([float(places[-1]), *(label.place for label in labels)]) + line
    return Rungs(starts, ends, labels, breaks, height)


def _bursts(arrows: Sequence[Arrow]) -> list[list[Arrow]]:
    """The arrows, those together that leave at the same time with data that follows on each other's."""
    bursts: list[list[Arrow]] = []
    for arrow in arrows:
        before = bursts[-1][-1] if bursts else None
        if before is not None and _follows(before, arrow):
            bursts[-1].append(arrow)
        else:
            bursts.append([arrow])
    return bursts


def _follows(before: Arrow, arrow: Arrow) -> bool:
    """Whether an arrow needs no words of its own: it leaves with the one before, with the data that comes next."""
    special = (before.repairs, before.lost, arrow.repairs, arrow.lost)
    if any(special) or before.sent_ns != arrow.sent_ns or before.data is None or arrow.data is None:
        return False
    return before.data[1] == arrow.data[0]


def _words(burst: Sequence[Arrow]) -> str:
    """What stands beside arrows that leave together: when, and what they carry."""
    first, last = burst[0], burst[-1]
    text = first.label
    if first.data and last.data:
        span = f"{first.data[0]:,}–{last.data[1]:,}".replace(",", "\u2009")
        several = f" ×{len(burst)}" if len(burst) > 1 else ""
        text = f"{text} {span}{several}".strip() + (" again" if first.repairs else "")
    at = f"{first.sent_ns / 1e9:.4f}"
    return f"{at}  {text}" if first.forward else f"{text}  {at}"


def _scale(gaps: np.ndarray[tuple[int], np.dtype[np.float64]], room: float) -> float:
    """Millimetres a nanosecond, so that all gaps, the long ones cut short, take ``room`` together."""
    if not len(gaps) or gaps.sum() == 0:
        return 0.0
    low, high = 0.0, _LONGEST_GAP / float(gaps[gaps > 0].min())
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(gaps * middle, _LONGEST_GAP).sum() < room else (low, middle)
    return low


def spread(wanted: Sequence[float], least: float) -> list[float]:
    """Places as near as can be to those ``wanted`` (in rising order), each ``least`` after the one before it.

    The least squares, by pooling neighbours that want to stand too near to each other.
    """
    pools: list[tuple[float, int]] = []
    for number, place in enumerate(wanted):
        mean, count = place - number * least, 1
        while pools and pools[-1][0] > mean:
            before, size = pools.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        pools.append((mean, count))
    flat = [mean for mean, count in pools for _ in range(count)]
    return [max(mean, 0.0) + number * least for number, mean in enumerate(flat)]


def _span(length_ns: int) -> str:
    return f"{length_ns / 1e9:.3g} s" if length_ns >= 1e9 else f"{length_ns / 1e6:.3g} ms"
