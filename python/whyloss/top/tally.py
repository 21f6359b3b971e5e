"""From two snapshots to rates, and from counts to shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whyloss._native import Connection, Snapshot
    from whyloss.top.select import Selection

__all__ = ["Line", "Machine", "Tally"]

CAUSES = ("congestion", "corruption", "unknown", "spurious")


@dataclass(frozen=True)
class Line:
    """A connection with what changed since the snapshot before."""

    connection: Connection
    out_bps: float
    in_bps: float
    retransmits_per_s: float

    def __getitem__(self, name: str) -> Any:
        """A field of the connection, by name."""
        return self.connection[name]  # type: ignore[literal-required]

    def judged(self) -> dict[str, int]:
        """What was judged, by cause.

        That is recoveries and timeouts if the connection's own control judges them, else segments taken for lost, with
        those of the episode under way.
        """
        decided = self.connection["decided"]
        if decided is not None:
            return _by_control(decided)
        judged = {cause: self.connection["causes"][cause]["losses"] for cause in CAUSES}
        pending = self.connection["pending"]
        if pending is not None:
            judged[pending] += self.connection["pending_losses"]
        return judged

    def share(self, cause: str) -> float | None:
        """The part of what was judged that had this cause; ``None`` if nothing was."""
        judged = self.judged()
        total = sum(judged.values())
        return judged[cause] / total if total else None

    def agreement(self) -> float | None:
        """How large a part of the differentiators agreed with a verdict, in the mean over all of them."""
        said = [self.connection["causes"][cause] for cause in ("congestion", "corruption")]
        known = [(tally["episodes"], tally["agreement"]) for tally in said if tally["agreement"] is not None]
        total = sum(episodes for episodes, _ in known)
        return sum(episodes * agreement for episodes, agreement in known) / total if total else None

    def as_json(self, time_s: float) -> dict[str, Any]:
        """The line for machines; `docs/top.schema.json` describes it."""
        return {
            "kind": "connection",
            "time_s": round(time_s, 3),
            **self.connection,
            "out_bps": round(self.out_bps, 1),
            "in_bps": round(self.in_bps, 1),
            "retransmits_per_s": round(self.retransmits_per_s, 3),
            "judge": "differentiators" if self.connection["decided"] is None else "control",
            "shares": {cause: self.share(cause) for cause in CAUSES},
            "agreement": self.agreement(),
        }


def _by_control(counts: dict[str, int]) -> dict[str, int]:
    """Recoveries and timeouts by what a control of ours took them for: it keeps the window for corruption only."""
    kept = max(counts["kept"] - counts["cut_later"], 0) + counts["timeouts_kept"]
    reduced = max(counts["losses"] + counts["timeouts"] - kept - counts["undone"], 0)
    return {"congestion": reduced, "corruption": kept, "unknown": 0, "spurious": counts["undone"]}


@dataclass(frozen=True)
class Machine:
    """All connections that were selected, at one time."""

    time_s: float
    lines: list[Line]
    closed: list[Line]
    damaged_in: int
    unreported: int

    def as_json(self) -> dict[str, Any]:
        """The line that says how many other lines there are, and what belongs to no connection."""
        return {
            "kind": "machine",
            "time_s": round(self.time_s, 3),
            "connections": len(self.lines),
            "closed": len(self.closed),
            "damaged_in": self.damaged_in,
            "unreported": self.unreported,
        }


class Tally:
    """Remembers the snapshot before."""

    def __init__(self, selection: Selection) -> None:
        """Sees only what ``selection`` admits."""
        self.selection = selection
        self._before: dict[int, Connection] = {}
        self._at: float | None = None

    def take(self, snapshot: Snapshot, time_s: float) -> Machine:
        """What ``snapshot``, taken at ``time_s``, says beside the one before."""
        elapsed = None if self._at is None else time_s - self._at
        admitted = [seen for seen in snapshot["connections"] if self.selection.admits(seen)]
        closed = [seen for seen in snapshot["closed"] if self.selection.admits(seen)]
        machine = Machine(
            time_s=time_s,
            lines=[self._line(seen, elapsed) for seen in admitted],
            closed=[self._line(seen, elapsed) for seen in closed],
            damaged_in=snapshot["damaged_in"],
            unreported=snapshot["unreported"],
        )
        self._before = {seen["cookie"]: seen for seen in admitted}
        self._at = time_s
        return machine

    def _line(self, seen: Connection, elapsed: float | None) -> Line:
        before = self._before.get(seen["cookie"])
        # One that was not there before began in between, or was found late: nobody knows when it did what it did.
        if elapsed is None or elapsed <= 0 or not (before or seen["whole"]):
            return Line(seen, 0.0, 0.0, 0.0)
        sent = seen["bytes_acked"] - (before["bytes_acked"] if before else 0)
        received = seen["bytes_received"] - (before["bytes_received"] if before else 0)
        again = seen["retransmissions"] - (before["retransmissions"] if before else 0)
        return Line(seen, 8 * sent / elapsed, 8 * received / elapsed, again / elapsed)
