"""Transfers carried by the kernel's own TCP."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyloss import _native
from whyloss.kernel import name_in_kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whyloss.testbed import Testbed

__all__ = ["CONTROLS", "Carrier", "carriers", "control_of"]

#: The congestion controls of the kernel that do what schemes of the engine do, by scheme.
CONTROLS = _native.kernel_schemes()

_PIECE = 1 << 13
_FIRST_PORT = 5000
#: Windows up to here are set by the size of the socket's buffer; larger ones are left to the kernel.
_SMALL_BUFFER = 1 << 20
#: ``struct tcp_info`` (linux/tcp.h): where tcpi_snd_cwnd and tcpi_total_retrans stand.
_SND_CWND, _TOTAL_RETRANS = 80, 100


def control_of(planned: _native.PlannedTransfer, controls: Mapping[str, str]) -> str:
    """The kernel's congestion control for a transfer: the one chosen for its flow, else what its scheme means.

    Raises:
        whyloss.InputError: the kernel has nothing like the scheme.
    """
    flow = planned["name"].split(".")[0]
    control = controls.get(flow) or CONTROLS.get(planned["scheme"])
    if control is None:
        raise _native.InputError(
            f"flow {flow!r}: the kernel has no scheme {planned['scheme']!r}; it has {', '.join(sorted(set(CONTROLS)))}"
        )
    return control


def _prepare(bed: Testbed, agenda: list[_native.PlannedTransfer]) -> None:
    """Sets up the hosts as the transfers' configuration says.

    A Linux host has one configuration: what the profile says of SACK, timestamps, RACK, tail loss probes, the smallest
    timeout and the initial window is set for all its connections.

    Raises:
        whyloss.InputError: two transfers want different ones.
    """
    wanted = [(_host_settings(planned["tcp"]), planned["tcp"]["initial_window"]) for planned in agenda]
    if any(settings != wanted[0] for settings in wanted):
        raise _native.InputError("the flows of a scenario must agree in what a Linux host sets for all its connections")
    settings, window = wanted[0]
    for host in bed.hosts:
        bed.inside(host, lambda: _write(settings))
        if window != _LINUX_INITIAL_WINDOW:
            for route in bed.check_output(host, ["ip", "route", "show"]).splitlines():
                bed.check_output(host, ["ip", "route", "replace", *route.split(), "initcwnd", str(window)])


_LINUX_INITIAL_WINDOW = 10


def _write(settings: Mapping[str, str]) -> None:
    """Writes ``/proc/sys/net/KEY`` for each key; keys that this kernel does not have are left out."""
    for key, value in settings.items():
        path = Path("/proc/sys/net") / key
        if path.exists():
            path.write_text(value, encoding="ascii")


def _host_settings(tcp: Mapping[str, Any]) -> dict[str, str]:
    def switch(name: str) -> str:
        return "1" if tcp[name] else "0"

    return {
        "ipv4/tcp_no_metrics_save": "1",
        "ipv4/tcp_sack": switch("sack"),
        "ipv4/tcp_dsack": switch("dsack"),
        "ipv4/tcp_timestamps": switch("timestamps"),
        "ipv4/tcp_window_scaling": switch("window_scaling"),
        "ipv4/tcp_recovery": switch("rack"),
        "ipv4/tcp_early_retrans": "3" if tcp["tlp"] else "0",
        "ipv4/tcp_frto": "2" if tcp["undo"] else "0",
        "ipv4/tcp_ecn": switch("ecn"),
        "ipv4/tcp_rto_min_us": str(round(tcp["min_rto_s"] * 1e6)),
    }


def carriers(bed: Testbed, agenda: list[_native.PlannedTransfer], controls: list[str]) -> list[Carrier]:
    """One for each transfer of ``agenda``, of the congestion control at the same place of ``controls``.

    All that takes time of the host is done here, so that it is not taken for time of the network: the sockets are made
    and the receivers listen.

    Raises:
        whyloss.InputError: two transfers want different hosts.
        OSError: the kernel refuses a socket or its settings.
    """
    _prepare(bed, agenda)
    names = {control: name_in_kernel(control).encode() for control in controls}
    made: list[Carrier] = []
    try:
        for planned, control in zip(agenda, controls, strict=True):
            carrier = Carrier(planned, control, _made(bed, planned["to"]))
            made.append(carrier)
            _listen(carrier.listener, (bed.address(planned["to"]), _FIRST_PORT + len(made) - 1), planned)
            for _ in range(planned["connections"]):
                sender = _made(bed, planned["from"])
                carrier.senders.append(sender)
                sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, names[control])
                if planned["tcp"]["send_buffer"] <= _SMALL_BUFFER:
                    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, planned["tcp"]["send_buffer"])
    except BaseException:
        for carrier in made:
            carrier.stop()
        raise
    return made


def _made(bed: Testbed, host: str) -> socket.socket:
    return bed.inside(host, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))


def _listen(listener: socket.socket, address: tuple[str, int], planned: _native.PlannedTransfer) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if (buffer := planned["tcp"]["receive_buffer"]) <= _SMALL_BUFFER:
        # The kernel takes twice what is said, and about half of that is the window.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    listener.bind(address)
    listener.listen(planned["connections"])


@dataclass
class Carrier:
    """One transfer over sockets of the kernel. Times are in nanoseconds of ``time.monotonic_ns``."""

    planned: _native.PlannedTransfer
    control: str
    listener: socket.socket
    senders: list[socket.socket] = field(default_factory=list)
    started_ns: int = 0
    finished_ns: int | None = None
    delivered: int = 0
    retransmissions: int = 0
    error: str = ""
    windows: list[int] = field(default_factory=list)
    """The sum of the congestion windows in segments, at each look."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _taken: int = 0
    _stopped: bool = False
    _accepted: list[socket.socket] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self, origin_ns: int) -> None:
        """Starts the transfer at its time after ``origin_ns``."""
        self._spawn(self._accept)
        at_ns = origin_ns + round(self.planned["start_s"] * 1e9)
        for connection in self.senders:
            self._spawn(self._send, connection, at_ns)

    @property
    def finished(self) -> bool:
        """Whether everything has arrived, or it broke."""
        return self.finished_ns is not None or bool(self.error)

    def look(self) -> None:
        """Notes the congestion windows."""
        with contextlib.suppress(OSError):
            if self.started_ns and not self.finished:
                self.windows.append(sum(_info(sender, _SND_CWND) for sender in self.senders))

    def stop(self) -> None:
        """Ends it, whether finished or not."""
        self._stopped = True
        with contextlib.suppress(OSError):
            self.retransmissions = sum(_info(sender, _TOTAL_RETRANS) for sender in self.senders)
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()

    @property
    def _sockets(self) -> list[socket.socket]:
        with self._lock:
            return [self.listener, *self.senders, *self._accepted]

    def _spawn(self, work: Any, *arguments: Any) -> None:
        def guarded() -> None:
            try:
                work(*arguments)
            except OSError as error:
                if not self._stopped:
                    self.error = self.error or str(error)

        thread = threading.Thread(target=guarded, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        for _ in self.senders:
            connection, _ = self.listener.accept()
            with self._lock:
                self._accepted.append(connection)
            self._spawn(self._receive, connection)

    def _receive(self, connection: socket.socket) -> None:
        buffer = bytearray(_PIECE)
        # The kernel empties the queue as it fills all the same, but wakes this thread less often.
        while count := connection.recv_into(buffer, 0, socket.MSG_WAITALL):
            with self._lock:
                self.delivered += count
                if self.delivered == self.planned["octets"]:
                    self.finished_ns = time.monotonic_ns()

    def _send(self, connection: socket.socket, at_ns: int) -> None:
        time.sleep(max(0.0, (at_ns - time.monotonic_ns()) / 1e9))
        if self._stopped:
            return
        with self._lock:
            self.started_ns = self.started_ns or time.monotonic_ns()
        connection.connect(self.listener.getsockname())
        piece = bytes(self.planned["chunk"])
        while (count := self._take(len(piece))) and not self._stopped:
            connection.sendall(piece[:count])
        connection.shutdown(socket.SHUT_WR)

    def _take(self, wanted: int) -> int:
        """The next piece of the data, for whichever connection has room."""
        octets = self.planned["octets"]
        with self._lock:
            count = wanted if octets is None else min(wanted, octets - self._taken)
            self._taken += count
        return count


def _info(connection: socket.socket, offset: int) -> int:
    """A number of 32 bits of the connection's ``struct tcp_info``."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return int(struct.unpack_from("=I", info, offset)[0])
