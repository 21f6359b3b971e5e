"""Measures what an agent at a base station is worth to stock hosts, beside a proxy that splits TCP in the kernel.

Sends files from `fixed` to `mobile` over `examples/base-station.toml`, with each agent in turn, and prints the goodput
of each run that the emulator was in time for, with the memory that the agent took for the connection. Needs root.

    .venv/bin/python tools/middleboxes.py --runs 5 none snoop i-tcp i-tcp:buffer=131072
    .venv/bin/python tools/middleboxes.py --pepsal ./pepsal --nft /usr/sbin/nft none i-tcp pepsal

Parameters of an agent stand behind its name, with commas between them. `pepsal` is https://github.com/viveris/pepsal,
which is not part of this project: it runs in the station's network namespace, which TPROXY rules lead TCP through.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import whyloss as wl
from whyloss.cli.testbed import with_middlebox
from whyloss.testbed import Testbed

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE = Path(__file__).parents[1] / "examples/base-station.toml"
MOBILE_PORT = 5001
PROXY_PORT = 5000
RULES = f"""
table ip split {{
  chain before {{
    type filter hook prerouting priority mangle
    meta l4proto tcp socket transparent 1 meta mark set 1 accept
    tcp dport {MOBILE_PORT} tproxy to :{PROXY_PORT} meta mark set 1 accept
  }}
}}
"""


def transfer(bed: Testbed, octets: int, control: str) -> float:
    """Goodput in Mbit/s of one connection, from its SYN to the receiver's word that it has everything."""
    address = (bed.address("mobile"), MOBILE_PORT)
    listener = bed.inside("mobile", lambda: socket.create_server(address))
    data, got = os.urandom(octets), hashlib.sha256()

    def receive() -> None:
        connection, _ = listener.accept()
        with connection:
            left = octets
            while left and (piece := connection.recv(1 << 16)):
                got.update(piece)
                left -= len(piece)
            connection.sendall(b"!" if not left else b"?")

    receiver = threading.Thread(target=receive, daemon=True)
    receiver.start()
    sender = bed.inside("fixed", socket.socket)
    with listener, sender:
        sender.settimeout(120)
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        start = time.monotonic()
        sender.connect(address)
        # It does not close before it has its answer: not every proxy passes on that one direction has ended.
        sender.sendall(data)
        if sender.recv(1) != b"!":
            raise ConnectionError("the receiver has not got everything")
        seconds = time.monotonic() - start
        receiver.join()
    if got.digest() != hashlib.sha256(data).digest():
        raise ValueError("other octets arrived than were sent")
    return octets * 8e-6 / seconds


def start_pepsal(bed: Testbed, program: str, nft: str, control: str) -> Callable[[], int]:
    """Leads the station's TCP through PEPsal; gives what ends it and tells the most memory that it had, in octets."""
    for command in (
        ["ip", "link", "set", "lo", "up"],
        ["ip", "rule", "add", "fwmark", "1", "lookup", "100"],
        ["ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo", "table", "100"],
        *(
            ["ip", "route", "replace", bed.address(host), "dev", f"to-{host}", "scope", "link", "congctl", control]
            for host in ("fixed", "mobile")
        ),
        [nft, RULES],
    ):
        bed.check_output("station", command)
    child = bed.popen("station", [program, "-p", str(PROXY_PORT)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)

    def end() -> int:
        status = Path(f"/proc/{child.pid}/status").read_text()
        child.send_signal(signal.SIGKILL)
        child.wait()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))

    return end


def measure(kind: str, run: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """One run."""
    agent, _, parameters = kind.partition(":")
    scenario = with_middlebox(wl.Scenario.load(EXAMPLE), "none" if agent == "pepsal" else agent)
    for parameter in filter(None, parameters.split(",")):
        name, _, value = parameter.partition("=")
        scenario = scenario.replace({f"middlebox[0].parameters.{name}": int(value) if value.isdigit() else value})
    load = os.getloadavg()[0]
    with Testbed(scenario, run=run, truth=False, max_p99_error_us=1e9) as bed:
        end = start_pepsal(bed, arguments.pepsal, arguments.nft, arguments.control) if agent == "pepsal" else None
        goodput = transfer(bed, arguments.octets, arguments.control)
        process = end() if end else None
    audit = bed.audit()
    p99 = max((direction["error"]["p99_us"] for direction in audit if direction["received"]), default=0.0)
    box = next((direction["middlebox"] for direction in audit if direction["middlebox"]), None)
    lost = {hop["name"]: dict(hop["dropped"]) for direction in audit for hop in direction["hops"] if hop["dropped"]}
    memory = process or (box or {}).get("connection_octets", 0)
    found = {"kind": kind, "control": arguments.control, "run": run, "mbps": goodput, "p99_us": p99, "load": load}
    return found | {"memory": memory, "lost": lost, "agent": box}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "kinds", nargs="+", metavar="KIND", help="none, an agent (snoop, i-tcp:buffer=131072), or pepsal"
    )
    parser.add_argument("--runs", type=int, default=3, help="runs of each, from 0 on")
    parser.add_argument("--octets", type=int, default=1_500_000, help="length of the file")
    parser.add_argument("--control", default="cubic", help="congestion control of the hosts, and of PEPsal's sockets")
    parser.add_argument("--max-error", type=float, default=1000.0, help="99th percentile of the delay error in µs")
    parser.add_argument("--tries", type=int, default=3, help="how often a run is tried that was not in time")
    parser.add_argument("--pepsal", default="pepsal", help="PEPsal's program")
    parser.add_argument("--nft", default="nft", help="the program of nftables")
    parser.add_argument("--out", type=Path, help="every try as JSON, one a line")
    arguments = parser.parse_args()
    good: dict[str, list[dict[str, Any]]] = {kind: [] for kind in arguments.kinds}
    for run in range(arguments.runs):
        for kind in arguments.kinds:
            for _ in range(arguments.tries):
                found = measure(kind, run, arguments)
                in_time = found["p99_us"] < arguments.max_error
                if arguments.out:
                    with arguments.out.open("a") as out:
                        print(json.dumps(found | {"in_time": in_time}), file=out)
                print(json.dumps(found | {"in_time": in_time}), file=sys.stderr)
                if in_time:
                    good[kind].append(found)
                    break
    for kind, runs in good.items():
        if not runs:
            print(f"{kind}: no run was in time")
            continue
        each = ", ".join(f"{one['mbps']:.2f}" for one in runs)
        memory = max(one["memory"] for one in runs)
        errors = max(one["p99_us"] for one in runs)
        loads = [one["load"] for one in runs]
        print(
            f"{kind}: median {statistics.median(one['mbps'] for one in runs):.2f} Mbit/s ({each}); {memory} octets;"
            f" p99 of the delay error at most {errors:.0f} µs; load {min(loads):.1f} to {max(loads):.1f}"
        )


if __name__ == "__main__":
    main()
