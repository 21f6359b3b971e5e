"""Where packet control wins and where it does not, what Selective-TCP does to others, and the pages that say so."""

import importlib.util
import json
import sys
from typing import Any

import polars as pl
import pytest

from conftest import ROOT
from whyloss.sweep import Sweep

DOCS = ROOT / "docs"


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("studies_tool", ROOT / "tools" / "studies.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def goodput(sweep: Sweep, axis: str, runs: int = 3) -> dict[tuple[str, str], float]:
    """The mean in Mbit/s by step of the axis and transfer."""
    table = sweep.with_runs(runs).run().transfers.to_polars()
    means = table.group_by(axis, "transfer").agg(pl.col("goodput_bps").mean() / 1e6)
    return {(str(step), transfer): mbps for step, transfer, mbps in means.iter_rows()}


def control(name: str, tcp: str, axis: str, step: object) -> dict[str, float]:
    """What one TCP carries with each agent, at one point of a sweep."""
    sweep = Sweep.load(DOCS / "packet-control" / f"{name}.toml").only("tcp", [tcp]).only(axis, [step])
    return {agent: mbps for (agent, _), mbps in goodput(sweep, "agent").items()}


@pytest.mark.parametrize("study", ["packet-control", "selective"])
def test_pages_say_what_was_measured(study: str) -> None:
    """`python tools/studies.py` writes them again."""
    page, text = tool().page(study)
    assert page.read_text(encoding="utf-8") == text
    rows = json.loads((DOCS / study / "measured.json").read_text(encoding="utf-8"))
    assert {row["sweep"] for row in rows} == set(tool().sweeps(DOCS / study))
    assert min(len(row["mbps"]) for row in rows) >= 30


def test_packet_control_hides_reordering_that_is_shorter_than_its_threshold() -> None:
    """Six packets late are six duplicates: a threshold of 12 lets one of them pass, one of 6 all three that count."""
    carried = control("reordering", "NewReno", "packets", 6)
    assert carried["D = 12"] > 2 * carried["none"]
    assert carried["D = 30"] == pytest.approx(carried["D = 12"], rel=0.05)
    assert carried["D = 6"] < 0.7 * carried["D = 12"]


def test_packet_control_gives_todays_tcp_nothing() -> None:
    carried = control("reordering", "CUBIC today", "packets", 10)
    assert carried["none"] > 9
    assert all(mbps == pytest.approx(carried["none"], rel=0.03) for mbps in carried.values())


def test_the_data_filter_saves_a_link_from_what_a_spurious_timeout_repeats() -> None:
    carried = control("spikes", "NewReno", "lasts", "2 s")
    assert carried["data filter"] > 1.03 * carried["none"]
    assert carried["ACK filter"] == pytest.approx(carried["none"], rel=0.05)


def test_packet_control_costs_where_packets_are_lost() -> None:
    carried = control("losses", "NewReno", "loss", "1 %")
    assert carried["D = 30"] < 0.8 * carried["none"]


def test_over_a_satellite_the_raw_reading_takes_the_link_and_its_neighbours_share() -> None:
    names = ["newreno", "selective, raw", "selective, bdp"]
    sweep = Sweep.load(DOCS / "selective" / "geo.toml").only("variant", names)
    alone = goodput(sweep.only("neighbour", ["none"]), "variant")
    beside = goodput(sweep.only("neighbour", ["newreno"]), "variant")
    assert alone["selective, raw", "transfer"] > 4 * alone["newreno", "transfer"]
    assert alone["selective, bdp", "transfer"] > 3 * alone["newreno", "transfer"]
    assert beside["selective, raw", "neighbour"] < 0.85 * beside["newreno", "neighbour"]
