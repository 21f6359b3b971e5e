"""What a reproduction measured, as claims and figures ask for it: paired samples."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whyloss.stats import Sample

__all__ = ["Measurements", "MissingSampleError"]

THROUGHPUT = "throughput_kbps"


class MissingSampleError(LookupError):
    """A series was asked for at a point that was not run."""


class Measurements:
    """One row a series, cell, error rate and repetition, with one column a quantity.

    A *series* is what one curve shows (a normal flow, the four flows beside it, …), a *cell* fixes what a figure fixes
    (bandwidth and delay), ``x`` is the figure's horizontal axis. Samples come in the order of the repetitions, so two
    of them pair by position.
    """

    def __init__(self, table: pl.DataFrame, axes: Iterable[str]) -> None:
        """Takes ``table`` with the columns ``series``, ``x``, ``repetition``, the ``axes``, and the quantities."""
        self.table = table
        self.axes = tuple(axes)
        self._groups: dict[tuple[str, ...], pl.DataFrame] = {
            tuple(map(str, key)): group.sort("x", "repetition") for key, group in table.group_by("series", *self.axes)
        }
        self._sample = lru_cache(maxsize=None)(self._find)

    def sample(self, series: str, x: float, quantity: str = THROUGHPUT, **cell: str) -> Sample:
        """The values of ``quantity`` at one point, one a repetition."""
        return self._sample(series, x, quantity, self._key(series, cell))

    def every_sample(self, series: str, quantity: str) -> Sample:
        """The values of ``quantity`` in all cells and at all error rates, one a run."""
        groups = [group for key, group in self._groups.items() if key[0] == series]
        if not groups:
            raise MissingSampleError(f"series `{series}` was not run")
        return np.concatenate([group[quantity].to_numpy().astype(np.float64) for group in groups])

    def totals(self, series: str, quantity: str) -> Sample:
        """The sum of ``quantity`` over all cells and error rates, one value a repetition."""
        rows = (
            self.table.filter(pl.col("series") == series)
            .group_by("repetition")
            .agg(pl.col(quantity).sum())
            .sort("repetition")
        )
        if rows.is_empty():
            raise MissingSampleError(f"series `{series}` was not run")
        return rows[quantity].to_numpy().astype(np.float64)

    def xs(self, series: str, **cell: str) -> list[float]:
        """The points at which ``series`` was measured, ascending."""
        xs: list[float] = self._group(self._key(series, cell))["x"].unique().sort().to_list()
        return xs

    def nearest(self, series: str, x: float, **cell: str) -> float:
        """The measured point nearest to ``x``."""
        return min(self.xs(series, **cell), key=lambda other: abs(other - x))

    def _key(self, series: str, cell: dict[str, str]) -> tuple[str, ...]:
        if set(cell) != set(self.axes):
            raise TypeError(f"a cell is given by {', '.join(self.axes)}; found {', '.join(cell)}")
        return (series, *(cell[axis] for axis in self.axes))

    def _group(self, key: tuple[str, ...]) -> pl.DataFrame:
        if key not in self._groups:
            raise MissingSampleError(f"series `{key[0]}` was not run at {', '.join(key[1:])}")
        return self._groups[key]

    def _find(self, series: str, x: float, quantity: str, key: tuple[str, ...]) -> Sample:
        rows = self._group(key).filter(pl.col("x") == x)
        if rows.is_empty():
            raise MissingSampleError(f"series `{series}` was not run at {', '.join(key[1:])}, {x:g}")
        return rows[quantity].to_numpy().astype(np.float64)
