"""The protocol-pair test: known directions come out, the arithmetic is right, and the command behaves as all do."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import whyloss as wl
from conftest import ROOT, WHYLOSS, Ended
from whyloss import gains
from whyloss.friendliness import Kind, dumbbell
from whyloss.harm import gain, goodputs, harm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from whyloss.friendliness import Effect

    Call = Callable[..., Ended]

SHORT = ["--duration", "20 s", "--rate", "5 Mbps", "--runs", "4"]


def short(first: str, second: str, runs: int = 10, **world: Any) -> wl.Friendliness:
    """A test that takes a second."""
    return wl.friendly(first, second, world=dumbbell(duration="40 s", **world), runs=runs)


def effect(found: wl.Friendliness, mix: str, scheme: str) -> Effect:
    """The one that is meant."""
    return next(one for one in found.effects if (one.mix, one.scheme) == (mix, scheme))


# --- the arithmetic --------------------------------------------------------------------------------------------------


def test_harm_and_gain_by_hand() -> None:
    # Ratios of means, each run with its pair: 15 of 20 are left, so a quarter is taken.
    assert harm([6.0, 9.0], [8.0, 12.0]).value == pytest.approx(0.25)
    assert harm([6.0, 9.0], [8.0, 12.0]).interval() == pytest.approx((0.25, 0.25))
    assert gain([12.0, 18.0], [8.0, 12.0]).value == pytest.approx(0.5)
    # Who has more beside the other than among its own kind is harmed by less than nothing.
    assert harm([10.0, 10.0], [8.0, 8.0]).value == pytest.approx(-0.25)
    low, high = harm([6.0, 9.0, 7.0], [8.0, 10.0, 10.0]).interval()
    assert low < 1 - 22 / 28 < high
    # Nothing to lose, nothing to say.
    assert harm([0.0, 0.0], [0.0, 0.0]).value != harm([0.0, 0.0], [0.0, 0.0]).value


def test_goodputs_are_those_of_the_tables_and_leave_the_warm_up_out() -> None:
    scenario = dumbbell(rate="5 Mbps", duration="20 s").replace({"output.sample": "5 s", "flow[0].count": 2})
    results = wl.Sweep(scenario, 2).vary("dumbbell.bottleneck.rate", ["5 Mbps", "1 Mbps"], name="speed").run()
    whole, late = goodputs(results), goodputs(results, 5_000_000_000)
    delivered = results.transfers.to_polars().sort("point", "run", "transfer")["octets_delivered"]
    assert whole["goodput_bps"].to_list() == pytest.approx((delivered * 8 / 20).to_list())
    early = results.samples.to_polars().filter(pl.col("at_ns") == 5_000_000_000).sort("point", "run", "flow")
    assert late["goodput_bps"].to_list() == pytest.approx(((delivered - early["octets_delivered"]) * 8 / 15).to_list())
    assert whole.columns == ["run", "point", "speed", "speed_bps", "flow", "entry", "goodput_bps"]


def test_effects_are_those_of_the_flows_of_each_mix() -> None:
    found = short("cubic", "newreno", runs=3)
    table = found.goodputs

    def mean(mix: str, *entries: int) -> float:
        return float(table.filter((pl.col("mix") == mix) & pl.col("entry").is_in(entries))["goodput_bps"].mean())  # type: ignore[arg-type]

    one = effect(found, "one-first", "cubic")
    assert (one.flows, one.others, one.fair) == (1, 3, 0.25)
    assert one.goodput_bps.value == pytest.approx(mean("one-first", 0))
    # The jackknife takes a little bias out.
    assert one.harm.value == pytest.approx(1 - mean("one-first", 1, 2, 3) / mean("all-second", 1, 2, 3), abs=0.01)
    assert one.gain.value == pytest.approx(mean("one-first", 0) / mean("all-second", 0) - 1, abs=0.02)
    back = effect(found, "one-first", "newreno")
    assert back.harm.value == pytest.approx(1 - mean("one-first", 0) / mean("all-first", 0), abs=0.02)
    assert one.share.value + back.share.value == pytest.approx(1)
    schemes = found.results.transfers.to_polars().select("mix", "entry", "scheme").unique()
    assert set(schemes.filter(mix="half", scheme="cubic")["entry"]) == {0, 2}
    assert set(schemes.filter(mix="one-second", scheme="newreno")["entry"]) == {0}


def test_pairs_of_a_sweep_over_kinds_by_hand() -> None:
    rows = [
        # Two points of the world, one run each; two others beside the one.
        (0, "own", "one", 10.0), (0, "own", "others.0", 10.0), (0, "own", "others.1", 20.0),
        (1, "fast", "one", 16.0), (1, "fast", "others.0", 8.0), (1, "fast", "others.1", 16.0),
        (2, "own", "one", 30.0), (2, "own", "others.0", 30.0), (2, "own", "others.1", 40.0),
        (3, "fast", "one", 44.0), (3, "fast", "others.0", 20.0), (3, "fast", "others.1", 36.0),
    ]  # fmt: skip
    columns = ["point", "kind", "flow", "goodput_bps"]
    table = pl.DataFrame(rows, columns, orient="row").with_columns(run=pl.lit(0), world=pl.col("point") // 2)
    found = gains.pairs(table, "kind", own="own")
    assert list(found) == ["fast"]
    pair = found["fast"]
    assert [pair.ours.tolist(), pair.instead.tolist()] == [[16.0, 44.0], [10.0, 30.0]]
    assert [pair.beside.tolist(), pair.among.tolist()] == [[12.0, 28.0], [15.0, 35.0]]
    # 60 for 40; without either point 16 for 10 or 44 for 30, which the jackknife takes into account.
    assert pair.gain.value == pytest.approx(2 * 0.5 - (0.6 + 14 / 30) / 2)
    # A fifth at both points.
    assert pair.harm.value == pytest.approx(0.2)


def test_two_flows_have_one_mix_only() -> None:
    found = wl.friendly("cubic", "newreno", world=dumbbell(duration="5 s"), flows=2, runs=2)
    assert found.table["mix"].to_list() == ["half", "half"]


# --- what is known ---------------------------------------------------------------------------------------------------


def test_a_scheme_does_itself_no_harm_and_shares_equally() -> None:
    found = short("newreno", "newreno", runs=20)
    for one in found.effects:
        low, high = one.harm.interval()
        assert low <= 0 <= high
        assert not one.certain
        low, high = one.share.interval(0.999)
        assert low <= one.fair <= high
        assert high - low < 0.1
    assert "takes nothing from newreno" in found.verdict


def test_what_differs_in_a_header_only_does_little_harm() -> None:
    one = effect(short("newreno,tcp.timestamps=false", "newreno", runs=20), "half", "newreno,tcp.timestamps=false")
    low, high = one.harm.interval()
    assert abs(one.harm.value) < 0.05
    assert 0 < high - low < 0.1


def test_runs_without_chance_make_nothing_certain() -> None:
    world = dumbbell(duration="10 s").replace({"scenario.send_overhead": "0 ms", "flow[0].start_spread": "0 ms"})
    found = wl.friendly("cubic", "vegas", world=world, flows=2, runs=3)
    low, high = found.effects[0].harm.interval()
    assert low == pytest.approx(high)
    assert low > 0.1
    assert not found.effects[0].certain
    assert "every run is the same, nothing is certain" in found.verdict


def test_vegas_yields_to_reno() -> None:
    found = short("vegas", "reno")
    vegas, reno = effect(found, "half", "vegas"), effect(found, "half", "reno")
    assert vegas.harm.interval()[1] < 0 < reno.harm.interval()[0]
    assert vegas.share.interval()[1] < 0.5
    assert found.verdicts[0].startswith("vegas leaves reno ")
    assert found.verdicts[1].startswith("reno takes ")
    assert all(sentence.endswith(": certain") for sentence in found.verdicts)


def test_tfrc_is_reasonably_fair_to_newreno() -> None:
    # RFC 5348, 1: within a factor of two of the rate of a TCP under the same conditions.
    found = short("tfrc", "newreno")
    tfrc = effect(found, "half", "tfrc")
    assert 1 / 3 < tfrc.share.value < 2 / 3
    # In the other order the same comes out, mirrored: the places change, nothing else.
    mirrored = effect(short("newreno", "tfrc"), "half", "tfrc")
    assert mirrored.share.value == pytest.approx(tfrc.share.value, abs=0.03)
    assert mirrored.harm.value == pytest.approx(tfrc.harm.value, abs=0.06)


def test_tfrc_and_newreno_leave_each_other_alone_where_only_errors_limit_them() -> None:
    found = short("tfrc", "newreno", rate="50 Mbps", loss="2 %", profile="ns2")
    for one in found.effects:
        assert one.harm.interval()[0] < 0.05
        assert one.harm.interval()[1] > -0.05


def test_transports_of_datagrams_beside_each_other() -> None:
    found = short("dccp-ccid2", "tfrc", runs=2)
    assert set(found.results.transfers["scheme"]) == {"dccp-ccid2", "tfrc"}
    assert all(one.goodput_bps.value > 200_000 for one in found.effects)


GREEDY = """
from whyloss.parts import CongestionControl

class Greedy(CongestionControl):
    name, summary, reference = "greedy", "Hardly yields.", "a test"

    def on_ack(self, window, ack):
        if not ack.in_recovery and ack.window_limited:
            window.grow(ack.acked if window.in_slow_start else 0.1 * ack.acked)

    def threshold(self, window, path):
        return 0.95 * window.used(path)
"""


def test_a_greedy_part_of_ones_own_does_much_harm(whyloss: Call, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(GREEDY)
    done = whyloss("friendly", "greedy", "newreno", "--with", "own.py", *SHORT, "--json")
    assert done.status == 0, done.err
    half = done.json["effects"][0]
    assert half["harm_low"] > 0.5
    assert half["gain_low"] > 0.2
    assert done.json["verdicts"][0].startswith("greedy takes ")


# --- the world -------------------------------------------------------------------------------------------------------


def test_the_dumbbell_is_what_it_says() -> None:
    document = dumbbell(rate="8 Mbps", delay="30 ms", loss="1 %", profile="ns2", seed=7).to_dict()
    bottleneck = document["dumbbell"]["bottleneck"]
    # 8 Mbit/s x 60 ms are 60 kB; 1500 octets take 1.5 ms.
    assert bottleneck["queue"] == "40 pkt"
    assert document["scenario"]["send_overhead"] == "1500 us"
    assert document["scenario"]["seed"] == 7
    assert document["flow"][0]["profile"] == "ns2"
    assert dumbbell(queue="9 pkt").to_dict()["dumbbell"]["bottleneck"]["queue"] == "9 pkt"


def test_a_scenario_gives_hosts_settings_and_cross_traffic(tmp_path: Path) -> None:
    (tmp_path / "world.toml").write_text(
        """
        [scenario]
        duration = "10 s"
        [path]
        rate = "2 Mbps"
        delay = "10 ms"
        queue = "20 pkt"
        [[flow]]
        name = "noise"
        cbr = { rate = "1 Mbps", packet = "1000 B" }
        [[flow]]
        name = "talk"
        stream = { rate = "100 kbps" }
        [[flow]]
        name = "reader"
        web = {}
        [[flow]]
        name = "file"
        size = "1 MB"
        scheme = "vegas"
        profile = "ns2"
        parameters.vegas.alpha = 2
        [[flow]]
        name = "left out"
        """
    )
    found = wl.friendly("tfrc", "cubic", world=tmp_path / "world.toml", flows=2, runs=2)
    half = found.results.transfers.to_polars().filter(mix="half", run=0)
    assert half["scheme"].to_list()[:3] == ["tfrc", "cubic", "cbr"]
    assert half["transfer"].to_list()[2:] == ["noise", "talk", "reader"]
    assert half["goodput_bps"][3] == pytest.approx(100_000, rel=0.1)
    # What is left beside the others is theirs; the whole 2 Mbit/s are not.
    assert 0.3e6 < sum(one.goodput_bps.value for one in found.effects) < 1.1e6
    assert found.world == "world: 2 Mbps, 10 ms each way, queue of 20 pkt; 10 s without the first 2 s"


def test_kinds_by_name_and_by_fields() -> None:
    assert Kind.of("cubic").fields == {"scheme": "cubic"}
    assert Kind.of("tfrc").datagrams
    assert not Kind.of("cubic").datagrams
    fields = {"scheme": "newreno", "differentiator": "zigzag", "tcp.sack": True}
    assert Kind.of("newreno, differentiator=zigzag, tcp.sack=true").fields == fields
    assert Kind.of(fields).fields == fields
    assert Kind.of("none").fields == {"congestion": "none"}


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cubi", "reno"], "there is no scheme `cubi` (did you mean `cubic`?)"),
        (["cubic", "renoo"], "there is no scheme `renoo` (did you mean `reno`?)"),
        (["cubic,differentiator=zigzg", "reno"], "did you mean `zigzag`?"),
        (["cubic,colour=red", "reno"], "found the field `colour`; allowed: scheme, congestion,"),
        (["cubic,reno", "reno"], "found `reno`; allowed: a name, then FIELD=VALUE"),
        (["cubic", "reno", "--flows", "3"], "found 3 flows; allowed: an even number from 2 to 200"),
        (["cubic", "reno", "--flows", "202"], "an even number from 2 to 200"),
        (["cubic", "reno", "--warm-up", "1"], "found a warm-up of 1.0"),
        (["cubic", "reno", "--rate", "5 Kbps"], "did you mean `kbps`?"),
        (["cubic", "reno", "--loss", "200 %"], '--loss: found "200 %"; allowed: a number from 0 to 1'),
        (["cubic", "reno", "--profile", "freebsd"], "did you mean"),
        (["cubic", "reno", "--scenario", "small.toml", "--rate", "1 Mbps"], "say it as --set path.rate="),
        (["cubic", "reno", "--scenario", "nowhere.toml"], "there is no such file"),
        (["cubic", "reno", "--set", "dumbbell.bottleneck.rte=1 Mbps"], "did you mean `rate`?"),
        (["cubic"], "Missing argument 'B'"),
    ],
)
def test_bad_input_is_one_message_and_status_2(whyloss: Call, small: Path, arguments: list[str], message: str) -> None:
    assert small.is_file()
    done = whyloss("friendly", *arguments)
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_world_without_congestion_control_is_refused(whyloss: Call, small: Path) -> None:
    text = small.read_text().partition("[[flow]]")[0].replace("seed = 3", 'duration = "5 s"')
    small.write_text(text + '[[flow]]\ncbr = { rate = "1 Mbps", packet = "1000 B" }\n')
    done = whyloss("friendly", "cubic", "reno", "--scenario", small)
    assert done.status == 2
    assert "small: all flows are cross traffic" in done.err


def test_verdict_first_then_the_table(whyloss: Call, tmp_path: Path) -> None:
    done = whyloss("friendly", "vegas", "reno", *SHORT)
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("vegas leaves reno ")
    assert lines[0].endswith(": certain.")
    assert lines[1].startswith("reno takes ")
    assert "3 vegas beside 1 reno" in done.out
    assert done.err.splitlines()[-1] == "tables and figure: out/friendly-vegas-reno"
    folder = tmp_path / "out" / "friendly-vegas-reno"
    assert {"friendly.parquet", "goodputs.parquet", "transfers.parquet", "friendly.svg", "friendly.png"} <= {
        path.name for path in folder.iterdir()
    }


def test_machines_are_told_the_same_as_the_table_keeps(whyloss: Call, tmp_path: Path) -> None:
    told = whyloss("friendly", "cubic", "tfrc", *SHORT, "--json", "--out", tmp_path / "o").json
    kept = pl.read_parquet(tmp_path / "o" / "friendly.parquet").to_dicts()
    assert told["effects"] == kept
    assert len(kept) == 6
    assert told["first"] == {"asked": "cubic", "scheme": "cubic"}
    assert all(row["harm_low"] <= row["harm"] <= row["harm_high"] for row in kept)


def test_the_same_seed_gives_the_same_octets(whyloss: Call, tmp_path: Path) -> None:
    def octets(name: str, *more: str) -> dict[str, bytes]:
        folder = tmp_path / name
        done = whyloss("friendly", "cubic", "reno", *SHORT, *more, "--out", folder, "--store", tmp_path / f"{name}.st")
        assert done.status == 0, done.err
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    once = octets("once")
    assert once == octets("again", "--threads", "1")
    assert once["friendly.parquet"] != octets("other", "--seed", "2")["friendly.parquet"]


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    command = [str(WHYLOSS), "friendly", "cubic", "reno", "--runs", "400", "--store", "store"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and sum(len(files) for *_, files in os.walk(tmp_path / "store")) < 5:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert (running.returncode, out) == (130, "")
    assert "of 2000 runs are kept in" in err
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_the_example_part_is_compared(whyloss: Call) -> None:
    part = ROOT / "examples" / "own_part.py"
    done = whyloss("friendly", "scalable", "cubic", "--with", part, *SHORT, "--json")
    assert done.status == 0, done.err
    assert done.json["first"] == {"asked": "scalable", "congestion": "scalable"}
