"""Paths fitted to captures: loss processes found again, and whole scenarios."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from whyloss import InputError, Scenario, _native, stacks
from whyloss.captures.aqm import codel, discipline
from whyloss.captures.bottleneck import departures
from whyloss.captures.fates import Fates, best, bits, candidates, elliott, gilbert, independent, run_lengths
from whyloss.captures.fit import fit
from whyloss.captures.goodness import compare, simulate
from whyloss.captures.whatif import SENDERS, what_if, with_sender
from whyloss.cli import main

ROOT = Path(__file__).parent.parent


def _tool() -> Any:
    spec = importlib.util.spec_from_file_location("fit_tool", ROOT / "tools" / "fit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fit_tool"] = module
    spec.loader.exec_module(module)
    return module


TOOL = _tool()


def _chain(n: int, stay_good: float, stay_bad: float, lost_good: float, lost_bad: float, seed: int = 1) -> Fates:
    rng = np.random.default_rng(seed)
    draws, bad = rng.random((n, 2)), False
    lost = np.zeros(n, dtype=bool)
    for position, (move, hit) in enumerate(draws):
        bad = move < stay_bad if bad else move >= stay_good
        lost[position] = hit < (lost_bad if bad else lost_good)
    return Fates(lost, np.full(n, 1500), np.cumsum(rng.exponential(1e-3, n)))


def _likelihood(fates: Fates, stay_good: float, stay_bad: float, lost_good: float, lost_bad: float) -> float:
    """The forward algorithm, step by step."""
    state, total = np.array([1.0, 0.0]), 0.0
    steps = np.array([[stay_good, 1 - stay_good], [1 - stay_bad, stay_bad]])
    hits = np.array([lost_good, lost_bad])
    for lost in fates.lost:
        state = (state @ steps) * (hits if lost else 1 - hits)
        total += np.log(state.sum())
        state /= state.sum()
    return total


def test_run_lengths_are_those_of_the_losses() -> None:
    assert run_lengths(np.array([1, 1, 0, 1, 0, 0, 1, 1, 1], dtype=bool)).tolist() == [2, 1, 3]
    assert run_lengths(np.zeros(3, dtype=bool)).tolist() == []


def test_packets_that_wait_leave_one_after_the_other() -> None:
    # 1000 octets take 8 ms at 1 Mbit/s; the third is not taken.
    time = np.array([0.0, 0.001, 0.002, 0.1])
    left = departures(time, np.full(4, 1000), np.array([True, True, False, True]), 1e6)
    assert left == pytest.approx([0.008, 0.016, 0.016, 0.108])


def test_the_likelihood_of_a_chain_is_that_of_the_forward_algorithm() -> None:
    fates = _chain(3000, 0.98, 0.9, 0.005, 0.5)
    fitted = elliott(fates)
    assert fitted.log_likelihood == pytest.approx(_likelihood(fates, **fitted.parameters), abs=1e-6)
    simple = gilbert(fates)
    assert simple.log_likelihood == pytest.approx(_likelihood(fates, **simple.parameters, lost_good=0, lost_bad=1))
    # More parameters never explain less.
    assert fitted.log_likelihood >= simple.log_likelihood >= independent(fates).log_likelihood


@pytest.mark.parametrize(
    ("truth", "kind"),
    [
        ((1.0, 0.0, 0.01, 1.0), "independent"),
        ((0.99, 0.6, 0.0, 1.0), "gilbert"),
        ((0.995, 0.9, 0.001, 0.4), "gilbert-elliott"),
    ],
)
def test_the_process_that_made_the_losses_is_chosen(truth: tuple[float, float, float, float], kind: str) -> None:
    found = [candidates(_chain(20_000, *truth, seed=seed))[0] for seed in range(3)]
    assert [process.kind for process in found] == [kind] * 3
    if kind != "independent":
        names = ("stay_good", "stay_bad", "lost_good", "lost_bad")
        inside = [
            process.intervals[name][0] <= value <= process.intervals[name][1]
            for process in found
            for name, value in zip(names, truth, strict=True)
            if name in process.intervals
        ]
        # At 95 % one of them may miss.
        assert sum(inside) >= len(inside) - 1


def test_errors_of_bits_are_told_by_the_lengths_of_packets() -> None:
    rng = np.random.default_rng(2)
    octets = rng.choice([440, 1500], 20_000)
    lost = rng.random(20_000) < 1 - (1 - 2e-6) ** (8.0 * octets)
    fates = Fates(lost, octets, np.arange(20_000.0))
    assert best(fates).kind == "bits"
    low, high = bits(fates).intervals["ber"]
    assert low < 2e-6 < high < 1.5 * low


def test_of_processes_that_nothing_tells_apart_the_simplest_is_chosen() -> None:
    # One packet of another length, the last of the transfer, does not tell errors of bits from errors of packets.
    rng = np.random.default_rng(4)
    octets = np.full(20_000, 1500)
    octets[-1] = 700
    found = candidates(Fates(rng.random(20_000) < 0.01, octets, np.arange(20_000.0)))
    assert [process.kind for process in found[:2]] == ["independent", "bits"]


def test_the_least_jitter_of_packets_that_keep_their_order_is_no_part_of_the_delay() -> None:
    made = TOOL.world("jitter", 100)
    measured = TOOL.measure(made, runs=1)
    # Packets a few milliseconds apart with up to 15 ms of jitter: hardly one has none.
    assert abs(measured["delay_error_s"]) <= TOOL.DELAY_S
    assert measured["covered"]["jitter_s"]


def test_codel_drops_faster_and_faster_and_before_the_queue_is_full() -> None:
    # Six packets come in the time of five.
    time = np.arange(4000) / 1200
    dropped = codel(time, np.full(4000, 1000), 8e6, 5e-3, 0.1)
    left = departures(time, np.full(4000, 1000), ~dropped, 8e6)[dropped]
    # RFC 8289, 5.4: after an interval above the target, then after interval / sqrt(1), sqrt(2), ...
    assert left[0] == pytest.approx(0.13, abs=0.01)
    assert np.diff(left)[:5] == pytest.approx(0.1 / np.sqrt(np.arange(1, 6)), abs=2e-3)


def test_losses_that_know_nothing_of_the_delay_are_no_discipline() -> None:
    rng = np.random.default_rng(6)
    time, octets = np.cumsum(rng.exponential(1.2e-3, 6000)), np.full(6000, 1000)
    lost, known = rng.random(6000) < 0.01, np.ones(6000, dtype=bool)
    found = discipline(time, octets, lost, known, 8e6)
    assert found is not None
    assert found.gain < 15
    # The same packets behind CoDel.
    busy = np.arange(6000) / 1200
    managed = discipline(busy, octets, codel(busy, octets, 8e6, 5e-3, 0.1), known, 8e6)
    assert managed is not None
    assert (managed.kind, managed.target_s, managed.interval_s) == ("codel", 5e-3, 0.1)
    assert managed.gain > 100


def test_a_rate_that_varies_is_a_trace_beside_the_scenario(tmp_path: Path) -> None:
    made = TOOL.world("varying", 101)
    made.scenario().replace({"output.capture": ["server"]}).run(0, captures=tmp_path)
    fitted = fit(*tmp_path.glob("*.pcapng"), scheme=made.scheme, profile=made.profile)
    saved = fitted.save(tmp_path / "out" / "cell.toml")
    assert saved.to_dict()["path"]["forward"]["trace"] == "cell.trace"
    times = np.loadtxt(tmp_path / "out" / "cell.trace", dtype=int, ndmin=1)
    assert (np.diff(times) >= 0).all()
    goodput = saved.run().transfers.to_polars()["goodput_bps"][0]
    assert goodput == pytest.approx(fitted.series.goodput_bps, rel=0.1)
    assert any("varies" in remark for remark in fitted.remarks)


def test_the_interval_of_a_share_holds_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(400):
        lost = rng.random(2000) < 0.02
        low, high = independent(Fates(lost, np.full(2000, 1500), np.arange(2000.0))).intervals["loss"]
        inside += low <= 0.02 <= high
    # Clopper and Pearson's interval holds at least as often: 380 of 400, standard deviation 4.4.
    assert inside >= 367


@pytest.mark.parametrize("kind", list(TOOL.KINDS))
def test_a_known_path_is_found_again(kind: str) -> None:
    measured = TOOL.measure(TOOL.world(kind, 0), runs=3)
    assert measured["named"] is not False
    assert (measured["discipline"] is not None) == (kind == "aqm")
    assert measured["trace"] == (kind in TOOL.VARIES)
    if kind in TOOL.VARIES:
        # Where the rate varies there is no rate to find, and the shortest round trip may have been slow.
        assert measured["doubts"] == []
        return
    assert abs(measured["rate_error"]) <= TOOL.RATE
    assert abs(measured["delay_error_s"]) <= TOOL.DELAY_S
    # What the true path gives with other random numbers differs, too.
    spread = abs(measured["own_ratio"] - 1)
    assert abs(measured["goodput_ratio"] - 1) <= TOOL.GOODPUT + spread


def test_the_page_says_what_was_measured() -> None:
    rows = json.loads(TOOL.MEASURED.read_text(encoding="utf-8"))
    counts = {kind: sum(row["kind"] == kind for row in rows) for kind in TOOL.KINDS}
    assert counts == TOOL.KINDS
    assert TOOL.table(rows) in TOOL.PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("capture")
    path = {"rate": "5 Mbps", "delay": "20 ms", "queue": "30 pkt", "forward": {"channel": {"loss": 0.01}}}
    flow = {"scheme": "cubic", "profile": "linux", "size": "3 MB"}
    Scenario({"path": path, "flow": [flow], "output": {"capture": ["server"]}}).run(captures=folder)
    (found,) = folder.iterdir()
    return found


def test_a_fit_is_a_scenario_that_runs(capture: Path, tmp_path: Path) -> None:
    fitted = fit(capture)
    goodness = fitted.goodness(2)
    saved = fitted.save(tmp_path / "path.toml", goodness=goodness)
    said = saved.to_dict()
    assert said["path"]["forward"]["channel"].keys() == {"loss"}
    text = (tmp_path / "path.toml").read_text(encoding="utf-8")
    assert "# loss 0." in text
    assert "Kolmogorov" in text
    assert (saved.run().transfers.to_polars()["goodput_bps"] > 1e6).all()


def test_other_senders_meet_the_fitted_path(capture: Path) -> None:
    fitted = fit(capture)
    checksum = next(sender for sender in SENDERS if sender.needs_damage)
    said = with_sender(fitted, checksum).to_dict()
    assert said["path"]["forward"]["channel"]["effect"] == "damage"
    assert said["flow"][0]["scheme"] == "checksum-ld"


def test_a_run_of_the_same_path_is_no_reason_to_doubt_it(capture: Path) -> None:
    fitted = fit(capture)
    runs = simulate(fitted.scenario(), 6)
    # Each run beside the others, as if it were the captured one.
    goodnesses = [compare(runs[at], runs[:at] + runs[at + 1 :]) for at in range(len(runs))]
    assert [goodness.doubts for goodness in goodnesses] == [()] * len(runs)
    # A fifth of the rate is another path.
    slower = compare(fitted.series, simulate(fitted.scenario().replace({"path.rate": "1 Mbps"}), 4))
    assert len(slower.doubts) == 2


def test_round_trips_that_are_nearly_all_the_same_are_not_told_apart(capture: Path) -> None:
    fitted = fit(capture)
    (run,) = simulate(fitted.scenario(), 1)
    # A tenth of a millisecond is no reason to doubt, fifty are.
    near, far = (compare(replace(run, acked_s=run.acked_s + late), [run, run]) for late in (1e-4, 50e-3))
    assert near.round_trips == 0
    assert far.round_trips > 0.35


def test_others_would_have_been_faster_and_who_sent_is_told(tmp_path: Path) -> None:
    # Window and losses are random, not full queues: who takes damage for congestion is slow.
    path = {"rate": "8 Mbps", "delay": "30 ms", "queue": "100 pkt", "forward": {"channel": {"loss": 0.02}}}
    flow = {"scheme": "newreno", "profile": "modern", "size": "4 MB"}
    Scenario({"path": path, "flow": [flow], "output": {"capture": ["server"]}}).run(captures=tmp_path)
    found = what_if(*tmp_path.iterdir(), runs=5)
    assert found.goodness.doubts == ()
    assert found.like.name == "NewReno without SACK"
    assert {outcome.sender.name for outcome in found.certain} >= {"BBR", "wl_checksum"}
    assert "would surely have been faster than today's TCP" in found.verdict


def test_the_comparison_fits_a_narrow_terminal(
    capture: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from whyloss.cli import console, whatif

    monkeypatch.setattr(console.screen, "width", 80)
    whatif.show(what_if(capture, runs=2))
    verdict, *rest = capsys.readouterr().out.strip().splitlines()
    assert verdict.startswith("What if?")
    assert [line for line in rest if len(line) > 80] == []
    assert len([line for line in rest if line.startswith(tuple(sender.name for sender in SENDERS))]) == len(SENDERS)


def test_the_command_writes_the_scenario(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "path.toml"
    monkeypatch.setattr(sys, "argv", ["whyloss", "fit", str(capture), "-o", str(out), "--runs", "2", "--json"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    said = json.loads(capsys.readouterr().out)
    assert said["rate_bps"] == pytest.approx(5e6, rel=0.03)
    assert said["process"] == "independent"
    assert Scenario.load(out).name == "path"


@pytest.mark.realtime
def test_the_fitted_path_carries_as_much_of_linux_on_emulated_links(tmp_path: Path) -> None:
    path = {"rate": "5 Mbps", "delay": "15 ms", "queue": "40 pkt", "forward": {"channel": {"loss": 0.004}}}
    flow = {"scheme": "cubic", "profile": "linux", "size": "4 MB"}
    Scenario({"path": path, "flow": [flow], "output": {"capture": ["server"]}}).run(captures=tmp_path)
    fitted = fit(*tmp_path.iterdir())
    saved = fitted.save(tmp_path / "path.toml")
    for _ in range(3):
        try:
            outcome = stacks.measure(saved, on="kernel")
        except _native.UnavailableError as reason:
            pytest.skip(str(reason))
        if outcome.valid:
            break
    else:
        pytest.skip("the machine is too busy to keep the links' time")
    (transfer,) = outcome.transfers
    assert transfer.octets_delivered == fitted.series.acknowledged_octets
    # Linux is another TCP, and one run is one run: what several runs of the engine differ by, and as much again.
    goodness = fitted.goodness(5)
    low, high = (bps / goodness.captured_goodput_bps for bps in goodness.goodput_range_bps)
    assert low - 0.15 < transfer.goodput_bps / fitted.series.goodput_bps < high + 0.15


def test_a_capture_without_data_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000065000000"))
    with pytest.raises(InputError, match="no TCP data"):
        fit(empty)
