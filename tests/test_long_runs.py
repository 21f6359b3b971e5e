"""Runs whose tables go to files while they run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import whyloss as wl
from whyloss.verifying import verify

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ended

WHYLOSS = Path(sys.executable).parent / "whyloss"

#: Everything that can be asked for.
FULL = {
    "output.sample": "1 ms",
    "output.drops": True,
    "output.segments": {},
    "path.forward.channel": {"loss": "1 %"},
    "flow[0].shadows": ["veno", "spike"],
}


def full(small: Path) -> wl.Scenario:
    return wl.Scenario.load(small).replace(FULL)


def test_a_run_is_written_as_it_is_held(small: Path, tmp_path: Path) -> None:
    held = full(small).run(3)
    held.save(tmp_path / "held")
    told: list[wl.Progress] = []
    written = full(small).save(tmp_path / "written", 3, progress=told.append)
    assert told[-1].fraction == 1
    assert written.digests() == held.digests()
    held_sums, written_sums = ((tmp_path / name / "SHA256SUMS").read_text() for name in ("held", "written"))
    assert held_sums == written_sums
    assert wl.Results.load(tmp_path / "written").losses.to_polars().equals(held.losses.to_polars())
    assert verify(tmp_path / "written").same


def test_captures_belong_to_what_is_written(small: Path, tmp_path: Path, whyloss: Callable[..., Ended]) -> None:
    done = whyloss("run", small, "--set", 'output.capture=[{at="server"}]', "--out", tmp_path / "out")
    assert done.status == 0, done.err
    sums = (tmp_path / "out" / "SHA256SUMS").read_text()
    assert "small-0-server.pcapng" in sums
    assert "losses.parquet" in sums


def endless(small: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    sets = ["flow[0].size=100 GB", "scenario.duration=3000 s", 'path.rate="100 Mbps"', "output.drops=true", *more]
    words = [word for field in sets for word in ("--set", field)]
    return subprocess.Popen(
        [WHYLOSS, "run", small, *words, "--out", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def writing(out: Path) -> bool:
    """Whether rows have been written."""
    return any(path.stat().st_size > 1000 for path in out.glob(".writing-*"))


def test_ctrl_c_leaves_whole_files_of_what_was_simulated(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    wl.Scenario.load(small).save(out)
    process = endless(small, out, 'output.sample="1 ms"')
    deadline = time.monotonic() + 60
    while not writing(out):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said, err = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "")
    assert f"the tables in {out} have what was simulated until then" in " ".join(err.split())
    results = wl.Results.load(out)
    assert results.runs["outcome"].to_list() == ["cancelled"]
    ended = results.runs["ended_at_ns"][0]
    samples = results.samples.to_polars()
    assert len(samples) > 10_000
    # The last rows are there.
    assert samples["at_ns"].max() >= ended - 1_000_000
    assert results.flows["losses"].sum() == len(results.losses)
    # What an earlier run had noted is gone: nothing says that this can be run again.
    assert not {"SHA256SUMS", "inputs.json"} & {path.name for path in out.iterdir()}
    assert sorted(path.name for path in out.iterdir()) == sorted(f"{name}.parquet" for name in results.names)


def test_a_table_that_cannot_be_written_leaves_the_old_ones(small: Path, tmp_path: Path) -> None:
    wl.Scenario.load(small).save(tmp_path / "out")
    before = (tmp_path / "out" / "SHA256SUMS").read_text()
    (tmp_path / "out" / "file").write_text("in the way")
    with pytest.raises(wl.WhylossError):
        wl.Scenario.load(small).save(tmp_path / "out" / "file" / "in")
    assert (tmp_path / "out" / "SHA256SUMS").read_text() == before
    assert wl.Results.load(tmp_path / "out").runs["outcome"].to_list() == ["completed"]


MEASURED = """
import sys
import whyloss as wl

scenario = wl.Scenario.load(sys.argv[1]).replace(
    {"scenario.duration": sys.argv[2], "flow[0].size": None, "path.rate": "50 Mbps", "path.queue": "100 pkt",
     "output.sample": "0.2 ms", "output.drops": True, "path.forward.channel": {"loss": "2 %"}, "flow[0].scheme": "bbr"}
)
rows = scenario.save(sys.argv[3])
assert len(rows.samples) > 1000
lines = open("/proc/self/status").read().splitlines()
print(int(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))))
"""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="only Linux tells the most memory that a process had"
)
def test_a_long_run_takes_no_more_memory_than_a_short_one(small: Path, tmp_path: Path) -> None:
    def most_kb(duration: str) -> int:
        words = [sys.executable, "-c", MEASURED, str(small), duration, str(tmp_path / duration.replace(" ", ""))]
        done = subprocess.run(
            words, check=True, capture_output=True, text=True, env={**os.environ, "POLARS_MAX_THREADS": "1"}
        )
        return int(done.stdout)

    short, long = most_kb("60 s"), most_kb("180 s")
    # Held, its samples alone take 130 octets each: 600,000 more of senders and 2,400,000 of queues.
    assert pl.scan_parquet(tmp_path / "180s" / "queues.parquet").select(pl.len()).collect().item() > 3_000_000
    assert long - short < 40_000, f"{short} kB, {long} kB"
