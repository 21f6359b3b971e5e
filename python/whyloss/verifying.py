"""Whether results come out again: tables are compared with what their folder says, and with what runs anew give."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from whyloss import _native
from whyloss.results import INPUTS, Results

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

__all__ = ["SAMPLE", "Verified", "verify"]

#: Runs that are run again if nothing is said.
SAMPLE = 10

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
        whyloss.InputError: the folder does not say what was run.
    """
    place = Path(folder)
    said = _said(place)
    sweep = _native.Sweep.from_recipe(json.dumps(said["recipe"]), str(place / INPUTS))
    first = said["recipe"]["sweep"]["first_run"]
    different = [
        f"{name}: its rows are not those that were written"
        for name, digest in said["rows"].items()
        if _native.file_digest(place / f"{name}.parquet") != digest
    ]
    if said["engine"] == _native.ENGINE and sweep.inputs() != said["inputs"]:
        different.append("the inputs are not those that were run: a pattern, a trace or an own part has changed")
    total = sweep.total()
    if runs is None or runs >= total:
        fresh = _again(sweep, bool(sweep.axes) or total > 1 or _has_points(place), first, progress)
        different += [f"{name}: other rows came out" for name, digest in fresh.items() if digest != said["rows"][name]]
        return Verified(total, total, tuple(different), (said["whyloss"], said["engine"]))
    everyone = [(point, run) for point, begin, count in sweep.stretches() for run in range(begin, begin + count)]
    chosen = sorted(random.Random(said["inputs"]).sample(everyone, runs))
    for number, (point, run) in enumerate(chosen, 1):
        different += _compare(place, sweep.point(point).with_runs(run, 1).run(None, 1, None), point, run)
        if progress is not None:
            progress(_native.Progress(number, runs, 0, 0.0))
    return Verified(total, runs, tuple(different), (said["whyloss"], said["engine"]))


def _said(place: Path) -> dict[str, Any]:
    try:
        said: dict[str, Any] = json.loads((place / INPUTS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        allowed = "a folder that `whyloss run --out`, `whyloss sweep` or `Results.save` wrote"
        raise _native.InputError(f"{place / INPUTS}: there is no such file; allowed: {allowed}") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise _native.InputError(f"{place / INPUTS}: not valid JSON: {error}") from None
    missing = [name for name in ("whyloss", "engine", "inputs", "rows", "recipe") if name not in said]
    if missing or set(said["rows"]) - set(_native.table_names()):
        raise _native.InputError(f"{place / INPUTS}: it does not say what was run: no {', '.join(missing) or 'tables'}")
    return said


def _has_points(place: Path) -> bool:
    """Whether the tables are of a sweep: these name the point of each row."""
    return "point" in pl.scan_parquet(place / "runs.parquet").collect_schema()


def _again(
    sweep: _native.Sweep, points: bool, first: int, progress: Callable[[_native.Progress], object] | None
) -> dict[str, str]:
    native = sweep.run(None, None, progress) if points else sweep.scenarios()[0].run(first, None, progress, None)
    return Results(native).digests()


def _compare(place: Path, fresh: _native.Results, point: int, run: int) -> list[str]:
    """What is different in one run."""
    different = []
    for table in Results(fresh):
        rows = table.to_polars().drop("point")
        kept = pl.scan_parquet(place / f"{table.name}.parquet")
        known = kept.filter(pl.col("point") == point, pl.col("run") == run).collect()
        # Verdicts of a shadow that this point has not are there for others.
        others = [name for name in known.columns if name not in rows.columns and name.startswith(SHADOWS)]
        if not rows.equals(known.select(rows.columns)) or not all(known[name].is_null().all() for name in others):
            different.append(f"{table.name}: point {point}, run {run}: other rows came out")
    return different
