"""Test beds and emulated links from Python and from the command line; skipped where this machine cannot have them."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import whyloss as wl
from whyloss import _native
from whyloss.testbed import Bridge, InvalidRunError, Testbed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.realtime
PATH = """
[scenario]
seed = 5
[path]
rate = "20 Mbps"
delay = "2 ms"
queue = "20 pkt"
forward.channel = { loss = 0.05, effect = "erase" }
"""
DATAGRAMS = 400
SO_RCVBUFFORCE = 33
COMMAND = str(Path(sys.executable).with_name("whyloss"))


def lossy() -> wl.Scenario:
    """A path that erases."""
    return wl.Scenario.parse(PATH)


@pytest.fixture
def bed() -> Iterator[Testbed]:
    """A test bed of it."""
    with opened(lossy(), max_p99_error_us=1e6) as made:
        yield made


def opened(scenario: wl.Scenario, **how: Any) -> Testbed:
    """A test bed, where this machine can have one."""
    try:
        return Testbed(scenario, **how)
    except _native.UnavailableError as reason:
        pytest.skip(str(reason))


def send(bed: Testbed) -> set[int]:
    """Sends numbered datagrams from server to client, 200 octets of IP each; gives the numbers that arrive."""
    there = bed.inside("client", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    there.bind((bed.address("client"), 4000))
    there.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 22)
    there.settimeout(0.5)
    here = bed.inside("server", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    for number in range(DATAGRAMS):
        here.sendto(number.to_bytes(4, "big") + bytes(168), (bed.address("client"), 4000))
        time.sleep(0.0002)
    found = set()
    try:
        while True:
            found.add(int.from_bytes(there.recv(2000)[:4], "big"))
    except TimeoutError:
        here.close()
        there.close()
    return found


def test_losses_are_those_of_the_seed_and_the_truth_knows_them() -> None:
    outcomes = []
    for seed in (5, 5, 6):
        with opened(lossy().replace({"scenario.seed": seed}), max_p99_error_us=1e6) as bed:
            arrived = send(bed)
        truth = bed.truth().filter(direction="server>client", dst_port=4000).sort("number")
        assert len(truth) == DATAGRAMS
        lost = set(truth.filter(fate="lost")["number"])
        assert arrived == set(range(DATAGRAMS)) - lost
        assert truth.filter(fate="lost")["cause"].unique().to_list() == ["erased"]
        assert truth.filter(fate="lost")["true_cause"].unique().to_list() == ["corruption"]
        assert truth.filter(fate="lost")["link"].unique().to_list() == ["emulator>client"]
        outcomes.append(lost)
    # 20 of 400 expected, standard deviation 4.4.
    assert 3 <= len(outcomes[0]) <= 40
    assert outcomes[0] == outcomes[1] != outcomes[2]


def test_the_simulators_channel_erases_the_same_packets(bed: Testbed) -> None:
    """The same seed and run: the n-th packet of the emulator is lost where the n-th of the simulator is."""
    arrived = send(bed)
    flow = {"cbr": {"rate": "1 Mbps", "packet": "200 B"}, "start": "0 s"}
    document = lossy().to_dict() | {"flow": [flow], "output": {"drops": True}}
    document["scenario"]["duration"] = f"{DATAGRAMS * 200 * 8 // 1000} ms"
    drops = wl.Scenario(document).run().drops.to_polars()
    simulated = set((drops["offset"] // 172).to_list())
    assert set(range(DATAGRAMS)) - arrived == simulated


def test_processes_find_their_host_and_end_with_the_bed(bed: Testbed) -> None:
    assert bed.hosts == ["server", "client"]
    assert bed.check_output("client", ["hostname"]).strip() == "client"
    address = bed.check_output("server", ["getent", "ahostsv4", "client"]).split()[0]
    assert address == bed.address("client")
    assert bed.check_output("server", ["sh", "-c", "echo $WHYLOSS_ADDRESS6_CLIENT"]).strip() == bed.address("client", 6)
    with pytest.raises(subprocess.CalledProcessError):
        bed.check_output("client", ["false"])
    with pytest.raises(FileNotFoundError):
        bed.popen("client", ["/nonexistent"])
    with pytest.raises(KeyError, match="there is no host or router `nobody`; there are server, client"):
        bed.popen("nobody", ["true"])
    child = bed.popen("client", ["sleep", "60"])
    assert bed.namespace_path("client").stat().st_ino != Path("/proc/self/ns/net").stat().st_ino
    bed.close()
    assert child.returncode == -signal.SIGKILL
    with pytest.raises(RuntimeError, match="closed"):
        bed.popen("client", ["true"])


def test_a_run_that_is_not_exact_enough_is_refused(tmp_path: Path) -> None:
    with opened(lossy(), max_p99_error_us=0.1, truth=False, packets=tmp_path / "packets.parquet") as bed:
        send(bed)
        with pytest.raises(InvalidRunError, match="server>client: 1 % of the packets were handed on more than"):
            bed.check()
        with pytest.raises(RuntimeError, match="not kept"):
            bed.truth()
    rows = pl.read_parquet(tmp_path / "packets.parquet")
    assert len(rows) >= DATAGRAMS
    assert (rows.drop_nulls("left_ns").select(pl.col("left_ns") >= pl.col("due_ns"))).to_series().all()
    histogram = bed.audit()[0]["error"]["histogram"]
    assert sum(bar["packets"] for bar in histogram) == bed.audit()[0]["sent"]


def test_links_change_while_they_are_at_work(bed: Testbed) -> None:
    def lost() -> int:
        return DATAGRAMS - len(send(bed))

    # Each changes the one link of two stretches in one direction.
    assert bed.change({"path.forward.channel.loss": 0}) == 1
    assert lost() == 0
    assert bed.change({"path.forward.channel.loss": 1}) == 1
    assert lost() == DATAGRAMS
    assert bed.change({"path.forward.channel.loss": 1}) == 0
    assert bed.change({"path.forward.channel.loss": 0, "path.delay": "150 ms"}) == 2
    start = time.monotonic()
    assert lost() == 0
    assert time.monotonic() - start > 0.15
    with pytest.raises(wl.InputError, match="cannot change while it is at work"):
        bed.change({"path.discipline": "biased"})
    with pytest.raises(wl.InputError, match="allowed"):
        bed.change({"path.rate": 0})
    bed.check()


def test_a_capture_says_what_became_of_each_packet(tmp_path: Path) -> None:
    file = tmp_path / "packets.pcapng"
    with opened(lossy(), max_p99_error_us=1e6, capture=file) as bed:
        arrived = send(bed)
    captures = [path.read_bytes() for path in tmp_path.glob("packets-*.pcapng")]
    assert len(captures) == 2
    # One that is lost is seen where it comes from alone.
    assert sum(octets.count(b": erased") for octets in captures) == DATAGRAMS - len(arrived)
    assert sorted(octets.count(b"delivered at") for octets in captures) == [len(arrived), len(arrived)]
    assert bed.truth().filter(fate="lost").height == DATAGRAMS - len(arrived)


def test_what_is_no_wire_is_refused() -> None:
    chain = wl.Scenario.parse('[chain]\nhops = 2\n[[flow]]\nsize = "1 MB"\n', "chain.toml")
    with pytest.raises(wl.InputError, match=r"chain.toml:1: chain: radio chains exist in the simulator only"):
        Testbed(chain)
    pair = wl.Scenario.parse('[dumbbell]\nbottleneck.rate = "1 Mbps"\n')
    with pytest.raises(wl.InputError, match="there are 3 links"):
        Bridge(pair, ("a", "b"))


def whyloss(*arguments: str, **how: Any) -> subprocess.Popen[str]:
    """The command."""
    return subprocess.Popen(
        [COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def test_the_commands(bed: Testbed, tmp_path: Path) -> None:
    del bed  # Asked for, so that this is skipped where there is none.
    file = tmp_path / "path.toml"
    file.write_text(PATH)
    out = tmp_path / "out"
    options = ["--max-error", "1e6", "--out", str(out), "--json"]
    runs = ["--run", "server=getent ahostsv4 client", "--run", "client=exit 7"]
    process = whyloss("testbed", str(file), *runs, *options)
    output, errors = process.communicate(timeout=20)
    assert process.returncode == 7, errors
    assert json.loads(output)["valid"]
    assert "server: 10.77.0.2" in errors
    assert pl.read_parquet(out / "packets.parquet").is_empty()

    # Two devices in a namespace of their own, and the end by Ctrl-C.
    process = whyloss(
        "emulate", str(file), "--tun", "left", "--tun", "right", *options, stdin=subprocess.PIPE, preexec_fn=away
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("server is behind left, client behind right")
    assert process.stdin is not None
    process.stdin.write("path.rate=1 Mbps\npath.rte=1\n")
    process.stdin.flush()
    assert process.stderr.readline() == "changed: path.rate=1 Mbps\n"
    assert "unknown field (did you mean `rate`?)" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    report = json.loads(output)
    assert [direction["name"] for direction in report["directions"]] == ["server>client", "client>server"]
    assert json.loads((out / "audit.json").read_text()) == report
    assert [hop["rate_bps"] for hop in report["directions"][0]["hops"]] == [100_000_000, 1_000_000]


def away() -> None:
    """Moves this process into a network namespace of its own (``os.unshare`` came with Python 3.12)."""
    import ctypes

    new_network = 0x40000000
    if ctypes.CDLL(None, use_errno=True).unshare(new_network):
        raise OSError(ctypes.get_errno(), "unshare")
