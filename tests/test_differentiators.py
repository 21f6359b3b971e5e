"""The pages of the differentiators say what the tables and the measurements say."""

from __future__ import annotations

import json
import sys
import tomllib
from typing import Any

import pytest

import whyloss as wl
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import differentiators as tool

NAMES = [part["name"] for part in tool.differentiators()]
MEASURED: dict[str, dict[str, Any]] = json.loads(tool.MEASURED.read_text(encoding="utf-8"))["differentiators"]


def test_the_pages_are_current() -> None:
    for path, text in tool.pages().items():
        assert path.is_file(), f"{path.name} is missing: make generated"
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: make generated"


def test_every_differentiator_has_a_page_and_no_page_is_left_over() -> None:
    assert {path.stem for path in tool.FOLDER.glob("*.md")} == {*NAMES, "README"}
    assert {path.stem for path in tool.FOLDER.glob("*.svg")} == {*MEASURED, "all"}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_why_it_should_work_and_where_it_fails(name: str) -> None:
    text = (tool.FOLDER / f"{name}.md").read_text(encoding="utf-8")
    part = next(part for part in tool.differentiators() if part["name"] == name)
    for heading in ("## Idea", "## Rule", "## Where it fails", "## Measured"):
        assert heading in text, heading
    assert all(f"| `{parameter}` |" in text for parameter, _ in part["details"])


@pytest.mark.parametrize("name", MEASURED)
def test_measurements_are_of_the_same_losses_and_hold_together(name: str) -> None:
    found = MEASURED[name]
    whole, parts = found["all"], found["situations"].values()
    for truth in ("congestion", "corruption"):
        assert whole[truth] == sum(part[truth] for part in parts) == MEASURED["none"]["all"][truth] > 0
    for numbers in (whole, *parts):
        assert numbers["a_t"] == pytest.approx((numbers["a_c"] + numbers["a_w"]) / 2, abs=1e-4)
        low, high = numbers["intervals"]["auc"]
        assert 0 <= low <= numbers["auc"] + 2e-3
        assert numbers["auc"] - 2e-3 <= high <= 1


def test_the_bounds_are_where_they_must_be() -> None:
    none, coin, oracle = (MEASURED[name]["all"] for name in ("none", "coin", "oracle"))
    assert (none["a_c"], none["a_w"], none["auc"]) == (1, 0, 0.5)
    assert coin["intervals"]["auc"][0] < 0.5 < coin["intervals"]["auc"][1]
    assert oracle["auc"] > max(found["all"]["auc"] for name, found in MEASURED.items() if name != "oracle")


def test_the_benchmark_runs_with_every_differentiator_in_shadow() -> None:
    sweep = wl.Sweep.load(tool.SWEEP).with_arguments(tool.arguments(["none", "oracle"]))
    scenario = sweep.scenarios[0].replace({"scenario.duration": "5 s"})
    columns = scenario.run().losses.columns
    assert {"verdict_none", "verdict_oracle"} <= set(columns)
    situations = tomllib.loads(tool.SWEEP.read_text(encoding="utf-8"))["axis"][0]["variant"]
    assert {one["name"] for one in situations} == set(MEASURED["none"]["situations"])
