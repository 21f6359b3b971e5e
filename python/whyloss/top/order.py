"""In which order connections are shown."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whyloss.top.tally import Line

__all__ = ["SORT_KEYS", "ordered"]

#: What connections can be sorted by. Numbers sort from the largest, names from the first.
SORT_KEYS: dict[str, Callable[[Line], Any]] = {
    "local": lambda line: (ip_address(line["local"]).packed, line["local_port"]),
    "remote": lambda line: (ip_address(line["remote"]).packed, line["remote_port"]),
    "process": lambda line: (line["process"], line["pid"] or 0),
    "control": lambda line: line["control"],
    "state": lambda line: line["state"],
    "out": lambda line: line.out_bps,
    "in": lambda line: line.in_bps,
    "srtt": lambda line: line["srtt_us"],
    "cwnd": lambda line: line["cwnd"],
    "retransmits": lambda line: line.retransmits_per_s,
    "losses": lambda line: line["losses"],
    "timeouts": lambda line: line["timeouts"],
    "congestion": lambda line: line.share("congestion") or 0.0,
    "corruption": lambda line: line.share("corruption") or 0.0,
    "damaged": lambda line: line["damaged_in"],
}

NAMES = frozenset({"local", "remote", "process", "control", "state"})


def ordered(lines: Iterable[Line], key: str, *, reverse: bool = False) -> list[Line]:
    """The lines, sorted by a key; equals by rate and then by cookie, so that nothing jumps."""
    steady = sorted(lines, key=lambda line: (-line.out_bps - line.in_bps, line["cookie"]))
    return sorted(steady, key=SORT_KEYS[key], reverse=(key not in NAMES) != reverse)
