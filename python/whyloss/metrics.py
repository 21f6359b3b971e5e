"""What a network's flows got and how they shared it: functions of the tables that runs leave.

>>> from whyloss import metrics
>>> metrics.fairness(results.transfers)  # one row a run
>>> metrics.protocol_goodput(results.transfers)  # one row a run and scheme
>>> metrics.atgr(results.transfers, main=pl.col("from").str.starts_with("main"))
>>> metrics.smoothness(results.samples, bin_ns=100_000_000, flows=results.flows)

Each takes a table (a :class:`whyloss.Table`, or a data frame with some of its rows) and returns a data frame: the
columns that it was grouped by, then the value. Without ``by`` there is one row a run, or a run of a sweep's point.
Rates are in bit/s, times in nanoseconds.

What needs no choice stands in the tables of every run: ``runs``, ``protocols``, ``transfers`` and ``flows`` have
columns of the same names. The functions are for other groups, other bins and other shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "SECOND_NS",
    "application_success",
    "application_success_at",
    "atgr",
    "fairness",
    "fairness_of",
    "goodput",
    "protocol_goodput",
    "sending_rate",
    "smoothness",
    "system_goodput",
]

#: A second in nanoseconds.
SECOND_NS = 1_000_000_000


class _Arrow(Protocol):
    """A table that can be had as Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def goodput(transfers: pl.DataFrame | _Arrow, by: Iterable[str] | None = None) -> pl.DataFrame:
    """The mean of the transfers' goodputs, ``goodput_bps``.

    A transfer's own goodput stands in ``transfers``: octets in order at the receiver times 8, without duplicates, per
    second from its start to its finish, or to the end of the run.
    """
    frame = _frame(transfers)
    return _grouped(frame, by, pl.col("goodput_bps").mean())


def system_goodput(transfers: pl.DataFrame | _Arrow, by: Iterable[str] | None = None) -> pl.DataFrame:
    """The sum of the transfers' goodputs, ``system_goodput_bps`` (Tsaoussidis & Zhang 2002)."""
    return _grouped(_frame(transfers), by, pl.col("goodput_bps").sum().alias("system_goodput_bps"))


def protocol_goodput(transfers: pl.DataFrame | _Arrow, by: Iterable[str] | None = None) -> pl.DataFrame:
    """The sum of the goodputs of each scheme, ``protocol_goodput_bps`` (Tsaoussidis & Zhang 2002).

    That of a run stands in ``protocols``.
    """
    frame = _frame(transfers)
    keys = [*_keys(frame, by), "scheme"]
    return _grouped(frame, keys, pl.col("goodput_bps").sum().alias("protocol_goodput_bps"))


def fairness_of(goodputs: ArrayLike) -> float:
    """Jain's index of these goodputs, (Σg)² / (n Σg²) (Jain, Chiu & Hawe 1984): 1 if all are equal, 1/n if one has all.

    Not a number if there are none, or all are 0.
    """
    values = np.asarray(goodputs, dtype=np.float64)
    squares = values.size * float((values**2).sum())
    return float(values.sum()) ** 2 / squares if squares else float("nan")


def fairness(transfers: pl.DataFrame | _Arrow, by: Iterable[str] | None = None) -> pl.DataFrame:
    """Jain's index of the transfers' goodputs, ``fairness``: the GFI of Tsaoussidis & Zhang (2002).

    Null if all goodputs are 0.
    """
    rate = pl.col("goodput_bps")
    squares = rate.len() * (rate**2).sum()
    index = pl.when(squares > 0).then(rate.sum() ** 2 / squares)
    return _grouped(_frame(transfers), by, index.alias("fairness"))


def atgr(
    transfers: pl.DataFrame | _Arrow,
    main: pl.Expr | None = None,
    cross: pl.Expr | None = None,
    by: Iterable[str] | None = None,
) -> pl.DataFrame:
    """Mean goodput of the main flows over that of the cross flows, ``atgr`` (Tsaoussidis & Zhang 2002).

    ``main`` says which rows are main flows; ``cross`` which are cross flows, all others if it is not given. Without
    ``main`` both are what the scenario says (``traffic`` of a ``[[flow]]``): then the value of a run stands in
    ``runs``. 1 is fair, below 1 unfair to the main flows. Null where either are missing or the cross flows got nothing.
    """
    if main is None:
        main, others = (pl.col("traffic") == side for side in ("main", "cross"))
    else:
        others = ~main.fill_null(False)
    cross = others if cross is None else cross
    rate = pl.col("goodput_bps")
    mean = rate.filter(cross).mean()
    ratio = pl.when(mean > 0).then(rate.filter(main).mean() / mean)
    return _grouped(_frame(transfers), by, ratio.alias("atgr"))


def application_success(
    transfers: pl.DataFrame | _Arrow, by: Iterable[str] | None = None, *, buffered: bool = False
) -> pl.DataFrame:
    """The share of all slots of time in which enough arrived, in percent, ``application_success``.

    100 / (n T) · Σ over slots and flows of [goodput in the slot > x % of the rate], as Tsaoussidis & Zhang (2002) print
    it, of the flows with ``playback`` in the scenario, which says x. With ``buffered`` what a slot does not need waits
    for the next ones, as far as the buffer has room. Null if nothing was played.
    """
    met = pl.col("playback_met_buffered" if buffered else "playback_met").sum()
    slots = pl.col("playback_slots").sum()
    return _grouped(_frame(transfers), by, pl.when(slots > 0).then(100 * met / slots).alias("application_success"))


def application_success_at(
    samples: pl.DataFrame | _Arrow,
    rate_bps: float,
    enough: float,
    by: Iterable[str] | None = None,
    *,
    slot_ns: int = SECOND_NS,
    buffer_octets: int | None = None,
    flows: pl.DataFrame | _Arrow | None = None,
) -> pl.DataFrame:
    """The same for any share ``enough`` (0.9 is 90 %) of any rate, from the sampled time series.

    Slots are those of the run: from 0, from ``slot_ns``, and so on. ``output.sample`` has to divide ``slot_ns``; the
    slot that ends with the run has no sample at its end and does not count. With ``flows`` (or ``transfers``) a flow's
    first slot is the first whole one after its start, otherwise the first of the run. ``buffer_octets`` is what can
    wait for the next slot; nothing can if it is not given.
    """
    frame = _frame(samples)
    keys = _keys(frame, by)
    within = _within(frame, keys)
    slots = _bins(frame, within, "octets_delivered", slot_ns)
    if flows is not None:
        begun = _frame(flows)
        name = "flow" if "flow" in begun.columns else "transfer"
        begun = begun.select(*(key for key in within if key != "flow"), pl.col(name).alias("flow"), "start_ns")
        slots = slots.join(begun, on=within, how="inner")
        early = slots.filter(pl.col("at_ns") < pl.col("start_ns"))
        waiting = early.group_by(within).agg(pl.col("octets").sum().alias("early"))
        slots = slots.filter(pl.col("at_ns") >= pl.col("start_ns")).join(waiting, on=within, how="left")
    else:
        slots = slots.with_columns(pl.lit(0).alias("early"))
    rows = []
    for key, group in slots.sort("at_ns").group_by(within, maintain_order=True):
        octets = group["octets"].to_numpy()
        before = int(group["early"].fill_null(0)[0])
        there = octets if buffer_octets is None else _played(octets, rate_bps * slot_ns / 8e9, buffer_octets, before)
        rows.append((*key, int((there * 8e9 > enough * rate_bps * slot_ns).sum()), len(octets)))
    counted = pl.DataFrame(rows, schema=[*within, "met", "slots"], orient="row")
    percent = 100 * pl.col("met").sum() / pl.col("slots").sum()
    return _grouped(counted, keys, percent.alias("application_success"))


def sending_rate(
    samples: pl.DataFrame | _Arrow, bin_ns: int = SECOND_NS, by: Iterable[str] | None = None
) -> pl.DataFrame:
    """How fast senders sent in each bin of time, ``sending_rate_bps``, retransmissions included, headers not.

    One row a flow and bin, which begins at ``at_ns``. ``output.sample`` has to divide ``bin_ns``. Over a whole run it
    stands in ``flows``.
    """
    frame = _frame(samples)
    within = _within(frame, _keys(frame, by))
    bins = _bins(frame, within, "data_octets_sent", bin_ns)
    return bins.select(*within, "at_ns", (pl.col("octets") * 8e9 / bin_ns).alias("sending_rate_bps"))


def smoothness(
    samples: pl.DataFrame | _Arrow,
    bin_ns: int = SECOND_NS,
    by: Iterable[str] | None = None,
    *,
    since_ns: int = 0,
    until_ns: int | None = None,
    flows: pl.DataFrame | _Arrow | None = None,
) -> pl.DataFrame:
    """How uneven each flow's sending rate is, ``smoothness``: its coefficient of variation over bins of time.

    Standard deviation over mean, as Floyd, Handley, Padhye & Widmer (2000) judge TFRC; 0 is perfectly smooth. It
    depends on ``bin_ns``, which should be at least a round-trip time: give both. Bins from ``since_ns`` to
    ``until_ns`` count; with ``flows``, those of a flow that lie wholly between its start and its finish, if it has one.
    One row a flow that has a bin; null if it sent nothing, or has fewer than two.

    ``flows`` has it for one length of bins, ``output.smoothness.bin``, without samples; there the bin that ends with
    the run counts, too, which has no sample at its end.
    """
    rate = sending_rate(samples, bin_ns, by)
    within = [name for name in rate.columns if name not in {"at_ns", "sending_rate_bps"}]
    end = pl.col("at_ns") + bin_ns
    rate = rate.filter(pl.col("at_ns") >= since_ns)
    if until_ns is not None:
        rate = rate.filter(end <= until_ns)
    if flows is not None:
        times = _frame(flows).select(*within, pl.col("start_ns", "finished_ns").cast(pl.Int64))
        rate = rate.join(times, on=within, how="inner", maintain_order="left")
        rate = rate.filter(
            pl.col("at_ns") >= pl.col("start_ns"), pl.col("finished_ns").is_null() | (end <= pl.col("finished_ns"))
        )
    value = pl.col("sending_rate_bps")
    known = (value.mean() > 0) & (value.len() > 1)
    return _grouped(rate, within, pl.when(known).then(value.std(ddof=0) / value.mean()).alias("smoothness"))


def _frame(table: pl.DataFrame | _Arrow) -> pl.DataFrame:
    return table if isinstance(table, pl.DataFrame) else pl.DataFrame(table)


def _keys(frame: pl.DataFrame, by: Iterable[str] | None) -> list[str]:
    """What is grouped by: if nothing is said, one group a run."""
    return list(by) if by is not None else [name for name in ("point", "run") if name in frame.columns]


def _within(frame: pl.DataFrame, keys: Sequence[str]) -> list[str]:
    """What tells one flow of one run from all others, and what is grouped by."""
    return list(dict.fromkeys([*keys, *_keys(frame, None), "flow"]))


def _grouped(frame: pl.DataFrame, by: Iterable[str] | None, value: pl.Expr) -> pl.DataFrame:
    keys = _keys(frame, by)
    if not keys:
        return frame.select(value)
    return frame.group_by(keys, maintain_order=True).agg(value)


def _bins(frame: pl.DataFrame, within: Sequence[str], column: str, bin_ns: int) -> pl.DataFrame:
    """What a counter gained in each bin, in ``octets``; the bin begins at ``at_ns``."""
    at = pl.col("at_ns").cast(pl.Int64)
    bins = (
        frame.with_columns(at)
        .filter(pl.col("at_ns") % bin_ns == 0)
        .sort(*within, "at_ns")
        .with_columns(
            pl.col(column).cast(pl.Int64).diff().over(within).alias("octets"),
            pl.col("at_ns").diff().over(within).alias("span"),
        )
        .drop_nulls("span")
    )
    if bins.filter(pl.col("span") != bin_ns).height or (bins.is_empty() and not frame.is_empty()):
        raise ValueError(f"there are no samples every {bin_ns} ns: `output.sample` has to divide the length of a bin")
    return bins.select(*within, pl.col("at_ns") - bin_ns, "octets")


def _played(octets: NDArray[np.int64], needed: float, room: int, waiting: int) -> NDArray[np.int64]:
    """What can be read at the end of each slot, with what waited from before."""
    most = int(needed)
    waiting = min(waiting, room)
    read = np.empty_like(octets)
    for slot, arrived in enumerate(octets):
        there = waiting + int(arrived)
        read[slot] = min(there, most)
        waiting = min(there - int(read[slot]), room)
    return read
