"""One run of a scenario on real packets."""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from whyloss import _native
from whyloss import kernel as kernel_part
from whyloss.stacks import engine, kernel
from whyloss.testbed import Testbed, flaws

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from whyloss.scenario import Scenario

__all__ = ["STACKS", "Glance", "MeasuredRun", "Row", "measure"]

STACKS = ("kernel", "engine")
_GLANCE_S = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """One transfer, with the columns of the simulator's table ``transfers`` where both have them."""

    transfer: str
    entry: int
    scheme: str
    control: str
    """The kernel's congestion control; empty on the engine."""
    connections: int
    octets: int | None
    octets_delivered: int
    start_ns: int
    finished_ns: int | None
    """When everything had arrived; nothing if the run ended before. Times count from the beginning of the run."""
    goodput_bps: float
    retransmissions: int
    mean_cwnd: float | None
    """Mean congestion window in segments, over all looks while data was sent; not known of the engine."""


@dataclass(frozen=True, slots=True)
class Glance:
    """A look at a run that is under way."""

    elapsed_s: float
    delivered: dict[str, int]
    """Octets that have arrived, by the name of the transfer."""


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What a real run gave."""

    transfers: tuple[Row, ...]
    audit: tuple[dict[str, Any], ...]
    """What each direction of each link did, as :meth:`whyloss.testbed.Testbed.audit` says it."""

    @property
    def valid(self) -> bool:
        """Whether every link kept its time and rate, and something was sent over one."""
        return not flaws(self.audit) and any(way["received"] for way in self.audit)

    @property
    def mean_wait_ms(self) -> float:
        """Mean queueing delay on the way there, all links of it added up."""
        ways = [way for way in self.audit if way["received"]]
        heaviest = max(ways, key=lambda way: way["sent_octets"], default=None)
        return sum(hop["mean_wait_ms"] for hop in heaviest["hops"]) if heaviest else 0.0

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"transfers": [asdict(row) for row in self.transfers], "audit": list(self.audit)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> MeasuredRun:
        """What :meth:`to_dict` gave."""
        return cls(tuple(Row(**row) for row in plain["transfers"]), tuple(plain["audit"]))


def measure(
    scenario: Scenario,
    run: int = 0,
    on: str = "kernel",
    controls: Mapping[str, str] | None = None,
    tick: Callable[[Glance], object] | None = None,
) -> MeasuredRun:
    """Runs ``scenario`` over emulated links in network namespaces of its own.

    Args:
        scenario: its links must be wires and its flows TCP.
        run: number of the run, which chooses errors and start times.
        on: ``kernel`` or ``engine``.
        controls: on the kernel, its congestion controls by the names of flows; else what their schemes mean.
        tick: is told how far the run is, about twenty times a second; an exception from it ends the run.

    Raises:
        whyloss.InputError: the scenario needs what real stacks do not have.
        OSError: this machine does not allow it.
    """
    if on not in STACKS:
        raise _native.InputError(f"there is no stack {on!r}; there are {', '.join(STACKS)}")
    agenda = scenario.native.agenda(run)
    chosen = [kernel.control_of(planned, controls or {}) if on == "kernel" else "" for planned in agenda]
    if missing := {kernel_part.name_in_kernel(control) for control in chosen if control} - kernel_part.available():
        raise _native.InputError(
            f"{scenario.name}: this kernel has no congestion control {', '.join(sorted(missing))} now; "
            f"it has {', '.join(sorted(kernel_part.available()))}; `whyloss kernel load` loads ours"
        )
    with Testbed(scenario, run=run, truth=False) as bed:
        if on == "kernel":
            carriers: list[Any] = kernel.carriers(bed, agenda, chosen)
        else:
            carriers = engine.carriers(bed, scenario, run, agenda)
        origin = time.monotonic_ns()
        limit = origin + round(scenario.native.duration_s() * 1e9)
        try:
            for carrier in carriers:
                carrier.start(origin)
            _wait(carriers, agenda, origin, limit, tick)
        finally:
            end = time.monotonic_ns()
            for carrier in carriers:
                carrier.stop()
        audit = tuple(bed.audit())
    broken = [f"{carrier.planned['name']}: {carrier.error}" for carrier in carriers if carrier.error]
    if broken:
        raise OSError("; ".join(broken))
    return MeasuredRun(tuple(_row(carrier, origin, end) for carrier in carriers), audit)


def _wait(
    carriers: list[Any],
    agenda: list[_native.PlannedTransfer],
    origin: int,
    limit: int,
    tick: Callable[[Glance], object] | None,
) -> None:
    sized = [carrier for carrier, planned in zip(carriers, agenda, strict=True) if planned["octets"] is not None]
    while (now := time.monotonic_ns()) < limit:
        for carrier in carriers:
            carrier.look()
        if tick is not None:
            delivered = {carrier.planned["name"]: carrier.delivered for carrier in carriers}
            tick(Glance((now - origin) / 1e9, delivered))
        if any(carrier.error for carrier in carriers) or (sized and all(carrier.finished for carrier in sized)):
            return
        time.sleep(min(_GLANCE_S, (limit - now) / 1e9))


def _row(carrier: Any, origin: int, end: int) -> Row:
    planned = carrier.planned
    until = carrier.finished_ns or end
    span = max(until - carrier.started_ns, 1)
    return Row(
        transfer=planned["name"],
        entry=planned["entry"],
        scheme=planned["scheme"],
        control=carrier.control,
        connections=planned["connections"],
        octets=planned["octets"],
        octets_delivered=carrier.delivered,
        start_ns=carrier.started_ns - origin,
        finished_ns=None if carrier.finished_ns is None else carrier.finished_ns - origin,
        goodput_bps=carrier.delivered * 8e9 / span,
        retransmissions=carrier.retransmissions,
        mean_cwnd=statistics.fmean(carrier.windows) if carrier.windows else None,
    )
