"""The columns of the view: what stands in them and which go first where a terminal is narrow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whyloss.top.tally import Line

__all__ = ["COLUMNS", "Column", "cell", "fitting", "rate"]


@dataclass(frozen=True)
class Column:
    """A column; one that stands for a sort key has its name."""

    key: str
    title: str
    width: int
    text: Callable[[Line], str]
    #: The larger, the earlier it goes when there is no room.
    spare: int
    left: bool = False
    #: An address with a port: where the cell is too narrow its end stays, and it takes what room is left.
    end: bool = False


def rate(bps: float) -> str:
    """A rate in three digits."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if bps >= size:
            value = bps / size
            return f"{value:.1f}{unit}" if value < 99.95 else f"{value:.0f}{unit}"
    return f"{bps:.0f}" if bps >= 1 else "-"


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f}"


def _count(value: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if value >= size:
            return f"{value / size if unit != 'k' else value / 1000:.0f}{unit}"
    return str(value) if value else "-"


def _process(line: Line) -> str:
    return f"{line['process']}/{line['pid']}" if line["pid"] is not None else "-"


def _state(line: Line) -> str:
    seen = line.connection
    # What a sender does about losses says more than that the connection is established.
    return seen["recovery"] if seen["state"] == "established" and seen["recovery"] != "open" else seen["state"]


def _rtt(line: Line) -> str:
    least = line["min_rtt_us"]
    return f"{line['srtt_us'] / 1000:.1f}/{'-' if least is None else f'{least / 1000:.1f}'}"


def _agreement(line: Line) -> str:
    return _percent(line.agreement()) if line["decided"] is None else "own"


def _reports(line: Line) -> str:
    decided = line["decided"]
    return f"{decided['heard'] - decided['refused']}/{decided['heard']}" if decided and decided["heard"] else "-"


def _retransmits(line: Line) -> str:
    return f"{line.retransmits_per_s:.1f}" if line.retransmits_per_s else "-"


COLUMNS = (
    Column("local", "local", 21, lambda line: _end(line["local"], line["local_port"]), 60, left=True, end=True),
    Column("remote", "remote", 21, lambda line: _end(line["remote"], line["remote_port"]), 0, left=True, end=True),
    Column("process", "process", 16, _process, 70, left=True),
    Column("control", "control", 11, lambda line: line["control"], 50, left=True),
    Column("state", "state", 11, _state, 80, left=True),
    Column("out", "out", 6, lambda line: rate(line.out_bps), 1),
    Column("in", "in", 6, lambda line: rate(line.in_bps), 2),
    Column("srtt", "srtt/min", 11, _rtt, 40),
    Column("cwnd", "cwnd", 5, lambda line: _count(line["cwnd"]), 90),
    Column("retransmits", "rtx/s", 5, _retransmits, 30),
    Column("losses", "lost", 5, lambda line: _count(line["losses"]), 3),
    Column("timeouts", "rto", 4, lambda line: _count(line["timeouts"]), 35),
    Column("congestion", "cong%", 5, lambda line: _percent(line.share("congestion")), 4),
    Column("corruption", "corr%", 5, lambda line: _percent(line.share("corruption")), 4),
    Column("agreement", "agree", 5, _agreement, 20),
    Column("reports", "reports", 9, _reports, 75),
    Column("damaged", "dmg-in", 6, lambda line: _count(line["damaged_in"]), 10),
)


#: Cells that the longest address of IPv6 with its port takes.
LONGEST_END = 47


def fitting(width: int, sort_key: str = "remote") -> list[Column]:
    """The columns that fit into ``width`` cells; that of the sort key and the remote end go last."""
    chosen = sorted(COLUMNS, key=lambda column: 0 if column.key == sort_key else -column.spare)
    while len(chosen) > 1 and _width(chosen) > width:
        chosen.pop(0)
    shown = [column for column in COLUMNS if column in chosen]
    # In few cells there may be no end among them.
    room = max(width - _width(shown), 0) // max(sum(column.end for column in shown), 1)
    return [replace(column, width=min(column.width + room, LONGEST_END)) if column.end else column for column in shown]


def _width(columns: Iterable[Column]) -> int:
    widths = [column.width for column in columns]
    return sum(widths) + len(widths) - 1


def cell(column: Column, text: str) -> str:
    """The text in the width of its column."""
    if len(text) > column.width:
        text = "…" + text[1 - column.width :] if column.end else text[: column.width - 1] + "…"
    return text.ljust(column.width) if column.left else text.rjust(column.width)
