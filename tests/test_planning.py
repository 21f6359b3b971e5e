"""What a sweep will cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import whyloss as wl
from whyloss.planning import forecast

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ended


def test_a_forecast_is_near_what_it_takes(small: Path, tmp_path: Path) -> None:
    scenario = wl.Scenario.load(small).replace({"flow[0].size": "3 MB"})
    sweep = wl.Sweep(scenario, runs=40).vary("path.rate", ["2 Mbps", "4 Mbps", "8 Mbps"])
    found = forecast(sweep.native, tmp_path / "store")
    assert (found.runs, found.missing, found.points, found.tried) == (120, 120, 3, 12)
    began = time.process_time()
    sweep.run(store=tmp_path / "store", threads=1)
    took = time.process_time() - began
    # Twelve runs of some milliseconds on a machine that does other things too.
    assert 0.4 * took < found.core_s < 2.5 * took
    octets = sum(path.stat().st_size for path in (tmp_path / "store").rglob("*.part"))
    assert 0.7 * octets < found.store_octets < 1.4 * octets
    assert forecast(sweep.native, tmp_path / "store").missing == 0


def test_the_command_says_what_to_expect(small: Path, tmp_path: Path, whyloss: Callable[..., Ended]) -> None:
    (tmp_path / "sweep.toml").write_text(f'[sweep]\nbase = "{small.name}"\nruns = 1000\n')
    told = whyloss("sweep", "sweep.toml", "--plan", "--cores", "10", "--json").json
    assert (told["runs"], told["in_store"], told["cores"]) == (1000, 0, 10)
    assert told["wall_s"] * 10 == told["core_s"]
    assert not (tmp_path / "out").exists()
