"""What a flow gains and what it takes from those beside it: one definition for all that speaks of friendliness.

Both compare two runs with the same random numbers, in which only the kind of some flows differs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from whyloss.stats import Mean, function_of_means

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from whyloss.results import Results

__all__ = ["gain", "goodputs", "harm"]


def harm(beside: ArrayLike, among: ArrayLike) -> Mean:
    """The share of its goodput that a flow loses to another kind: 0 if that takes no more than its own kind would.

    Ware et al. 2019 measure harm against what a flow has alone. Here it is measured against what it has ``among`` its
    own kind, so that what any flow in the other's place would take is not counted. Below 0 the flow is better off.

    Args:
        beside: goodput beside the other kind, one value a run.
        among: goodput of the same flow in the same runs, with its own kind in the other's place.
    """
    return function_of_means(lambda other, own: 1 - _ratio(other, own), [beside, among])


def gain(ours: ArrayLike, instead: ArrayLike) -> Mean:
    """What a kind has more than another one would have in its place, as a share of what that would have.

    Args:
        ours: goodput of the flow that may gain, one value a run.
        instead: goodput in the same runs of a flow of the other kind in its place.
    """
    return function_of_means(lambda own, other: _ratio(own, other) - 1, [ours, instead])


def _ratio(top: float, bottom: float) -> float:
    return top / bottom if bottom > 0 else math.nan


def goodputs(results: Results, begin_ns: int = 0) -> pl.DataFrame:
    """What each flow delivered from ``begin_ns`` to the end of its run: ``goodput_bps``, one row a flow of each run.

    The other columns are ``run`` and those of the sweep, ``flow`` and ``entry``, the position of its ``[[flow]]``; rows
    come in the order of points, runs and flows. What had arrived at ``begin_ns`` is read from the time series: the
    scenario has to sample at that time.
    """
    flows = results.flows.to_polars()
    key = flows.columns[: flows.columns.index("flow")]
    ended = results.runs.to_polars().select(*key, "ended_at_ns")
    table = flows.select(*key, "flow", "entry", "octets_delivered")
    table = table.join(ended, on=key, how="left", maintain_order="left")
    before = pl.lit(0)
    if begin_ns:
        sampled = results.samples.to_polars().filter(pl.col("at_ns") == begin_ns)
        sampled = sampled.select(*key, "flow", pl.col("octets_delivered").alias("before"))
        table = table.join(sampled, on=[*key, "flow"], how="left", maintain_order="left")
        before = pl.col("before").fill_null(0)
    octets = (pl.col("octets_delivered") - before).cast(pl.Float64)
    goodput = (octets * 8e9 / (pl.col("ended_at_ns") - begin_ns)).alias("goodput_bps")
    order = ["point"] if "point" in key else []
    return table.select(*key, "flow", "entry", goodput).sort(*order, "run", "entry", maintain_order=True)
