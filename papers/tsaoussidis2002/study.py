"""What is measured of TCP-Real and its rivals, and how the figures are drawn.

A flow's goodput is what arrived in order over the time from its start to the end of the run. Flows of the protocol that
is looked at are called ``main`` or ``rival``, those that it is looked at beside ``reference`` or ``cross``.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whyloss import harm as friendliness
from whyloss import metrics
from whyloss.figures import Curve, Figure, Style
from whyloss.stats import Mean, function_of_means, mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from whyloss.pack import FigureSpec
    from whyloss.results import Results
    from whyloss.stats import Estimate, Sample

Data = dict[str, dict[str, pl.DataFrame]]

KEY = ("point", "run")
FIRST, SECOND = ("main", "rival"), ("reference", "cross")
REAL, RENO, SACK, NEWRENO, GAIMD, TFRC = "tcp-real", "reno", "sack", "newreno", "gaimd", "tfrc"
LABELS = {
    REAL: "TCP-Real",
    RENO: "Reno",
    SACK: "SACK",
    NEWRENO: "NewReno",
    GAIMD: "GAIMD",
    TFRC: "TFRC",
    "tfrc-2000": "TFRC (2000)",
    "tfrc-5348": "TFRC (RFC 5348)",
}
STYLES = {
    REAL: Style("#d5622a", "circle"),
    RENO: Style("#6b7280", "square"),
    SACK: Style("#2f72b8", "diamond"),
    NEWRENO: Style("#8b5cf6", "triangle"),
    GAIMD: Style("#2b9a6c", "triangle"),
    TFRC: Style("#b45309", "diamond"),
    "tfrc-2000": Style("#b45309", "diamond"),
    "tfrc-5348": Style("#be123c", "diamond", filled=False),
}
#: Studies that are compared with ns-2, whose goodput counts from the beginning of a run, and how long their runs are.
BESIDE_NS2 = ("errors", "errors-ns2")
SECONDS = 60
#: The window that 64 KB of receive buffer hold, in segments of 1000 octets.
WINDOW = 64


def reduce(study: str, results: Results) -> dict[str, pl.DataFrame]:
    """``runs`` has one row a run: goodput of both groups in Mbit/s, and how evenly the first one is shared."""
    if study == "recovery":
        return {"runs": _recovery(results)}
    if study == "hand-off":
        return _hand_offs(results)
    transfers = results.transfers.to_polars()
    axes = transfers.columns[2 : transfers.columns.index("transfer")]
    key = (*KEY, *axes)
    ours, theirs = (_of(groups, pl.col("transfer")) for groups in (FIRST, SECOND))
    main, beside = transfers.filter(ours), transfers.filter(theirs)
    megabits = pl.col("system_goodput_bps") / 1e6
    columns = [
        metrics.fairness(main, key),
        metrics.system_goodput(beside, key).select(*key, megabits.alias("other")),
        metrics.atgr(transfers, ours, theirs, key),
        metrics.application_success(main, key).rename({"application_success": "success"}),
        metrics.application_success(main, key, buffered=True).rename({"application_success": "buffered"}),
    ]
    runs = metrics.system_goodput(main, key).select(*key, megabits.alias("goodput"))
    if study in BESIDE_NS2:
        whole = pl.col("octets_delivered").sum() * 8 / 1e6 / SECONDS
        columns.append(main.group_by(*key).agg(whole.alias("goodput_ns2")))
    for column in columns:
        runs = runs.join(column.drop(axes), on=KEY, how="left")
    counts = (
        results.flows.to_polars()
        .filter(_of(FIRST, pl.col("flow")))
        .group_by(KEY)
        .agg(
            pl.col("timeouts", "reductions", "retransmissions", "losses").sum(),
            pl.col("forward_dropped_queue").sum().alias("overflows"),
        )
    )
    return {"runs": runs.join(counts, on=KEY, how="left").sort(KEY)}


def _of(groups: tuple[str, ...], name: pl.Expr) -> pl.Expr:
    """Flows of a group are called by its name, or by its name, a dot and a number."""
    return name.str.split(".").list.first().is_in(groups)


def _recovery(results: Results) -> pl.DataFrame:
    """Seconds from the only reduction of a run to the full window; runs with none or several have no row."""
    flows = results.flows.to_polars().filter((pl.col("losses") == 1) & (pl.col("reductions") == 1))
    losses = results.losses.to_polars().select(*KEY, pl.col("at_ns").alias("reduced_ns"))
    samples = results.samples.to_polars().select(*KEY, "at_ns", (pl.col("cwnd_octets") / 1000).alias("cwnd"))
    after = (
        flows.select(*KEY, "protocol")
        .join(losses, on=KEY)
        .join(samples, on=KEY)
        .filter(pl.col("at_ns") > pl.col("reduced_ns"))
    )
    full = (pl.col("at_ns") - pl.col("reduced_ns")).filter(pl.col("cwnd") >= WINDOW).min() / 1e9
    return after.group_by(*KEY, "protocol").agg(full.alias("seconds"), pl.col("cwnd").min().alias("least")).sort(KEY)


#: A hand-off begins every so many seconds; they last 0.5 s in the mean.
PERIOD = 5


def _hand_offs(results: Results) -> dict[str, pl.DataFrame]:
    """``runs`` has the sending rate of each in Mbit/s, ``phases`` that by the time since a hand-off began."""
    key = (*KEY, "protocol")
    whole = results.flows.to_polars().select(*key, (pl.col("data_octets_sent") * 8 / 1e6 / 60).alias("sent"))
    samples = results.samples.to_polars().sort(*KEY, "at_ns")
    sent = pl.col("data_octets_sent").diff().over(KEY) * 8 / pl.col("at_ns").diff().over(KEY) * 1e3
    phases = (
        samples.with_columns(sent.alias("rate"))
        # The first period has no hand-off; a point tells of the time before it.
        .filter((pl.col("at_ns") > PERIOD * 1_000_000_000) & (pl.col("at_ns") <= 55 * 1_000_000_000))
        .with_columns(((pl.col("at_ns") - 1) % (PERIOD * 1_000_000_000) + 1).alias("phase_ns"))
        .group_by(*key, "phase_ns")
        .agg(pl.col("rate").mean())
        .with_columns((pl.col("phase_ns") / 1e9).alias("phase"))
        .sort(*KEY, "phase_ns")
    )
    return {"runs": whole.sort(KEY), "phases": phases}


# --- what figures and claims ask for ---------------------------------------------------------------------------------


def sample(data: Data, study: str, column: str = "goodput", /, **where: str | float) -> Sample:
    """One value a run, in their order: pairs with those of any other point."""
    wanted = [pl.col(axis) == value for axis, value in where.items()]
    found = data[study]["runs"].filter(*wanted).sort("run")
    if found.is_empty():
        raise LookupError(f"study {study!r} has no runs with {where}")
    return found[column].fill_nan(0).fill_null(0).to_numpy().astype(np.float64)


def steps(data: Data, study: str, axis: str) -> list[float]:
    """The values of an axis that were run, ascending."""
    return sorted(data[study]["runs"][axis].unique().to_list())


def over(top: Sample, bottom: Sample) -> Mean:
    """The ratio of two means of paired samples."""
    return function_of_means(lambda a, b: a / b if b else float("nan"), [top, bottom])


def percent(ratio: Mean) -> Mean:
    """By how much a ratio is above 1, in percent."""
    return Mean(100 * (ratio.value - 1), 100 * ratio.error, ratio.n)


# --- the figures -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a figure of the paper shows: one curve a protocol over the steps of an axis."""

    study: str
    axis: str
    x_label: str
    column: str = "goodput"
    protocols: tuple[str, ...] = (REAL, RENO, SACK, GAIMD)
    where: dict[str, str | float] = field(default_factory=dict)
    ns2: int = 0
    """How many flows there were in the runs of ns-2 that are shown to compare with; 0: there are none."""


Y_LABELS = {
    "goodput": "Goodput (Mbps)",
    "fairness": "Fairness index",
    "atgr": "Goodput, main / cross traffic",
    "success": "Successful reads (%)",
    "buffered": "Successful reads (%)",
}
FLOWS, PER, REVERSE = "Number of flows", "Packet error rate", "Packet error rate, reverse"
WIRED = (REAL, RENO, SACK, NEWRENO, GAIMD)
SHOWN = {
    "5": _Shown("wired", "flows", FLOWS, protocols=WIRED),
    "6": _Shown("wired", "flows", FLOWS, "fairness", WIRED),
    "7": _Shown("rtts", "max_rtt", "Largest round trip (ms)", "fairness", (REAL, RENO, SACK)),
    "8": _Shown("rtts-fast", "max_rtt", "Largest round trip (ms)", "fairness", (REAL, RENO, SACK)),
    "11": _Shown("errors", "per", PER, protocols=WIRED, where={"flows": 1}, ns2=1),
    "13": _Shown("errors", "per", PER, protocols=WIRED, where={"flows": 10}, ns2=10),
    "14": _Shown("errors-fast", "per", PER),
    "15": _Shown("mixed", "wireless", "Wireless receivers"),
    "16": _Shown("mixed", "wireless", "Wireless receivers", "fairness"),
    "9": _Shown("parking", "flows", FLOWS, "atgr", (REAL, RENO, SACK)),
    "10": _Shown("parking-red", "flows", FLOWS, "atgr", (REAL, RENO, SACK)),
    "17": _Shown("parking-errors", "per", "Packet error rate, main traffic", "atgr"),
    "18": _Shown("playback", "per", PER, "success"),
    "18a": _Shown("playback", "per", PER, "buffered"),
    "19": _Shown("playback-fast", "per", PER, "success"),
    "22": _Shown("reverse", "on_ms", "On time (ms)", protocols=(REAL, RENO, SACK)),
    "22a": _Shown("reverse-two", "on_ms", "On time (ms)", protocols=(REAL, RENO, SACK)),
    "23": _Shown("reverse", "on_ms", "On time (ms)", "fairness", (REAL, RENO, SACK)),
    "13b": _Shown("errors-2001", "per", PER),
    "20": _Shown("asymmetric", "reverse_per", REVERSE, where={"case": "1 flow, 0.005"}),
    "20a": _Shown("asymmetric", "reverse_per", REVERSE, where={"case": "1 flow, 0.001"}),
    "21": _Shown("asymmetric", "reverse_per", REVERSE, where={"case": "10 flows, 0.005"}),
    "21a": _Shown("asymmetric", "reverse_per", REVERSE, where={"case": "10 flows, 0.005, agents of 2001"}),
}


def curves(spec: FigureSpec, data: Data) -> Figure:
    """A figure of the paper with one curve a protocol."""
    shown = SHOWN[spec.id]
    xs = steps(data, shown.study, shown.axis)
    drawn = [
        Curve(
            LABELS[name],
            tuple(map(float, xs)),
            tuple(
                mean(sample(data, shown.study, shown.column, protocol=name, **shown.where, **{shown.axis: x}))
                for x in xs
            ),
            STYLES[name],
        )
        for name in shown.protocols
    ]
    drawn += _ns2_curves(shown.ns2, shown.protocols)
    return _figure(spec, drawn, shown.x_label, Y_LABELS[shown.column])


def _at(data: Data, shown: _Shown, protocol: str, x: float) -> Sample:
    return sample(data, shown.study, shown.column, protocol=protocol, **shown.where, **{shown.axis: x})


#: The protocols of Figure 12.
HANDED = (REAL, RENO, SACK, GAIMD, "tfrc-2000", "tfrc-5348")


def after_hand_offs(data: Data, protocol: str, begin: float, end: float) -> Sample:
    """What is sent between two times after the beginning of a hand-off, in Mbit/s: one mean a run."""
    phases = data["hand-off"]["phases"].filter(
        pl.col("protocol") == protocol, pl.col("phase") > begin, pl.col("phase") <= end
    )
    return phases.group_by("run").agg(pl.col("rate").mean()).sort("run")["rate"].to_numpy().astype(np.float64)


def hand_offs(spec: FigureSpec, data: Data) -> Figure:
    """Figure 12: rates over the time since a hand-off began, the mean of all; 12a: sending rates of whole runs."""
    if spec.id == "12a":
        bars = [
            _curve(
                "all runs",
                range(len(HANDED)),
                (mean(sample(data, "hand-off", "sent", protocol=name)) for name in HANDED),
                Style("#d5622a", line=False),
            )
        ]
        return _figure(spec, bars, "", "Sending rate (Mbps)", x_ticks=tuple(LABELS[name] for name in HANDED))
    times = sorted(data["hand-off"]["phases"]["phase"].unique().to_list())
    step = times[1] - times[0]
    drawn = [
        _curve(
            LABELS[name], times, (mean(after_hand_offs(data, name, at - step / 2, at)) for at in times), STYLES[name]
        )
        for name in HANDED
    ]
    return _figure(spec, drawn, "Time since a hand-off began (s)", "Sending rate (Mbps)")


def friends(spec: FigureSpec, data: Data) -> Figure:
    """Figures 24 to 26: half of the flows are a rival's, half are Reno's, and what Reno's have among their own kind."""
    rivals = {"24": (REAL,), "25": ("tfrc-2000", "tfrc-5348"), "26": (GAIMD,)}[spec.id]
    xs = steps(data, "friends", "flows")
    drawn = []
    for name in rivals:
        drawn.append(_curve(LABELS[name], xs, (mean(_friends(data, "goodput", name, x)) for x in xs), STYLES[name]))
        beside = replace(STYLES[name], marker="square", filled=False, dashed=True)
        drawn.append(
            _curve(f"Reno beside {LABELS[name]}", xs, (mean(_friends(data, "other", name, x)) for x in xs), beside)
        )
    own = (mean(_friends(data, "other", RENO, x)) for x in xs)
    drawn.append(_curve("Reno beside Reno", xs, own, STYLES[RENO]))
    return _figure(spec, drawn, "Number of flows, half of them Reno's", "Goodput of a group (Mbps)")


def _friends(data: Data, column: str, rival: str, flows: float) -> Sample:
    return sample(data, "friends", column, rival=rival, flows=flows)


def harm(data: Data, study: str, **where: str | float) -> Mean:
    """What Reno's flows lose beside a rival's, in percent of what they have beside as many more of their own kind."""
    beside, among = (sample(data, study, "other", **at) for at in (where, _reno_instead(data, study, where)))
    return _percent(friendliness.harm(beside, among))


def gain(data: Data, study: str, **where: str | float) -> Mean:
    """What a rival's flows have more than Reno's in their place, in percent."""
    ours, instead = (sample(data, study, "goodput", **at) for at in (where, _reno_instead(data, study, where)))
    return _percent(friendliness.gain(ours, instead))


def _reno_instead(data: Data, study: str, where: dict[str, str | float]) -> dict[str, str | float]:
    return {**where, "rival" if "rival" in data[study]["runs"].columns else "variant": RENO}


def _percent(share: Mean) -> Mean:
    return Mean(100 * share.value, 100 * share.error, share.n)


def gain_and_harm(spec: FigureSpec, data: Data) -> Figure:
    """What each rival gains over Reno in its place, and what that costs the Reno flows beside it."""
    study, axis, x_label = {
        "26a": ("friends", "flows", "Number of flows, half of them Reno's"),
        "26b": ("friends-errors", "per", PER),
        "26e": ("friends-2001", "flows", "Number of flows, half of them Reno's"),
    }[spec.id]
    xs = steps(data, study, axis)
    drawn = []
    for name in (REAL, GAIMD, "tfrc-2000", "tfrc-5348"):
        style, label = STYLES[name], LABELS[name]
        gains = (gain(data, study, rival=name, **{axis: x}) for x in xs)
        harms = (harm(data, study, rival=name, **{axis: x}) for x in xs)
        drawn.append(_curve(f"{label}: gain", xs, gains, replace(style, filled=True)))
        drawn.append(_curve(f"{label}: harm", xs, harms, replace(style, filled=False, dashed=True)))
    return _figure(spec, drawn, x_label, "Gain, and harm to Reno (%)", y_from_zero=False)


def parts(spec: FigureSpec, data: Data) -> Figure:
    """TCP-Real with one part switched off, or one reading turned round, in four worlds; Reno is 1."""
    table = data["parts"]["runs"]
    names = [name for name in table["variant"].unique(maintain_order=True) if name != RENO]
    looks = (
        ("#d5622a", "circle"),
        ("#2f72b8", "square"),
        ("#8b5cf6", "diamond"),
        ("#6b7280", "diamond"),
        ("#2b9a6c", "triangle"),
    )
    drawn = []
    for world, (colour, marker) in zip(table["world"].unique(maintain_order=True), looks, strict=True):
        reno = sample(data, "parts", variant=RENO, world=world)
        ratios = (over(sample(data, "parts", variant=name, world=world), reno) for name in names)
        drawn.append(_curve(str(world), range(len(names)), ratios, Style(colour, marker, line=False)))
    return _figure(spec, drawn, "", "Goodput / Reno's", x_ticks=tuple(names))


def parts_beside_reno(spec: FigureSpec, data: Data) -> Figure:
    """The same beside as many Reno flows: gain and harm, without errors and with 1 %."""
    table = data["parts-friends"]["runs"]
    names = [name for name in table["variant"].unique(maintain_order=True) if name != RENO]
    drawn = []
    for per, words, colour in ((0.0, "no errors", "#6b7280"), (0.01, "1 % errors", "#d5622a")):
        for what, function, marker in (("gain", gain, "circle"), ("harm", harm, "square")):
            values = (function(data, "parts-friends", variant=name, per=per) for name in names)
            style = Style(colour, marker, filled=what == "gain", line=False)
            drawn.append(_curve(f"{what}, {words}", range(len(names)), values, style))
    return _figure(spec, drawn, "", "Gain, and harm to Reno (%)", x_ticks=tuple(names), y_from_zero=False)


# --- ns-2 ------------------------------------------------------------------------------------------------------------


def ns2(flows: int, protocol: str) -> dict[float, Sample]:
    """System goodput in Mbit/s of ns-2 2.35 in the worlds of Figures 11 and 13: one value a seed, by error rate."""
    rows: dict[float, list[float]] = {}
    with (Path(__file__).parent / "ns2.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["proto"] == protocol and int(row["n"]) == flows:
                rows.setdefault(float(row["per"]), []).append(float(row["goodput_mbps"]))
    return {per: np.array(values) for per, values in sorted(rows.items())}


def _ns2_curves(flows: int, protocols: Iterable[str]) -> list[Curve]:
    measured = {name: ns2(flows, name) for name in protocols if flows}
    return [
        Curve(
            f"{LABELS[name]}, ns-2",
            tuple(values),
            tuple(map(mean, values.values())),
            replace(STYLES[name], filled=False, dashed=True),
            reference=True,
        )
        for name, values in measured.items()
        if values
    ]


def independent_ratio(top: Sample, bottom: Sample) -> Mean:
    """The ratio of the means of samples that are not paired; its error to first order (delta method)."""
    a, b = mean(top), mean(bottom)
    ratio = a.value / b.value
    return Mean(ratio, abs(ratio) * float(np.hypot(a.error / a.value, b.error / b.value)), min(a.n, b.n))


def beside_ns2(spec: FigureSpec, data: Data) -> Figure:
    """Our goodput over ns-2's, point by point: as in the other figures, and by the rules of ns-2's agents."""
    flows = {"11a": 1, "13a": 10}[spec.id]
    drawn = [
        _beside_ns2(LABELS[name], data, "errors", name, flows, STYLES[name])
        for name in (RENO, NEWRENO, SACK, GAIMD, TFRC)
    ]
    for name in (RENO, NEWRENO, SACK, GAIMD):
        style = replace(STYLES[name], filled=False, dashed=True)
        drawn.append(_beside_ns2(f"{LABELS[name]} by ns-2's rules", data, "errors-ns2", name, flows, style))
    return _figure(spec, drawn, PER, "Goodput / ns-2's")


def _beside_ns2(label: str, data: Data, study: str, protocol: str, flows: int, style: Style) -> Curve:
    theirs = {per: values for per, values in ns2(flows, protocol).items() if per in steps(data, study, "per")}
    ratios = (
        independent_ratio(sample(data, study, "goodput_ns2", protocol=protocol, flows=flows, per=per), values)
        for per, values in theirs.items()
    )
    return _curve(label, theirs, ratios, style)


def _curve(label: str, xs: Iterable[float], values: Iterable[Estimate], style: Style) -> Curve:
    return Curve(label, tuple(map(float, xs)), tuple(values), style)


def _figure(
    spec: FigureSpec,
    drawn: Sequence[Curve],
    x_label: str,
    y_label: str,
    *,
    x_ticks: tuple[str, ...] = (),
    y_from_zero: bool = True,
) -> Figure:
    return Figure(
        id=spec.id,
        title=spec.title,
        caption=spec.caption,
        x_label=x_label,
        y_label=y_label,
        curves=tuple(drawn),
        y_limit=spec.y_limit,
        x_ticks=x_ticks,
        y_from_zero=y_from_zero,
        printed=spec.printed,
    )
