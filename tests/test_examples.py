"""What the README and the examples show runs as they show it."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import polars as pl
import pytest

import whyloss as wl
from conftest import ROOT, WHYLOSS, Ended

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EXAMPLES = ROOT / "examples"
SCENARIOS = [path for path in sorted(EXAMPLES.glob("*.toml")) if "[sweep]" not in path.read_text()]
SWEEPS = [path for path in sorted(EXAMPLES.glob("*.toml")) if "[sweep]" in path.read_text()]


def _commands(text: str) -> list[str]:
    """Every call of the command in a text, without comments; not those that need a file of the reader's own."""
    calls = re.findall(r"(?:^|[\s:])(?:\.venv/bin/)?(whyloss (?:run|sweep|schemes|describe|papers) [^\n]*)", text)
    return [re.split(r"\s{2,}#|\s#\s", call)[0].strip() for call in calls if "/path/to/" not in call]


def test_there_are_examples_of_both_kinds() -> None:
    assert len(SCENARIOS) >= 4
    assert len(SWEEPS) >= 1


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_takes_less_than_a_second_and_moves_its_data(path: Path) -> None:
    began = time.monotonic()
    results = wl.Scenario.load(path).run()
    assert time.monotonic() - began < 2
    assert min(results.transfers["octets_delivered"].to_list()) > 10_000


def test_what_a_build_by_a_profile_learns_from_runs() -> None:
    training = runpy.run_path(str(ROOT / "tools" / "train_profile.py"))
    for scenario in training["dumbbells"]():
        ran = scenario.replace({"scenario.duration": "1.5 s"}).run()
        assert sum(ran.transfers["octets_delivered"].to_list()) > 10_000
    assert len(list(training["examples"]())) == len(SCENARIOS)


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_a_sweep_runs(path: Path) -> None:
    sweep = wl.Sweep.load(path)
    assert len(sweep.run().runs) == len(sweep)


def test_knowing_about_damage_pays_on_the_lossy_link() -> None:
    scenario = wl.Scenario.load(EXAMPLES / "lossy-link.toml").replace({"path.forward.channel.ber": 5e-6})
    sweep = wl.Sweep(scenario, runs=5).vary("flow[0].scheme", ["newreno", "checksum-ld"], name="variant")
    rows = sweep.run().transfers.to_polars()
    means = dict(rows.group_by("variant").agg(pl.col("goodput_bps").mean()).iter_rows())
    assert means["checksum-ld"] > 1.2 * means["newreno"]


@pytest.mark.parametrize(
    "call",
    sorted({call for path in [ROOT / "README.md", *SCENARIOS, *SWEEPS] for call in _commands(path.read_text())}),
)
def test_commands_that_texts_show_work(call: str, whyloss: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    done = whyloss(*shlex.split(call)[1:], cwd=tmp_path)
    assert done.status == 0, done.err


def test_the_python_example_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "first_steps.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "verdict_reported" in done.stdout


def test_the_readme_names_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(
        re.findall(
            r"(?:^|`)make ([a-z-]+)", (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text(), re.M
        )
    )
    assert {"demo", "test"} <= named <= targets


def test_the_command_stands_where_the_readme_says() -> None:
    assert WHYLOSS.is_file()
    assert ".venv/bin/whyloss" in (ROOT / "README.md").read_text()
