"""Sweeps that are run as a whole and reduced to one table each, by a function of the paper's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whyloss.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path
    from types import ModuleType

    import polars as pl

    from whyloss import _native
    from whyloss.pack import Pack

__all__ = ["Done", "run"]


@dataclass(frozen=True, slots=True)
class Done:
    """What was run."""

    measurements: dict[str, pl.DataFrame]
    """For each study, what its paper's ``reduce`` made of it."""
    runs: int
    transfers: int


def run(
    pack: Pack,
    module: ModuleType,
    wanted: Collection[str],
    repetitions: int,
    quick: bool,
    store: Path | None,
    progress: Callable[[int, int], None] | None = None,
) -> Done:
    """Runs the studies ``wanted``, each point ``repetitions`` times, and reduces each to a table.

    ``module.reduce(name, results)`` is called after each sweep, so that only one sweep's tables are in memory. Finished
    runs are kept in ``store``.
    """
    sweeps = {}
    for study in pack.studies.values():
        if study.name in wanted:
            sweep = Sweep.load(pack.folder / "sweeps" / f"{study.sweep}.toml").with_runs(repetitions)
            for axis, steps in study.quick.items() if quick else ():
                sweep = sweep.only(axis, steps)
            sweeps[study.name] = sweep
    total = sum(map(len, sweeps.values()))
    tables, done, transfers = {}, 0, 0
    for name, sweep in sweeps.items():

        def tell(now: _native.Progress, before: int = done) -> None:
            if progress is not None:
                progress(before + now.done, total)

        results = sweep.run(store=store, progress=tell)
        done += len(sweep)
        transfers += len(results.transfers)
        tables[name] = module.reduce(name, results)
    return Done(tables, done, transfers)
