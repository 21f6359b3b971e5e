"""A run in the terminal while it is simulated: what is drawn is what was sampled, in the terminal that there is."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import time
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from rich.console import Console

import whyloss as wl
from conftest import WHYLOSS, Ended
from whyloss.cli.live import LiveView, pace_of, sampled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Call = Callable[..., Ended]

LINK = {"rate": "4 Mbps", "delay": "10 ms", "loss": "2 %", "duration": "4 s"}


@pytest.fixture(scope="module")
def scenario() -> wl.Scenario:
    return sampled(wl.path(**LINK))  # type: ignore[arg-type]


def test_samples_come_once_while_a_paced_run_goes_on(scenario: wl.Scenario) -> None:
    senders: list[Any] = []
    queues: list[Any] = []
    told: list[Any] = []
    calls: list[float] = []

    def follow(progress: wl.Progress) -> None:
        calls.append(time.monotonic())
        senders.extend(progress.senders)
        queues.extend(progress.queues)
        told.append((time.monotonic(), progress.losses))

    began = time.monotonic()
    paced = scenario.run(progress=follow, pace=4)
    # Four seconds at four a second; and it was told of many times meanwhile.
    assert 0.95 < time.monotonic() - began < 6
    assert len(calls) >= 6
    assert calls[len(calls) // 2] - began > 0.2
    plain = scenario.run()
    assert paced.samples.to_polars().equals(plain.samples.to_polars())
    rows = plain.samples.to_polars().select("flow", "at_ns", "cwnd_octets", "ssthresh_octets", "srtt_ns").rows()
    assert [sender[:5] for sender in senders] == rows[: len(senders)]
    assert len(senders) > 0.8 * len(rows)
    losses = plain.losses.to_polars()
    assert senders[-1][6] == (losses["at_ns"] < senders[-1][1]).sum() > 5
    # Each loss that was noticed came with what really happened, most of them long before the run was over.
    known = [loss for _, news in told for loss in news]
    assert known == losses.select("flow", "at_ns", "true_class").rows()[: len(known)]
    assert len(known) >= len(losses) - 3
    assert {"corruption", "congestion"} <= {true for _, _, true in known}
    assert sum(len(news) for at, news in told if at - began < 0.6) > 3
    held = dict(plain.queues.to_polars().group_by("at_ns").agg(pl.col("queue_packets").max()).iter_rows())
    assert all(held[at] == packets for at, packets in queues)


def test_a_pace_is_a_number_above_nothing(scenario: wl.Scenario) -> None:
    for pace in (0.0, -1.0, float("nan")):
        with pytest.raises(wl.InputError, match="found a pace of"):
            scenario.run(pace=pace)
    assert pace_of(scenario, None) == pytest.approx(0.4)
    assert pace_of(scenario, 0) is None
    assert pace_of(scenario, 3) == 3


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (50, 15)])
def test_pictures_fit_the_terminal(scenario: wl.Scenario, width: int, height: int) -> None:
    out = io.StringIO()
    console = Console(
        file=out, width=width, height=height, force_terminal=True, color_system="256", legacy_windows=False
    )
    view = LiveView(scenario, console)

    def follow(progress: wl.Progress) -> None:
        view.add(progress.senders, progress.queues, progress.losses)

    results = scenario.run(progress=follow, pace=8)
    console.print(view)
    growing = plain(out)
    lines = growing.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= height
    assert "window (kB)" in growing
    # Losses have their true causes while the run goes on.
    assert "corruption loss" in growing
    assert growing.partition("SRTT")[0].partition("┌")[2].count("o") > 3
    assert ("goodput (Mbps)" in growing) == (height >= 24)
    assert ("longest queue" in growing) == (height >= 40)
    view.finish(results)
    out.truncate(0)
    out.seek(0)
    console.print(view)
    done = plain(out)
    assert "corruption loss" in done
    # The losses that the run knows stand in the panel of windows, but for those that lie on the same place.
    assert done.partition("SRTT")[0].partition("┌")[2].count("o") > 5
    assert f"4.00 of 4 s, {len(results.losses)} losses, {len(results.timeouts)} timeouts" in done


def plain(out: io.StringIO) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())


def test_live_in_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    arguments = ["run", "--rate", "4Mbps", "--loss", "2%", "--duration", "4 s", "--live", "--speed", "4"]
    process = subprocess.Popen(
        [WHYLOSS, *arguments],
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", "PYTHONUTF8": "1"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            octets = os.read(ours, 65536)
        except OSError:
            break
        if not octets:
            break
        shown += octets
    os.close(ours)
    assert process.wait(timeout=30) == 0, shown[-2000:]
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert text.count("window (kB)") >= 4
    assert "Mbps now" in text
    # The tables come after it.
    assert text.rindex("goodput (Mbps)") < text.rindex("What was lost, and what the sender made of it")


def test_live_needs_a_terminal(whyloss: Call) -> None:
    link = ["--rate", "4Mbps", "--duration", "1 s"]
    refused = whyloss("run", *link, "--live")
    assert (refused.status, refused.out) == (2, "")
    assert "allowed: in a terminal that knows UTF-8" in refused.err
    assert "allowed: not with --json" in whyloss("run", *link, "--live", "--json").err
    assert "goes with --live only" in whyloss("run", *link, "--speed", "2").err
