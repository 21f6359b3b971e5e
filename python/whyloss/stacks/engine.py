"""Transfers carried by the engine, on hosts of its own behind the hosts of the test bed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whyloss import _native
    from whyloss.scenario import Scenario
    from whyloss.testbed import Testbed

__all__ = ["Carrier", "carriers"]


@dataclass
class Carrier:
    """One transfer between two hosts of the engine. Times are in nanoseconds of ``time.monotonic_ns``."""

    planned: _native.PlannedTransfer
    native: _native.BulkTransfer
    control: str = ""
    error: str = ""
    retransmissions: int = 0
    windows: list[int] = field(default_factory=list)

    def start(self, origin_ns: int) -> None:
        """Starts the transfer at its time after ``origin_ns``."""
        self.native.start(origin_ns + round(self.planned["start_s"] * 1e9))

    @property
    def started_ns(self) -> int:
        """When the connections were opened."""
        return self.native.started_ns

    @property
    def finished_ns(self) -> int | None:
        """When everything had arrived."""
        return self.native.finished_ns

    @property
    def delivered(self) -> int:
        """Octets that have arrived."""
        return self.native.delivered

    @property
    def finished(self) -> bool:
        """Whether everything has arrived."""
        return self.finished_ns is not None

    def look(self) -> None:
        """The engine does not tell its window."""

    def stop(self) -> None:
        """Ends it, whether finished or not."""
        self.retransmissions = self.native.stop()


def carriers(bed: Testbed, scenario: Scenario, run: int, agenda: list[_native.PlannedTransfer]) -> list[Carrier]:
    """One for each transfer of ``agenda``; each end is a guest of the host that the scenario names."""
    return [Carrier(planned, bed.bulk_transfer(scenario, run, number)) for number, planned in enumerate(agenda)]
