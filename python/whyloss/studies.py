"""Sweeps that are run as a whole and reduced to one table each, by a function of the paper's own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from whyloss import documents
from whyloss.measuring import Part, Plan
from whyloss.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path
    from types import ModuleType

    from whyloss.pack import Pack, Reading

__all__ = ["plan"]


def plan(
    pack: Pack,
    reading: Reading,
    module: ModuleType,
    wanted: Collection[str],
    repetitions: int,
    quick: bool,
    out: Path,
) -> Plan:
    """The studies ``wanted``, each point ``repetitions`` times; what is measured is a table for each by its name.

    ``module.reduce(name, results)`` makes the table. The sweeps that ``reading``
    changes are written to ``out/sweeps``.
    """
    parts = {}
    for study in pack.studies.values():
        if study.name in wanted:
            path = pack.folder / "sweeps" / f"{study.sweep}.toml"
            if reading.change:
                document = documents.read(pack, study.sweep, reading)
                path = documents.write(document, out / "sweeps" / reading.name / f"{study.sweep}.json")
            sweep = Sweep.load(path).with_runs(repetitions)
            for axis, steps in study.quick.items() if quick else ():
                sweep = sweep.only(axis, steps)
            parts[study.name] = Part(sweep, partial(module.reduce, study.name))
    return Plan(tuple(parts.values()), lambda tables: dict(zip(parts, tables, strict=True)))
