"""The command: results on standard output, everything else on standard error, exit statuses that mean something."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import whyloss as wl
from conftest import ROOT, WHYLOSS, Ended
from whyloss import _native, papers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Call = Callable[..., Ended]

COMMANDS = ["run", "sweep", "friendly", "score", "roc", "reproduce", "papers", "schemes", "describe", "report", "plot"]


def test_help_teaches(whyloss: Call) -> None:
    top = whyloss("--help")
    assert top.status == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\S", top.out, re.M), command
        own = whyloss(command, "--help")
        assert own.status == 0
        assert f"whyloss {command}" in own.out.partition("Examples:")[2], command


def test_version(whyloss: Call) -> None:
    assert whyloss("--version").out == f"whyloss, version {wl.__version__}\n"


def test_run_says_who_got_what_and_why_it_was_lost(whyloss: Call, small: Path) -> None:
    done = whyloss("run", small)
    assert done.status == 0
    assert "goodput" in done.out
    assert re.search(r"flow0 +newreno +[\d.]+ kbps +[\d.]+ s", done.out), done.out
    assert "erased" in done.out


def test_run_tells_machines_the_same(whyloss: Call, small: Path, tmp_path: Path) -> None:
    done = whyloss("run", small, "--json", "--out", tmp_path / "out")
    told = done.json
    assert told["transfers"][0]["octets_delivered"] == 200_000
    losses = pl.read_parquet(tmp_path / "out" / "losses.parquet")
    assert sum(row["losses"] for row in told["losses"]) == len(losses) > 0
    assert "tables: " in done.err


def test_set_changes_fields(whyloss: Call, small: Path) -> None:
    slow = whyloss("run", small, "--json", "--set", "path.rate=100 kbps", "--set", "flow[0].scheme=sack").json
    assert slow["transfers"][0]["goodput_bps"] < 100_000
    assert slow["transfers"][0]["scheme"] == "sack"


@pytest.mark.parametrize("option", ["loss", "damaged"])
def test_a_share_is_a_number_or_a_percentage(option: str) -> None:
    def made(share: str | float) -> dict[str, Any]:
        return wl.path(loss=share).to_dict() if option == "loss" else wl.path(damaged=share).to_dict()

    for same in ("1%", "0.01", "1e-2", 0.01):
        assert made(same) == made("1 %")
    for share in ("0", "1", "8.3e-6", "100%"):
        made(share)
    for none in ("1.5", "-0.1", "101%", "nan", "much"):
        with pytest.raises(wl.InputError, match=f'--{option}: found "{none}"; allowed: a number from 0 to 1, such as'):
            made(none)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere.toml"], "nowhere.toml: there is no such file"),
        (["run", "small.toml", "--set", "path.rte=1 Mbps"], "did you mean `rate`?"),
        (["run", "small.toml", "--set", "path.rate"], "'--set': found 'path.rate'; allowed: FIELD=VALUE"),
        (["run", "small.toml", "--set", "path.queue=0 pkt"], "path.queue"),
        (["run", "small.toml", "--set", "flow[0].scheme=renoo"], "did you mean `reno`?"),
        (["run", "small.toml", "--set", "path.forward.channel.pattern=bad.bits"], "bad.bits, line"),
        (["run", "small.toml", "--rnu", "1"], "No such option"),
        (["run", "broken.toml"], "broken.toml:2"),
        (["sweep", "small.toml"], "small.toml"),
        (["describe", "chekcsum-ld"], "did you mean `checksum-ld`?"),
        (["describe", ""], "nothing has an empty name"),
        (["reproduce", "garcia2005"], "Did you mean 'garcia2004'?"),
        (["reproduce", "garcia2004", "--figure", "99"], "no figure '99'"),
        (["reproduce", "garcia2004", "--reading", "x"], "no reading 'x'; there are pre-registered, behaviour,"),
        (["reproduce", "garcia2004", "--reading", "behaviour", "--all-readings"], "either --reading or --all-readings"),
        (["report", "."], "holds neither reproduction.json nor runs.parquet"),
        (["report", "nowhere"], "'nowhere' does not exist"),
        (["report", ".", "--set", "path.rate=1 Mbps"], "goes with a scenario, not with a folder"),
        (["report", "broken.toml"], "broken.toml:2"),
        (["frobnicate"], "No such command"),
    ],
)
def test_bad_input_is_one_message_and_status_2(whyloss: Call, small: Path, arguments: list[str], message: str) -> None:
    (small.parent / "bad.bits").write_text(
        "whyloss bit-error pattern 1\ntotal_bits 1000\nber 0\nseed 0\ncount 2\n500\n400\n"
    )
    (small.parent / "broken.toml").write_text("[path]\nrate = \n")
    done = whyloss(*arguments)
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert "Traceback" not in done.err
    assert len(re.findall(r"^error: |^Error: ", done.err, re.M)) == 1


def test_a_failed_write_is_status_1(whyloss: Call, small: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = whyloss("run", small, "--out", tmp_path / "file" / "below")
    assert done.status == 1
    assert "cannot write" in done.err
    assert "Traceback" not in done.err


@pytest.fixture
def sweep(small: Path) -> Path:
    """A sweep of 400 runs: seconds, not milliseconds."""
    path = small.parent / "sweep.toml"
    path.write_text(
        f"""
        [sweep]
        base = "{small.name}"
        runs = 200
        [set]
        "flow[0].size" = "2 MB"
        [[axis]]
        field = "path.rate"
        values = ["5 Mbps", "10 Mbps"]
        """
    )
    return path


def test_sweep_gives_means_with_intervals_and_tables(whyloss: Call, sweep: Path, tmp_path: Path) -> None:
    sweep.write_text(sweep.read_text().replace("runs = 200", "runs = 3").replace("2 MB", "200 kB"))
    done = whyloss("sweep", sweep, "--json")
    told = done.json
    assert [point["rate"] for point in told["points"]] == ["5 Mbps", "10 Mbps"]
    assert all(point["n"] == 3 and point["low"] < point["goodput_bps"] < point["high"] for point in told["points"])
    assert pl.read_parquet(tmp_path / told["out"] / "runs.parquet").height == 6
    shown = whyloss("sweep", sweep)
    assert shown.status == 0
    assert "95 % interval" in shown.out


def test_what_is_set_wins_over_the_sweep_but_not_over_its_axes(whyloss: Call, sweep: Path, tmp_path: Path) -> None:
    sweep.write_text(sweep.read_text().replace("runs = 200", "runs = 2"))
    done = whyloss("sweep", sweep, "--set", "flow[0].size=100 kB", "--out", "small", "--json")
    assert done.status == 0, done.err
    assert pl.read_parquet(tmp_path / "small" / "transfers.parquet")["octets_delivered"].to_list() == [100_000] * 4
    refused = whyloss("sweep", sweep, "--set", "path.rate=1 Mbps", "--out", "slow")
    assert refused.status == 2
    assert "--set: path.rate: axis `rate` replaces it at its steps" in refused.err
    assert not (tmp_path / "slow").exists()


def test_a_sweep_is_not_called_like_a_place_that_is_not_its_own(whyloss: Call, sweep: Path, tmp_path: Path) -> None:
    text = sweep.read_text()
    for name in ("../../esc", "store"):
        sweep.write_text(text.replace("runs = 200", f'runs = 1\nname = "{name}"'))
        done = whyloss("sweep", sweep)
        assert done.status == 2
        assert f'sweep.name: found "{name}"; allowed: what a folder can be called' in done.err
    assert not (tmp_path / "out").exists()


def test_a_pipe_is_read_once(whyloss: Call, small: Path) -> None:
    os.mkfifo(pipe := small.parent / "pipe.toml")
    writer = threading.Thread(target=pipe.write_text, args=(small.read_text(),))
    writer.start()
    done = whyloss("sweep", pipe)
    writer.join()
    assert done.status == 2
    assert "pipe.toml" in done.err


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(sweep: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [WHYLOSS, "sweep", sweep, "--threads", "1"],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "160"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    store = tmp_path / "out" / "store"
    deadline = time.monotonic() + 60
    while not any(path.is_file() for path in store.rglob("*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - asked < 5
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    kept = re.search(r"stopped: (\d+) of 400 runs are kept in out/store; the same command goes on from there", err)
    assert kept, err
    assert not (tmp_path / "out" / "sweep").exists()
    # What was kept is found again.
    seen: list[wl.Progress] = []
    with pytest.raises(LookupError):
        wl.Sweep.load(sweep).run(store=store, progress=_first_news(seen))
    assert seen[0].found >= int(kept[1]) > 0


def _first_news(seen: list[wl.Progress]) -> Callable[[wl.Progress], None]:
    def watch(now: wl.Progress) -> None:
        seen.append(now)
        raise LookupError

    return watch


def test_ctrl_c_stops_a_single_run_within_a_moment(small: Path) -> None:
    endless = ["--set", "flow[0].size=100 GB", "--set", "scenario.duration=100000 h"]
    process = subprocess.Popen(
        [WHYLOSS, "run", small, *endless],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "WHYLOSS_PROGRESS_S": "0.05"},
    )
    assert process.stderr is not None
    assert process.stderr.readline()  # It runs by now.
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "stopped" in err
    assert time.monotonic() - asked < 2


def test_schemes_and_describe_speak_of_every_part(whyloss: Call) -> None:
    shown = whyloss("schemes")
    told = whyloss("schemes", "--json").json
    for description in [*told["schemes"], *told["parts"], *told["profiles"]]:
        assert description["name"] in shown.out
    for role, part in whyloss("describe", "checksum-ld", "--json").json[0]["details"]:
        assert part in [row["name"] for row in told["parts"] if row["kind"] == role]


def test_describe_explains_fields(whyloss: Call) -> None:
    done = whyloss("describe", "path.queue")
    assert done.status == 0
    assert "99 pkt" in done.out
    assert whyloss("describe", "flow[0].tcp.ack_policy").out.count("immediate") >= 1


def test_reproduce_tells_machines_one_object_a_claim(whyloss: Call, tmp_path: Path) -> None:
    done = whyloss("reproduce", "garcia2004", "--quick", "--figure", "4", "--figure", "11", "--json")
    assert done.status == 0, done.err
    assert done.json
    for claim in done.json:
        assert {"id", "verdict", "measured", "low", "high", "n", "expected"} <= claim.keys()
        assert claim["verdict"] in ("reproduced", "not reproduced", "undecided")
    assert {claim["reading"] for claim in done.json} == {"pre-registered", "behaviour"}
    page = tmp_path / "out" / "garcia2004" / "report.html"
    assert done.err.splitlines()[-1] == "report: out/garcia2004/report.html"
    before = page.read_bytes()
    page.unlink()
    assert whyloss("report", tmp_path / "out" / "garcia2004").out.strip() == str(page)
    assert page.read_bytes() == before


def test_reproduce_shows_readings_side_by_side(whyloss: Call) -> None:
    one = whyloss("reproduce", "garcia2004", "--quick", "--figure", "8", "--reading", "pre-registered")
    assert re.search(r"^claim +verdict ", one.out, re.M)
    said = " ".join(one.out.split())
    assert "A connection begins with a window of two segments" in said  # the claim's words, not its name alone
    assert "other readings of the paper: behaviour, competing, at-once, at-once-competing" in one.err
    both = whyloss("reproduce", "garcia2004", "--quick", "--figure", "8")
    assert re.search(r"^claim +Pre-registered", both.out, re.M)
    assert re.search(r"^GB-7 A connection.* reproduced 10 \(10 … 10\) ", both.out, re.M), both.out
    every = whyloss("reproduce", "garcia2004", "--quick", "--figure", "8", "--all-readings", "--json").json
    assert [claim["reading"] for claim in every] == papers.load("garcia2004").readings


def test_papers_lists_figures_and_claims(whyloss: Call) -> None:
    told = {paper["name"]: paper for paper in whyloss("papers", "--json").json}
    assert len(told["garcia2004"]["claims"]) == 12
    assert "garcia2004" in whyloss("papers").out


@pytest.mark.parametrize("words", ["schemes", "schemes --json", "papers --json", "schemes --help", "--help"])
def test_a_closed_pipe_is_no_failure_to_complain_about(words: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    # As in a shell; Python ignores the signal and passes that on.
    command = ["sh", "-c", f"exec {WHYLOSS} {words}"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, restore_signals=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_every_field_of_the_format_can_be_described() -> None:
    schema = _native.scenario_schema()
    for name in schema["properties"]:
        assert _native.describe(name)[0]["summary"], name


def test_json_is_whole_when_numbers_are_not_finite(whyloss: Call, small: Path) -> None:
    told = whyloss("run", small, "--json", "--set", "flow[0].shadows=[]")
    json.loads(told.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_the_examples_of_all_help_texts_name_files_that_exist() -> None:
    from whyloss.cli.app import app

    for command in app.commands.values():
        for example in getattr(command, "examples", []):
            for name in re.findall(r"examples/\S+", example):
                assert (ROOT / name).is_file(), name
