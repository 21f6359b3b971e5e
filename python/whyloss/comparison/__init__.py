"""Schemes compared on a path: the same errors for all, and as many runs as the wanted precision needs.

Run ``n`` has the same random numbers whatever the scheme (common random numbers), so schemes are compared in pairs. The
intervals are looked at after 8, 16, 32, … runs; each look spends the same part of the 5 % by which all of them may be
wrong (Bonferroni), so that stopping when they are narrow enough costs nothing of what they promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from whyloss import _native
from whyloss.comparison.result import Comparison, Difference, Measured
from whyloss.comparison.worlds import ALONE, YARDSTICK, worlds
from whyloss.judgements import judgements
from whyloss.kinds import Kind
from whyloss.paths import path, told
from whyloss.precision import looks
from whyloss.scenario import Scenario
from whyloss.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    from whyloss.comparison.worlds import Worlds
    from whyloss.results import Results

__all__ = ["SCHEMES", "Comparison", "Difference", "Measured", "compare", "looking"]

#: What is compared if nothing is said: what hosts use, and the same as one of them with a differentiator.
SCHEMES = ("cubic", "bbr", "sack", "lda-eq")
BESIDE = "cubic"
PRECISION = 0.02
FIRST_LOOK = 8
MAX_RUNS = 128
#: Bounds of what is asked for.
MOST_SCHEMES = 12
MOST_RUNS = 100_000


def compare(
    scenario: Scenario | str | PathLike[str] | None = None,
    schemes: Sequence[str | Mapping[str, object]] = SCHEMES,
    *,
    beside: str | Mapping[str, object] = BESIDE,
    precision: float = PRECISION,
    max_runs: int = MAX_RUNS,
    store: str | PathLike[str] | None = None,
    threads: int | None = None,
    progress: Callable[[_native.Progress], object] | None = None,
) -> Comparison:
    """Compares schemes on a path: goodput, queueing delay, timeouts, harm to others, and what they misjudged.

    >>> print(compare(path(rate="10 Mbps", delay="20 ms", loss="1 %"), ["cubic", "lda-eq"]).verdict)

    Args:
        scenario: where; its first flow is of each scheme in turn. :func:`whyloss.path` as it is if nothing is said.
        schemes: what is compared, as :meth:`whyloss.friendliness.Kind.of` takes it.
        beside: the scheme of a flow that shares the path in runs of their own, to measure harm. Where the scenario
            has other flows of TCP, harm is what these lose.
        precision: runs are added until half the interval of each scheme's goodput is this share of its mean.
        max_runs: but no more than this.
        store: folder in which finished runs are kept and found again.
        threads: runs at a time; one for each core if nothing is said. It changes no result.
        progress: is told how far the runs up to the next look are, about ten times a second.

    Raises:
        whyloss.InputError: a scheme does not exist, or a number makes no sense.
    """
    found = None
    for found in looking(  # noqa: B007
        scenario,
        schemes,
        beside=beside,
        precision=precision,
        max_runs=max_runs,
        store=store,
        threads=threads,
        progress=progress,
    ):
        pass
    assert found is not None
    return found


def looking(
    scenario: Scenario | str | PathLike[str] | None = None,
    schemes: Sequence[str | Mapping[str, object]] = SCHEMES,
    *,
    beside: str | Mapping[str, object] = BESIDE,
    precision: float = PRECISION,
    max_runs: int = MAX_RUNS,
    store: str | PathLike[str] | None = None,
    threads: int | None = None,
    progress: Callable[[_native.Progress], object] | None = None,
) -> Iterator[Comparison]:
    """As :func:`compare`, but gives what is known at every look; the last one is the result."""
    kinds = [Kind.of(scheme) for scheme in schemes]
    _check(kinds, precision, max_runs)
    chosen = path() if scenario is None else scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    there = worlds(chosen, kinds, Kind.of(beside))
    sweep = Sweep(chosen, 1).variants("world", there.variants)
    ends = looks(FIRST_LOOK, max_runs)
    labels = [kind.label for kind in kinds]
    table, done = pl.DataFrame(), 0
    for end in ends:
        results = sweep.with_runs(end - done, done).run(store=store, threads=threads, progress=progress)
        table = pl.concat([table, _reduced(results, labels, there)])
        done = end
        found = Comparison(
            world=told(chosen),
            others=there.others,
            precision=precision,
            max_runs=max_runs,
            looks=len(ends),
            runs=done,
            table=_ordered(table, labels),
            like=_like(kinds),
        )
        yield found
        if found.reached:
            return


def _check(kinds: Sequence[Kind], precision: float, max_runs: int) -> None:
    labels = [kind.label for kind in kinds]
    if not 1 <= len(kinds) <= MOST_SCHEMES or len(set(labels)) != len(labels):
        msg = f"found the schemes {', '.join(labels) or '(none)'}; allowed: 1 to {MOST_SCHEMES}, each once"
        raise _native.InputError(msg)
    if not 0.0001 <= precision <= 1:
        msg = f"found a precision of {100 * precision:g} %; allowed: 0.01 % to 100 %"
        raise _native.InputError(msg)
    if not 1 <= max_runs <= MOST_RUNS:
        msg = f"found at most {max_runs} runs; allowed: 1 to {MOST_RUNS}"
        raise _native.InputError(msg)


def _like(kinds: Sequence[Kind]) -> dict[str, str | None]:
    """Of each kind that asks why a segment was lost, one that has the same congestion control and does not ask."""
    known = {one["name"]: dict(one["details"]) for one in _native.schemes()}

    def part(kind: Kind, role: str) -> str:
        return str(kind.fields.get(role) or known.get(str(kind.fields.get("scheme")), {}).get(role, "none"))

    plain = {part(kind, "congestion"): kind.label for kind in kinds if part(kind, "differentiator") == "none"}
    asking = [kind for kind in kinds if part(kind, "differentiator") != "none"]
    return {kind.label: plain.get(part(kind, "congestion")) for kind in asking}


def _ordered(table: pl.DataFrame, labels: Sequence[str]) -> pl.DataFrame:
    rank = {label: number for number, label in enumerate(labels)}
    return table.sort(pl.col("scheme").replace_strict(rank, return_dtype=pl.Int64), "run")


def _reduced(results: Results, labels: Sequence[str], there: Worlds) -> pl.DataFrame:
    """A row a scheme and run: what a comparison keeps of all their tables."""
    flows, transfers = results.flows.to_polars(), results.transfers.to_polars()
    ours = pl.col("entry") == 0
    ended = results.runs.to_polars().select("world", "run", "ended_at_ns")
    key = ["world", "run"]
    own = transfers.filter(ours).group_by(key).agg(pl.col("goodput_bps").mean())
    timeouts = flows.filter(ours).group_by(key).agg(pl.col("timeouts").sum().cast(pl.Float64))
    # Little's law: how many wait in the mean, over how many come in a second.
    waited = pl.col("mean_queue_packets") * pl.col("ended_at_ns") / 1e9
    refused = pl.col("dropped_queue") + pl.col("dropped_policer")
    passed = pl.col("offered_packets").cast(pl.Float64) - refused
    queueing = (
        results.links.to_polars()
        .join(ended, on=key)
        .filter(pl.col("offered_packets") > refused)
        .group_by(key)
        .agg((waited / passed).max().alias("queueing_s"))
    )
    rivals = flows.filter(pl.col("entry").is_in(there.rivals))
    other = rivals.group_by(key).agg(pl.col("goodput_bps").mean().alias("other_bps"))
    named = flows.filter(ours).select("world", "run", "flow")
    losses = results.losses.to_polars().join(named, on=[*key, "flow"], how="semi")
    judged = [{"world": world, "run": run, **_counts(rows)} for (world, run), rows in losses.group_by(key)]
    empty = {"world": pl.String, "run": pl.UInt32, **dict.fromkeys(_counts(losses.head(0)), pl.Int64)}
    counted = pl.DataFrame(judged, schema=empty)
    among = other.filter(pl.col("world") == YARDSTICK).select("run", pl.col("other_bps").alias("among_bps"))
    parts = []
    for label in labels:
        at = pl.col("world") == ALONE + label
        one = own.filter(at)
        for table in (queueing, timeouts, counted):
            one = one.join(table.filter(at).drop("world"), on="run", how="left")
        harmed = other.filter(pl.col("world") == there.harmed(label)).drop("world")
        one = one.join(harmed, on="run", how="left").join(among, on="run", how="left")
        parts.append(one.drop("world").with_columns(pl.lit(label).alias("scheme")))
    kept = pl.concat(parts)
    floats = ["goodput_bps", "queueing_s", "timeouts", "other_bps", "among_bps"]
    counts = [name for name in empty if name not in key]
    filled = [pl.col(names).fill_null(nothing) for names, nothing in ((floats, 0.0), (counts, 0))]
    return kept.select("scheme", "run", *filled)


def _counts(losses: pl.DataFrame) -> dict[str, int]:
    found = judgements(losses)
    return {
        "corruption": found.corruption,
        "taken_for_congestion": found.taken_for_congestion,
        "congestion": found.congestion,
        "taken_for_corruption": found.taken_for_corruption,
    }
