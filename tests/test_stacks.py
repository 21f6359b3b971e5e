"""Scenarios on real packets; needs root and TUN devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyloss import Scenario, _native, stacks
from whyloss.testbed import flaws

if TYPE_CHECKING:
    from pathlib import Path

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


def measure(scenario: Scenario, on: str) -> stacks.Outcome:
    """A real run, where this machine can have one and has time for it."""
    for _ in range(3):
        try:
            outcome = stacks.measure(scenario, on=on)
        except _native.UnavailableError as reason:
            pytest.skip(str(reason))
        if outcome.valid:
            return outcome
    pytest.skip(f"the machine is too busy: {'; '.join(flaws(outcome.audit))}")


def erased(outcome: stacks.Outcome) -> int:
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


def test_finished_runs_are_kept(scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path
    measure(scenario, "kernel")
    jobs = [stacks.Job(scenario, run, "kernel") for run in range(2)]
    counts: list[tuple[int, int]] = []
    first = stacks.run_jobs(jobs, store, parallel=2, progress=lambda *now: counts.append(now))
    assert (counts[0], counts[-1]) == ((0, 2), (2, 2))
    monkeypatch.setattr("whyloss.stacks.batch.measure", lambda *_: pytest.fail("nothing is left to run"))
    assert stacks.run_jobs(jobs, store) == first
