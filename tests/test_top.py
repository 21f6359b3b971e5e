"""``whyloss top``: rates, shares, selection, the view, Prometheus, and the running kernel where it allows."""

from __future__ import annotations

import asyncio
import json
import socket
import urllib.request
from ipaddress import ip_network
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from whyloss import _native
from whyloss.cli.app import main
from whyloss.top import Machine, Selection, Tally
from whyloss.top.columns import COLUMNS, cell, fitting, rate
from whyloss.top.metrics import OTHER, Metrics, serve
from whyloss.top.order import SORT_KEYS, ordered
from whyloss.top.select import cgroup_path
from whyloss.top.view import SORTED, Table, View

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ended

pytestmark = pytest.mark.realtime

SCHEMA = json.loads((Path(__file__).parent.parent / "docs/top.schema.json").read_text())
CAUSES = ("unknown", "congestion", "corruption", "spurious")


def connection(cookie: int, **fields: Any) -> _native.Connection:
    """A connection that has done nothing, but for ``fields``."""
    seen: dict[str, Any] = {
        "cookie": cookie,
        "local": "10.0.0.1",
        "local_port": 40000 + cookie,
        "remote": "192.0.2.7",
        "remote_port": 443,
        "netns": 4026531840,
        "pid": 77,
        "process": "curl",
        "cgroup": "/user.slice/a",
        "control": "cubic",
        "state": "established",
        "recovery": "open",
        "closed": False,
        "since_s": 1.5,
        "whole": False,
        **dict.fromkeys(("bytes_acked", "bytes_received", "bytes_retransmitted", "segments_out", "segments_in"), 0),
        **dict.fromkeys(("retransmissions", "losses", "probed", "timeouts", "marked", "damaged_in", "in_flight"), 0),
        "srtt_us": 20000,
        "min_rtt_us": 10000,
        "cwnd": 10,
        "ssthresh": None,
        "mss": 1448,
        "pacing_bps": None,
        "pending": None,
        "pending_losses": 0,
        "causes": {cause: {"episodes": 0, "losses": 0, "agreement": None, "score": None} for cause in CAUSES},
        "differentiators": {
            name: {"unknown": 0, "congestion": 0, "corruption": 0, "score": None}
            for name in ("lda-eq", "spike", "jtcp", "ncpld", "veno")
        },
        "decided": None,
    }
    assert not set(fields) - set(seen)
    return {**seen, **fields}  # type: ignore[typeddict-item]


def judged(cause: str, episodes: int, losses: int, agreement: float) -> dict[str, Any]:
    causes: dict[str, Any] = {one: dict(connection(0)["causes"][one]) for one in CAUSES}
    causes[cause] = {"episodes": episodes, "losses": losses, "agreement": agreement, "score": 0.5}
    return causes


def snapshot(*connections: _native.Connection, closed: tuple[_native.Connection, ...] = ()) -> _native.Snapshot:
    return {"connections": list(connections), "closed": list(closed), "unreported": 0, "damaged_in": 0}


def machine(*connections: _native.Connection, closed: tuple[_native.Connection, ...] = ()) -> Machine:
    return Tally(Selection()).take(snapshot(*connections, closed=closed), 100.0)


def test_rates_are_what_changed_by_the_time_between() -> None:
    tally = Tally(Selection())
    first = tally.take(snapshot(connection(1, bytes_acked=10_000_000)), 100.0)
    assert first.lines[0].out_bps == 0, "what was before is no rate"
    later = connection(1, bytes_acked=10_500_000, bytes_received=250, retransmissions=3)
    new = connection(2, bytes_acked=1000, closed=True, whole=True)
    late = connection(3, bytes_acked=10_000_000)
    second = tally.take(snapshot(later, late, closed=(new,)), 102.0)
    line, ended = second.lines[0], second.closed[0]
    assert (line.out_bps, line.in_bps, line.retransmits_per_s) == (2_000_000, 1000, 1.5)
    assert second.lines[1].out_bps == 0, "what was before it was found is no rate"
    assert ended.out_bps == 4000, "one that came and went in between has sent all of it in between"


def test_shares_count_losses_and_those_of_the_episode_under_way() -> None:
    causes = judged("congestion", 2, 30, 0.8)
    causes["corruption"] = {"episodes": 6, "losses": 6, "agreement": 0.6, "score": 0.7}
    seen = connection(1, causes=causes, pending="corruption", pending_losses=4)
    line = machine(seen).lines[0]
    assert line.share("congestion") == 30 / 40
    assert line.share("corruption") == 10 / 40
    assert line.agreement() == pytest.approx((2 * 0.8 + 6 * 0.6) / 8)
    assert machine(connection(1)).lines[0].share("corruption") is None


def test_where_a_control_of_ours_judges_its_verdicts_count() -> None:
    decided = {"losses": 9, "kept": 7, "cut_later": 1, "timeouts": 3, "timeouts_kept": 2, "undone": 1}
    seen = connection(1, decided={**decided, "heard": 12, "refused": 2}, causes=judged("congestion", 5, 50, 0.8))
    line = machine(seen).lines[0]
    # 7 - 1 recoveries and 2 timeouts were kept, 1 reduction taken back, the other 3 of 12 stood.
    assert [line.share(cause) for cause in ("corruption", "spurious", "congestion")] == [8 / 12, 1 / 12, 3 / 12]
    text = {column.key: column.text(line) for column in COLUMNS}
    assert (text["corruption"], text["agreement"], text["reports"]) == ("67", "own", "10/12")
    written = line.as_json(1.0)
    assert written["judge"] == "control"
    assert written["causes"]["congestion"]["losses"] == 50, "what the listeners heard is told all the same"


@pytest.mark.parametrize(
    ("selection", "admitted"),
    [
        (Selection(), True),
        (Selection(ports=frozenset({443, 80})), True),
        (Selection(ports=frozenset({40001})), True),
        (Selection(ports=frozenset({80})), False),
        (Selection(prefixes=(ip_network("192.0.2.0/24"),)), True),
        (Selection(prefixes=(ip_network("10.0.0.0/8"),)), True),
        (Selection(prefixes=(ip_network("2001:db8::/32"),)), False),
        (Selection(cgroup="/user.slice"), True),
        (Selection(cgroup="/"), True),
        (Selection(cgroup="/user"), False),
        (Selection(controls=frozenset({"cubic"})), True),
        (Selection(controls=frozenset({"bbr"})), False),
    ],
)
def test_selection(selection: Selection, *, admitted: bool) -> None:
    assert selection.admits(connection(1)) is admitted


def test_groups_are_named_by_folder_or_by_path(tmp_path: Path) -> None:
    (tmp_path / "a.slice/b").mkdir(parents=True)
    mounts = f"tmpfs / tmpfs rw 0 0\ncgroup2 {tmp_path} cgroup2 rw 0 0\n"
    assert cgroup_path(str(tmp_path / "a.slice/b"), mounts) == "/a.slice/b"
    assert cgroup_path("/a.slice", mounts) == "/a.slice"
    assert cgroup_path("/", mounts) == "/"
    for wrong in ("/none", "/../.."):
        with pytest.raises(ValueError, match="allowed"):
            cgroup_path(wrong, mounts)
    with pytest.raises(ValueError, match="mounted"):
        cgroup_path("/", "")


def test_every_key_sorts_numbers_from_the_largest_and_names_from_the_first() -> None:
    small = connection(1, process="a", control="bbr", srtt_us=1, losses=1, causes=judged("corruption", 1, 1, 1.0))
    large = connection(2, process="b", control="cubic", srtt_us=2, losses=9, causes=judged("congestion", 9, 9, 1.0))
    lines = machine(small, large).lines
    for key in SORT_KEYS:
        assert len(ordered(lines, key)) == 2
    first = {key: ordered(lines, key)[0]["cookie"] for key in SORT_KEYS}
    assert (first["process"], first["control"], first["srtt"], first["losses"]) == (1, 1, 2, 2)
    assert (first["corruption"], first["congestion"]) == (1, 2)
    assert ordered(lines, "losses", reverse=True)[0]["cookie"] == 1


def test_columns_fit_any_terminal() -> None:
    line = machine(connection(1, local="2001:db8:1111:2222:3333:4444:5555:6666")).lines[0]
    for width, key in product((1, 10, 20, 27, 28, 29, 80, 120, 200), ("remote", *SORT_KEYS)):
        columns = fitting(width, key)
        text = " ".join(cell(column, column.text(line)) for column in columns)
        assert len(text) <= max(width, *(column.width for column in columns)), "one column stays, however narrow it is"
        assert "40001" in text or width < 200, "the port is to be seen"
    assert {"remote", "out", "in", "losses", "congestion", "corruption"} <= {column.key for column in fitting(80)}
    assert [column.key for column in COLUMNS] == [column.key for column in fitting(200)]
    assert "srtt" not in {column.key for column in fitting(80)}
    assert "srtt" in {column.key for column in fitting(80, "srtt")}, "what it is sorted by"
    assert [rate(bps) for bps in (0, 999, 1500, 99.96e6, 1.24e9)] == ["-", "999", "1.5k", "100M", "1.2G"]


def test_lines_are_as_the_schema_says() -> None:
    shown = machine(connection(1, causes=judged("corruption", 1, 2, 1.0)), closed=(connection(2, closed=True),))
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for value in (shown.as_json(), *(line.as_json(shown.time_s) for line in (*shown.lines, *shown.closed))):
        validator.validate(json.loads(json.dumps(value)))
    assert not validator.is_valid({**shown.as_json(), "more": 1})


def test_the_view_shows_sorts_and_pauses() -> None:
    seen = [connection(1, remote="192.0.2.1", srtt_us=5000), connection(2, remote="192.0.2.2", losses=7, damaged_in=3)]
    looks: list[int] = []

    def look() -> Machine:
        looks.append(len(looks))
        return machine(*seen)

    async def use() -> None:
        # As the observer's: a method that is not Python's.
        app = View(look, [0].clear, 0.2, "losses", reverse=False)
        async with app.run_test(size=(120, 12)) as pilot:
            await pilot.pause()
            table = app.query_one(Table)
            assert "remote" in table.render_line(0).text
            assert [part.text.strip() for part in table.render_line(0) if part.style == SORTED] == ["lost"]
            assert "192.0.2.2:443" in table.render_line(1).text
            assert "192.0.2.1:443" in table.render_line(2).text
            assert table.render_line(3).text.strip() == ""
            await pilot.press("r")
            assert "192.0.2.1:443" in table.render_line(1).text
            await pilot.press(">")
            assert app.sort_key == "timeouts"
            await pilot.press("p")
            seen.pop()
            count = len(looks)
            while len(looks) < count + 2:
                await pilot.pause(0.05)
            assert "192.0.2" in table.render_line(2).text, "the picture stands still"
            await pilot.press("p", "q")

    asyncio.run(use())


def value(metrics: Metrics, name: str, **labels: str) -> float:
    found = [
        sample.value
        for family in metrics.collect()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return sum(found)


def test_metrics_count_what_happened_since_the_beginning() -> None:
    metrics, tally = Metrics(), Tally(Selection())
    metrics.take(tally.take(snapshot(connection(1, losses=100)), 1.0))
    assert value(metrics, "whyloss_lost_segments_total") == 0, "what was before is not ours"
    causes = judged("corruption", 2, 5, 1.0)
    ended = connection(2, losses=3, control="bbr", closed=True, whole=True)
    late = connection(3, losses=50, control="reno")
    metrics.take(tally.take(snapshot(connection(1, losses=105, causes=causes), late, closed=(ended,)), 2.0))
    assert value(metrics, "whyloss_lost_segments_total", control="cubic", peer="192.0.2.0/24") == 5
    assert value(metrics, "whyloss_lost_segments_total", control="bbr") == 3
    assert value(metrics, "whyloss_lost_segments_total", control="reno") == 0, "nor what was before it was found"
    assert value(metrics, "whyloss_judged_segments_total", cause="corruption") == 5
    assert value(metrics, "whyloss_connections") == 2
    metrics.take(tally.take(snapshot(), 3.0))
    assert value(metrics, "whyloss_connections") == 0
    assert value(metrics, "whyloss_lost_segments_total") == 8, "counters do not fall when a connection goes"


def test_metrics_have_a_bounded_number_of_labels() -> None:
    metrics = Metrics(most_peers=3)
    metrics.take(machine(*(connection(number, remote=f"10.0.{number}.1") for number in range(50))))
    peers = {sample.labels["peer"] for family in metrics.collect() for sample in family.samples if sample.labels}
    assert len(peers) == 4
    assert OTHER in peers
    assert value(metrics, "whyloss_connections") == 50


def test_prometheus_is_answered() -> None:
    metrics = Metrics()
    metrics.take(machine(connection(1)))
    port = serve(metrics, "127.0.0.1", 0)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert 'whyloss_connections{control="cubic",peer="192.0.2.0/24"} 1.0' in text


def test_bad_input_is_refused(whyloss: Callable[..., Ended]) -> None:
    for arguments, said in (
        (("--prefix", "10.0.0.0/99"), "allowed are"),
        (("--prometheus", "nowhere"), "ADDRESS:PORT"),
        (("--cgroup", "/there/is/none"), "cgroup"),
        (("--sort", "luck"), "luck"),
        ((), "no terminal"),
    ):
        ended = whyloss("top", *arguments)
        assert ended.status == 2
        assert said in ended.err


def test_an_unknown_control_is_told(whyloss: Callable[..., Ended]) -> None:
    assert "no control `cubik` is in this kernel; there are" in whyloss("top", "--control", "cubik", "--once").err
    assert "no control" not in whyloss("top", "--control", "cubic", "--once").err


def test_a_port_that_is_taken_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(_native, "Observer", lambda: SimpleNamespace(close=lambda: None))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr("sys.argv", ["whyloss", "top", "--once", "--prometheus", f"127.0.0.1:{port}"])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 1
    assert f"--prometheus: 127.0.0.1 port {port}: Address already in use" in " ".join(capsys.readouterr().err.split())


def refusal() -> str | None:
    """Why connections cannot be observed here."""
    try:
        _native.Observer().close()
    except _native.InputError as reason:
        return str(reason)
    return None


def test_without_rights_or_kernel_part_one_sentence_says_so(whyloss: Callable[..., Ended]) -> None:
    reason = refusal()
    if reason is None:
        pytest.skip("connections can be observed here")
    ended = whyloss("top", "--once")
    assert ended.status == 2
    assert reason in ended.err


def test_connections_of_this_machine_are_printed(whyloss: Callable[..., Ended]) -> None:
    if (reason := refusal()) is not None:
        pytest.skip(reason)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as near, listener.accept()[0] as far:
            near.sendall(b"x" * 1000)
            assert far.recv(2000)
            ended = whyloss("top", "--once", "--json", "--interval", "0.1", "--port", str(port))
    assert ended.status == 0, ended.err
    first, *lines = map(json.loads, ended.out.splitlines())
    for line in (first, *lines):
        jsonschema.validate(line, SCHEMA)
    assert (first["kind"], first["connections"]) == ("machine", 2)
    sender = next(line for line in lines if line["remote_port"] == port)
    assert (sender["bytes_acked"], sender["state"]) == (1000, "established") or sender["bytes_acked"] == 1001
