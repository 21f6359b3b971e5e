"""What `lbe` keeps and takes, and the page that says so."""

import importlib.util
import sys
from dataclasses import replace
from typing import Any

import pytest

from conftest import ROOT


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("neighbourly_tool", ROOT / "tools" / "neighbourly.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_page_says_what_was_measured() -> None:
    """`python tools/neighbourly.py` writes it again."""
    study = tool()
    outcomes = study.load()
    assert (study.FOLDER / "README.md").read_text(encoding="utf-8") == study.page(outcomes)
    measured = {(outcome.group, outcome.name, outcome.counts) for outcome in outcomes}
    assert measured == {(w.group, w.name, (w.ours, w.others)) for w in [*study.worlds(), *study.kin()]}
    assert {len(outcome.ours[kind]) for outcome in outcomes for kind in study.KINDS} == {study.RUNS}


@pytest.mark.parametrize("verdict", ["reported", "oracle"])
def test_it_keeps_the_gain_alone_and_takes_less_from_others(verdict: str) -> None:
    study = tool()
    beside = study.World("", "", 1, 4, "384 kbps", "50 ms", 20, ber=8.33e-6, verdict=verdict, lasts="60 s")
    for world in (replace(beside, others=0, rate="1 Mbps"), beside):
        runs = {kind: world.run(kind) for kind in study.KINDS}
        ours, others, jain = ({kind: study.np.array(runs[kind][whose]) for kind in runs} for whose in runs["plain"])
        outcome = study.Outcome("", "", (world.ours, world.others), ours, others, jain)
        if outcome.alone:
            assert outcome.kept().value > 0.8
        else:
            assert outcome.harm("plain").value > 0.15
            assert outcome.harm("lbe").value < 0.6 * outcome.harm("plain").value
            assert outcome.gain("lbe").value > 0.3


def test_without_errors_it_is_plain() -> None:
    study = tool()
    world = study.World("", "", 2, 2, "1 Mbps", "50 ms", 20, lasts="30 s")
    assert world.run("lbe") == world.run("plain")
