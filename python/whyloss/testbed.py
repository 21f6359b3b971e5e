"""Test beds: the network of a scenario between real hosts of this machine's kernel.

Each host and router of the scenario is a network namespace, each link an emulated one: the simulator's own queues and
channels in real time. Needs root (or a user namespace) on Linux. Nothing is left behind, however the process ends.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypedDict, TypeVar

import polars as pl

from whyloss import _native
from whyloss.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from types import TracebackType

__all__ = ["MAX_P99_ERROR_US", "Bridge", "InvalidRunError", "Testbed", "flaws"]

MAX_P99_ERROR_US = 1000.0
"""The 99th percentile of the delay error from which a run does not count."""

T = TypeVar("T")
N = TypeVar("N", bound="_Native")


class InvalidRunError(_native.WhylossError):
    """The emulator was not as exact as it must be: what was measured does not count."""


def flaws(audit: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why a run does not count; empty if it does."""
    return [flaw for direction in audit for flaw in direction["flaws"]]


def _scenario(scenario: Scenario | str | PathLike[str]) -> Scenario:
    return scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)


class _Wishes(TypedDict):
    """What the extension module is told beside the scenario."""

    run: int
    packets: Path | None
    capture: Path | None
    keep: bool
    max_p99_error_us: float
    realtime: bool
    changeable: bool


def _wishes(
    run: int,
    packets: str | PathLike[str] | None,
    capture: str | PathLike[str] | None,
    truth: bool,
    bound: float,
    realtime: bool,
) -> _Wishes:
    return {
        "run": run,
        "packets": None if packets is None else Path(packets),
        "capture": None if capture is None else Path(capture),
        "keep": truth,
        "max_p99_error_us": bound,
        "realtime": realtime,
        "changeable": True,
    }


class _Native(Protocol):
    """What the extension module's emulations have in common."""

    def change(self, scenario: _native.Scenario) -> int: ...
    def audit(self) -> list[dict[str, Any]]: ...
    def truth(self) -> _native.Table: ...
    def close(self) -> None: ...


class _Emulation(Generic[N]):
    """Links at work, until they are closed."""

    def __init__(self, scenario: Scenario, native: N) -> None:
        self._scenario = scenario
        self._native = native

    def change(self, fields: Mapping[str, object]) -> int:
        """Changes links while they are at work: ``change({"path.rate": "2 Mbps"})``.

        Rate, delay, queue and channel can change; gives how many stretches do. A packet in transmission goes on at its
        old rate.

        Raises:
            whyloss.InputError: something else would change, or the value makes no sense. Nothing changes then.
        """
        return self._become(self._scenario.replace(fields))

    def change_arguments(self, arguments: list[str]) -> int:
        """As :meth:`change`, by fields as on the command line: ``["path.rate=2 Mbps"]``."""
        return self._become(self._scenario.with_arguments(arguments))

    def _become(self, scenario: Scenario) -> int:
        count = self._native.change(scenario.native)
        self._scenario = scenario
        return count

    def audit(self) -> list[dict[str, Any]]:
        """What each direction of each link has done so far, or had done at the end; see ``docs/emulator.md``."""
        return self._native.audit()

    def check(self) -> None:
        """Raises :class:`InvalidRunError` if the links have not been as exact as they must be."""
        found = flaws(self.audit())
        if found:
            raise InvalidRunError("; ".join(found))

    def truth(self) -> pl.DataFrame:
        """What became of each packet whose fate is known: a table with the columns of ``docs/packets.md``.

        While links are at work the youngest packets may be missing; after :meth:`close` none is.
        """
        return pl.DataFrame(self._native.truth())

    def close(self) -> None:
        """Ends it. :meth:`audit` and :meth:`truth` go on telling what was."""
        self._native.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()


class Testbed(_Emulation[_native.Bed]):
    """The hosts, routers and links of a scenario, as long as it is open.

    >>> with Testbed("examples/lossy-link.toml") as bed:
    ...     server = bed.popen("client", ["iperf3", "-s", "-1"])
    ...     bed.check_output("server", ["iperf3", "-c", bed.address("client"), "--json"])
    ...     bed.check()                       # was the emulator exact enough?
    ...     losses = bed.truth().filter(fate="lost")

    What the scenario sends (its flows) is not sent: that is up to the processes that are started here. A scenario for a
    test bed needs no flow. Of a ``[path]`` the router in the middle is part of the emulator, so that there are two
    hosts, ``server`` and ``client``.
    """

    # What pytest shall not take for a class of tests.
    __test__ = False

    def __init__(
        self,
        scenario: Scenario | str | PathLike[str],
        *,
        run: int = 0,
        mtu: int = 1500,
        truth: bool = True,
        packets: str | PathLike[str] | None = None,
        capture: str | PathLike[str] | None = None,
        max_p99_error_us: float = MAX_P99_ERROR_US,
        realtime: bool = True,
    ) -> None:
        """Builds it.

        Args:
            scenario: the scenario, or its file.
            run: number of the run. Runs differ in their random errors; the same run has the same ones as in the
                simulator.
            mtu: the longest IP packet that a link takes, in octets.
            truth: keep what became of each packet in memory (some 200 octets a packet), for :meth:`truth`.
            packets: write it to this Parquet file while it happens.
            capture: write packet captures, one at each end: for ``packets.pcapng`` they are ``packets-server.pcapng``
                and ``packets-client.pcapng``; what became of each packet is in its comment.
            max_p99_error_us: the 99th percentile of the delay error from which :meth:`check` refuses the run.
            realtime: ask for real-time priority.

        Raises:
            whyloss.InputError: the scenario has what no wire can do, such as radio.
            whyloss.UnavailableError: this machine, or this user, cannot have a test bed.
        """
        wishes = _wishes(run, packets, capture, truth, max_p99_error_us, realtime)
        scenario = _scenario(scenario)
        super().__init__(scenario, _native.Bed(scenario.native, wishes, mtu))
        self._children: list[subprocess.Popen[Any]] = []

    @property
    def hosts(self) -> list[str]:
        """Names of the hosts."""
        return self._native.hosts

    @property
    def routers(self) -> list[str]:
        """Names of the routers."""
        return self._native.routers

    def address(self, host: str, version: int = 4) -> str:
        """The IP address of a host or router. Processes started here also find it under the name of the host."""
        if version not in (4, 6):
            raise ValueError(f"there is no IP version {version}; allowed are 4 and 6")
        return self._native.address(host, version == 6)

    def environment(self, host: str) -> dict[str, str]:
        """What processes of a host find in their environment beside what this process has: its name, all addresses."""
        found = {"WHYLOSS_HOST": host}
        for name in [*self.hosts, *self.routers]:
            key = "".join(letter if letter.isalnum() else "_" for letter in name.upper())
            found[f"WHYLOSS_ADDRESS_{key}"] = self.address(name)
            found[f"WHYLOSS_ADDRESS6_{key}"] = self.address(name, 6)
        return found

    def popen(self, host: str, argv: Sequence[str] | str, **kwargs: Any) -> subprocess.Popen[Any]:
        """Starts a process on a host; it ends with the test bed at the latest, and so does all that it starts.

        Args:
            host: name of a host or router.
            argv: as of :class:`subprocess.Popen`, whose keyword arguments it takes too.
            **kwargs: see there.
        """
        env = {**(kwargs.pop("env", None) or os.environ), **self.environment(host)}

        def start() -> subprocess.Popen[Any]:
            return subprocess.Popen(argv, env=env, **kwargs)

        child: subprocess.Popen[Any] = self._native.start(host, start)
        self._children.append(child)
        return child

    def check_output(self, host: str, argv: Sequence[str] | str, *, timeout: float | None = None, **kwargs: Any) -> str:
        """Runs a process on a host to its end and gives what it writes to its standard output.

        Raises:
            subprocess.CalledProcessError: it fails.
            subprocess.TimeoutExpired: it takes longer than ``timeout`` seconds; it is killed then.
        """
        child = self.popen(host, argv, stdout=subprocess.PIPE, text=True, **kwargs)
        try:
            output, _ = child.communicate(timeout=timeout)
        except BaseException:
            child.kill()
            child.wait()
            raise
        if child.returncode:
            raise subprocess.CalledProcessError(child.returncode, argv, output)
        return str(output)

    def inside(self, host: str, job: Callable[[], T]) -> T:
        """Calls ``job()`` on a thread in the network of a host: the sockets that it opens belong there for good."""
        result: T = self._native.inside(host, job)
        return result

    def namespace_path(self, host: str) -> Path:
        """Where the network namespace of a host can be entered while the test bed is open: ``nsenter --net=PATH``."""
        return self._native.namespace_path(host)

    def bulk_transfer(self, scenario: Scenario, run: int, number: int) -> _native.BulkTransfer:
        """Transfer ``number`` of what ``scenario`` sends in run ``run``, to be carried by the engine.

        Each end is a host of its own, a guest behind the host that the scenario names.
        """
        return _native.BulkTransfer(self._native, scenario.native, run, number)

    def close(self) -> None:
        """Ends all processes and links. :meth:`audit` and :meth:`truth` go on telling what was."""
        for child in self._children:
            with suppress(ProcessLookupError):
                child.kill()
        for child in self._children:
            child.wait()
        super().close()

    def __repr__(self) -> str:
        """Its hosts."""
        return f"Testbed({', '.join(self.hosts)})"


class Bridge(_Emulation[_native.Bridge]):
    """The ``[path]`` of a scenario, or its only link, between two TUN devices of this machine.

    A device that does not exist is created and goes away at the end; one that does must not be in use. The first takes
    the place of ``server``, the second that of ``client``. Addresses and routes are up to whoever has the devices.
    """

    def __init__(
        self,
        scenario: Scenario | str | PathLike[str],
        devices: tuple[str, str],
        *,
        run: int = 0,
        truth: bool = True,
        packets: str | PathLike[str] | None = None,
        capture: str | PathLike[str] | None = None,
        max_p99_error_us: float = MAX_P99_ERROR_US,
        realtime: bool = True,
    ) -> None:
        """Begins at once; the arguments are those of :class:`Testbed`."""
        wishes = _wishes(run, packets, capture, truth, max_p99_error_us, realtime)
        scenario = _scenario(scenario)
        super().__init__(scenario, _native.Bridge(scenario.native, wishes, devices))

    @property
    def ends(self) -> tuple[str, str]:
        """What the scenario calls the hosts at the two ends."""
        first, second = self._native.ends
        return first, second

    @property
    def running(self) -> bool:
        """Whether it is at work. It ends by itself only if a device fails."""
        return self._native.running
