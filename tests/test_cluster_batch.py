"""Sweeps on workers that PBS and LSF start: not the real ones, but stand-ins for their commands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import batch_systems
from conftest import WHYLOSS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Ended

pytestmark = pytest.mark.usefixtures("small")

COMMANDS = {"pbs": ("qsub", "qdel"), "lsf": ("bsub", "bkill")}

SWEEP = """
[sweep]
base = "small.toml"
runs = {runs}
[[axis]]
field = "path.rate"
values = ["500 kbps", "1 Mbps"]
"""


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the jobs; the stand-ins are found before what else has their names."""
    place, programs, home = (tmp_path / name for name in ("jobs", "bin", "home"))
    for folder in (place, programs, home):
        folder.mkdir()
    for command in (command for both in COMMANDS.values() for command in both):
        program = programs / command
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {batch_systems.__file__} {command} "$@"\n')
        program.chmod(0o700)
    monkeypatch.setenv(batch_systems.PLACE, str(place))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    yield place
    for group in groups(place):
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def groups(jobs: Path) -> list[int]:
    return [int(path.read_text()) for path in jobs.glob("*.group")]


def alive(group: int) -> bool:
    """Whether a process of the group is there that is no zombie: nobody collects those in a container."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    return any(int(line.split()[0]) == group and line.split()[1][0] != "Z" for line in listed.splitlines())


def assert_ended(jobs: Path, count: int) -> None:
    """So many jobs were taken, and all are gone: they were ended."""
    assert len(list(jobs.glob("*.sh"))) == len(list(jobs.glob("*.ended"))) == count
    assert not [group for group in groups(jobs) if alive(group)]


def scripts(jobs: Path) -> list[str]:
    return [path.read_text() for path in sorted(jobs.glob("*.sh"))]


@pytest.mark.parametrize("system", COMMANDS)
def test_the_command_computes_on_jobs_what_one_core_does_and_ends_them(
    system: str, tmp_path: Path, jobs: Path, whyloss: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP.format(runs=5))
    for name, value in {"WALLTIME": "02:00", "MEMORY": "3GiB", "ACCOUNT": "works", "PROJECT": "works"}.items():
        if (system, name) != ("pbs", "PROJECT"):
            monkeypatch.setenv(f"DASK_JOBQUEUE__{system.upper()}__{name}", value)
    words = ("--on", system, "--jobs", "2", "--job-cores", "2", "--partition", "long")
    there = whyloss("sweep", "sweep.toml", *words, "--store", "there", "--out", "out/there")
    here = whyloss("sweep", "sweep.toml", "--store", "here", "--out", "out/here")
    assert (here.status, there.status) == (0, 0), there.err
    for path in (tmp_path / "out/here").iterdir():
        assert (tmp_path / "out/there" / path.name).read_bytes() == path.read_bytes(), path.name
    assert_ended(jobs, 2)
    wanted = {
        "pbs": {("-q", "long"), ("-A", "works"), ("-l", "select=1:ncpus=2:mem=3072MB"), ("-l", "walltime=02:00")},
        # Kilobytes, where no lsf.conf says anything else.
        "lsf": {("-q", "long"), ("-P", "works"), ("-n", "2"), ("-M", "3221226"), ("-W", "02:00")},
    }[system]
    for script in scripts(jobs):
        assert wanted <= set(batch_systems.asked(COMMANDS[system][0], script)), script
        assert "--nthreads 2 --memory-limit 3.00GiB" in script
    assert list((tmp_path / "out/jobs").iterdir())


@pytest.mark.parametrize(
    ("system", "words", "settings", "reason"),
    [
        ("pbs", ("--partition", "nowhere"), {}, "qsub: Unknown queue"),
        ("pbs", (), {"RESOURCE_SPEC": "select=two"}, "qsub: illegally formed value for -l: select=two"),
        ("lsf", ("--partition", "nowhere"), {}, "nowhere: No such queue. Job not submitted."),
        ("lsf", (), {"WALLTIME": "'01:00:00'"}, "01:00:00: Bad argument for option -W. Job not submitted."),
        ("lsf", (), {"USE_STDIN": "False"}, "has no directives. Job not submitted."),
    ],
)
def test_a_refused_job_shows_what_the_batch_system_said(
    system: str,
    words: tuple[str, ...],
    settings: dict[str, str],
    reason: str,
    tmp_path: Path,
    jobs: Path,
    whyloss: Callable[..., Ended],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP.format(runs=1))
    for name, value in settings.items():
        monkeypatch.setenv(f"DASK_JOBQUEUE__{system.upper()}__{name}", value)
    refused = whyloss("sweep", "sweep.toml", "--on", system, *words)
    said = " ".join(refused.err.split())
    assert (refused.status, f"{system} refuses the jobs: " in said, reason in said) == (2, True, True), refused.err
    assert "Traceback" not in refused.err
    assert_ended(jobs, 0)


def test_an_answer_without_a_number_of_a_job_is_shown(
    tmp_path: Path, jobs: Path, whyloss: Callable[..., Ended]
) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP.format(runs=1))
    (jobs / "notice").write_text("closed for maintenance")
    refused = whyloss("sweep", "sweep.toml", "--on", "lsf")
    reason = "lsf refuses the jobs: no number of a job is in its answer: closed for maintenance"
    assert (refused.status, reason in " ".join(refused.err.split())) == (2, True), refused.err
    assert_ended(jobs, 0)


#: What is seen when Ctrl-C comes, and how the jobs are taken.
MOMENTS = {"at work": ("store/??/*.part", None), "waiting": ("jobs/*.sh", "held"), "being taken": ("*/*.begun", "slow")}


@pytest.mark.parametrize("system", COMMANDS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_ends_the_jobs(system: str, moment: str, tmp_path: Path, jobs: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP.format(runs=500_000))
    seen, how = MOMENTS[moment]
    if how:
        (jobs / how).touch()
    words = ("sweep", "sweep.toml", "--on", system, "--jobs", "2", "--store", "store")
    with subprocess.Popen([WHYLOSS, *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as command:
        deadline = time.monotonic() + 40
        while len(list(tmp_path.glob(seen))) < 2:
            assert time.monotonic() < deadline
            assert command.poll() is None, command.communicate()
            time.sleep(0.05)
        command.send_signal(signal.SIGINT)
        _, said = command.communicate(timeout=40)
    wanted = r"stopped: \d+ of 1000000 runs are kept" if moment == "at work" else "stopped: "
    assert (command.returncode, "Traceback" in said) == (130, False), said
    assert re.search(wanted, " ".join(said.split())), said
    assert_ended(jobs, 2)
