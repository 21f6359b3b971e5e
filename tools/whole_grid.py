"""Measures `auto` on all paths of the grid, in the simulator.

Without options it writes the tables of docs/what-to-use/whole-grid.md from docs/what-to-use/whole-grid.csv.
``--measure`` first runs what that file does not have (hours) and writes it, ``--again CONTROL`` a control anew, both of
the kinds and paths chosen. What was interrupted goes on where it was: out/whole-grid.json keeps each run.
"""

from __future__ import annotations

import argparse
import csv
import io
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

import grid
from grid import ALONE, EFFECTS, KINDS, OURS, Cell, Place, Record

from whyloss import files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PAGE = grid.PAGE.with_name("whole-grid.md")
TABLE = PAGE.with_suffix(".csv")
#: Each run of a cell, as it was measured: too large to be kept with the code.
RECORD = grid.ROOT / "out" / "whole-grid.json"
CONTROLS = ("cubic", "bbr", OURS, ALONE)
RUNS = {"one": 3, "five": 3, "beside": 3, "object": 30, "page": 30}

PATH = ["rate_mbps", "round_trip_ms", "queue_bdp", "errors", "share_percent", "pattern", "control"]
FLOWS = {
    "one": ["one_mbps", "one_queue_ms"],
    "five": ["five_mbps", "five_queue_ms"],
    "beside": ["beside_mbps", "beside_cubic_mbps"],
}
TIMES = {"object": ["object_median_ms", "object_p99_ms"], "page": ["page_median_ms", "page_p99_ms"]}
COLUMNS = [*PATH, *(column for kind in KINDS for column in (FLOWS | TIMES)[kind]), "misses"]


def table(cells: dict[grid.Key, Cell]) -> str:
    """One line for each control on a path: means of flows, quantiles of times, and nothing of what was not measured."""
    rows = []
    for path in dict.fromkeys(key[0] for key in cells):
        for control in CONTROLS:
            found = [(kind, cells[path, kind, control]) for kind in KINDS if (path, kind, control) in cells]
            if found:
                effect = EFFECTS[path.effect] if path.share else "none"
                labels = [path.rate, path.trip, f"{path.queue:g}", effect, f"{path.share:g}", path.pattern, control]
                row = dict(zip(PATH, map(str, labels), strict=True))
                for kind, cell in found:
                    values = (f"{value:.5g}" for value in reduced(kind, cell))
                    row |= zip((FLOWS | TIMES)[kind], values, strict=True)
                rows.append(row)
    # Judged as they are written, so that whoever reads the table finds the same misses.
    told = cells_of(rows)
    for row in rows:
        if row["control"] in (OURS, ALONE):
            row["misses"] = "; ".join(v.target for v in grid.verdicts(told, place(row), row["control"]) if not v.met)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def reduced(kind: str, cell: Cell) -> tuple[float, float]:
    """What the table says of a cell."""
    if kind in TIMES:
        return grid.percentile(cell.times, 0.5), grid.percentile(cell.times, 0.99)
    if kind == "beside":
        return statistics.fmean(cell.goodput) / 1e6, statistics.fmean(cell.others) / 1e6
    return statistics.fmean(cell.goodput) / 1e6, statistics.fmean(cell.waiting)


def place(row: dict[str, str]) -> Place:
    """The path of a line of the table."""
    effects = {name: effect for effect, name in EFFECTS.items()} | {"none": "damage"}
    rate, trip, queue, errors, share, pattern = (row[column] for column in PATH[:-1])
    return Place(int(rate), int(trip), float(queue), effects[errors], float(share), pattern)


def cells_of(rows: Iterable[dict[str, str]]) -> dict[grid.Key, Cell]:
    """The cells of a table: one run of a mean, two times that have its median and p99."""
    found = {}
    for row in rows:
        path = place(row)
        for kind, columns in (FLOWS | TIMES).items():
            if row.get(columns[0]):
                first, second = (float(row[column]) for column in columns)
                match kind:
                    case "object" | "page":
                        cell = Cell([], [], [], [first, second])
                    case "beside":
                        cell = Cell([first * 1e6], [], [second * 1e6], [])
                    case _:
                        cell = Cell([first * 1e6], [second], [], [])
                found[path, kind, row["control"]] = cell
    return found


def written() -> dict[grid.Key, Cell]:
    """The cells of the table as it is."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return cells_of(csv.DictReader(lines))


def slower(cells: dict[grid.Key, Cell], ours: str) -> list[str]:
    """Where whoever takes it for CUBIC needs more than 2 % more time: how often, and where most."""
    asked = grid.comparisons(cells, ours)
    lines = [
        f"| what | more than 2 % slower | more than 10 % | worst path | `{ours}` there | `cubic` |",
        "|---|---:|---:|---|---:|---:|",
    ]
    by: dict[str, list[grid.Comparison]] = defaultdict(list)
    for comparison in asked:
        by[comparison.what].append(comparison)
    for what, own in by.items():
        worst = max(own, key=lambda comparison: comparison.more)
        counts = (f"{sum(comparison.more > bound for comparison in own)}/{len(own)}" for bound in (0.02, 0.1))
        row = [what, *counts, grid.name(worst.path), worst.ours, worst.cubic]
        lines.append(f"| {' | '.join(row)} |")
    return lines


def page(file: Path, cells: dict[grid.Key, Cell], count: int) -> str:
    """The page with its tables."""
    tables = {
        "targets": "\n\n".join("\n".join(grid.summary(cells, control)) for control in (OURS, ALONE)),
        "misses": "\n".join(grid.worst(cells, OURS, count)),
        "slower": "\n".join(slower(cells, OURS)),
    }
    return grid.filled(file, tables)


def keep(cells: dict[grid.Key, Cell], paths: Iterable[Place]) -> None:
    """Writes the table in the order of the paths, whatever was measured first."""
    keys = [(path, kind, control) for path in paths for kind in KINDS for control in CONTROLS]
    files.write(TABLE, table({key: cells[key] for key in keys if key in cells}))


def main() -> None:
    """Measures if asked to, and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="run what is missing")
    parser.add_argument(
        "--again", action="append", default=[], choices=CONTROLS, help="measure this control anew, as chosen"
    )
    parser.add_argument("--kind", action="append", choices=KINDS, help="measure this kind")
    parser.add_argument("--holding", type=int, help="only paths that hold no more packets than this")
    parser.add_argument(
        "--rate", action="append", type=int, choices=grid.RATES, help="only paths of this rate, in Mbit/s"
    )
    parser.add_argument("--worst", type=int, default=5, help="cells to show for each target")
    parser.add_argument("--threads", type=int, help="runs at a time")
    chosen = parser.parse_args()
    if chosen.measure:
        record = Record(RECORD)
        every = list(grid.paths(coarse=False))
        wanted = [path for path in every if path.rate in (chosen.rate or grid.RATES)]
        held = [path for path in wanted if chosen.holding is None or path.product <= chosen.holding]
        keys = [(path, kind, control) for path in held for kind in chosen.kind or KINDS for control in CONTROLS]
        anew = {key for key in keys if key[2] in chosen.again}
        record.cells = {key: cell for key, cell in (written() | record.cells).items() if key not in anew}
        # First without what is measured anew: what an interruption leaves never has two states of a control.
        record.write()
        keep(record.cells, every)
        record.measure(keys, RUNS, chosen.threads)
        keep(record.cells, every)
    files.write(PAGE, page(PAGE, written(), chosen.worst))


if __name__ == "__main__":
    main()
