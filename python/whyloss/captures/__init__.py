"""Packet captures: what TCP lost in them, and why."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyloss import _native
from whyloss.captures.pump import STDIN, Pump
from whyloss.captures.summary import Summary, summarise
from whyloss.files import aside, write
from whyloss.results import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike

__all__ = ["Details", "Explanation", "Score", "Summary", "explain"]

#: Connections that are kept in detail if nothing else is said: those that lost most time.
DETAILED = 5


class Details:
    """Every segment and every round trip of some connections: the tables ``segments`` and ``samples``."""

    __slots__ = ("_native", "connections")

    def __init__(self, native: _native.Details, connections: Sequence[int]) -> None:
        """Wraps details of the extension module."""
        self._native = native
        self.connections = list(connections)

    @property
    def left_out(self) -> int:
        """Segments that were not kept, as there were too many."""
        return self._native.left_out

    @property
    def segments(self) -> Table:
        """One row a segment."""
        return self["segments"]

    @property
    def samples(self) -> Table:
        """One row a round trip."""
        return self["samples"]

    def __getitem__(self, name: str) -> Table:
        """The table called ``name``."""
        return Table(self._native.table(name), name)

    def __iter__(self) -> Iterator[Table]:
        """Both tables."""
        return (self[name] for name in _native.detail_tables())


@dataclass(frozen=True, slots=True)
class Score:
    """How right an explanation is, where comments in the capture hold the truth."""

    shares: dict[str, float | None]
    """Shares that are right, by name; ``None`` where there is nothing to judge.

    They are ``trigger``, ``need``, ``holes``, ``a_c``, ``a_w``, ``mean`` (of these at A_c of 95 %); and
    ``calibration_error``.
    """
    counts: dict[str, Any]
    """What they follow from."""
    lines: list[str]
    """The same in words."""


class Explanation:
    """What is said of a capture: facts about it, and tables of its connections, retransmissions and losses.

    ``docs/captures-tables.md`` says what their columns mean.
    """

    __slots__ = ("_again", "_native", "facts")

    def __init__(self, native: _native.Explanation, again: Sequence[tuple[Path, str | None]]) -> None:
        """Wraps an explanation of the extension module; ``again`` are the captures, to read them a second time."""
        self._native = native
        self._again = again
        self.facts: dict[str, Any] = json.loads(native.facts)

    @property
    def names(self) -> list[str]:
        """Names of all tables."""
        return _native.explanation_tables()

    @property
    def connections(self) -> Table:
        """One row a direction of a connection in which data was sent."""
        return self["connections"]

    @property
    def retransmissions(self) -> Table:
        """One row a segment that was sent again."""
        return self["retransmissions"]

    @property
    def verdicts(self) -> Table:
        """One row a loss and differentiator of the engine that was asked for."""
        return self["verdicts"]

    @property
    def losses(self) -> Table:
        """One row a packet that was lost, or that its sender took for lost."""
        return self["losses"]

    @property
    def limits(self) -> Table:
        """One row a direction of a connection and what limited it for some time."""
        return self["limits"]

    @property
    def stalls(self) -> Table:
        """One row a time in which nothing went on in a direction, though it was not idle."""
        return self["stalls"]

    @property
    def summary(self) -> Summary:
        """What to say first: one sentence, how far to trust it, the worst connections, the causes."""
        return summarise(self)

    def __getitem__(self, name: str) -> Table:
        """The table called ``name``."""
        if name not in self.names:
            raise KeyError(f"there is no table {name!r}; there are {', '.join(self.names)}")
        return Table(self._native.table(name), name)

    def __iter__(self) -> Iterator[Table]:
        """All tables."""
        return (self[name] for name in self.names)

    def details(
        self, connections: Sequence[int] | None = None, progress: Callable[[int], bool] | None = None
    ) -> Details:
        """Reads the captures again, and keeps every segment of some connections.

        If none are named, they are the ones that lost most time.
        """
        if connections is None:
            worst = self.summary.worst["connection"].unique(maintain_order=True)
            connections = worst.head(DETAILED).to_list()
        return Details(_native.explain_details(self._again, self._native, connections, progress), connections)

    def score(self, progress: Callable[[int], bool] | None = None) -> Score:
        """Reads the captures again and compares what is said of them with the truth, if their comments hold it.

        Captures of the simulator, of emulators and test beds have such comments (``docs/captures.md``).
        """
        told, lines = _native.explain_score(self._again, self._native, progress)
        return Score(lines=lines, **json.loads(told))

    def annotate(self, out: str | PathLike[str], progress: Callable[[int], bool] | None = None) -> int:
        """Reads the captures again and writes their packets into a pcapng file, with the verdicts as comments.

        Returns the number of packets. Link types, times and lengths are kept, and so are comments that were there.
        """
        place = Path(out)
        place.parent.mkdir(parents=True, exist_ok=True)
        with aside(place) as part:
            return _native.explain_annotate(self._again, self._native, self.summary.sentence, part, progress)

    def page(self, out: str | PathLike[str], details: Details | None = None) -> Path:
        """Writes a page to open in any browser, with diagrams of the connections of ``details``; returns its path."""
        from whyloss.captures.page import page  # only this needs templates

        place = Path(out)
        place.parent.mkdir(parents=True, exist_ok=True)
        return write(place, page(self, details or self.details()))

    def save(self, folder: str | PathLike[str], details: Details | None = None) -> Path:
        """Writes one Parquet file a table, those of ``details`` too, and ``capture.json`` with summary and facts."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for table in (*self, *(details or ())):
            table.to_polars().write_parquet(place / f"{table.name}.parquet")
        summary = self.summary
        said = {"sentence": summary.sentence, "about": summary.about, "facts": self.facts}
        (place / "capture.json").write_text(json.dumps(said, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return place


def explain(
    *captures: str | PathLike[str],
    at: str | None = None,
    progress: Callable[[int], bool] | None = None,
    differentiator: str | None = None,
    pump: Pump | None = None,
    both_ends: bool = False,
) -> Explanation:
    """Explains captures, which are read as if they were one, in the order of their first packets.

    ``at`` says where they were taken (``sender``, ``receiver`` or ``middle``) if you know better than what the packets
    show. ``progress(packets)`` is called now and then; if it returns False, what was read so far is explained.
    ``differentiator`` names one of the engine's differentiators, or is ``all``: they judge the losses, too
    (table ``verdicts``). ``pump`` reads the standard input (the capture ``-``) so that it can be stopped, and read a
    second time. With ``both_ends`` the two captures are of the two ends of the same connections: the first is
    explained, the second knows what became of each packet (table ``fates``, ``facts["both_ends"]``).

    Raises :class:`whyloss.InputError` for a file that is no capture; one that is damaged or cut is read as far as
    possible, and the facts have a remark.
    """
    paths = [Path(capture) for capture in captures]
    if not both_ends:
        paths = _native.in_time_order(paths)
    first = [(pump.path, STDIN) if pump and str(path) == "-" else (path, None) for path in paths]
    again = [(pump.kept, STDIN) if pump and str(path) == "-" else (path, None) for path in paths]
    return Explanation(
        _native.explain(first, at, progress, differentiator, both_ends), again[:1] if both_ends else again
    )
