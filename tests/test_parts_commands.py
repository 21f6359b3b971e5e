"""Parts of one's own on the command line."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from conftest import ROOT, Ended
from test_parts import FAILING, SCENARIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_part_of_the_command_line_is_run_swept_listed_and_described(
    whyloss: Callable[..., Ended], tmp_path: Path
) -> None:
    file = ROOT / "examples" / "own_part.py"
    scenario = ROOT / "examples" / "random-loss.toml"
    own = ["--with", file, "--json"]
    ran = whyloss("run", scenario, *own, "--set", "flow[0].congestion=scalable", "--set", "scenario.duration=5 s")
    assert ran.status == 0, ran.err
    assert ran.json["transfers"][0]["scheme"] == "sack+scalable"
    assert "scalable" in {part["name"] for part in whyloss("schemes", *own).json["parts"]}
    assert whyloss("describe", "scalable", *own).json[0]["reference"] == "Kelly 2003"
    assert whyloss("describe", "scalable").status == 2
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(
        f'sweep.base = "{scenario}"\nsweep.runs = 2\n[[axis]]\nfield = "flow[0].congestion"\n'
        'values = ["newreno", "scalable"]\n'
    )
    swept = whyloss("sweep", sweep, *own, "--set", "scenario.duration=5 s")
    assert swept.status == 0, swept.err
    assert swept.json["runs"] == 4


PATIENT = """
from whyloss.parts import *

class Patient(TimeoutPolicy):
    name, summary, reference = "patient", "Keeps the window at a timeout.", "a test"

    def on_timeout(self, timeout):
        return TimeoutResponse("keep")

    def assess(self, after):
        return Assessment.genuine()

class Blunt(LossDifferentiator):
    name, summary, reference = "blunt", "Corruption below twice the least delay.", "a test"
    least = latest = 0

    def on_ack(self, ack):
        self.latest = ack.delay_ns or self.latest
        self.least = min(self.least or self.latest, self.latest)

    def judge(self, loss):
        return Verdict.by_threshold(self.least / (self.least + self.latest) if self.latest else 0.0, 1 / 3)
"""


@pytest.fixture
def patient(tmp_path: Path) -> Path:
    """A scenario that names parts of the file own.py beside it."""
    (tmp_path / "own.py").write_text(PATIENT)
    file = tmp_path / "patient.toml"
    file.write_text(
        SCENARIO.replace("60 s", "20 s").replace("15 pkt", "5 pkt")
        + 'timeout = "patient"\nshadows = ["blunt", "vegas"]\n'
    )
    return file


def test_whatever_reads_a_scenario_takes_parts_of_ones_own(whyloss: Callable[..., Ended], patient: Path) -> None:
    reading = {
        "run": ["run", patient],
        "plot": ["plot", patient, "-o", "windows.svg"],
        "report": ["report", patient],
        # Ends at the second device that is missing, after the scenario was read.
        "emulate": ["emulate", patient, "--tun", "left"],
    }
    for name, command in reading.items():
        without = whyloss(*command)
        assert without.status == 2, name
        assert 'no such differentiator; found "blunt"' in without.err, name
        own = whyloss(*command, "--with", "own.py")
        if name == "emulate":
            assert "a link has two ends" in own.err
        else:
            assert own.status == 0, own.err


def test_scores_and_curves_of_parts_of_ones_own_need_no_option(
    whyloss: Callable[..., Ended], patient: Path, tmp_path: Path
) -> None:
    assert whyloss("run", patient, "--with", "own.py", "--out", "out").status == 0
    scored = whyloss("score", "out", "--json", "--draws", "0")
    assert {one["differentiator"] for one in scored.json["scores"]} >= {"blunt", "vegas"}
    drawn = whyloss("roc", "out", "-o", "roc.svg", "--differentiator", "blunt", "--unit", "segment")
    assert drawn.status == 0, drawn.err
    assert (tmp_path / "roc.svg").stat().st_size > 1000


def test_a_paper_may_name_parts_of_ones_own(whyloss: Callable[..., Ended], patient: Path, tmp_path: Path) -> None:
    paper = tmp_path / "paper"
    shutil.copytree(ROOT / "papers" / "garcia2004", paper)
    base = paper / "scenarios" / "alone.toml"
    text = base.read_text()
    assert "[[flow]]\n" in text
    base.write_text(text.replace("[[flow]]\n", '[[flow]]\ntimeout = "patient"\n'))
    pack = paper / "paper.toml"
    pack.write_text(pack.read_text().replace("quick_repetitions = 5", "quick_repetitions = 2"))
    command = ["reproduce", paper, "--quick", "--figure", "4", "--reading", "pre-registered", "--json"]
    without = whyloss(*command)
    assert without.status == 2
    assert 'no such timeout policy; found "patient"' in without.err
    own = whyloss(*command, "--with", patient.with_name("own.py"))
    assert own.status == 0, own.err
    assert (tmp_path / "out" / "garcia2004" / "report.html").is_file()
    real = whyloss(*command, "--with", patient.with_name("own.py"), "--on", "engine")
    assert real.status == 2
    assert "parts in Python run in the simulator only" in real.err


@pytest.mark.parametrize("command", [["serve", "own.py"], ["fetch", "http://198.18.2.1/x"]])
def test_real_packets_refuse_parts_in_python(whyloss: Callable[..., Ended], patient: Path, command: list[str]) -> None:
    refused = whyloss(*command, "--with", patient.with_name("own.py"))
    assert refused.status == 2
    assert "parts in Python run in the simulator only" in " ".join(refused.err.split())


def test_the_command_line_tells_what_failed(whyloss: Callable[..., Ended], tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    missing = whyloss("schemes", "--with", "own.py")
    assert (missing.status, missing.err) == (2, "error: own.py: there is no such file\n")
    file.write_text(FAILING)
    (tmp_path / "own.toml").write_text(SCENARIO)
    failed = whyloss("run", "own.toml", "--with", "own.py", "--set", "flow[0].reaction=failing")
    assert failed.status == 1
    told = "error: respond of the part `failing` failed: own.py, line 15: ZeroDivisionError: division by zero"
    assert told in failed.err.replace("\n", " ").replace("  ", " ")
