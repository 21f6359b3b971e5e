"""What is measured of Selective-TCP, and how its figures are drawn.

TCP runs from 100 s on, and everything is averaged over the time from then to the end. The paper draws one run for each
curve. Here the same is drawn beside what all runs do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from whyloss import gains
from whyloss.figures import Curve, Figure, Style
from whyloss.harm import goodputs
from whyloss.stats import LEVEL, Exact, mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whyloss.pack import FigureSpec
    from whyloss.results import Results
    from whyloss.stats import Estimate, Sample

Data = dict[str, dict[str, pl.DataFrame]]

START_NS = 100_000_000_000
SEGMENT = 1000
HEADERS = 40
CONGESTED, FREE = "2 Mbps", "4 Mbps"
KEY = ("point", "run")
LABELS = {
    "newreno": "NewReno",
    "selective": "Selective-TCP",
    "packet-control": "packet control",
    "reno": "Reno",
    "sack": "SACK",
    "westwood": "Westwood",
}
COLOURS = {
    "newreno": "#6b7280",
    "selective": "#d5622a",
    "packet-control": "#2f72b8",
    "reno": "#2b9a6c",
    "sack": "#8b5cf6",
    "westwood": "#b45309",
}
#: Seconds between the points of a curve that shows one run, and of one that shows all.
ONE, ALL = 4, 20


def reduce(study: str, results: Results) -> dict[str, pl.DataFrame]:
    """``runs`` has one row a run, ``series`` the time series of its TCP."""
    if study == "neighbours":
        return {"goodputs": goodputs(results, START_NS)}
    flows = results.flows.to_polars().filter(pl.col("flow") == "ftp")
    axes = [name for name in ("wired", "errors", "variant") if name in flows.columns]
    samples = results.samples.to_polars().filter((pl.col("flow") == "ftp") & (pl.col("at_ns") >= START_NS))
    end = 600 if study == "long" else 300
    bits = 8 / (1000 * (end - START_NS / 1e9))
    runs = flows.select(
        *KEY,
        *axes,
        (pl.col("octets_delivered") * bits).alias("goodput_kbps"),
        # "The number of bits transmitted by the source host", headers and retransmissions included.
        ((pl.col("data_octets_sent") + HEADERS * pl.col("data_segments_sent")) * bits).alias("throughput_kbps"),
        "timeouts",
        "fast_retransmits",
        "reports_received",
    )
    windows = samples.group_by(KEY).agg(
        (pl.col("cwnd_octets").mean() / SEGMENT).alias("cwnd"),
        pl.col("ssthresh_octets").diff().fill_null(0).ne(0).sum().alias("ssthresh_changes"),
    )
    judged = _judged(results)
    series = samples.select(
        *KEY,
        *axes,
        (pl.col("at_ns") // 1_000_000_000).alias("at"),
        (pl.col("cwnd_octets") / SEGMENT).alias("cwnd"),
        (pl.col("ssthresh_octets") / SEGMENT).alias("ssthresh"),
        (pl.col("octets_delivered") / SEGMENT).alias("packets"),
        # Of what has arrived in order since TCP began.
        (pl.col("octets_delivered") * 8 / 1000 / ((pl.col("at_ns") - START_NS) / 1e9)).alias("rate"),
    ).filter((pl.col("at") % ALL == 0) | ((pl.col("run") == 0) & (pl.col("at") % ONE == 0)))
    runs = runs.join(windows, on=KEY, how="left").join(judged, on=KEY, how="left")
    return {"runs": runs.sort(KEY), "series": series.sort(*KEY, "at")}


def _judged(results: Results) -> pl.DataFrame:
    """Losses that the receiver judged (it asked for them, or let duplicates speak of them), and how many rightly."""
    trigger, cause = pl.col("trigger"), pl.col("true_class")
    right = ((trigger == "snack") & (cause == "corruption")) | ((trigger == "duplicate-acks") & (cause == "congestion"))
    return (
        results.losses.to_polars()
        .filter(trigger.is_in(["snack", "duplicate-acks"]) & cause.is_not_null())
        .group_by(KEY)
        .agg(pl.len().alias("judged"), right.sum().alias("judged_right"))
    )


# --- what figures and claims ask for ---------------------------------------------------------------------------------


def runs(data: Data, variant: str, wired: str = CONGESTED, errors: str = "burst", study: str = "") -> pl.DataFrame:
    """The runs of one variant in one case, in their order: pairs with those of any other."""
    table = data[study or ("burst" if errors == "burst" else "errors")]["runs"]
    return _case(table, variant, wired, errors).sort("run")


def sample(data: Data, column: str, variant: str, *case: str, **named: str) -> Sample:
    """One value a run."""
    return runs(data, variant, *case, **named)[column].fill_null(0).to_numpy().astype(np.float64)


def _case(table: pl.DataFrame, variant: str, wired: str, errors: str) -> pl.DataFrame:
    wanted = (pl.col("variant") == variant) & (pl.col("errors") == errors)
    if "wired" in table.columns:
        wanted &= pl.col("wired") == wired
    return table.filter(wanted)


# --- the figures -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spread:
    """Where runs lie: their median, and the range in which a share of them lie, half of the rest on either side."""

    values: tuple[float, ...]

    @property
    def value(self) -> float:
        """The median."""
        return float(np.median(self.values))

    @property
    def n(self) -> int:
        """Number of runs."""
        return len(self.values)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """The range that holds this share of the runs."""
        low, high = np.quantile(self.values, [0.5 - level / 2, 0.5 + level / 2])
        return float(low), float(high)


ALL_RUNS = "Bars: the range of 95 % of the runs, at their median."
#: What the paper draws over time: the column, and what it is called.
QUANTITIES = {
    "goodput": ("packets", "Packets in order"),
    "cwnd": ("cwnd", "Congestion window (packets)"),
    "ssthresh": ("ssthresh", "Slow start threshold (packets)"),
    "throughput": ("rate", "Throughput since 100 s (kbps)"),
}


def _over_time(spec: FigureSpec, data: Data, cases: Iterable[_Shown], quantity: str, kinds: str = "one all") -> Figure:
    column, label = QUANTITIES[quantity]
    curves: list[Curve] = []
    for case in cases:
        table = _case(data[case.study]["series"], case.variant, case.wired, case.errors)
        table = table.filter(pl.col(column).is_not_null() & pl.col(column).is_finite())
        if "one" in kinds:
            one = table.filter((pl.col("run") == 0) & (pl.col("at") % ONE == 0))
            values: tuple[Estimate, ...] = tuple(Exact(value, 1) for value in one[column])
            style = Style(case.colour, case.marker, filled=not case.dashed, dashed=case.dashed)
            curves.append(Curve(f"{case.label}, one run", tuple(one["at"]), values, style))
        if "all" in kinds:
            every = table.filter(pl.col("at") % ALL == 0).group_by("at").agg(column).sort("at")
            spreads = tuple(Spread(tuple(values)) for values in every[column])
            style = Style(case.colour, case.marker, filled=not case.dashed, line=False)
            curves.append(Curve(f"{case.label}, all runs", tuple(every["at"]), spreads, style))
    return Figure(
        id=spec.id,
        title=spec.title,
        caption=" ".join(filter(None, (spec.caption, ALL_RUNS if "all" in kinds else ""))),
        x_label="Time (s)",
        y_label=label,
        curves=tuple(curves),
        printed=spec.printed,
    )


@dataclass(frozen=True, slots=True)
class _Shown:
    """What two curves show: one run, and all."""

    study: str
    variant: str
    wired: str
    errors: str
    label: str
    colour: str
    marker: str = "circle"
    dashed: bool = False


def _variants(names: Iterable[str], wired: str, study: str = "burst") -> list[_Shown]:
    markers = ("circle", "square", "diamond", "triangle", "circle", "square")
    return [
        _Shown(study, name, wired, "burst", LABELS[name], COLOURS[name], marker, dashed=number > 3)
        for number, (name, marker) in enumerate(zip(names, markers, strict=False))
    ]


def _errors(names: Iterable[str], wired: str) -> list[_Shown]:
    kinds = (("none", "no errors", "diamond"), ("random", "1 % random", "square"), ("burst", "5 % burst", "circle"))
    return [
        _Shown(
            "burst" if errors == "burst" else "errors",
            name,
            wired,
            errors,
            f"{LABELS[name]}, {words}",
            COLOURS[name],
            marker,
            dashed=errors == "random",
        )
        for name in names
        for errors, words, marker in kinds
    ]


FIRST, SECOND = ("selective", "newreno"), ("selective", "packet-control", "newreno")


def _shown() -> dict[str, tuple[list[_Shown], str, str]]:
    """What each figure shows: the TCPs or kinds of errors, the quantity, and whether one run, all runs or both."""
    both, names = "one all", list(QUANTITIES)
    shown: dict[str, tuple[list[_Shown], str, str]] = {}
    for first, wired in ((13, CONGESTED), (18, FREE)):
        for number, quantity in enumerate(names, first):
            shown[str(number)] = (_variants(FIRST, wired), quantity, both)
    without = _Shown("errors", "newreno", CONGESTED, "none", "NewReno, no errors", COLOURS["newreno"], "triangle")
    shown["17"] = ([*_errors(["selective"], CONGESTED), without], "goodput", both)
    shown["22"] = (_errors(["selective"], FREE), "goodput", both)
    shown["24"] = (_variants(SECOND, CONGESTED), "goodput", both)
    shown["25"] = (_variants(SECOND, CONGESTED, "long"), "goodput", both)
    for first, wired, drawn in ((26, CONGESTED, names[1:]), (30, FREE, names)):
        for number, quantity in enumerate(drawn, first):
            shown[str(number)] = (_variants(SECOND, wired), quantity, both)
    for number, wired in ((29, CONGESTED), (34, FREE)):
        shown[str(number)] = (_errors(SECOND[:2], wired), "goodput", both)
    for number, wired in ((35, CONGESTED), (37, FREE)):
        for offset, quantity in enumerate(("cwnd", "goodput")):
            shown[f"{number + offset}"] = (_variants(LABELS, wired), quantity, "one")
            shown[f"{number + offset}a"] = (_variants(LABELS, wired), quantity, "all")
    return shown


def over_time(spec: FigureSpec, data: Data) -> Figure:
    """A figure of the paper: a quantity over time, of one run and of all."""
    cases, quantity, kinds = _shown()[spec.id]
    return _over_time(spec, data, cases, quantity, kinds)


def parts(spec: FigureSpec, data: Data) -> Figure:
    """Selective-TCP's goodput with other parameters, in other readings of its units, and with one half of it only."""
    table = data["settings"]["runs"]
    names = ["newreno", *table["variant"].unique(maintain_order=True)]
    samples = [
        sample(data, "goodput_kbps", name, study="" if name == "newreno" else "settings").tolist() for name in names
    ]

    def bars(label: str, values: Iterable[Any], marker: str, colour: str) -> Curve:
        ys = tuple(values)
        return Curve(label, tuple(map(float, range(len(ys)))), ys, Style(colour, marker, line=False))

    return Figure(
        id=spec.id,
        title=spec.title,
        caption=spec.caption,
        x_label="",
        y_label="Goodput (kbps)",
        curves=(
            bars("mean", map(mean, samples), "circle", COLOURS["selective"]),
            bars("median", (Exact(float(np.median(values)), len(values)) for values in samples), "square", "#2f72b8"),
        ),
        x_ticks=tuple(names),
        printed=spec.printed,
    )


def beside_newreno(spec: FigureSpec, data: Data) -> Figure:
    """What each TCP has more than NewReno, and what the NewReno beside it loses by it."""
    found = gains.pairs(data["neighbours"]["goodputs"], "variant", own="newreno", single="ftp", others="neighbour")
    return gains.figure(spec, found, labels=LABELS)
