"""Transfers of Linux' TCP over emulated links, ill in their path or at an end, and captures of them. Needs root."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whyloss.testbed import Testbed

if TYPE_CHECKING:
    from pathlib import Path

    from whyloss.scenario import Scenario

RECEIVE = """
import socket, sys, time
where, buffer, chunk, pause = sys.argv[1], *map(float, sys.argv[2:])
listener = socket.socket()
if buffer: listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(buffer))
listener.bind((where, 5001)); listener.listen(); print("ready", flush=True)
peer, _ = listener.accept()
while peer.recv(int(chunk)): time.sleep(pause)
"""
SEND = """
import socket, sys, time
where, control, octets, buffer, chunk, pause = *sys.argv[1:3], *map(float, sys.argv[3:])
peer = socket.socket()
if control: peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
if buffer: peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, int(buffer))
peer.connect((where, 5001))
while octets > 0:
    peer.sendall(bytes(int(min(chunk, octets)))); octets -= chunk; time.sleep(pause)
peer.shutdown(socket.SHUT_WR); peer.recv(1)
"""


@dataclass(frozen=True)
class Transfer:
    """What the two applications do: ``server`` sends, ``client`` reads."""

    octets: float
    #: Congestion control; the kernel's own if empty.
    control: str = ""
    #: Socket buffers in octets; the kernel's own if zero.
    send_buffer: int = 0
    receive_buffer: int = 0
    #: How much is written and read at a time, with what pause after it, in seconds.
    write: int = 1 << 16
    write_pause: float = 0.0
    read: int = 1 << 16
    read_pause: float = 0.0

    def run(self, bed: Testbed, seconds: float = 40) -> None:
        """Carries it out; raises if it takes longer than ``seconds``."""
        where = bed.address("client")
        reads = (self.receive_buffer, self.read, self.read_pause)
        writes = (self.octets, self.send_buffer, self.write, self.write_pause)
        command = [sys.executable, "-c"]
        receiver = bed.popen("client", [*command, RECEIVE, where, *map(str, reads)], stdout=subprocess.PIPE)
        assert receiver.stdout is not None
        receiver.stdout.readline()
        bed.check_output("server", [*command, SEND, where, self.control, *map(str, writes)], timeout=seconds)
        receiver.communicate(timeout=seconds)


def captured(
    scenario: Scenario | Path,
    transfer: Transfer,
    *,
    tcpdump: Path | None = None,
    truth: Path | None = None,
) -> None:
    """Carries out a transfer over the scenario's links.

    ``tcpdump`` is what ``tcpdump -i any -s 96`` writes at the sender. ``truth`` stands for captures of the emulator at
    both ends, whose comments tell what became of each packet: ``x.pcapng`` for ``x-server.pcapng`` and
    ``x-client.pcapng``.
    """
    with ExitStack() as end:
        bed = end.enter_context(Testbed(scenario, capture=truth, max_p99_error_us=20_000))
        if tcpdump is not None:
            command = ["tcpdump", "-q", "-i", "any", "-s", "96", "-U", "-w", str(tcpdump), "tcp"]
            dump = bed.popen("server", command, stderr=subprocess.PIPE)
            assert dump.stderr is not None
            dump.stderr.readline()
            end.callback(dump.communicate)
            end.callback(dump.terminate)
        transfer.run(bed)
        time.sleep(0.5)
