"""What a summary and a page need of an explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from whyloss.results import Table

__all__ = ["Detailed", "Explained"]


class Explained(Protocol):
    """Facts and tables of a capture."""

    facts: dict[str, Any]

    @property
    def names(self) -> list[str]:
        """Names of all tables."""

    @property
    def connections(self) -> Table:
        """One row a direction of a connection."""

    @property
    def retransmissions(self) -> Table:
        """One row a segment that was sent again."""

    @property
    def losses(self) -> Table:
        """One row a packet that was lost, or taken for lost."""

    def __getitem__(self, name: str) -> Table:
        """The table called ``name``."""


class Detailed(Protocol):
    """Segments and round trips of some connections."""

    connections: list[int]

    @property
    def left_out(self) -> int:
        """Segments that were not kept."""

    @property
    def segments(self) -> Table:
        """One row a segment."""

    @property
    def samples(self) -> Table:
        """One row a round trip."""
