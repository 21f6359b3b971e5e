"""Middleboxes on the packets of stock kernel hosts; skipped where this machine can have no test bed."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import whyloss as wl
from conftest import ROOT, WHYLOSS
from whyloss import _native
from whyloss.cli.testbed import with_middlebox
from whyloss.testbed import Testbed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conftest import Ended

pytestmark = pytest.mark.realtime

EXAMPLE = ROOT / "examples/base-station.toml"
OCTETS = 1_500_000


def opened(kind: str, run: int = 0, fields: Mapping[str, object] | None = None) -> Testbed:
    """The example between real hosts, where this machine can have that."""
    scenario = with_middlebox(wl.Scenario.load(EXAMPLE).replace(fields or {}), kind)
    try:
        return Testbed(scenario, run=run, max_p99_error_us=1e6)
    except _native.UnavailableError as reason:
        pytest.skip(str(reason))


def transfer(bed: Testbed, octets: int = OCTETS, version: int = 4, control: bytes = b"cubic") -> float:
    """Sends from the fixed to the mobile host; gives the goodput in Mbit/s. Every octet must arrive as it was sent.

    The congestion control is said, since the machine's own may be BBR, which takes no erasure for congestion.
    """
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    address = bed.address("mobile", version)
    listener = bed.inside("mobile", lambda: socket.create_server((address, 5001), family=family))
    listener.settimeout(60)
    sent = os.urandom(octets)
    digest = hashlib.sha256()

    def receive() -> None:
        connection, _ = listener.accept()
        connection.settimeout(60)
        with connection:
            while piece := connection.recv(65536):
                digest.update(piece)
            connection.sendall(b"!")

    receiver = threading.Thread(target=receive)
    receiver.start()

    def connect() -> socket.socket:
        made = socket.socket(family)
        made.settimeout(60)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control)
        made.connect((address, 5001))
        return made

    sender = bed.inside("fixed", connect)
    with sender, listener:
        start = time.monotonic()
        sender.sendall(sent)
        sender.shutdown(socket.SHUT_WR)
        assert sender.recv(1) == b"!"
        seconds = time.monotonic() - start
        receiver.join()
    assert digest.digest() == hashlib.sha256(sent).digest()
    return octets * 8e-6 / seconds


def three_times(kind: str, measure: Callable[[Testbed], float]) -> tuple[list[float], list[Testbed]]:
    """What ``measure`` gives on three test beds at once, each with errors of its own; and those, closed."""
    with ExitStack() as opening:
        beds = [opening.enter_context(opened(kind, run)) for run in range(3)]
        with ThreadPoolExecutor() as threads:
            measured = list(threads.map(measure, beds))
    print(kind, measured)
    return measured, beds


@functools.cache
def unaided() -> float:
    """Mbit/s without a middlebox, the median."""
    return statistics.median(three_times("none", transfer)[0])


def agent(bed: Testbed) -> dict[str, Any]:
    """What the agent did."""
    boxes = [direction["middlebox"] for direction in bed.audit() if direction["middlebox"]]
    assert len(boxes) == 1
    return dict(boxes[0])


def test_snoop_raises_the_goodput_of_stock_hosts() -> None:
    measured, _ = three_times("snoop", transfer)
    assert statistics.median(measured) > 1.5 * unaided()


def test_the_truth_names_what_the_agent_made_and_suppressed() -> None:
    with opened("snoop") as bed:
        transfer(bed, 500_000)
    done, truth = agent(bed), bed.truth()
    touched = truth.drop_nulls("middlebox")
    assert set(touched["middlebox"]) == {"snoop"}
    made = touched.filter(inserted=True)
    assert len(made) == done["sent"] > 0
    assert set(made["direction"]) == {"station>mobile"}
    assert set(made["src"]) == {bed.address("fixed")}
    suppressed = touched.filter(fate="suppressed")
    assert len(suppressed) == done["suppressed"] > 0
    assert set(suppressed["direction"]) == {"mobile>station"}
    assert suppressed["left_ns"].null_count() == len(suppressed)
    assert suppressed["true_cause"].null_count() == len(suppressed)
    assert 0 < done["connection_segments"] <= 100
    assert done["connection_octets"] <= done["octets"]
    # A lost packet is made again with the same numbers.
    lost = truth.filter(direction="station>mobile", cause="erased")
    assert set(made["seq"]) & set(lost["seq"])


def test_packet_control_on_stock_hosts_leaves_the_data_whole() -> None:
    with opened("packet-control") as bed:
        transfer(bed, 300_000)
    done = agent(bed)
    assert done["kind"] == "packet-control"
    assert done["seen"] > 300


def test_a_proxy_that_moves_timestamps_raises_the_goodput_of_stock_hosts() -> None:
    measured, beds = three_times("wtcp-proxy", transfer)
    for bed in beds:
        done = agent(bed)
        assert done["sent"] > 0
        assert done["connection_segments"] <= 100
    assert statistics.median(measured) > 1.5 * unaided()


def test_connections_over_ipv6_are_helped_as_well() -> None:
    with opened("snoop") as bed:
        transfer(bed, 500_000, version=6)
    assert agent(bed)["sent"] > 0


def test_packets_of_other_protocols_and_fragments_pass_unseen() -> None:
    with opened("snoop", fields={"link[wireless].forward.channel": {"loss": 0}}) as bed:
        there = bed.inside("mobile", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        here = bed.inside("fixed", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        with there, here:
            there.bind((bed.address("mobile"), 4000))
            there.settimeout(5)
            # The last one is longer than a packet.
            for length in (1, 1000, 4000):
                said = os.urandom(length)
                here.sendto(said, (bed.address("mobile"), 4000))
                assert there.recv(65536) == said
    assert agent(bed)["seen"] == 0
    assert bed.truth()["middlebox"].null_count() == len(bed.truth())


def test_a_path_has_an_agent_between_its_stretches() -> None:
    text = """
    [path]
    rate = "10 Mbps"
    delay = "5 ms"
    queue = "100 pkt"
    forward.channel = { loss = 0.05, effect = "erase" }
    [[middlebox]]
    at = "emulator"
    link = "path"
    kind = "snoop"
    """
    try:
        bed = Testbed(wl.Scenario.parse(text), max_p99_error_us=1e6)
    except _native.UnavailableError as reason:
        pytest.skip(str(reason))
    with bed:
        address = bed.address("client")
        listener = bed.inside("client", lambda: socket.create_server((address, 5001)))
        sender = bed.inside("server", lambda: socket.create_connection((address, 5001), timeout=20))
        receiver, _ = listener.accept()
        sent = os.urandom(100_000)
        threading.Thread(target=sender.sendall, args=(sent,)).start()
        got = b""
        while len(got) < len(sent):
            got += receiver.recv(65536)
        assert got == sent
        for one in (sender, receiver, listener):
            one.close()
    made = bed.truth().filter(inserted=True)
    assert set(made["link"]) == {"emulator>client"}


def test_a_split_connection_raises_the_goodput_of_stock_hosts() -> None:
    measured, beds = three_times("i-tcp", transfer)
    assert statistics.median(measured) > 1.5 * unaided()
    # All segments of both hosts end here, and what it needed for the connection stands beside.
    for bed in beds:
        done = agent(bed)
        assert done["seen"] == done["accepted"] > 1000
        assert (done["flows"], done["unsent"], done["evicted"], done["unremembered"]) == (1, 0, 0, 0)
        assert 10_000 < done["connection_octets"] < 4 * 262_144 + 20_000


def test_connections_are_split_over_ipv6_and_behind_a_path_that_takes_smaller_packets() -> None:
    def link(name: str, near: str, far: str, delay: str) -> dict[str, object]:
        return {"name": name, "between": [near, far], "rate": "20 Mbps", "delay": delay, "queue": "100 pkt"}

    scenario = wl.Scenario(
        {
            "host": [{"name": "fixed"}, {"name": "mobile"}],
            "router": [{"name": "station"}, {"name": "gate"}],
            "link": [
                link("wired", "fixed", "station", "5 ms"),
                link("wireless", "station", "gate", "1 ms"),
                link("last", "gate", "mobile", "1 ms"),
            ],
            "middlebox": [{"at": "station", "link": "wireless", "kind": "i-tcp"}],
        }
    )
    for version in (4, 6):
        try:
            bed = Testbed(scenario, max_p99_error_us=1e6)
        except _native.UnavailableError as reason:
            pytest.skip(str(reason))
        with bed:
            # Only the gate's word tells of it: the mobile host announces full segments.
            bed.check_output("gate", ["ip", "link", "set", "to-mobile", "mtu", "1300"])
            transfer(bed, 300_000, version)
        truth = bed.truth()
        down = truth.filter(direction="station>gate", inserted=True)
        assert down["octets"].max() == 1500
        assert set(down.filter(down["octets"] > 1000)["octets"]) >= {1300}
        told = truth.filter(direction="gate>station", protocol=1 if version == 4 else 58)
        assert set(told["fate"]) == {"suppressed"}
        over = truth.filter(direction="gate>mobile")
        assert over["octets"].max() == 1300


def connected(bed: Testbed, port: int, local: int = 0) -> tuple[socket.socket, socket.socket]:
    """A connection from the fixed to the mobile host."""
    address = bed.address("mobile")
    listener = bed.inside("mobile", lambda: socket.create_server((address, port)))
    listener.settimeout(20)

    def connect() -> socket.socket:
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.settimeout(20)
        made.bind((bed.address("fixed"), local))
        made.connect((address, port))
        return made

    client = bed.inside("fixed", connect)
    server, _ = listener.accept()
    server.settimeout(20)
    listener.close()
    return client, server


def test_connections_that_are_split_close_as_stock_hosts_wish() -> None:
    with opened("i-tcp") as bed:
        for client_first in (True, False):
            client, server = connected(bed, 5001, 6001)
            first, second = (client, server) if client_first else (server, client)
            # A half-close in either order, and the other half goes on.
            first.sendall(b"last words")
            first.shutdown(socket.SHUT_WR)
            assert second.recv(100) == b"last words"
            assert second.recv(100) == b""
            second.sendall(bytes(100_000))
            second.close()
            got = 0
            while piece := first.recv(65536):
                got += len(piece)
            assert got == 100_000
            first.close()
            time.sleep(0.2)
            if client_first:
                # Who closed first waits; the ports are free again once it is gone.
                continue
            # The server closed first: the client may use its ports again at once.
            client, server = connected(bed, 5001, 6001)
            client.sendall(b"again")
            assert server.recv(100) == b"again"
            client.close()
            server.close()


def test_resets_and_refusals_come_through_a_split() -> None:
    linger = struct.pack("ii", 1, 0)
    with opened("i-tcp") as bed:
        for port, by_client in ((5001, True), (5002, False)):
            client, server = connected(bed, port)
            one, other = (client, server) if by_client else (server, client)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            one.close()
            with other, pytest.raises(ConnectionResetError):
                other.recv(100)
        with pytest.raises(ConnectionRefusedError):
            bed.inside("fixed", lambda: socket.create_connection((bed.address("mobile"), 9), timeout=20))
        done = agent(bed)
    assert (done["flows"], done["unsent"]) == (1, 0)


def test_m_tcp_keeps_a_stock_sender_from_giving_up_while_the_mobile_host_is_away() -> None:
    outage = {"at": "0.3 s", "lasts": "1 s"}
    fields = {"link[wireless].forward.channel": {"loss": 0}, "link[wireless].outage": [outage]}
    with opened("m-tcp", fields=fields) as bed:
        transfer(bed)
    done, truth = agent(bed), bed.truth()
    assert done["changed"] > 100
    assert done["sent"] > 0
    told = truth.filter(inserted=True)
    assert set(told["direction"]) == {"mobile>station"}
    assert set(told["dst"]) == {bed.address("fixed")}


def test_curl_gets_the_same_file_with_and_without_help() -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("there is no curl here")
    none, snoop, split = (
        statistics.median(three_times(kind, lambda bed: download(bed, curl))[0]) for kind in ("none", "snoop", "i-tcp")
    )
    assert min(snoop, split) > 1.3 * none


def download(bed: Testbed, curl: str) -> float:
    """Gets a file from the fixed host with curl on the mobile one; gives the goodput in Mbit/s."""
    octets = os.urandom(OCTETS)
    with tempfile.TemporaryDirectory() as there, tempfile.TemporaryDirectory() as here:
        Path(there, "file").write_bytes(octets)
        serve = "import http.server, socket, socketserver, sys\n" + (
            "class Server(http.server.ThreadingHTTPServer):\n"
            "    def server_bind(self):\n"
            "        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'cubic')\n"
            "        socketserver.TCPServer.server_bind(self)\n"
            "        self.server_name, self.server_port = 'fixed', 8000\n"
            "server = Server((sys.argv[1], 8000), http.server.SimpleHTTPRequestHandler)\n"
            "print('ready', flush=True)\n"
            "server.serve_forever()\n"
        )
        command = [sys.executable, "-c", serve, bed.address("fixed")]
        server = bed.popen("fixed", command, cwd=there, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        target = Path(here, "file")
        wish = ["-sS", "--noproxy", "*", "--max-time", "60", "-o", str(target), "-w", "%{speed_download}"]
        speed = bed.check_output("mobile", [curl, *wish, f"http://{bed.address('fixed')}:8000/file"], timeout=90)
        assert hashlib.sha256(target.read_bytes()).digest() == hashlib.sha256(octets).digest()
        server.kill()
        server.stdout.close()
    return float(speed) * 8e-6


def test_what_an_emulated_link_has_not_is_refused_by_name(whyloss: Callable[..., Ended]) -> None:
    for kind in ("eln", "snack-snoop", "ceten", "strip"):
        scenario = wl.Scenario.load(EXAMPLE).replace({"middlebox[0].kind": kind})
        refused = (
            rf"middlebox\[0\].kind: the agent {kind} exists in the simulator only, not between real hosts: .*stock"
        )
        with pytest.raises(wl.InputError, match=refused):
            Testbed(scenario)
    box = {"at": "station", "link": "wireless", "kind": "snoop"}
    twice = wl.Scenario.load(EXAMPLE).replace({"middlebox": [box, box]})
    with pytest.raises(wl.InputError, match=r"middlebox\[1\]: a second agent at link wireless exists in the simulator"):
        Testbed(twice)
    ended = whyloss("testbed", EXAMPLE, "--middlebox", "eln", "--run", "fixed=true")
    assert ended.status != 0
    assert "the agent eln exists in the simulator only" in ended.err
    assert "packet-control" in ended.err
    assert "snoop" in ended.err
    ended = whyloss("testbed", ROOT / "examples/lossy-link.toml", "--middlebox", "snoop", "--run", "server=true")
    assert ended.status != 0
    assert "says no place for it" in ended.err


def test_a_middlebox_does_not_change_while_it_is_at_work() -> None:
    with opened("snoop") as bed, pytest.raises(wl.InputError, match="a middlebox cannot change while it is at work"):
        bed.change({"middlebox[0].kind": "packet-control"})


def test_the_command_tells_of_the_agent() -> None:
    opened("snoop").close()
    options = ["--middlebox", "packet-control", "--run", "fixed=true", "--max-error", "1e6"]
    command = [str(WHYLOSS), "testbed", str(EXAMPLE), *options]
    for as_json in (False, True):
        ended = subprocess.run([*command, *(["--json"] if as_json else [])], capture_output=True, text=True, check=True)
        if as_json:
            boxes = [direction["middlebox"] for direction in json.loads(ended.stdout)["directions"]]
            assert [box and box["kind"] for box in boxes] == [None, None, "packet-control", None]
        else:
            assert "packet-control" in ended.stdout
