"""From a paper's description to measurements: pattern files, sweeps, and what is counted in each run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from whyloss import _native, documents
from whyloss.measurements import Measurements
from whyloss.measuring import Part, Plan
from whyloss.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from whyloss.pack import Pack, Patterns, Reading, Series
    from whyloss.results import Results

__all__ = ["Request", "SweepPart", "jobs", "plan", "quantities", "rows_of_series"]

#: The axis of a sweep whose values the pattern files take the place of.
RATIO_AXIS = "ber"
CHANNEL = "path.forward.channel"


@dataclass(frozen=True, slots=True)
class Request:
    """A curve that is needed: a series in one cell."""

    series: str
    at: tuple[tuple[str, str], ...]
    """Values of the sweep's axes that the cell fixes."""


@dataclass(frozen=True, slots=True)
class SweepPart:
    """A part of a sweep: the runs behind all series that one sweep serves in one cell."""

    sweep: str
    at: tuple[tuple[str, str], ...]
    document: dict[str, Any]
    series: tuple[Series, ...]

    def write(self, folder: Path) -> Path:
        """Writes the sweep as a file of its own, which ``whyloss sweep`` takes too."""
        name = "-".join([self.sweep, *(value.replace(" ", "") for _, value in self.at)])
        queues = {series.where["queue"].replace(" ", "") for series in self.series if "queue" in series.where}
        return documents.write(self.document, folder / ("-".join([name, *sorted(queues)]) + ".json"))


def plan(pack: Pack, reading: Reading, requests: Iterable[Request], repetitions: int, out: Path) -> Plan:
    """What ``requests`` ask for, ``repetitions`` times a point; what is measured are :class:`Measurements`.

    The pattern files are written to ``out/patterns``, the sweeps with them to ``out/sweeps``.
    """
    wanted = jobs(pack, reading, requests, repetitions, out)
    axes = dict.fromkeys(name for job in wanted for name, _ in job.at)
    folder = out / "sweeps" / reading.name

    def reduce(job: SweepPart, results: Results) -> pl.DataFrame:
        return pl.concat(rows_of_series(job, quantities(results)))

    parts = tuple(Part(Sweep.load(job.write(folder)), partial(reduce, job)) for job in wanted)
    return Plan(parts, lambda tables: Measurements(pl.concat(tables), axes))


def _write_patterns(wanted: Patterns, repetitions: int, folder: Path) -> dict[float, str]:
    """Writes the files that are not there yet and returns for each ratio the path with ``{run}`` in it."""
    paths = {}
    for index, ratio in enumerate(wanted.ratios):
        place = folder / f"ber-{ratio:.3e}"
        place.mkdir(parents=True, exist_ok=True)
        for number in range(repetitions):
            path = place / f"{number:02}.bits"
            if not path.exists():
                _native.write_pattern(path, ratio, wanted.bits, _seed(wanted.seed, index, number))
        paths[ratio] = str(place.resolve() / "{run:02}.bits")
    return paths


def _seed(seed: int, ratio: int, number: int) -> int:
    """A seed of its own for each file; ratios and repetitions are well below a thousand."""
    return (seed * 1000 + ratio) * 1000 + number


def jobs(pack: Pack, reading: Reading, requests: Iterable[Request], repetitions: int, out: Path) -> list[SweepPart]:
    """One part of a sweep for all series that take their runs from it in the same cell and with the same queue.

    The pattern files of the pack are written to ``out/patterns``.
    """
    patterns = _write_patterns(pack.patterns, repetitions, out / "patterns") if pack.patterns else {}
    wanted: dict[tuple[str, tuple[tuple[str, str], ...], str], dict[str, Series]] = {}
    for request in dict.fromkeys(requests):
        series = pack.series[request.series]
        wanted.setdefault((series.sweep, request.at, series.where.get("queue", "")), {})[series.name] = series
    parts = []
    for (sweep, at, _), group in wanted.items():
        document = documents.read(pack, sweep, reading)
        document["sweep"]["runs"] = repetitions
        for axis in document["axis"]:
            name = axis["name"]
            fixed = dict(at).get(name)
            allowed = {fixed} if fixed else {series.where[name] for series in group.values() if name in series.where}
            if name == RATIO_AXIS:
                _put_patterns(axis, patterns)
            elif allowed:
                documents.restrict(axis, allowed, f"{pack.folder}/sweeps/{sweep}.toml")
        parts.append(SweepPart(sweep, at, document, tuple(group.values())))
    return parts


def _put_patterns(axis: dict[str, Any], patterns: dict[float, str]) -> None:
    """Puts pattern files in the place of bit errors that are drawn as they come."""
    del axis["field"], axis["values"]
    axis["labels"] = list(patterns)
    axis["fields"] = {f"{CHANNEL}.pattern": list(patterns.values())}


def quantities(results: Results) -> pl.DataFrame:
    """What is counted of each ``[[flow]]`` of each run of a sweep: one row for both.

    ``throughput_kbps`` sums up the transfers of a ``[[flow]]``, each from its start to its last octet; of a striped
    transfer it is that of the whole file. A transfer that does not finish counts what arrived until the end of the run.
    """
    key = ["point", "run", "entry"]
    transfers = results.transfers.to_polars()
    flows = results.flows.to_polars().select(
        *key, "flow", "start_ns", "connected_ns", "forward_dropped_queue", "timeouts"
    )
    throughput = transfers.group_by(key).agg(
        (pl.col("goodput_bps").sum() / 1000).alias("throughput_kbps"),
        pl.col("transfer").first().str.split(".").list.first().alias("flows"),
        pl.col("finished_ns").is_null().sum().alias("unfinished"),
    )
    counters = flows.group_by(key).agg(
        pl.col("forward_dropped_queue").sum().alias("queue_drops"),
        pl.col("timeouts").sum(),
    )
    table = throughput.join(counters, on=key).join(_judged(results, flows), on=key, how="left")
    if len(results.samples):
        table = table.join(_first_flight(results, flows), on=key, how="left")
    # A sweep's tables begin with run, point and the axes.
    axes = transfers.columns[2 : transfers.columns.index("transfer")]
    points = transfers.select("point", *axes).unique()
    return table.join(points, on="point").with_columns(pl.selectors.numeric().fill_null(0))


def _judged(results: Results, flows: pl.DataFrame) -> pl.DataFrame:
    """How losses were judged, by what they were: one row a ``[[flow]]`` of a run that had any."""
    corrupted = pl.col("true_class") == "corruption"
    congested = pl.col("true_class") == "congestion"
    taken_for_corruption = pl.col("verdict") == "corruption"
    # What a receiver can tell of: damage that leaves the way to the connection intact.
    seen = pl.col("true_cause").cast(pl.String).is_in(("payload-damaged", "transport-header-damaged"))
    return (
        results.losses.to_polars()
        .select("point", "run", "flow", "true_class", "true_cause", "verdict")
        .join(flows.select("point", "run", "entry", "flow"), on=["point", "run", "flow"])
        .group_by("point", "run", "entry")
        .agg(
            corrupted.sum().alias("corruption_losses"),
            (corrupted & ~taken_for_corruption).sum().alias("corruption_as_congestion"),
            (corrupted & ~seen).sum().alias("corruption_unseen"),
            congested.sum().alias("congestion_losses"),
            (congested & taken_for_corruption).sum().alias("congestion_as_corruption"),
        )
    )


def _first_flight(results: Results, flows: pl.DataFrame) -> pl.DataFrame:
    """Octets that arrive before anything can that was sent in answer to an acknowledgement of data.

    That takes one and a half round trips from the end of the handshake, and the handshake itself is the measure of one.
    """
    key = ["point", "run", "entry"]
    round_trip = pl.col("connected_ns") - pl.col("start_ns")
    return (
        results.samples.to_polars()
        .join(flows, on=["point", "run", "flow"])
        .filter(pl.col("at_ns") < pl.col("connected_ns") + 3 * round_trip // 2)
        .group_by(*key, "flow")
        .agg(pl.col("octets_delivered").max())
        .group_by(key)
        .agg(pl.col("octets_delivered").sum().alias("first_flight_octets"))
    )


def rows_of_series(job: SweepPart, rows: pl.DataFrame) -> list[pl.DataFrame]:
    """The rows of each series that ``job`` serves, in the form that :class:`Measurements` takes."""
    return [_rows_of(series, job, rows) for series in job.series]


def _rows_of(series: Series, job: SweepPart, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of one series, in the form that :class:`Measurements` takes."""
    chosen = rows.filter(pl.col("flows") == series.flows)
    for name, value in series.where.items():
        chosen = chosen.filter(pl.col(name).cast(pl.String) == value)
    x = pl.col(RATIO_AXIS) if RATIO_AXIS in rows.columns else pl.lit(0.0)
    return chosen.select(
        pl.lit(series.name).alias("series"),
        *(pl.lit(value).alias(name) for name, value in job.at),
        x.cast(pl.Float64).alias("x"),
        pl.col("run").alias("repetition"),
        *(_column(rows, name) for name in QUANTITIES),
    )


QUANTITIES = (
    "throughput_kbps",
    "queue_drops",
    "timeouts",
    "unfinished",
    "corruption_losses",
    "corruption_as_congestion",
    "corruption_unseen",
    "congestion_losses",
    "congestion_as_corruption",
    "first_flight_octets",
)


def _column(rows: pl.DataFrame, name: str) -> pl.Expr:
    column = pl.col(name) if name in rows.columns else pl.lit(None)
    return column.cast(pl.Float64).alias(name)
