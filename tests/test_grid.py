"""The tool that measures one control on many paths, and its page."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
if not (ROOT / "tools" / "grid.py").is_file():
    pytest.skip("needs the tools of the repository", allow_module_level=True)
sys.path.insert(0, str(ROOT / "tools"))

import whole_grid  # noqa: E402
from grid import Cell, Place, Record, agreement, slower  # noqa: E402

HERE = Place(10, 20, 1.0, "damage", 0.0, "single")


def cells(rates: tuple[float, float], times: tuple[float, float]) -> dict[tuple[Place, str, str], Cell]:
    """A flow and a page, of ours and of CUBIC."""
    found = {}
    for control, rate, time in zip(("auto", "cubic"), rates, times, strict=True):
        found[HERE, "one", control] = Cell([rate], [0.0], [], [])
        found[HERE, "page", control] = Cell([rate], [0.0], [], [time] * 9 + [2 * time])
    return found


def test_what_is_slower_than_cubic_is_named_with_the_worst_first() -> None:
    alike = slower(cells((9.9e6, 10e6), (101, 100)), "auto")
    assert alike[0] == "In 0 of 3 comparisons."
    told = slower(cells((8e6, 10e6), (110, 100)), "auto")
    assert told[0] == "In 3 of 3 comparisons."
    assert [line.split(" | ")[0] for line in told[4:]] == ["| goodput, one", "| page, median", "| page, p99"]
    assert told[4].endswith("| 8 Mbit/s | 10 Mbit/s | 25 % |")


def test_what_is_measured_is_told_over_what_is_simulated() -> None:
    def one(control: str, rate: float) -> tuple[tuple[Place, str, str], Cell]:
        return (HERE, "one", control), Cell([rate], [0.0], [], [])

    measured = dict([one("cubic", 8e6), one("wl_auto", 9e6), one("bbr", 9e6)])
    told = agreement(measured, dict([one("cubic", 10e6), one("auto", 9e6)]))
    where = "10 Mbit/s, 20 ms, 1 BDP, none, single"
    assert told[2:] == [
        f"| `cubic` | 1 | 0.80 | 0 | 0.80 ({where}) | 0.80 ({where}) |",
        f"| `wl_auto` | 1 | 1.00 | 1 | 1.00 ({where}) | 1.00 ({where}) |",
    ], "and what was not simulated is left out"


def test_the_tables_of_the_pages_are_what_the_tool_makes_of_the_measurements(tmp_path: Path) -> None:
    files = ["README.md", *(f"docs/what-to-use/{page}" for page in ("grid.md", "kernel-grid.md", "whole-grid.md"))]
    shutil.copytree(ROOT / "docs" / "what-to-use", tmp_path / "docs" / "what-to-use")
    (tmp_path / "tools").mkdir()
    tools = ("tools/grid.py", "tools/whole_grid.py")
    for file in ("README.md", *tools):
        shutil.copy(ROOT / file, tmp_path / file)
    for tool in tools:
        subprocess.run([sys.executable, tmp_path / tool], check=True, cwd=tmp_path)
    for file in files:
        assert (tmp_path / file).read_text(encoding="utf-8") == (ROOT / file).read_text(encoding="utf-8")


def test_measuring_the_whole_grid_goes_on_from_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_grid, "PAGE", Path(shutil.copy(whole_grid.PAGE, tmp_path)))
    monkeypatch.setattr(whole_grid, "TABLE", tmp_path / "table.csv")
    monkeypatch.setattr(whole_grid, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(whole_grid, "RUNS", {"page": 2})
    monkeypatch.setattr("grid.paths", lambda *, coarse: [HERE] if not coarse else [])
    flows = {(HERE, "one", control): Cell([1e6], [2.0], [], []) for control in ("cubic", "bbr", "auto", "auto-alone")}
    whole_grid.TABLE.write_text(whole_grid.table(flows), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["whole_grid", "--measure", "--kind", "page"])
    whole_grid.main()
    with whole_grid.TABLE.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["one_mbps"] for row in rows] == ["1"] * 4, "what was there stays"
    assert all(250 < float(row["page_median_ms"]) < 1000 for row in rows), "six objects take 0.3 s at the link's rate"
    monkeypatch.setattr(whole_grid, "RUNS", {"one": 1, "page": 2})
    monkeypatch.setattr("sys.argv", ["whole_grid", "--measure", "--kind", "one", "--again", "auto"])
    whole_grid.main()
    with whole_grid.TABLE.open(encoding="utf-8") as lines:
        again = {row["control"]: row for row in csv.DictReader(lines)}
    assert {name for name, row in again.items() if row["one_mbps"] != "1"} == {"auto"}, (
        "the kind that was asked for anew"
    )
    assert [row["page_median_ms"] for row in again.values()] == [row["page_median_ms"] for row in rows], "and no other"

    def cubic_anew(rate: int) -> str:
        asked = ["whole_grid", "--measure", "--kind", "one", "--again", "cubic", "--rate", f"{rate}"]
        monkeypatch.setattr("sys.argv", asked)
        whole_grid.main()
        with whole_grid.TABLE.open(encoding="utf-8") as lines:
            return {row["control"]: row["one_mbps"] for row in csv.DictReader(lines)}["cubic"]

    assert HERE.rate == 10
    assert cubic_anew(100) == "1", "a path of another rate"
    assert cubic_anew(10) != "1"
    monkeypatch.setattr("sys.argv", ["whole_grid", "--measure", "--kind", "one", "--again", "auto"])

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grid.Record.measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        whole_grid.main()
    left = whole_grid.written() | Record(whole_grid.RECORD).cells
    assert {control for _, kind, control in left if kind == "one"} == {"cubic", "bbr", "auto-alone"}, (
        "no old cell is left"
    )


def test_the_table_of_the_whole_grid_says_what_was_measured_and_what_is_missed() -> None:
    def measured(control: str, rate: float) -> dict[tuple[Place, str, str], Cell]:
        flows = Cell([rate - 1e5, rate + 1e5], [3.0, 5.0], [], [])
        beside = Cell([rate / 2], [], [4e6], [])
        short = Cell([], [], [], [100.0] * 29 + [400.0])
        kinds = {"one": flows, "five": flows, "beside": beside, "object": short, "page": short}
        return {(HERE, kind, control): cell for kind, cell in kinds.items()}

    cells = measured("cubic", 9e6) | measured("bbr", 9e6) | measured("auto", 8e6)
    unfinished = Place(1, 50, 0.0, "erase", 5.0, "bursts")
    text = whole_grid.table(
        cells | {(unfinished, "one", by): cells[HERE, "one", by] for by in ("cubic", "bbr", "auto")}
    )
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["control"] for row in rows] == ["cubic", "bbr", "auto", *["cubic", "bbr", "auto"]]
    assert (rows[5]["one_mbps"], rows[5]["five_mbps"]) == ("8", ""), "what was not measured is not there"
    assert rows[2] == {
        **dict.fromkeys(whole_grid.TIMES["object"], "100") | dict.fromkeys(whole_grid.TIMES["page"], "100"),
        "rate_mbps": "10",
        "round_trip_ms": "20",
        "queue_bdp": "1",
        "errors": "none",
        "share_percent": "0",
        "pattern": "single",
        "control": "auto",
        "one_mbps": "8",
        "one_queue_ms": "4",
        "five_mbps": "8",
        "five_queue_ms": "4",
        "beside_mbps": "4",
        "beside_cubic_mbps": "4",
        "object_p99_ms": "400",
        "page_p99_ms": "400",
        "misses": "goodput, one; goodput, five; goodput, beside",
    }
    assert whole_grid.table(whole_grid.cells_of(rows)) == text, "and what is read is what was written"
