"""Gain beside harm: the figure that every paper's report has, so that no gain stands alone.

It wants runs in which flows of one kind share a path with a single flow that is of their kind, or of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from whyloss.figures import Curve, Figure, Style
from whyloss.harm import gain, harm
from whyloss.stats import Mean, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whyloss.pack import FigureSpec

__all__ = ["Pair", "figure", "pairs"]

At = TypeVar("At", str, float)

_GAIN = Style("#2b9a6c", "square", line=False)
_HARM = Style("#d5622a", "circle", line=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """Goodputs of the same runs with a flow of another kind and with one of the others' kind: one value a run each."""

    ours: Sample
    """Of the single flow, which is of another kind."""
    instead: Sample
    """Of the single flow, which is of the others' kind."""
    beside: Sample
    """Of the others beside the one of another kind."""
    among: Sample
    """Of the others beside one of their own."""

    @property
    def gain(self) -> Mean:
        """What the single flow has by being of another kind: :func:`whyloss.harm.gain`."""
        return gain(self.ours, self.instead)

    @property
    def harm(self) -> Mean:
        """What the others lose by it: :func:`whyloss.harm.harm`."""
        return harm(self.beside, self.among)


def pairs(goodputs: pl.DataFrame, axis: str, own: str, single: str = "one", others: str = "others") -> dict[str, Pair]:
    """The pairs of a sweep over kinds, by the name that ``axis`` gives a kind, in the order of the sweep.

    Args:
        goodputs: what :func:`whyloss.harm.goodputs` makes of the sweep's results.
        axis: the axis that says of which kind the single flow is.
        own: its step at which that is of the others' kind.
        single: the name of the ``[[flow]]`` whose kind is changed.
        others: the name of the one beside it, with any ``count``.
    """
    means = (
        goodputs.with_columns(pl.col("flow").str.split(".").list.first().alias("name"))
        .group_by("point", "run", axis, "name", maintain_order=True)
        .agg(pl.col("goodput_bps").mean())
    )

    def sample(kind: str, name: str) -> Sample:
        # Points that differ in other axes come in the same order for each kind.
        chosen = means.filter((pl.col(axis) == kind) & (pl.col("name") == name))
        return chosen.sort("point", "run")["goodput_bps"].to_numpy()

    kinds = [str(kind) for kind in means[axis].unique(maintain_order=True) if kind != own]
    return {
        kind: Pair(sample(kind, single), sample(own, single), sample(kind, others), sample(own, others))
        for kind in kinds
    }


def figure(
    spec: FigureSpec,
    found: Mapping[At, Pair],
    x_label: str = "",
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """Draws gain and harm in percent, at each name or at each value of a quantity; people read ``labels`` for names."""
    keys: list[str | float] = list(found)
    named = [(labels or {}).get(key, key) for key in keys if isinstance(key, str)]
    places = [float(position) if isinstance(key, str) else key for position, key in enumerate(keys)]
    curves = (
        _curve("gain", places, [pair.gain for pair in found.values()], _GAIN),
        _curve("harm to the others", places, [pair.harm for pair in found.values()], _HARM),
    )
    return Figure(
        id=spec.id,
        title=spec.title,
        caption=spec.caption,
        x_label=x_label,
        y_label="Share of a flow's goodput (%)",
        curves=curves,
        x_ticks=tuple(named),
        y_from_zero=False,
        printed=spec.printed,
    )


def _curve(label: str, places: list[float], estimates: list[Mean], style: Style) -> Curve:
    ys = tuple(Mean(100 * one.value, 100 * one.error, one.n) for one in estimates)
    return Curve(label, tuple(places), ys, style)
