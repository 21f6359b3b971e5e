"""Sweeps on workers that a real Grid Engine of one node starts, as Debian packages it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import free_port
from whyloss._native import UnavailableError
from whyloss.cluster import Jobs, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Ended

INSTALLED = Path("/var/lib/gridengine")
TOOLS = Path("/usr/lib/gridengine")
RESOURCES = Path("/usr/share/gridengine")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
    pytest.mark.skipif(
        not (TOOLS / "spoolinit").exists() or not shutil.which("sge_execd") or not shutil.which("qsub"),
        reason="needs Debian's gridengine-master, gridengine-exec and gridengine-client",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to start Grid Engine's daemons"),
]

BOOTSTRAP = """admin_user none
default_domain none
ignore_fqdn true
spooling_method berkeleydb
spooling_lib libspoolb
spooling_params {place}/spooldb
binary_path /usr/sbin
qmaster_spool_dir {place}/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
NONE = ("load_scaling", "complex_values", "user_lists", "xuser_lists", "projects", "xprojects", "usage_scaling")


def told(*command: str) -> str:
    """What a command of Grid Engine prints."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, (command, ended)
    return ended.stdout


def set_to(text: str, **values: str) -> str:
    """A configuration with other values: a name and a value a line."""
    for name, value in values.items():
        text, changed = re.subn(rf"(?m)^{name} .*$", f"{name} {value}", text)
        assert changed == 1, (name, text)
    return text


def configure(place: Path, host: str) -> None:
    """Root may submit; one execution host with a queue of eight slots, however busy it is."""
    file = place / "global"
    file.write_text(set_to(told("qconf", "-sconf"), min_uid="0", min_gid="0"))
    told("qconf", "-Mconf", str(file))
    told("qconf", "-as", host)
    file = place / "host"
    file.write_text("".join(f"{name} NONE\n" for name in NONE) + f"report_variables NONE\nhostname {host}\n")
    told("qconf", "-Ae", str(file))


def add_queue(place: Path, host: str) -> None:
    file = place / "queue"
    values = {"qname": "all.q", "hostlist": host, "slots": "8", "load_thresholds": "NONE", "shell": "/bin/sh"}
    file.write_text(set_to(told("qconf", "-sq"), **values, pe_list="NONE"))
    told("qconf", "-Aq", str(file))


@pytest.fixture(scope="module")
def grid_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Grid Engine with one node, this machine; its commands know it by the environment."""
    place = tmp_path_factory.mktemp("grid-engine")
    host = socket.gethostname()
    common = place / "default" / "common"
    for folder in (common, place / "spooldb", place / "qmaster" / "job_scripts", place / "execd"):
        folder.mkdir(parents=True)
    for name in ("bin", "lib", "util", "utilbin"):
        (place / name).symlink_to(INSTALLED / name)
    (common / "bootstrap").write_text(BOOTSTRAP.format(place=place))
    (common / "act_qmaster").write_text(f"{host}\n")
    # Loopback has both names.
    (common / "host_aliases").write_text(f"{host} localhost\n")
    defaults = place / "configuration"
    text = (RESOURCES / "default-configuration").read_text()
    defaults.write_text(set_to(text, execd_spool_dir=str(place / "execd")))
    daemons: list[subprocess.Popen[bytes]] = []
    with pytest.MonkeyPatch.context() as patch, (place / "log").open("wb") as log:
        for name, value in {
            "SGE_ROOT": str(place),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": str(free_port()),
            "SGE_EXECD_PORT": str(free_port()),
            # The daemons stay in the foreground.
            "SGE_ND": "1",
        }.items():
            patch.setenv(name, value)
        try:
            told(str(TOOLS / "spoolinit"), "berkeleydb", "libspoolb", str(place / "spooldb"), "init")
            for what, source in {
                "configuration": defaults,
                "complexes": RESOURCES / "util/resources/centry",
                "usersets": RESOURCES / "util/resources/usersets",
                "managers": "root",
            }.items():
                told(str(TOOLS / "spooldefaults"), what, str(source))
            daemons.append(subprocess.Popen(["sge_qmaster"], stdout=log, stderr=log))
            for _ in range(100):
                if subprocess.run(["qconf", "-sh"], capture_output=True, check=False).returncode == 0:
                    break
                time.sleep(0.1)
            configure(place, host)
            daemons.append(subprocess.Popen(["sge_execd"], stdout=log, stderr=log))
            add_queue(place, host)
            yield
        finally:
            for daemon in reversed(daemons):
                daemon.send_signal(signal.SIGTERM)
            for daemon in daemons:
                try:
                    daemon.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    daemon.kill()


@pytest.mark.usefixtures("grid_engine")
def test_the_command_computes_on_grid_engine(small: Path, tmp_path: Path, whyloss: Callable[..., Ended]) -> None:
    (tmp_path / "sweep.toml").write_text(f'[sweep]\nbase = "{small.name}"\nruns = 5\n')
    words = ("--on", "sge", "--jobs", "2", "--partition", "all.q", "--store", "there", "--out", "out/there")
    there = whyloss("sweep", "sweep.toml", *words)
    here = whyloss("sweep", "sweep.toml", "--store", "here", "--out", "out/here")
    assert (here.status, there.status) == (0, 0), there.err
    for path in (tmp_path / "out/here").iterdir():
        assert (tmp_path / "out/there" / path.name).read_bytes() == path.read_bytes(), path.name
    assert "dask" not in told("qstat", "-s", "p")


@pytest.mark.usefixtures("grid_engine")
def test_a_queue_that_is_not_there_is_named() -> None:
    with (
        pytest.raises(UnavailableError, match=r'sge refuses the jobs: .*rejected .* unknown queue "nowhere"'),
        connect("sge", Jobs(partition="nowhere")),
    ):
        pass
