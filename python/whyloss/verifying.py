"""Whether results come out again: tables are compared with what their folder says, and with what runs anew give."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from whyloss import _native, files
from whyloss.results import INPUTS, Results

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from pathlib import Path

__all__ = ["SAMPLE", "Verified", "verify"]

#: Runs that are run again if nothing is said.
SAMPLE = 10

#: What a folder has to say of itself, and as what.
SAYS: dict[str, type] = {"whyloss": str, "engine": str, "inputs": str, "rows": dict, "recipe": dict}
KINDS: dict[type, str] = {str: "text", dict: "an object"}

#: Characters of what was found that a message shows, at most.
SHOWN = 40

#: How the columns begin that differentiators in shadow bring.
SHADOWS = ("verdict_", "score_")


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found."""

    runs: int
    """Runs that the folder has the results of."""
    again: int
    """Runs that were run again."""
    differences: tuple[str, ...]
    """What is not the same, in words; empty if everything is."""
    made_by: tuple[str, str]
    """Version and engine that made the results."""

    @property
    def same(self) -> bool:
        """Whether everything that was looked at is the same."""
        return not self.differences

    @property
    def same_engine(self) -> bool:
        """Whether the engine that made them is the one that ran again."""
        return self.made_by[1] == _native.ENGINE


def verify(
    folder: str | PathLike[str],
    runs: int | None = SAMPLE,
    progress: Callable[[_native.Progress], object] | None = None,
) -> Verified:
    """Compares the tables in ``folder`` with their digests, and with what ``runs`` of its runs give when run again.

    Which ones depends on the inputs, so that the same are taken each time; ``None`` takes all.

    Raises:
        whyloss.InputError: the folder does not say what was run, or not of every table what came out.
    """
    place = files.named(folder)
    said = _said(place / INPUTS)
    try:
        sweep = _native.Sweep.from_recipe(json.dumps(said["recipe"]), str(place / INPUTS))
    except ValueError as error:
        raise _native.InputError(f"{place / INPUTS}: recipe: {error}") from None
    different = [
        f"{name}: its rows are not those that were written"
        for name, digest in said["rows"].items()
        if _native.file_digest(place / f"{name}.parquet") != digest
    ]
    if said["engine"] == _native.ENGINE and sweep.inputs() != said["inputs"]:
        different.append("the inputs are not those that were run: a pattern, a trace or an own part has changed")
    total = sweep.total()
    if runs is None or runs >= total:
        fresh = _again(sweep, bool(sweep.axes) or total > 1 or _has_points(place), progress)
        different += [f"{name}: other rows came out" for name, digest in fresh.items() if digest != said["rows"][name]]
        return Verified(total, total, tuple(different), (said["whyloss"], said["engine"]))
    everyone = [(point, run) for point, begin, count in sweep.stretches() for run in range(begin, begin + count)]
    chosen = sorted(random.Random(said["inputs"]).sample(everyone, runs))
    for number, (point, run) in enumerate(chosen, 1):
        different += _compare(place, sweep.point(point).with_runs(run, 1).run(None, 1, None), point, run)
        if progress is not None:
            progress(_native.Progress(number, runs, 0, 0.0))
    return Verified(total, runs, tuple(different), (said["whyloss"], said["engine"]))


def _said(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        allowed = "a folder that `whyloss run --out`, `whyloss sweep` or `Results.save` wrote"
        raise _native.InputError(f"{path}: there is no such file; allowed: {allowed}") from None
    except (ValueError, RecursionError) as error:
        raise _native.InputError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(said, dict):
        raise _native.InputError(f"{path}: found {_short(said)}; allowed: an object with {', '.join(SAYS)}")
    tables = dict.fromkeys(_native.table_names())
    for field, kind in SAYS.items():
        _expect(path, field, said, field, kind)
    for table in tables:
        _expect(path, f"rows.{table}", said["rows"], table, str)
    for table in said["rows"]:
        if table not in tables:
            raise _native.InputError(f"{path}: rows: found {_short(table)}; allowed: {', '.join(tables)}")
    return said


def _expect(path: Path, field: str, said: dict[str, Any], name: str, kind: type) -> None:
    if not isinstance(said.get(name), kind):
        found = _short(said[name]) if name in said else "nothing"
        raise _native.InputError(f"{path}: {field}: found {found}; allowed: {KINDS[kind]}")


def _short(found: Any) -> str:
    text = json.dumps(found)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _has_points(place: Path) -> bool:
    """Whether the tables are of a sweep: these name the point of each row."""
    return "point" in pl.scan_parquet(place / "runs.parquet").collect_schema()


def _again(sweep: _native.Sweep, points: bool, progress: Callable[[_native.Progress], object] | None) -> dict[str, str]:
    if points:
        native = sweep.run(None, None, progress)
    else:
        native = sweep.scenarios()[0].run(sweep.first_run, None, progress, None)
    return Results(native).digests()


def _compare(place: Path, fresh: _native.Results, point: int, run: int) -> list[str]:
    """What is different in one run."""
    different = []
    for table in Results(fresh):
        rows = table.to_polars().drop("point")
        kept = pl.scan_parquet(place / f"{table.name}.parquet")
        try:
            known = kept.filter(pl.col("point") == point, pl.col("run") == run).collect()
            same = rows.equals(known.select(rows.columns))
        except pl.exceptions.PolarsError:
            different.append(f"{table.name}: its columns are not those of that table")
            continue
        # Verdicts of a shadow that this point has not are there for others.
        others = [name for name in known.columns if name not in rows.columns and name.startswith(SHADOWS)]
        if not same or not all(known[name].is_null().all() for name in others):
            different.append(f"{table.name}: point {point}, run {run}: other rows came out")
    return different
