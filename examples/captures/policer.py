"""Writes a capture of Linux' TCP behind a policer: a token bucket that drops what exceeds it, and no queue.

Needs root and tcpdump.
Two network namespaces with a TUN device each; this program carries the packets between them, with a delay each way.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import heapq
import os
import select
import struct
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

RATE = 4e6 / 8
"""Octets a second that get tokens."""
BURST = 60_000
DELAY = 0.015
DATA = 2_500_000
SENDER, RECEIVER = "10.90.0.1", "10.90.0.2"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000

LISTEN = f"import socket; c, _ = socket.create_server(('{RECEIVER}', 5001)).accept()\nwhile c.recv(1 << 16): pass"
SEND = (
    f"import socket; c = socket.create_connection(('{RECEIVER}', 5001)); "
    f"c.sendall(bytes({DATA})); c.shutdown(1); c.recv(1)"
)


def tun(space: str, address: str) -> int:
    """A TUN device in a network namespace, up and with an address."""
    libc, own = ctypes.CDLL(None, use_errno=True), os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{space}", os.O_RDONLY)
    if libc.setns(there, 0):
        raise OSError(ctypes.get_errno(), "setns")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"wan", IFF_TUN | IFF_NO_PI))
    libc.setns(own, 0)
    os.close(there)
    os.close(own)
    for command in (f"addr add {address}/24 dev wan", "link set wan up", "link set lo up"):
        subprocess.run(["ip", "-n", space, *command.split()], check=True)
    return device


def carry(left: int, right: int, done: subprocess.Popen[bytes]) -> int:
    """Carries packets until the sender is done; returns how many the policer dropped."""
    tokens, before, dropped, number = float(BURST), time.monotonic(), 0, 0
    under_way: list[tuple[float, int, int, bytes]] = []
    while done.poll() is None:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else 0.05
        for device in select.select([left, right], [], [], min(wait, 0.05))[0]:
            packet, now = os.read(device, 65536), time.monotonic()
            tokens, before = min(BURST, tokens + (now - before) * RATE), now
            if device == left:
                if len(packet) > tokens:
                    dropped += 1
                    continue
                tokens -= len(packet)
            number += 1
            heapq.heappush(under_way, (now + DELAY, number, right if device == left else left, packet))
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, device, packet = heapq.heappop(under_way)
            os.write(device, packet)
    return dropped


def main() -> None:
    """Makes the capture that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    spaces = [f"policed-{os.getpid()}-{end}" for end in "sr"]
    with ExitStack() as end:
        for space in spaces:
            subprocess.run(["ip", "netns", "add", space], check=True)
            end.callback(subprocess.run, ["ip", "netns", "del", space], check=True)
        left, right = tun(spaces[0], SENDER), tun(spaces[1], RECEIVER)
        within = [["ip", "netns", "exec", space] for space in spaces]
        dump = subprocess.Popen([*within[0], "tcpdump", "-q", "-i", "wan", "-s", "96", "-w", str(out), "tcp"])
        end.callback(dump.wait)
        end.callback(dump.terminate)
        listener = subprocess.Popen([*within[1], sys.executable, "-c", LISTEN])
        end.callback(listener.kill)
        time.sleep(1)
        print(f"the policer dropped {carry(left, right, subprocess.Popen([*within[0], sys.executable, '-c', SEND]))}")
        time.sleep(1)


if __name__ == "__main__":
    main()
