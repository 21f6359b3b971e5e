"""What does not fit this machine is refused before it starts, and a disk before it is full."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

import whyloss as wl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Ended

MANY = """
[scenario]
name = "many"
duration = "100 ms"
[dumbbell]
bottleneck = { rate = "1 Mbps", delay = "5 ms", queue = "10 pkt" }
[[flow]]
count = COUNT
start = "1 s"
"""


def test_runs_that_do_not_fit_into_memory_are_refused(tmp_path: Path, whyloss: Callable[..., Ended]) -> None:
    (tmp_path / "many.toml").write_text(MANY.replace("COUNT", "20000"))
    (tmp_path / "sweep.toml").write_text('[sweep]\nbase = "many.toml"\nruns = 100000\n')
    ended = whyloss("sweep", "sweep.toml", "--threads", "100000", "--store", "store")
    assert ended.status == 1
    expected = "no room: 20000 connections in each of 100000 runs at a time take 12000.0 GB of memory at least, but "
    assert expected in ended.err, ended.err
    assert "allowed: fewer threads or fewer flows" in ended.err


def test_tables_that_do_not_fit_into_memory_are_refused(tmp_path: Path) -> None:
    (tmp_path / "many.toml").write_text(MANY.replace("COUNT", "5000"))
    sweep = wl.Sweep(wl.Scenario.load(tmp_path / "many.toml"), runs=1_000_000)
    with pytest.raises(
        wl.WhylossError, match=r"no room: the tables of 5000000000 transfers take 25000\.0 GB of memory at"
    ):
        sweep.run(store=tmp_path / "store")
    assert not list((tmp_path / "store").rglob("*.part"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 12 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_sweep_stops_long_before_its_disk_is_full(small: Path, disk: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small), runs=200_000)
    with pytest.raises(wl.WhylossError, match=r"no room: the runs that are left take about .* MB in .*store") as told:
        sweep.save(disk / "out", store=disk / "store")
    assert "what is computed so far is kept" in str(told.value)
    free = os.statvfs(disk)
    assert free.f_bavail * free.f_frsize > 1 << 20
    seen: list[wl.Progress] = []
    sweep.with_runs(500).run(store=disk / "store", progress=seen.append)
    assert seen[0].found == 500
