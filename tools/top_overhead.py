"""Measures what `whyloss top` costs: bulk TCP at full speed with it and without, in turns.

One connection over the loopback device of a network namespace, one over a veth pair between two, and one over such a
pair that takes no more than one segment at once, so that the observer sees as many acknowledgements as there can be.
Sender and receiver have a processor each. What counts is the ratio within a run: with noise from elsewhere, read the
interval before the value. Needs root.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from multiprocessing.sharedctypes import RawValue
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from whyloss import _native, files
from whyloss.stats import function_of_means

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

WHYLOSS = Path(sys.executable).with_name("whyloss")
TARGET = 0.97
NEW_NETWORK = 0x40000000
PIECE = 1 << 18
WARM_UP_S = 0.2
FORKED = get_context("fork")


def call(name: str, *arguments: int) -> None:
    """A function of the C library that gives 0 or fails. Python has these two since 3.12."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


class Namespace:
    """A network namespace that is there as long as its descriptor, so that none is left behind."""

    def __init__(self) -> None:
        """An empty one, with its loopback device up."""

        def make() -> int:
            call("unshare", NEW_NETWORK)
            return os.open("/proc/thread-self/ns/net", os.O_RDONLY)

        self.file = _on_a_thread(make)
        self.ip("link set lo up")

    def run(self, job: Callable[[], T]) -> T:
        """Does ``job`` on a thread inside: its sockets and processes belong there for good."""

        def inside() -> T:
            call("setns", self.file, NEW_NETWORK)
            return job()

        return _on_a_thread(inside)

    def ip(self, arguments: str) -> None:
        """Runs `ip` inside."""
        self.run(lambda: subprocess.run(["ip", *arguments.split()], check=True))


def _on_a_thread(job: Callable[[], T]) -> T:
    done: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            done.append(job())
        except BaseException as error:  # it goes on in the thread that waits
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


class Transfer:
    """Bulk data over one connection, which rests but where its rate is measured."""

    def __init__(self, near: Namespace, far: Namespace, address: str) -> None:
        """Connects and begins to rest."""
        listener = far.run(lambda: socket.create_server((address, 0)))
        out = near.run(lambda: socket.create_connection(listener.getsockname()))
        into, _ = listener.accept()
        listener.close()
        self._arrived = RawValue(ctypes.c_uint64, 0)
        self._receiver = FORKED.Process(target=_receive, args=(into, self._arrived), daemon=True)
        self._sender = FORKED.Process(target=_send, args=(out,), daemon=True)
        self._receiver.start()
        self._sender.start()
        into.close()
        out.close()
        self._signal(signal.SIGSTOP)

    def rate(self, seconds: float) -> float:
        """Bits a second that arrive."""
        self._signal(signal.SIGCONT)
        time.sleep(WARM_UP_S)
        start, before = time.monotonic(), self._arrived.value
        time.sleep(seconds)
        bits, elapsed = 8 * (self._arrived.value - before), time.monotonic() - start
        self._signal(signal.SIGSTOP)
        if not bits:
            raise RuntimeError("nothing arrives")
        return float(bits / elapsed)

    def close(self) -> None:
        """Ends it."""
        for process in (self._sender, self._receiver):
            process.kill()
            process.join()

    def _signal(self, number: signal.Signals) -> None:
        os.kill(self._sender.pid or 0, number)


def _processor(number: int) -> None:
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {usable[number % len(usable)]})


def _send(out: socket.socket) -> None:
    _processor(0)
    piece = bytes(PIECE)
    while True:
        out.sendall(piece)


def _receive(into: socket.socket, arrived: Any) -> None:
    _processor(1)
    room = bytearray(PIECE)
    while octets := into.recv_into(room):
        arrived.value += octets


def loopback() -> Transfer:
    """Within one namespace."""
    inside = Namespace()
    return Transfer(inside, inside, "127.0.0.1")


def veth(options: str = "") -> Transfer:
    """Between two."""
    near, far = Namespace(), Namespace()
    near.ip(f"link add near {options} type veth peer name far {options} netns /proc/{os.getpid()}/fd/{far.file}")
    for inside, device, last in ((near, "near", 1), (far, "far", 2)):
        inside.ip(f"address add 10.79.0.{last}/24 dev {device}")
        inside.ip(f"link set {device} up")
    return Transfer(near, far, "10.79.0.2")


PATHS: dict[str, Callable[[], Transfer]] = {
    "loopback": loopback,
    "veth": veth,
    "veth-single-segments": lambda: veth("gso_max_segs 1"),
}


@contextmanager
def watched() -> Iterator[None]:
    """`whyloss top` as it comes, with its rows as JSON to nowhere."""
    command = [str(WHYLOSS), "top", "--json", "--prometheus", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as top:
        assert top.stderr is not None
        # It answers when all its programs are attached.
        said = top.stderr.readline()
        try:
            yield
            if top.poll() is not None:
                raise RuntimeError(f"whyloss top has ended: {said}{top.stderr.read()}")
        finally:
            top.terminate()


def measure(rounds: int, seconds: float) -> list[dict[str, Any]]:
    """The rate of each path with and without, and their ratio; each round begins with the other one."""
    rates: dict[str, dict[bool, list[float]]] = {name: {True: [], False: []} for name in PATHS}
    with ExitStack() as stack:
        transfers = {name: make() for name, make in PATHS.items()}
        for transfer in transfers.values():
            stack.callback(transfer.close)
        for number in range(rounds):
            for watching in (number % 2 == 0, number % 2 == 1):
                with watched() if watching else ExitStack():
                    for name, transfer in transfers.items():
                        rates[name][watching].append(transfer.rate(seconds))
    return [_entry(name, of[True], of[False]) for name, of in rates.items()]


def _entry(name: str, watched: list[float], alone: list[float]) -> dict[str, Any]:
    ratio = function_of_means(lambda one, other: one / other, [watched, alone])
    low, high = ratio.interval()
    print(
        f"{name:20} {_mean(alone) / 1e9:6.2f} Gbit/s alone, {_mean(watched) / 1e9:6.2f} watched: "
        f"ratio {ratio.value:.3f} [{low:.3f}, {high:.3f}], target {TARGET}"
    )
    return {
        "name": f"top/{name}",
        "value": ratio.value,
        "unit": "of the throughput without",
        "peers": {"target": TARGET},
        "interval": [low, high],
        "alone_bps": alone,
        "watched_bps": watched,
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def main() -> int:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("bench-top.json"), help="where the results go as JSON")
    parser.add_argument("--rounds", type=int, default=9, help="how often each is measured with and without")
    parser.add_argument("--seconds", type=float, default=0.7, help="of each measurement, after 0.2 more to get going")
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error("--rounds: at least 2 are needed for an interval")
    try:
        _native.Observer().close()
    except _native.InputError as reason:
        print(f"top: skipped: {reason}", file=sys.stderr)
        return 0
    print(f"top: {arguments.rounds} rounds, load average {os.getloadavg()[0]:.1f}", file=sys.stderr)
    entries = measure(arguments.rounds, arguments.seconds)
    files.write(arguments.out, json.dumps(entries, indent=2) + "\n")
    print(f"written to {arguments.out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
