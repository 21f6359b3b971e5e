"""Scenarios on real packets; needs root and TUN devices."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from whyloss import Scenario, _native, papers, stacks
from whyloss.stacks.measure import Row
from whyloss.testbed import flaws

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conftest import Ended

pytestmark = pytest.mark.realtime

TEXT = """
scenario.duration = "8 s"
scenario.seed = 5
[path]
rate = "10 Mbps"
delay = "5 ms"
queue = "200 pkt"
[[flow]]
name = "main"
size = "1500 kB"
profile = "linux"
scheme = "newreno"
"""


@pytest.fixture
def scenario() -> Scenario:
    return Scenario.parse(TEXT, "test")


def measure(scenario: Scenario, on: str) -> stacks.MeasuredRun:
    """A real run, where this machine can have one and has time for it."""
    for _ in range(3):
        try:
            outcome = stacks.measure(scenario, on=on)
        except _native.UnavailableError as reason:
            pytest.skip(str(reason))
        if outcome.valid:
            return outcome
    pytest.skip(f"the machine is too busy: {'; '.join(flaws(outcome.audit))}")


def erased(outcome: stacks.MeasuredRun) -> int:
    """Packets that the links erased."""
    return sum(dict(hop["dropped"]).get("erased", 0) for way in outcome.audit for hop in way["hops"])


@pytest.mark.parametrize("on", stacks.STACKS)
def test_a_transfer_takes_about_as_long_as_simulated(scenario: Scenario, on: str) -> None:
    simulated = scenario.run().transfers.to_polars()["goodput_bps"][0]
    outcome = measure(scenario, on)
    (transfer,) = outcome.transfers
    assert transfer.octets_delivered == 1_500_000
    assert transfer.finished_ns is not None
    # A busy machine serves programs late, and the kernel takes that for a slow path.
    assert simulated / 4 < transfer.goodput_bps < simulated * 1.15


@pytest.mark.parametrize("on", stacks.STACKS)
def test_several_connections_share_out_one_transfer(scenario: Scenario, on: str) -> None:
    outcome = measure(scenario.replace({"flow[0].striped": 3}), on)
    (transfer,) = outcome.transfers
    assert (transfer.connections, transfer.octets_delivered) == (3, 1_500_000)


def test_what_the_host_does_before_is_not_in_the_time_of_a_transfer(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(control: str) -> str:
        time.sleep(1)
        return control

    monkeypatch.setattr(stacks.kernel, "name_in_kernel", slowly)
    (transfer,) = measure(scenario.replace({"flow[0].size": "15 kB"}), "kernel").transfers
    assert transfer.finished_ns is not None
    assert 0 < transfer.finished_ns - transfer.start_ns < 500_000_000


def test_errors_are_those_of_the_scenario(scenario: Scenario) -> None:
    lossy = scenario.replace({"path.forward.channel.loss": "5 %"})
    outcome = measure(lossy, "kernel")
    assert 20 <= erased(outcome) <= outcome.transfers[0].retransmissions + 20
    assert erased(measure(scenario, "kernel")) == 0


def test_what_real_stacks_do_not_have_is_refused(scenario: Scenario) -> None:
    with pytest.raises(_native.InputError, match="'simulator'; there are kernel, engine"):
        stacks.measure(scenario, on="simulator")
    with pytest.raises(_native.InputError, match="'main': the kernel has no scheme 'tcp-real'"):
        stacks.measure(scenario.replace({"flow[0].scheme": "tcp-real"}), on="kernel")


@pytest.mark.parametrize(
    ("received", "flaw", "valid"), [((5, 3), [], True), ((0, 0), [], False), ((5, 3), ["late"], False)]
)
def test_a_run_that_sent_nothing_does_not_count(received: tuple[int, int], flaw: list[str], valid: bool) -> None:
    audit = tuple({"received": packets, "flaws": flaw} for packets in received)
    assert stacks.MeasuredRun((), audit).valid is valid


def test_finished_runs_are_kept(scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path
    measure(scenario, "kernel")
    jobs = [stacks.Job(scenario, run, "kernel") for run in range(2)]
    counts: list[tuple[int, int]] = []
    first = stacks.run_jobs(jobs, store, parallel=2, progress=lambda *now: counts.append(now))
    assert (counts[0], counts[-1]) == ((0, 2), (2, 2))
    monkeypatch.setattr("whyloss.stacks.batch.measure", lambda *_: pytest.fail("nothing is left to run"))
    assert stacks.run_jobs(jobs, store) == first


def test_what_decides_a_result_is_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = tmp_path / "errors.bits"
    _native.write_pattern(pattern, 1e-5, 1_000_000, 1)
    scenario = Scenario.parse(TEXT.replace("[[flow]]", f'channel.pattern = "{pattern}"\n[[flow]]'), "test")
    jobs = [
        stacks.Job(scenario, 0, "kernel"),
        stacks.Job(scenario, 1, "kernel"),
        stacks.Job(scenario, 0, "engine"),
        stacks.Job(scenario, 0, "kernel", {"main": "cubic"}),
        stacks.Job(scenario.replace({"path.rate": "9 Mbps"}), 0, "kernel"),
    ]
    names = [job.key() for job in jobs]
    assert stacks.Job(scenario, 0, "kernel").key() == names[0]
    _native.write_pattern(pattern, 1e-5, 1_000_000, 2)
    names.append(jobs[0].key())
    monkeypatch.setattr("whyloss.stacks.batch.build", lambda: "another")
    names.append(jobs[0].key())
    here = os.uname()
    there = os.uname_result((here.sysname, here.nodename, "1.2.3", here.version, here.machine))
    monkeypatch.setattr("os.uname", lambda: there)
    names.append(jobs[0].key())
    assert len(set(names)) == len(names)


def simulated(jobs: Sequence[stacks.Job], *_: object, **__: object) -> list[stacks.MeasuredRun]:
    """Outcomes as real runs would have, from the simulator."""
    outcomes = []
    for job in jobs:
        rows = job.scenario.run(job.run).transfers.to_polars().iter_rows(named=True)
        shared = ("transfer", "entry", "scheme", "connections", "octets", "octets_delivered", "start_ns", "finished_ns")
        transfers = tuple(
            Row(
                **{name: row[name] for name in shared},
                goodput_bps=row["goodput_bps"] / 2,
                control="",
                retransmissions=0,
                mean_cwnd=None,
            )
            for row in rows
        )
        outcomes.append(stacks.MeasuredRun(transfers, ()))
    return outcomes


def test_a_paper_is_drawn_over_its_simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whyloss.stacks.reproduction.run_jobs", simulated)
    done = papers.load("garcia2004").reproduce(["8", "16"], quick=True, out=tmp_path, on=("kernel", "engine"))
    labels = [curve.label for curve in done.figures[0].curves]
    assert labels[:3] == ["1 flow, kernel", "1 flow, engine", "1 flow, simulator"]
    agreement = done.figures[-1]
    assert (agreement.id, len(agreement.curves)) == ("agreement", 2)
    # Our real stacks are half as fast as the simulator: 7 error rates, 3 curves in one figure and 4 in the other.
    ratios = [estimate.value for curve in agreement.curves for estimate in curve.y]
    assert ratios == pytest.approx([0.5] * 2 * 7 * 7)
    assert done.claims == ()
    page = done.report.read_text(encoding="utf-8")
    assert "carried by kernel and engine over emulated links" in page
    assert "64 KiB at 64 kbps" in page
    assert 'id="claims"' not in page


def test_a_paper_without_real_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(_native.InputError, match=r"park2010/paper.toml: without \[real\] its experiments run"):
        papers.load("park2010").reproduce(quick=True, out=tmp_path, on=("kernel",))


def test_the_demonstration_shows_every_flow(whyloss: Callable[..., Ended]) -> None:
    ended = whyloss("demo", "kernel", "--control", "reno", "--control", "cubic", "--seconds", "2", "--json")
    if ended.status == 2:
        pytest.skip(ended.err.strip())
    assert ended.status == 0, ended.err
    flows = ended.json["flows"]
    assert [flow["control"] for flow in flows] == ["reno", "cubic"]
    assert all(flow["goodput_mbps"] > 0.5 for flow in flows)


def test_reports_of_damage_keep_the_window(scenario: Scenario, tmp_path: Path) -> None:
    endless = scenario.replace({"scenario.duration": "6 s", "path.forward.channel.effect": "damage"})
    lossy = endless.replace({"path.forward.channel.loss": "3 %", "flow[0].scheme": "sack", "flow[0].size": None})
    erasing = lossy.replace({"path.forward.channel.effect": "erase"})
    jobs = [
        stacks.Job(chosen, 0, "kernel", {"main": control})
        for chosen, control in ((lossy, "reno"), (lossy, "wl_checksum"), (erasing, "wl_checksum"))
    ]
    try:
        outcomes = stacks.run_jobs(jobs, tmp_path, parallel=3)
    except (_native.UnavailableError, _native.WhylossError) as reason:
        pytest.skip(str(reason))
    reno, told, untold = (outcome.transfers[0].goodput_bps for outcome in outcomes)
    assert told > 1.4 * reno, "reports say that the losses are damage"
    assert untold < 1.4 * reno, "nobody reports what never arrived"
