"""Sweeps on workers that a real SLURM of one node starts."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING

import dask
import pytest

import whyloss as wl
from conftest import free_port
from whyloss._native import UnavailableError
from whyloss.cluster import Jobs, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Ended

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo")
MISSING = [program for program in PROGRAMS if shutil.which(program) is None]

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
    pytest.mark.skipif(bool(MISSING), reason=f"needs SLURM and munge: there is no {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to start SLURM's daemons"),
]

#: The node has more cores than the machine may have, so that jobs do not wait for each other.
CONFIGURATION = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/controller.pid
SlurmdPidFile={place}/node.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=64000
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
PartitionName=spare Nodes={host} MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """SLURM with one node, this machine; its commands know it by the environment."""
    place = tmp_path_factory.mktemp("slurm")
    for folder in ("state", "spool"):
        (place / folder).mkdir()
    key = place / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    configuration = place / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(host=host, place=place, controller=free_port(), node=free_port()), encoding="ascii"
    )
    munge = [f"--{name}-file={place}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    daemons = (
        ["munged", "--foreground", "--force", f"--socket={place}/munge.socket", *munge],
        ["slurmctld", "-D", "-c", "-f", str(configuration)],
        ["slurmd", "-D", "-c", "-f", str(configuration)],
    )
    started: list[subprocess.Popen[bytes]] = []
    with pytest.MonkeyPatch.context() as patch, (place / "log").open("wb") as log:
        patch.setenv("SLURM_CONF", str(configuration))
        try:
            for command in daemons:
                started.append(subprocess.Popen(command, stdout=log, stderr=log))
                time.sleep(0.5)
            for _ in range(300):
                look = subprocess.run(["sinfo", "--noheader", "--format=%t"], capture_output=True, text=True)
                if "idle" in look.stdout:
                    break
                time.sleep(0.1)
            else:
                pytest.fail(f"SLURM does not start: {look}\n{(place / 'log').read_text()}")
            yield
        finally:
            for daemon in reversed(started):
                daemon.send_signal(signal.SIGTERM)
                daemon.wait(timeout=30)


def queue() -> list[str]:
    """Partitions of the jobs that wait or run."""
    told = subprocess.run(
        ["squeue", "--noheader", "--format=%P", "--states=PENDING,RUNNING"], capture_output=True, text=True, check=True
    )
    return told.stdout.split()


def sweep(small: Path, runs: int = 10) -> wl.Sweep:
    return wl.Sweep(wl.Scenario.load(small), runs=runs).vary("path.rate", ["500 kbps", "1 Mbps"])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs write what they print below the working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("slurm")
def test_jobs_compute_what_one_core_computes_and_are_gone_afterwards(small: Path, tmp_path: Path) -> None:
    with connect("slurm", Jobs(count=2, cores=2, partition="spare")) as client:
        client.wait_for_workers(2, timeout=60)
        assert queue() == ["spare", "spare"]
        results = sweep(small).run(client, store=tmp_path / "store")
    assert results.digests() == sweep(small).run(threads=1).digests()
    assert queue() == []
    assert len(list((tmp_path / "out/jobs").iterdir())) >= 2


@pytest.mark.usefixtures("slurm")
def test_a_job_that_is_cancelled_is_replaced(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whyloss.cluster.jobs.REPLACE_S", 0.5)
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1s"}), connect("slurm") as client:
        client.wait_for_workers(1, timeout=60)
        subprocess.run(["scancel", "--user=root"], check=True)
        results = sweep(small).run(client)
    assert results.digests() == sweep(small).run(threads=1).digests()


@pytest.mark.usefixtures("slurm")
def test_a_partition_that_is_not_there_is_named() -> None:
    with (
        pytest.raises(UnavailableError, match=r"slurm refuses the jobs: .*Invalid partition"),
        connect("slurm", Jobs(partition="nowhere")),
    ):
        pass
    assert queue() == []


@pytest.mark.usefixtures("slurm")
def test_the_command_computes_on_slurm(small: Path, tmp_path: Path, whyloss: Callable[..., Ended]) -> None:
    (tmp_path / "sweep.toml").write_text(f'[sweep]\nbase = "{small.name}"\nruns = 5\n')
    there = whyloss("sweep", "sweep.toml", "--on", "slurm", "--jobs", "2", "--store", "there", "--out", "out/there")
    here = whyloss("sweep", "sweep.toml", "--store", "here", "--out", "out/here")
    assert (here.status, there.status) == (0, 0), there.err
    for path in (tmp_path / "out/here").iterdir():
        assert (tmp_path / "out/there" / path.name).read_bytes() == path.read_bytes(), path.name
    assert queue() == []
