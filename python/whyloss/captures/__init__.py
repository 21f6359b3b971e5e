"""Packet captures: what TCP lost in them, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyloss import _native
from whyloss.results import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

__all__ = ["Explanation", "explain"]


class Explanation:
    """What is said of a capture: facts about it, and tables of its connections, retransmissions and losses.

    ``docs/captures-tables.md`` says what their columns mean.
    """

    __slots__ = ("_native", "facts")

    def __init__(self, native: _native.Explanation) -> None:
        """Wraps an explanation of the extension module."""
        self._native = native
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

    def __getitem__(self, name: str) -> Table:
        """The table called ``name``."""
        if name not in self.names:
            raise KeyError(f"there is no table {name!r}; there are {', '.join(self.names)}")
        return Table(self._native.table(name), name)

    def __iter__(self) -> Iterator[Table]:
        """All tables."""
        return (self[name] for name in self.names)

    def save(self, folder: str | PathLike[str]) -> Path:
        """Writes one Parquet file a table, and ``capture.json`` with the facts, into ``folder``."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for table in self:
            table.to_polars().write_parquet(place / f"{table.name}.parquet")
        (place / "capture.json").write_text(json.dumps(self.facts, indent=2) + "\n", encoding="utf-8")
        return place


def explain(
    *captures: str | PathLike[str],
    at: str | None = None,
    progress: Callable[[int], bool] | None = None,
    differentiator: str | None = None,
) -> Explanation:
    """Explains captures, which are read one after the other as if they were one.

    ``at`` says where they were taken (``sender``, ``receiver`` or ``middle``) if you know better than what the packets
    show. ``progress(packets)`` is called now and then; if it returns False, what was read so far is explained.
    ``differentiator`` names one of the engine's differentiators, or is ``all``: they judge the losses, too
    (table ``verdicts``).

    Raises :class:`whyloss.InputError` for a file that is no capture; one that is damaged or cut is read as far as
    possible, and the facts have a remark.
    """
    return Explanation(_native.explain([Path(capture) for capture in captures], at, progress, differentiator))
