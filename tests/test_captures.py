"""``whyloss explain``: what it says of captures, and what it writes."""

from __future__ import annotations

import base64
import dataclasses
import fcntl
import gzip
import html
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
import zlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from conftest import ROOT, WHYLOSS, Ended
from whyloss import captures
from whyloss.captures import live, words
from whyloss.captures.page import packed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Call = Callable[..., Ended]

SYN, FIN, RST, PUSH, ACK = 2, 1, 4, 8, 16
CLIENT, SERVER = (bytes([10, 0, 0, 1]), 4000), (bytes([10, 0, 0, 2]), 80)
LOSSY = """
    [scenario]
    seed = 3
    [path]
    rate = "2 Mbps"
    delay = "20 ms"
    queue = "40 pkt"
    forward.channel.loss = "3 %"
    [path.access]
    rate = "100 Mbps"
    [[flow]]
    size = "400 kB"
    scheme = "newreno"
    [output]
    capture = [{ at = "server", snaplen = 96 }]
"""


def packet(
    source: tuple[bytes, int], target: tuple[bytes, int], flags: int, seq: int = 0, ack: int = 0, data: int = 0
) -> bytes:
    """An IPv4 packet with a TCP segment; its checksums are not computed."""
    tcp = struct.pack("!HHIIBBHHH", source[1], target[1], seq, ack, 5 << 4, flags, 65535, 0, 0) + bytes(data)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0, source[0], target[0])
    return ip + tcp


def pcap(path: Path, packets: Sequence[tuple[float, bytes]]) -> Path:
    """A capture of raw IP packets, cut to 40 octets as with a short snap length."""
    octets = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    for at, whole in packets:
        octets += struct.pack("<IIII", 1_000_000 + int(at), round(at % 1 * 1e6), min(len(whole), 40), len(whole))
        octets += whole[:40]
    path.write_bytes(octets)
    return path


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture that the simulator wrote, at the sender of a lossy path."""
    folder = tmp_path_factory.mktemp("lossy")
    (folder / "lossy.toml").write_text(LOSSY)
    subprocess.run([WHYLOSS, "run", folder / "lossy.toml", "--out", folder / "out"], check=True, capture_output=True)
    (found,) = (folder / "out").glob("*.pcapng")
    return found


def first_line(done: Ended) -> str:
    return done.out.splitlines()[0]


def test_the_first_sentence_answers_why(whyloss: Call, lossy: Path) -> None:
    done = whyloss("explain", lossy)
    assert done.status == 0, done.err
    explained = captures.explain(lossy)
    losses = explained.losses.to_polars()
    assert len(losses) > 5
    found = re.search(r"(\d+) of (\d+) lost packets|all (\d+) lost packets", first_line(done))
    assert found, done.out
    gone = losses.filter(~pl.col("cause").is_in(["reordering", "spurious-timeout", "ack-loss", "capture"]))
    assert int(found[2] or found[3]) == len(gone)
    assert first_line(done) == explained.summary.sentence
    assert "taken at the sender" in done.out
    assert "Connection" in done.out


def test_machines_get_the_same(whyloss: Call, lossy: Path, tmp_path: Path) -> None:
    done = whyloss("explain", lossy, "--json", "--out", tmp_path / "out")
    assert done.status == 0, done.err
    told = done.json
    explained = captures.explain(lossy)
    assert told["summary"]["sentence"] == explained.summary.sentence
    assert sum(row["packets"] for row in told["summary"]["causes"]) == len(told["losses"]) == len(explained.losses)
    for name in explained.names:
        assert pl.read_parquet(tmp_path / "out" / f"{name}.parquet").equals(explained[name].to_polars()), name


def test_chosen_connections_are_kept_segment_by_segment(whyloss: Call, lossy: Path, tmp_path: Path) -> None:
    whyloss("explain", lossy, "--out", tmp_path / "out")
    segments = pl.read_parquet(tmp_path / "out" / "segments.parquet")
    samples = pl.read_parquet(tmp_path / "out" / "samples.parquet")
    explained = captures.explain(lossy)
    (flow,) = explained.connections.to_polars().filter(pl.col("octets") > 0).to_dicts()
    own = segments.filter((pl.col("side") == flow["side"]) & (pl.col("octets") > 0))
    assert len(own) == flow["segments"]
    assert own["octets"].sum() == flow["octets"]
    again = own.filter(pl.col("kind") == "retransmission")
    assert again["packet"].to_list() == sorted(explained.retransmissions.to_polars()["packet"].to_list())
    # The SYN takes an octet of the stream.
    assert segments.filter(pl.col("side") != flow["side"])["ack_octets"].max() == flow["acknowledged_octets"] + 1
    assert samples["rtt_s"].min() == pytest.approx(flow["rtt_min_s"], rel=0.1)
    assert len(samples) > 50


def test_one_connection_loss_by_loss(whyloss: Call, lossy: Path) -> None:
    done = whyloss("explain", lossy, "--connection", "0")
    losses = captures.explain(lossy).losses.to_polars()
    assert done.status == 0, done.err
    for repair in losses["repair"].head(40):
        assert re.search(rf"\b{repair}\b", done.out), repair
    assert "Sent again" in done.out
    missing = whyloss("explain", lossy, "--connection", "7")
    assert missing.status == 2
    assert "found 7; allowed are 0 to 0" in missing.err


@pytest.mark.parametrize(
    ("packets", "sentence"),
    [
        ([], r"The capture holds no packets\."),
        ([(0.0, bytes([0x45, 0, 0, 28] + [0] * 5 + [17] + [0] * 18))], r"no TCP in it: 1 packet "),
        (
            [(0.0, packet(CLIENT, SERVER, SYN, 5)), (1.0, packet(CLIENT, SERVER, SYN, 5))],
            r"No data passed in 1 connection: 1 repetition of SYNs",
        ),
        (
            [(0.0, packet(CLIENT, SERVER, SYN, 5)), (0.1, packet(SERVER, CLIENT, RST | ACK, 0, 6))],
            r"No data passed in 1 connection: handshakes",
        ),
        (
            [(n / 100, packet(CLIENT, SERVER, ACK, 1000 * n, 1, 1000)) for n in range(50)],
            r"10\.0\.0\.1:4000 → 10\.0\.0\.2:80: nothing was lost; ",
        ),
        (
            [(n / 100, packet(SERVER, CLIENT, ACK, 1, 1000 * n)) for n in range(50)],
            r"No data passed in 1 connection: ",
        ),
    ],
    ids=["empty", "udp", "unanswered", "refused", "data-only", "acknowledgements-only"],
)
def test_every_capture_gets_a_sentence(
    whyloss: Call, tmp_path: Path, packets: list[tuple[float, bytes]], sentence: str
) -> None:
    done = whyloss("explain", pcap(tmp_path / "some.pcap", packets), "--out", tmp_path / "out")
    assert done.status == 0, done.err
    assert re.search(sentence, first_line(done)), done.out


def test_many_connections_are_summed_up(whyloss: Call, tmp_path: Path) -> None:
    packets = []
    for n in range(2000):
        client = (bytes([10, 1, n >> 8, n & 255]), 1000)
        packets += [
            (n / 1000, packet(client, SERVER, ACK | PUSH, 1, 1, 100)),
            (n / 1000 + 1e-4, packet(SERVER, client, ACK, 1, 101)),
        ]
    done = whyloss("explain", pcap(tmp_path / "many.pcap", packets))
    assert done.status == 0, done.err
    assert "2000 connections, none lost a packet" in first_line(done)
    assert len(done.out.splitlines()) < 30


def test_all_of_it_is_a_hundred_per_cent() -> None:
    shares = [words.share(part, whole) for part, whole in ((202, 202), (201, 202), (3, 400), (0, 0))]
    assert shares == ["100 %", "100 %", "0.75 %", "0 %"]


def test_what_is_no_capture_is_refused(whyloss: Call, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<html>")
    done = whyloss("explain", "page.html")
    assert done.status == 2
    assert "page.html: begins with 3c 68" in done.err.lower() or "page.html: begins with" in done.err
    assert whyloss("explain", "nowhere.pcap").status in (1, 2)


def test_a_link_type_that_is_not_known_is_named(whyloss: Call, tmp_path: Path) -> None:
    path = pcap(tmp_path / "other.pcap", [(0.0, packet(CLIENT, SERVER, SYN))])
    octets = bytearray(path.read_bytes())
    octets[20:24] = struct.pack("<I", 147)
    path.write_bytes(octets)
    done = whyloss("explain", path)
    assert first_line(done) == "No TCP can be read in it: packets of link type 147 are not known here."
    assert "link type 147 is not known here; packets of it are not read" in " ".join(done.err.split())


def test_an_empty_standard_input_is_called_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [WHYLOSS, "explain", "-"], stdin=subprocess.DEVNULL, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "standard input: the file is empty" in done.stderr


def test_a_pipe_is_explained_as_a_file_is(lossy: Path, whyloss: Call) -> None:
    with lossy.open("rb") as octets:
        done = subprocess.run(
            [WHYLOSS, "explain", "-"], stdin=octets, capture_output=True, text=True, check=True, timeout=60
        )
    assert done.stdout.splitlines()[0] == first_line(whyloss("explain", lossy))


def test_interrupted_it_explains_what_was_read(lossy: Path) -> None:
    octets = lossy.read_bytes()
    with subprocess.Popen(
        [WHYLOSS, "explain", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=False
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(octets[: len(octets) // 2])
        running.stdin.flush()
        while any(fcntl.ioctl(running.stdin, termios.FIONREAD, bytes(4))):
            time.sleep(0.2)
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        try:
            # The pipe stays open: the signal alone ends it.
            running.wait(30)
            out = running.stdout.read()
        finally:
            running.kill()
        assert running.returncode == 130
    assert "10." in out.decode().splitlines()[0]
    assert "What was lost, or taken for lost" in out.decode()


def test_comments_say_the_verdicts_and_packets_stay_as_they_are(whyloss: Call, lossy: Path, tmp_path: Path) -> None:
    done = whyloss("explain", lossy, "--annotate", tmp_path / "why.pcapng")
    assert done.status == 0, done.err
    before, after = captures.explain(lossy), captures.explain(tmp_path / "why.pcapng")
    for name in before.names:
        assert before[name].to_polars().equals(after[name].to_polars()), name
    octets = (tmp_path / "why.pcapng").read_bytes()
    assert octets.count(b"whyloss: sent again (") == len(before.retransmissions)
    assert before.summary.sentence.encode() in octets
    again = whyloss("explain", tmp_path / "why.pcapng", "--annotate", tmp_path / "why.pcapng")
    assert again.status == 2
    assert "is one of the files that are read" in again.err


@pytest.mark.parametrize("form", ["pcap", "pcapng", "pcap.gz"])
def test_wireshark_shows_them(whyloss: Call, lossy: Path, tmp_path: Path, form: str) -> None:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    source = tmp_path / f"some.{form}"
    if form == "pcapng":
        shutil.copy(lossy, source)
    else:
        editcap = shutil.which("editcap")
        if editcap is None:
            pytest.skip("editcap is not installed")
        subprocess.run([editcap, "-F", "nsecpcap", lossy, tmp_path / "some.pcap"], check=True)
        if form == "pcap.gz":
            source.write_bytes(gzip.compress((tmp_path / "some.pcap").read_bytes()))
    place = tmp_path / "config" / "profiles" / "whyloss"
    done = whyloss("explain", source, "--annotate", "why.pcapng", "--wireshark-profile", place)
    assert done.status == 0, done.err

    def ask(file: Path, *arguments: str) -> list[str]:
        environment = {**os.environ, "WIRESHARK_CONFIG_DIR": str(tmp_path / "config")}
        told = subprocess.run(
            [tshark, "-r", file, *arguments], capture_output=True, text=True, check=True, env=environment, timeout=60
        )
        return told.stdout.splitlines()

    same = ("-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "frame.protocols", "-e", "tcp.seq_raw")
    assert ask(source, *same) == ask(tmp_path / "why.pcapng", *same)
    explained = captures.explain(source)
    losses = explained.losses.to_polars()
    lost = ask(
        tmp_path / "why.pcapng", "-Y", 'frame.comment contains "whyloss: lost to"', "-T", "fields", "-e", "frame.number"
    )
    gone = losses.filter(~pl.col("cause").is_in(["reordering", "spurious-timeout", "ack-loss", "capture"]))
    assert {int(number) for number in lost} == set(gone["packet"].drop_nulls())
    # The profile's last column is the comment, its colours are those of the causes.
    repair = losses["repair"].drop_nulls()[0]
    (line,) = ask(tmp_path / "why.pcapng", "-C", "whyloss", "-Y", f"frame.number == {repair}")
    assert "whyloss: sent again (" in line
    # Its colours are those of the causes, of packets that were seen when they were sent first.
    rules = {}
    for line in ask(
        tmp_path / "why.pcapng",
        "-C",
        "whyloss",
        "--color",
        "-T",
        "fields",
        "-e",
        "frame.number",
        "-e",
        "frame.coloring_rule.name",
    ):
        number, _, rule = line.partition("\t")
        rules[int(number)] = rule
    repairs = set(losses["repair"].drop_nulls())
    for packet, cause in losses.select("packet", "cause").drop_nulls().iter_rows():
        if packet not in repairs:
            assert rules[packet] == f"whyloss {cause}", packet


def test_no_output_takes_the_place_of_a_capture_or_a_device(whyloss: Call, lossy: Path, tmp_path: Path) -> None:
    capture, other = tmp_path / "capture.pcapng", tmp_path / "other"
    capture.write_bytes(lossy.read_bytes())
    other.symlink_to(capture)
    for command, option in (("explain", "--html"), ("explain", "--annotate"), ("fit", "--out")):
        done = whyloss(command, capture, option, other)
        assert done.status == 2
        assert f"{option}: {other} is one of the files that are read; name another file" in " ".join(done.err.split())
    assert capture.read_bytes() == lossy.read_bytes()
    pipe = tmp_path / "page.html"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        done = whyloss("explain", capture, "--html", pipe)
        assert done.status == 0, done.err
        page, _ = reader.communicate(timeout=10)
    assert page.startswith("<!doctype html>")
    assert pipe.is_fifo()


def test_comments_that_were_there_stay(whyloss: Call, lossy: Path, tmp_path: Path) -> None:
    whyloss("explain", lossy, "--annotate", tmp_path / "once.pcapng")
    whyloss("explain", tmp_path / "once.pcapng", "--annotate", tmp_path / "twice.pcapng")
    once, twice = (tmp_path / name for name in ("once.pcapng", "twice.pcapng"))
    count = once.read_bytes().count(b"whyloss: sent again (")
    assert twice.read_bytes().count(b"whyloss: sent again (") == 2 * count


def test_a_page_needs_nothing_else(whyloss: Call, lossy: Path, tmp_path: Path) -> None:
    done = whyloss("explain", lossy, "--html", "why.html", "--out", "out")
    assert done.status == 0, done.err
    page = (tmp_path / "why.html").read_text()
    assert page == (tmp_path / "out" / "report.html").read_text()
    explained = captures.explain(lossy)
    assert html.escape(explained.summary.sentence, quote=False) in page
    assert not re.search(r"""(src|href)\s*=\s*["'](https?:)?//""", page)
    (flow,) = json.loads(re.search(r'id="flows">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    losses = explained.losses.to_polars()
    assert [loss["repair"] for loss in flow["losses"]] == losses.sort("time_s")["repair"].to_list()
    segments = explained.details().segments.to_polars().filter((pl.col("side") == "client") & (pl.col("octets") > 0))
    packed = re.search(r'id="octets-0">([^<]*)<', page)[1]  # type: ignore[index]
    columns = unpacked(zlib.decompress(base64.b64decode(packed)), flow["columns"])
    assert columns["sent_t"] == segments["time_s"].to_list()
    assert columns["sent_start"] == segments["offset_octets"].to_list()
    assert columns["sent_packet"] == segments["packet"].to_list()


UNPACK = """
const { unpack } = require(process.argv[1]), list = JSON.parse(process.argv[2]);
const octets = Uint8Array.from(Buffer.from(require("fs").readFileSync(0, "latin1"), "hex"));
const columns = unpack(octets.buffer, list);
console.log(JSON.stringify(Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, [...values]]))));
"""


def unpacked(octets: bytes, listed: list[list[Any]]) -> dict[str, list[float]]:
    """Columns as the page's own script unpacks them."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = files("whyloss.captures").joinpath("levels.js")
    done = subprocess.run(
        [node, "-e", UNPACK, str(script), json.dumps(listed)],
        input=octets.hex(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    columns: dict[str, list[float]] = json.loads(done.stdout)
    return columns


def test_columns_are_packed_without_loss() -> None:
    large = np.array([0, 2**51, 5, 2**51 - 1, 2**40], dtype=np.int64)
    given = {"large": large, "none": np.array([], np.int64), "time": np.array([1.5, 0.000000001, 86400.123456789])}
    text, listed = packed(given)
    found = unpacked(zlib.decompress(base64.b64decode(text)), json.loads(json.dumps(listed)))
    assert found == {name: values.tolist() for name, values in given.items()}


SERIES = """
const { Series } = require(process.argv[1]), many = 4099;
let seed = 7;
const draw = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
const times = Float64Array.from({ length: many }, draw).sort(), lows = times.map(draw);
const highs = lows.map((low) => low + draw());
const series = new Series(times, lows, highs);
let wrong = 0, reads = 0, most = 0;
const counted = (values) => new Proxy(values, { get: (all, at) => { reads++; return all[at]; } });
const told = new Series(times, lows, highs);
told.levels = told.levels.map(([low, high]) => [counted(low), counted(high)]);
for (let turn = 0; turn < 400; turn++) {
  const [from, to] = [draw(), draw()].map((share) => Math.floor(share * (many + 1))).sort((one, other) => one - other);
  const [low, high] = series.extent(from, to);
  if (low !== Math.min(...lows.slice(from, to)) || high !== Math.max(...highs.slice(from, to))) wrong++;
  reads = 0;
  told.extent(from, to);
  most = Math.max(most, reads);
}
const seen = [];
series.columns(0.25, 1000, 500, (x, from, to) => { for (let at = from; at < to; at++) seen.push([x, at]); });
const right = [...times.keys()].filter((at) => times[at] >= 0.25 && times[at] < 0.75);
const placed = seen.every(([x, at]) => x === Math.floor((times[at] - 0.25) * 1000));
const kept = JSON.stringify(right) === JSON.stringify(seen.map((one) => one[1]));
console.log(JSON.stringify({ wrong, most, kept, placed }));
"""


def test_the_extent_of_any_stretch_is_exact_and_few_values_are_read() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = files("whyloss.captures").joinpath("levels.js")
    done = subprocess.run([node, "-e", SERIES, str(script)], capture_output=True, text=True, check=True, timeout=60)
    told = json.loads(done.stdout)
    assert told["wrong"] == 0
    assert told["kept"]
    assert told["placed"]
    # Seven levels; of each, up to three blocks at either end, compared and taken, low and high.
    assert told["most"] <= 7 * 6 * 4


DIAGRAM = """
const { Diagram } = require(process.argv[1]);
const many = 1_000_000, f8 = (make) => Float64Array.from({ length: many }, (_, at) => make(at));
const sent_t = f8((at) => at / 1e5), sent_start = f8((at) => at * 1000), sent_end = f8((at) => at * 1000 + 1000);
const arrays = {
  sent_t, sent_start, sent_end, sent_packet: new Uint32Array(many), ack_t: sent_t, ack: sent_start, ack_edge: sent_end,
  ack_packet: new Uint32Array(many), sack_t: new Float64Array(0), sack_start: new Float64Array(0),
  sack_end: new Float64Array(0), rtt_t: sent_t, rtt: new Float32Array(many).fill(0.05),
  flight: new Float32Array(many).fill(1e5), window: new Float32Array(many).fill(2e5),
};
const losses = [{ time: 5, offset: 5e8, octets: 1000, packet: 7, repair: 9, repaired: 5.05, cause: "corruption" }];
const calls = {};
const c = new Proxy({}, {
  get: (_, name) => (...given) => { calls[name] = (calls[name] || 0) + 1; return given; }, set: () => true,
});
const look = { ink: "", soft: "", grid: "", paper: "", font: "" };
const flow = { start: 0, end: 10, losses, rtt_min: 0.04, place: "sender", sender: "a", receiver: "b" };
const diagram = new Diagram(flow, arrays, look);
const drawn = [];
for (let frame = 0; frame < 24; frame++) {
  Object.keys(calls).forEach((name) => delete calls[name]);
  diagram.draw(c, 1200, 600);
  drawn.push((calls.fillRect || 0) + (calls.lineTo || 0) + (calls.arc || 0));
  diagram.zoom(0.7, 5);
}
const [start, end] = diagram.view, hit = diagram.hit(...diagram.hits[0].slice(0, 2));
diagram.zoom(1e-4, 5);
diagram.draw(c, 1200, 600);
const ladder = diagram.ladder(0);
console.log(JSON.stringify({ drawn, start, end, hit, ladder: ladder.length }));
"""


def test_a_million_segments_are_few_marks_for_each_column_of_pixels() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = files("whyloss.captures").joinpath("page.js")
    done = subprocess.run([node, "-e", DIAGRAM, str(script)], capture_output=True, text=True, check=True, timeout=120)
    told = json.loads(done.stdout)
    # Four curves and three kinds of bars, each with up to two shapes for a column; and something, whatever is in sight.
    assert max(told["drawn"]) < 7 * 2 * 1200
    assert min(told["drawn"]) > 20
    assert told["start"] < 5 < told["end"]
    assert told["end"] - told["start"] == pytest.approx(10 * 0.7**24)
    assert told["hit"] == 0
    assert 2 <= told["ladder"] <= 60


def test_a_pipe_is_shown_while_it_comes(lossy: Path) -> None:
    octets = lossy.read_bytes()
    into, out = os.pipe()
    child, terminal = pty.fork()
    if child == 0:
        os.dup2(into, 0)
        os.close(out)
        os.execve(WHYLOSS, [str(WHYLOSS), "explain", "-"], {**os.environ, "TERM": "xterm", "COLUMNS": "160"})
    os.close(into)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    seen = b""

    def watch(what: bytes, seconds: float = 60) -> bool:
        nonlocal seen
        end = time.monotonic() + seconds
        while what not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    seen += os.read(terminal, 65536)
                except OSError:
                    break
        return what in seen

    try:
        os.write(out, octets[: len(octets) // 2])
        assert watch(b"packets so far"), seen
        assert watch(b"lost packets"), seen
        seen = b""
        os.write(terminal, b"q")
        assert watch(b"1049l"), seen  # The view gives the screen back.
        assert watch(b"What was lost"), seen
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
    finally:
        os.close(out)
        os.close(terminal)


TOUR = ROOT / "examples" / "captures"
ILLNESSES = {
    "congested": "dropped by a full queue",
    "lossy-radio": "damaged, not dropped",
    "policer": "dropped by a policer",
    "bufferbloat": "that were sent again had arrived (2 timeouts came too early)",
    "receiver-limited": "the receiver's window limits it",
}


@pytest.mark.parametrize("name", ILLNESSES)
def test_the_tour_shows_what_is_said(name: str) -> None:
    (capture,) = TOUR.glob(f"{name}.pcap*.zst")
    assert capture.stat().st_size < 150_000
    environment = {**os.environ, "COLUMNS": "160"}
    done = subprocess.run(
        [WHYLOSS, "explain", capture.name], cwd=TOUR, env=environment, capture_output=True, text=True, check=True
    )
    golden = TOUR / f"{name}.txt"
    tour = ROOT / "docs" / "explain-tour.md"
    if "UPDATE" in os.environ:
        before, now = (text.splitlines()[0] for text in (golden.read_text(encoding="utf-8"), done.stdout))
        tour.write_text(tour.read_text(encoding="utf-8").replace(before, now), encoding="utf-8")
        golden.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == golden.read_text(encoding="utf-8")
    sentence = done.stdout.splitlines()[0]
    assert ILLNESSES[name] in sentence
    page = tour.read_text(encoding="utf-8")
    assert sentence in page
    assert f"figures/explain/{name}.webp" in page
    assert 15_000 < (ROOT / "docs" / "figures" / "explain" / f"{name}.webp").stat().st_size < 150_000


def test_the_documented_options_are_those_of_the_command(whyloss: Call) -> None:
    page = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
    known = whyloss("explain", "--help").out
    for option in set(re.findall(r"`(--[a-z-]+)", page)):
        assert f"{option} " in known, option


CLICK = """<script>const wait = setInterval(() => {
  const link = document.querySelector("[data-loss]"), aside = document.querySelector("aside");
  if (aside.hidden) link.click(); else { clearInterval(wait); document.title = "told"; }
}, 50);</script></body>"""


def test_a_click_on_a_loss_tells_its_evidence(lossy: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("chromium is not installed")
    explained = captures.explain(lossy)
    page = explained.page(tmp_path / "why.html")
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", CLICK), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'browser'}"]
    for budget in (60_000, 240_000, 960_000):
        told = subprocess.run(
            [browser, *options, f"--virtual-time-budget={budget}", "--dump-dom", page.as_uri()],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        # Unpacking runs outside of the browser's virtual time, which may be over first.
        if "<title>told</title>" in told:
            break
    (aside,) = re.findall(r"<aside>(.*?)</aside>", told, re.DOTALL)
    loss = explained.losses.to_polars().sort("time_s").to_dicts()[0]
    assert f"sent again as packet {loss['repair']} " in aside
    assert html.escape(loss["evidence"].split("; ")[0], quote=False) in aside
    assert 'class="ladder"' in aside


def test_there_is_a_diagram_without_javascript(lossy: Path, tmp_path: Path) -> None:
    explained = captures.explain(lossy)
    page = explained.page(tmp_path / "why.html").read_text(encoding="utf-8")
    (drawn,) = re.findall(r'<div class="stands">(<svg .*?</svg>)</div>', page)
    root = ElementTree.fromstring(drawn)
    assert len(root.findall("circle")) == len(explained.losses)
    drawings = [path.attrib["d"] for path in root.findall("path") if path.get("stroke") != "var(--grid)"]
    data, line, trips, flight = drawings
    # A bar for each column of pixels that has data, whatever the number of segments.
    assert 50 < data.count("M") <= 1000
    assert 50 < line.count("L") <= 1000
    assert 50 < trips.count("M") <= 1000
    assert 50 < flight.count("L") <= 1000
    assert len(drawn) < 100_000


def test_what_is_readable_of_a_cut_capture_is_annotated_and_drawn(whyloss: Call, lossy: Path, tmp_path: Path) -> None:
    octets = lossy.read_bytes()
    (tmp_path / "cut.pcapng").write_bytes(octets[: len(octets) * 2 // 3])
    done = whyloss("explain", "cut.pcapng", "--annotate", "why.pcapng", "--html", "why.html")
    assert done.status == 0, done.err
    assert "cut in the middle of the next record" in done.err
    before, after = captures.explain(tmp_path / "cut.pcapng"), captures.explain(tmp_path / "why.pcapng")
    assert before.losses.to_polars().equals(after.losses.to_polars())
    assert (before.facts["packets"], after.facts["remarks"]) == (after.facts["packets"], [])


def test_a_big_endian_capture_in_microseconds_keeps_its_times(whyloss: Call, tmp_path: Path) -> None:
    data = [(n / 100, packet(CLIENT, SERVER, ACK, 1000 * n, 1, 1000)) for n in range(3)]
    octets = struct.pack(">IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    for at, whole in data:
        octets += struct.pack(">IIII", 1_000_000, round(at * 1e6), 40, len(whole)) + whole[:40]
    (tmp_path / "big.pcap").write_bytes(octets)
    assert whyloss("explain", "big.pcap", "--annotate", "why.pcapng").status == 0
    before, after = captures.explain(tmp_path / "big.pcap"), captures.explain(tmp_path / "why.pcapng")
    assert before.facts["began_ns"] == after.facts["began_ns"] == 1_000_000 * 10**9
    assert before.facts["cut"] == after.facts["cut"] == 3
    assert before.connections.to_polars().equals(after.connections.to_polars())


@pytest.mark.parametrize("width", [76, 80])
@pytest.mark.parametrize("end", ["10.177.100.{}:36834", "[fd77:7768:796c:1000:2000:3000:4000:{}]:36834"])
def test_the_live_view_cuts_no_address_and_no_number(width: int, end: str) -> None:
    ends = {name: pl.lit(end.format(number)) for number, name in enumerate(("sender", "receiver"), 101)}
    counts = {name: pl.lit(12345) for name in ("lost", "retransmissions", "timeouts")}
    told = captures.explain(ROOT / "examples" / "captures" / "lossy-radio.pcapng.zst").summary
    summary = dataclasses.replace(told, worst=told.worst.with_columns(**ends, **counts))
    Console(file=(shown := io.StringIO()), width=width).print(live._worst(summary))
    text = shown.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert text.count("12345") == 3
    column = re.sub(r"\s", "", "".join(line[: line.find("  ")] for line in text.splitlines()[1:]))
    for number in (101, 102):
        assert end.format(number) in column
