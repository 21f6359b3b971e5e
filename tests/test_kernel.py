"""``whyloss kernel``, on names of its own beside whatever the machine has loaded."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from conftest import ROOT, WHYLOSS
from whyloss import WhylossError, _native, kernel
from whyloss.cli import main
from whyloss.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Ended

pytestmark = pytest.mark.realtime

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
BUILT = bool(_native.kernel_counters())

needs_kernel_part = pytest.mark.skipif(not BUILT, reason="built without the kernel part (tools/kernel-part says why)")


def unload_leftovers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unloads what tests have left that were killed: it would still write options into segments."""
    for folder in Path("/run").glob("whyloss-pytest-*"):
        if not Path("/proc", folder.name.rpartition("-")[2]).exists():
            monkeypatch.setenv("WHYLOSS_KERNEL_FOLDER", str(folder))
            _native.kernel_unload(force=True)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for loaded programs that nobody else has; skips where none can be loaded."""
    folder = Path(f"/run/whyloss-pytest-{os.getpid()}")
    monkeypatch.setenv("WHYLOSS_KERNEL_FOLDER", str(folder))
    monkeypatch.setenv("WHYLOSS_KERNEL_PREFIX", "py_")
    report = _native.kernel_check()
    if not report["ready"]:
        lacking = [f"{item['name']}: {item['found']}" for item in report["items"] if item["holds"] is False]
        pytest.skip("; ".join(lacking))
    unload_leftovers(monkeypatch)
    monkeypatch.setenv("WHYLOSS_KERNEL_FOLDER", str(folder))
    yield folder
    if folder.exists():
        _native.kernel_unload(force=True)


def controls() -> list[str]:
    return [name for name in AVAILABLE.read_text().split() if name.startswith("py_")]


def test_the_module_needs_no_libelf() -> None:
    mapped = Path("/proc/self/maps")
    if not mapped.exists():
        pytest.skip("no /proc")
    assert "_native" in mapped.read_text()
    assert "libelf" not in mapped.read_text()


@pytest.mark.skipif(BUILT, reason="built with the kernel part")
@pytest.mark.parametrize("command", ["check", "load", "unload", "list", "stat"])
def test_without_the_kernel_part_one_sentence_says_so(whyloss: Callable[..., Ended], command: str) -> None:
    ended = whyloss("kernel", command)
    assert ended.status == 2
    assert ended.out == ""
    assert "built without its kernel part" in ended.err
    assert len(ended.err.splitlines()) == 1


@needs_kernel_part
def test_check_tells_people_and_machines_the_same(whyloss: Callable[..., Ended]) -> None:
    for_people, for_machines = whyloss("kernel", "check"), whyloss("kernel", "check", "--json")
    report = for_machines.json
    assert for_people.status == for_machines.status == (0 if report["ready"] else 2)
    assert {"rights", "BTF", "struct_ops", "control groups v2"} <= {item["name"] for item in report["items"]}
    assert all(item["name"] in for_people.out for item in report["items"])


@needs_kernel_part
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
@pytest.mark.parametrize("command", [["load"], ["unload"], ["list"], ["stat"], ["use", "wl_newreno", "--all"]])
def test_without_root_one_sentence_says_so(command: list[str]) -> None:
    # In a child that gives its rights away: the installed command may lie where nobody else may look.
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status: object = None
        try:
            os.setresuid(65534, 65534, 65534)
            sys.argv = ["whyloss", "kernel", *command]
            sys.stderr = os.fdopen(writing, "w")
            main()
        except SystemExit as end:
            status = end.code
        finally:
            sys.stderr.flush()
            os._exit(status if isinstance(status, int) else 99)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 2
    assert "this needs root" in said
    assert len(said.splitlines()) == 1


@needs_kernel_part
def test_a_second_set_of_programs_is_told_of(
    whyloss: Callable[..., Ended], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whyloss("kernel", "load", "wl_checksum")
    monkeypatch.setenv("WHYLOSS_KERNEL_FOLDER", f"/run/whyloss-pytest-second-{os.getpid()}")
    monkeypatch.setenv("WHYLOSS_KERNEL_PREFIX", "pz_")
    try:
        # These write no options, and are not disturbed.
        assert "warning" not in whyloss("kernel", "load", "wl_newreno").err
        whyloss("kernel", "unload")
        second = whyloss("kernel", "load", "wl_checksum").err
        assert whyloss("kernel", "list", "--json").json["sets_beside"] == 1
    finally:
        whyloss("kernel", "unload", "--force")
    assert "warning: another set of these programs is attached too" in second
    assert "WHYLOSS_KERNEL_FOLDER" in second
    monkeypatch.setenv("WHYLOSS_KERNEL_FOLDER", str(place))
    monkeypatch.setenv("WHYLOSS_KERNEL_PREFIX", "py_")
    assert "warning" not in whyloss("kernel", "list").err


@needs_kernel_part
def test_load_use_stat_unload(whyloss: Callable[..., Ended], place: Path) -> None:
    nothing = whyloss("kernel", "list", "--json").json
    assert nothing["loaded"] is None
    assert {"wl_newreno"} <= {control["name"] for control in nothing["controls"]}
    assert whyloss("kernel", "stat").status == 1
    assert controls() == []
    assert not place.exists()

    loaded = whyloss("kernel", "load", "--json").json
    assert sorted(controls()) == loaded["controls"]
    assert "py_newreno" in loaded["controls"]
    assert Path(loaded["mounted_on"]).is_mount()
    assert "wl_options" in loaded["programs"]
    listing = whyloss("kernel", "list", "--json").json
    assert set(listing["interfaces"]) <= {path.name for path in Path("/sys/class/net").iterdir()} - {"lo"}
    assert "reports get room " in whyloss("kernel", "list").out
    again = whyloss("kernel", "load")
    assert again.status == 1
    assert "loaded already" in again.err

    # Nobody connects to this port from there.
    port = ["--port", "59999", "--prefix", "192.0.2.0/24"]
    assert whyloss("kernel", "use", "wl_newreno", *port).status == 0
    rules = whyloss("kernel", "list", "--json").json["rules"]
    assert [(rule["control"], rule["port"], rule["prefix"], rule["cgroup"]) for rule in rules] == [
        ("py_newreno", 59999, "192.0.2.0/24", "/")
    ]
    assert whyloss("kernel", "use", "--remove", *port).status == 0
    assert whyloss("kernel", "list", "--json").json["rules"] == []

    found = whyloss("kernel", "stat", "--json").json
    assert found["controls"]["py_newreno"]["connections"] == 0
    assert found["connections"] == []

    assert whyloss("kernel", "unload").status == 0
    assert controls() == []
    assert not place.exists()


@needs_kernel_part
@pytest.mark.usefixtures("place")
def test_stat_tells_of_reports_where_they_are_loaded(whyloss: Callable[..., Ended]) -> None:
    title = "Reports of damage, on the whole machine"
    whyloss("kernel", "load", "wl_newreno")
    assert whyloss("kernel", "stat", "--json").json["reports"] == {}
    assert title not in whyloss("kernel", "stat").out
    whyloss("kernel", "unload")

    whyloss("kernel", "load", "wl_checksum")
    before = whyloss("kernel", "stat", "--json").json["reports"]
    meanings = dict(_native.kernel_report_counters())
    assert before.keys() == meanings.keys()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        server.accept()[0].close()
        after = whyloss("kernel", "stat", "--json").json["reports"]
    # Others may connect on this machine too.
    assert after["agreed"] >= before["agreed"] + 2
    told = whyloss("kernel", "stat").out
    assert title in told
    assert meanings["agreed"] in told


@needs_kernel_part
@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["load", "wl_nothing"], "there is no control `wl_nothing`; there are: "),
        (["use", "wl_nothing", "--all"], "there is no control `wl_nothing`; there are: "),
        (["use", "wl_newreno", "--prefix", "10.0.0.1/8"], "do you mean 10.0.0.0/8?"),
        (["use", "wl_newreno", "--cgroup", "/no/such/group"], "there is no control group `/no/such/group`"),
        (["use", "wl_newreno"], "say which connections"),
        (["use", "wl_newreno", "--all", "--port", "1"], "say which connections"),
        (["use", "--remove", "--all"], "there is no such rule"),
    ],
)
def test_bad_input_is_refused(whyloss: Callable[..., Ended], arguments: list[str], message: str) -> None:
    if arguments[0] == "use":
        _native.kernel_load(["wl_newreno"])
    ended = whyloss("kernel", *arguments)
    assert ended.status == 2
    assert message in ended.err


@needs_kernel_part
def test_json_is_plain(place: Path) -> None:
    loaded: dict[str, Any] = _native.kernel_load([])
    assert json.loads(json.dumps(loaded)) == loaded
    assert Path(loaded["mounted_on"]).parent == place


HOLD = """
import time
from whyloss import WhylossError, _native, kernel
held = _native.KernelHeld(["wl_veno"])
print("held", flush=True)
time.sleep(60)
"""


@needs_kernel_part
def test_what_a_process_holds_goes_with_it_even_if_it_is_killed(place: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert controls() == ["py_veno"]
        assert not place.exists()
        with pytest.raises(WhylossError, match="py_veno"):
            _native.kernel_load(["wl_veno"])
        holder.kill()
    end = time.monotonic() + 20
    while controls() and time.monotonic() < end:
        time.sleep(0.05)
    assert controls() == []


@needs_kernel_part
def test_loaded_holds_what_is_missing_and_leaves_what_is_there(place: Path) -> None:
    with kernel.loaded(["wl_veno", "cubic"]):
        assert controls() == ["py_veno"]
        with kernel.loaded(["wl_veno"]):
            pass
        assert controls() == ["py_veno"]
    assert not place.exists()
    # The next to ask does not find what is about to vanish.
    for _ in range(5):
        assert controls() == []
        with kernel.loaded(["wl_veno"]):
            assert controls() == ["py_veno"]


@needs_kernel_part
@pytest.mark.parametrize("end", ["terminated", "killed", "unloaded"])
def test_what_is_loaded_until_exit_goes_with_the_command(whyloss: Callable[..., Ended], place: Path, end: str) -> None:
    command = [str(WHYLOSS), "kernel", "load", "wl_veno", "--until-exit"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as loader:
        assert loader.stderr is not None
        assert loader.stderr.readline().startswith("loaded py_veno until this command ends")
        found = whyloss("kernel", "list", "--json").json
        assert [row["name"] for row in found["controls"] if row["loaded"]] == ["wl_veno"]
        assert found["interfaces"] is None
        assert (found["owner"]["process"], found["owner_runs"]) == (loader.pid, True)
        assert "--until-exit" in found["owner"]["command"]
        assert whyloss("kernel", "use", "wl_veno", "--port", "59997").status == 0
        if end == "unloaded":
            refused = whyloss("kernel", "unload")
            assert refused.status == 2
            assert "`whyloss kernel unload --force` takes them out" in refused.err
            assert "1 rules of `use` go" in refused.err
            assert controls() == ["py_veno"]
            assert whyloss("kernel", "unload", "--force").status == 0
            assert loader.wait(5) == 0
            assert "another command has taken them out" in loader.stderr.read()
        elif end == "terminated":
            loader.terminate()
            assert loader.wait(10) == 0
            assert "removed py_veno" in loader.stderr.read()
            assert not place.exists()
        else:
            loader.kill()
    until = time.monotonic() + 20
    while controls() and time.monotonic() < until:
        time.sleep(0.05)
    assert controls() == []
    assert "nothing is loaded" in whyloss("kernel", "unload").err
    assert not place.exists()


@needs_kernel_part
@pytest.mark.usefixtures("place")
def test_list_counts_the_connections_of_each_control(whyloss: Callable[..., Ended]) -> None:
    whyloss("kernel", "load", "wl_veno", "wl_newreno")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"py_veno")
        found = whyloss("kernel", "list", "--json").json
    counts = {row["kernel_name"]: row["connections"] for row in found["controls"] if row["loaded"]}
    assert counts == {"py_veno": 1, "py_newreno": 0}


def test_the_unit_of_systemd_is_one(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing (systemd)")
    unit = (ROOT / "examples" / "systemd" / "whyloss-kernel.service").read_text()
    installed = tmp_path / "whyloss-kernel.service"
    installed.write_text(unit.replace("/usr/local/bin/whyloss", str(WHYLOSS)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", installed], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for line in (line for line in unit.splitlines() if line.startswith("Exec")):
        words = line.partition("=")[2].split()
        assert words[:2] == ["/usr/local/bin/whyloss", "kernel"]
        assert CliRunner().invoke(app, [*words[1:], "--help"]).exit_code == 0
