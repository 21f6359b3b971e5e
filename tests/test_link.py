"""Programs behind an emulated link: it is as slow, as far and as lossy as it was said to be."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import whyloss as wl
from whyloss import _native, behind

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.realtime

COMMAND = str(Path(sys.executable).with_name("whyloss"))
OCTETS = 1_500_000
#: Fetches what the server has, and says how long that took and how long a first octet.
FETCH = """
import os, sys, time, urllib.request
began = time.monotonic()
answer = urllib.request.urlopen(f"http://{os.environ['WHYLOSS_HOST_ADDRESS']}:{sys.argv[1]}/", timeout=30)
first = time.monotonic() - began
octets = len(answer.read())
print(octets, first, time.monotonic() - began)
sys.exit(7)
"""


class Quiet(http.server.BaseHTTPRequestHandler):
    """Gives every caller the same octets."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(OCTETS))
        self.end_headers()
        self.wfile.write(bytes(OCTETS))

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """A server on all addresses of this machine."""
    server = http.server.ThreadingHTTPServer(("", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command; the test is skipped where there can be no emulated link."""
    done = subprocess.run([COMMAND, "link", *arguments], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 2 and ("emulated link needs" in done.stderr or "refused" in done.stderr):
        pytest.skip(done.stderr)
    return done


def test_a_program_gets_what_the_link_carries(port: int) -> None:
    done = call("20ms", "10Mbps", "--", sys.executable, "-c", FETCH, str(port))
    assert done.returncode == 7, done.stderr
    octets, first, took = (float(word) for word in done.stdout.split())
    assert octets == OCTETS
    # The handshake and the request take a round trip of 40 ms each; the machine may be busy.
    assert 0.08 <= first < 0.4
    least = OCTETS * 8 / 10e6
    assert least < took < 2 * least + 0.5
    assert "10 Mbps, 20 ms each way, queue of 33 pkt; this machine is 100." in done.stderr
    names = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
    assert f"wl{os.getpid()}" not in names
    assert not [line for line in names.splitlines() if line.startswith("wl")]


def test_no_connection_is_left_half_closed(port: int) -> None:
    # The server's last acknowledgement is still on the way when the program ends.
    scenario = wl.path(rate="100 Mbps", delay="300 ms")
    try:
        link = behind.Link(scenario)
    except wl.UnavailableError as refused:
        pytest.skip(str(refused))
    with link:
        assert link.run([sys.executable, "-c", FETCH, str(port)], stdout=subprocess.DEVNULL) == 7
        assert behind._is_closing(link.guest)
    assert not behind._is_closing(link.guest)


def test_losses_are_where_they_were_asked_for(port: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    link = wl.path(rate="20 Mbps", delay="2 ms", loss="5 %")
    try:
        made = behind.Link(link, outside=False)
    except _native.UnavailableError as reason:
        pytest.skip(str(reason))
    with made:
        with pytest.raises(FileNotFoundError, match="no-such-program"):
            made.run(["no-such-program"])
        assert made.run([sys.executable, "-c", FETCH, str(port)], stdout=subprocess.DEVNULL) == 7
        with pytest.raises(wl.InputError, match="allowed: one, which can start others"):
            made.run(["true"])
        time.sleep(0.1)
        down, up = made.bridge.audit()
    erased = {way["name"]: sum(dict(hop["dropped"]).get("erased", 0) for hop in way["hops"]) for way in (down, up)}
    offered = max(hop["offered"] for hop in down["hops"])
    # Some thousand packets: 5 % are lost give or take four standard deviations; none of the acknowledgements.
    share = erased[down["name"]] / offered
    assert abs(share - 0.05) < 4 * (0.05 * 0.95 / offered) ** 0.5, (erased, offered)
    assert erased[up["name"]] == 0


@pytest.mark.parametrize(("direction", "least", "most"), [("down", 1.0, 6.0), ("up", 0.1, 0.9)])
def test_a_policer_holds_a_program_to_its_rate(port: int, direction: str, least: float, most: float) -> None:
    """8 Mbit/s take 1.5 s for what 100 Mbit/s carry in 0.12 s; upwards there are only acknowledgements."""
    policed = ("2ms", "100Mbps", "--policer", "8Mbps,30kB", "--direction", direction)
    done = call(*policed, "--", sys.executable, "-c", FETCH, str(port))
    assert done.returncode == 7, done.stderr
    assert "a policer of 8 Mbps and 30 kB" in done.stderr
    assert least < float(done.stdout.split()[2]) < most


def test_status_and_signals_of_the_program_are_passed_on() -> None:
    assert call("1ms", "100Mbps", "--quiet", "--", "sh", "-c", "exit 9").returncode == 9
    assert call("1ms", "100Mbps", "--", "sh", "-c", "kill -TERM $$").returncode == 128 + 15
    missing = call("1ms", "100Mbps", "--", "no-such-program")
    assert missing.returncode == 127
    assert "no-such-program: there is no such program" in missing.stderr
    for existing in ("/etc/passwd", "/etc"):
        refused = call("1ms", "100Mbps", "--", existing)
        assert refused.returncode == 126
        assert f"{existing}: permission denied" in refused.stderr


@pytest.mark.parametrize(
    ("text", "status", "told"), [("echo hi\n", 126, "Exec format error"), ("#!/no/sh\n", 127, "No such")]
)
def test_a_file_that_cannot_be_executed_is_named(tmp_path: Path, text: str, status: int, told: str) -> None:
    (script := tmp_path / "script").write_text(text)
    script.chmod(0o755)
    # What waits for the link and becomes the program; the link itself needs root.
    go, begin = os.pipe()
    os.write(begin, b"\n")
    words = [sys.executable, "-IS", "-c", behind._WAIT, str(go), str(script)]
    done = subprocess.run(words, pass_fds=(go,), capture_output=True, text=True, timeout=60, check=False)
    os.close(go)
    os.close(begin)
    assert done.returncode == status
    assert done.stderr.startswith(f"error: {script}: {told}")
    assert done.stderr.endswith(
        "; allowed: a program, or a script whose first line names what reads it, such as #!/bin/sh\n"
    )
    assert call("1ms", "100Mbps", "--", str(script)).returncode == status


@pytest.mark.parametrize("delay", ["0ms", "200us"])
def test_nothing_is_sent_before_somebody_is_there(delay: str) -> None:
    done = call(delay, "10Mbps", "--", "true")
    assert done.returncode == 0
    assert "did not take" not in done.stderr


def test_without_root_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(_native.UnavailableError, match="needs root, as in: sudo whyloss link"):
        behind.Link(wl.path())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["20ms", "fast", "--", "true"], 'RATE: found "fast"'),
        (["soon", "10Mbps", "--", "true"], 'DELAY: found "soon"'),
        (["20ms", "10Mbps"], "Missing argument"),
        (["20ms", "10Mbps", "--loss", "1%", "--damaged", "1%", "--", "true"], "allowed: one of them"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], message: str) -> None:
    done = subprocess.run([COMMAND, "link", *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


#: A machine with a namespace behind it that is the rest of the world.
WORLD = """
set -e
ip link set lo up
unshare --net sh -c 'until ip -brief link show far up | grep -q far; do sleep 0.05; done; exec "$0" -c "$1"' "$1" "$2" &
world=$!
sleep 0.3
ip link add out type veth peer name far netns $world
ip address add 192.0.2.1/24 dev out
ip link set out up
nsenter --net=/proc/$world/ns/net ip address add 192.0.2.2/24 dev far
nsenter --net=/proc/$world/ns/net ip link set far up
sysctl -qw net.ipv4.ip_forward=1
sleep 0.5
"$3" link 5ms 10Mbps -- "$1" -c "$4"
nft list tables
kill $world
"""
SERVE = (
    "import socket; s = socket.create_server(('', 4000)); c, a = s.accept(); c.sendall(a[0].encode()); c.close(); "
    "s.accept()"
)
ASK = "import socket; print(socket.create_connection(('192.0.2.2', 4000), 10).recv(99).decode())"


def test_beyond_this_machine_a_program_has_its_address() -> None:
    if os.geteuid() != 0 or subprocess.run(["which", "nft"], capture_output=True, check=False).returncode:
        pytest.skip("needs root and nft")
    world = ["unshare", "--net", "sh", "-c", WORLD, "sh", sys.executable, SERVE, COMMAND, ASK]
    done = subprocess.run(world, capture_output=True, text=True, timeout=60, check=False)
    # And the rule that did it is gone.
    assert done.stdout.split() == ["192.0.2.1"], done.stderr
