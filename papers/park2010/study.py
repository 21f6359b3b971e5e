"""What is measured in Park & Chung's groups of scenarios, and how their figures are drawn.

Everything is counted after the warm-up of 35 s. What is scored are the first losses of fast recoveries, on which a
sender decides; their truth is what became of that very transmission. Losses that the retransmission timer found are
counted apart, because the paper's differentiators are not asked about them. What the radio gave up after too many
collisions counts as the paper counts it: its W group has wireless losses alone and its C group congestion losses alone.
In the M group it counts as a wireless loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from whyloss import _native, gains, scoring
from whyloss.figures import Curve, Figure, Style
from whyloss.harm import goodputs
from whyloss.stats import LEVEL, Estimate, Exact, Mean, mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whyloss.pack import FigureSpec
    from whyloss.results import Results

Data = dict[str, dict[str, pl.DataFrame]]

WARM_UP_NS = 35_000_000_000
END_NS = 200_000_000_000
#: The differentiators of the paper, in its order.
PAPER = ("ncpld", "veno", "west", "jtcp", "relds", "lda-eq")
LABELS = {
    "tcp": "TCP",
    "ncpld": "NCPLD",
    "veno": "Veno",
    "west": "West",
    "jtcp": "JTCP",
    "relds": "RELDS-r",
    "lda-eq": "LDA_EQ",
}
BLUE, ORANGE, GREEN, GREY = "#2f72b8", "#d5622a", "#2b9a6c", "#6b7280"
KEY = ("point", "run")


def reduce(study: str, results: Results) -> dict[str, pl.DataFrame]:
    """Counts: ``runs`` has one row a run; ``losses`` those of plain TCP, with the scores of all who listened."""
    if study == "neighbours":
        return {"goodputs": goodputs(results, WARM_UP_NS)}
    axes = results.transfers.columns[2 : results.transfers.columns.index("transfer")]
    points = results.flows.to_polars().select("point", *axes).unique()
    losses = results.losses.to_polars().filter(pl.col("at_ns") >= WARM_UP_NS)
    runs = _goodput(results).join(_counts(judged(study, losses)), on=KEY, how="left")
    runs = runs.join(points, on="point").with_columns(pl.selectors.numeric().fill_null(0))
    plain = losses.filter(pl.col("variant") == "tcp")
    return {"runs": runs.sort("point", "run"), "losses": plain}


def judged(group: str, losses: pl.DataFrame) -> scoring.Judged:
    """Losses counted as the paper counts them in a group."""
    return scoring.read(losses).with_rules(collisions="congestion" if group.startswith("C") else "corruption")


def _goodput(results: Results) -> pl.DataFrame:
    """Octets in order after the warm-up, all flows together, in kbit/s."""
    begin = (
        results.samples.to_polars()
        .filter(pl.col("at_ns") == WARM_UP_NS)
        .group_by(KEY)
        .agg(pl.col("octets_delivered").sum().alias("begin"))
    )
    end = results.flows.to_polars().group_by(KEY).agg(pl.col("octets_delivered").sum().alias("end"))
    seconds = (END_NS - WARM_UP_NS) / 1e9
    joined = end.join(begin, on=KEY, how="left").with_columns(pl.col("begin").fill_null(0))
    return joined.select(*KEY, ((pl.col("end") - pl.col("begin")) * 8 / 1000 / seconds).alias("goodput_kbps"))


def _counts(losses: scoring.Judged) -> pl.DataFrame:
    """One row a run: how the ruling differentiator judged, and what senders acted on."""
    rows = []
    for run, part in losses.split(KEY):
        fast, late = part.events("fast"), part.events("timeout")
        halved = {"halvings": fast.reduced, "timeouts": late.total, "timeouts_spurious": late.spurious}
        rows.append({**run, **_right(part.confusion(scoring.RULING)), **halved})
    return pl.DataFrame(rows)


def _right(confusion: scoring.Confusion) -> dict[str, int]:
    """Losses of each cause, and how many of them were taken for what they are."""
    congestion, corruption = confusion.total("congestion"), confusion.total("corruption")
    return {
        "congestion": congestion,
        "congestion_right": congestion - confusion["congestion", "corruption"],
        "corruption": corruption,
        "corruption_right": confusion["corruption", "corruption"],
    }


# --- what figures and claims ask for ---------------------------------------------------------------------------------


def variant(data: Data, group: str, name: str) -> pl.DataFrame:
    """The runs of one variant, in the order of the scenarios."""
    for study in (group, f"{group}-extension"):
        if study in data:
            runs = data[study]["runs"].filter(pl.col("variant") == name)
            if len(runs):
                return runs.sort(*scenario_axes(runs), "run")
    raise LookupError(f"variant {name!r} was not run in group {group}")


def scenario_axes(runs: pl.DataFrame) -> list[str]:
    """The columns that say which scenario a run belongs to."""
    return [name for name in ("hops", "law", "rate", "buffer", "flows", "mix") if name in runs.columns]


def improvement(data: Data, group: str, name: str, base: str = "tcp") -> pl.DataFrame:
    """Goodput of a variant over that of TCP, less 1, in percent: one row a scenario and run."""
    ours, theirs = variant(data, group, name), variant(data, group, base)
    axes = scenario_axes(theirs)
    joined = ours.join(theirs.select(*axes, "run", pl.col("goodput_kbps").alias("base")), on=[*axes, "run"])
    return joined.with_columns((100 * (pl.col("goodput_kbps") / pl.col("base") - 1)).alias("gain"))


def share(runs: pl.DataFrame, right: str, all_: str) -> Mean:
    """The share of decisions that were right: pooled over the runs, with the spread of a ratio of sums between runs."""
    top, bottom = runs[right].to_numpy().astype(float), runs[all_].to_numpy().astype(float)
    n = int((bottom > 0).sum())
    if bottom.sum() == 0:
        return Mean(float("nan"), float("nan"), 0)
    ratio = top.sum() / bottom.sum()
    rest = top - ratio * bottom
    error = (rest @ rest) ** 0.5 / bottom.sum() if n > 1 else float("nan")
    return Mean(float(ratio), float(error), n)


def accuracies(data: Data, group: str, name: str) -> tuple[Mean, Mean, float]:
    """A_w, A_c and A_t in percent of a differentiator on plain TCP's losses."""
    losses = judged(group, data[group]["losses"])
    counts = pl.DataFrame([_right(part.confusion(name)) for _, part in losses.split(KEY)])
    a_w, a_c = share(counts, "corruption_right", "corruption"), share(counts, "congestion_right", "congestion")
    return _percent(a_w), _percent(a_c), 50 * (a_w.value + a_c.value)


def _percent(estimate: Mean) -> Mean:
    return Mean(100 * estimate.value, 100 * estimate.error, estimate.n)


# --- the figures -----------------------------------------------------------------------------------------------------


def _figure(spec: FigureSpec, curves: Iterable[Curve], x_label: str, y_label: str, **options: Any) -> Figure:
    return Figure(
        id=spec.id,
        title=spec.title,
        caption=spec.caption,
        x_label=x_label,
        y_label=y_label,
        curves=tuple(curves),
        y_limit=spec.y_limit,
        printed=spec.printed,
        **options,
    )


def _bars(label: str, values: Iterable[Estimate], colour: str, marker: str, filled: bool = True) -> Curve:
    ys = tuple(values)
    return Curve(label, tuple(map(float, range(len(ys)))), ys, Style(colour, marker, filled, line=False))


def figure_1(spec: FigureSpec, data: Data) -> Figure:
    """Accuracy of each differentiator on the same losses; TCP's follow from what it assumes."""
    names = ("tcp", *PAPER)
    scored = [accuracies(data, "M", name) for name in PAPER]
    runs = len(variant(data, "M", "tcp"))
    rows: list[tuple[Estimate, Estimate, float]] = [(Exact(0.0, runs), Exact(100.0, runs), 50.0), *scored]
    curves = [
        _bars("A_w", (row[0] for row in rows), ORANGE, "circle"),
        _bars("A_c", (row[1] for row in rows), BLUE, "square"),
        _bars("A_t", (Exact(row[2], row[0].n) for row in rows), GREEN, "diamond", filled=False),
    ]
    return _figure(spec, curves, "", "Accuracy (%)", x_ticks=tuple(LABELS[name] for name in names))


def _by_hops(runs: pl.DataFrame, label: str, estimate: Any, colour: str, marker: str) -> Curve:
    groups = sorted(runs.group_by("hops"), key=lambda item: int(item[0][0]))
    return Curve(
        label,
        tuple(float(key[0]) for key, _ in groups),
        tuple(estimate(group) for _, group in groups),
        Style(colour, marker),
    )


def figure_2a(spec: FigureSpec, data: Data) -> Figure:
    """A_w by hops in the W group."""
    curves = [
        _by_hops(
            variant(data, "W", name),
            LABELS[name],
            lambda g: _percent(share(g, "corruption_right", "corruption")),
            colour,
            marker,
        )
        for name, colour, marker in (("tcp", GREY, "square"), ("veno", BLUE, "triangle"), ("jtcp", ORANGE, "circle"))
    ]
    return _figure(spec, curves, "Number of hops", "A_w (%)")


def _goodput_by_hops(spec: FigureSpec, data: Data, group: str, names: Iterable[tuple[str, str, str]]) -> Figure:
    curves = [
        _by_hops(variant(data, group, name), LABELS[name], lambda g: mean(g["goodput_kbps"].to_numpy()), colour, marker)
        for name, colour, marker in names
    ]
    return _figure(spec, curves, "Number of hops", "Goodput (kbps)")


def figure_2b(spec: FigureSpec, data: Data) -> Figure:
    """Goodput by hops in the W group."""
    names = (("tcp", GREY, "square"), ("veno", BLUE, "triangle"), ("jtcp", ORANGE, "circle"))
    return _goodput_by_hops(spec, data, "W", names)


def figure_2c(spec: FigureSpec, data: Data) -> Figure:
    """Fast retransmits that halve, and timeouts, in a scenario of the W group."""
    names = ("tcp", "veno", "jtcp")
    counted = [variant(data, "W", name) for name in names]
    curves = [
        _bars(
            "fast retransmits that halve",
            (mean(runs["halvings"].to_numpy().astype(float)) for runs in counted),
            BLUE,
            "square",
        ),
        _bars("timeouts", (mean(runs["timeouts"].to_numpy().astype(float)) for runs in counted), ORANGE, "circle"),
    ]
    return _figure(spec, curves, "", "Number in a scenario", x_ticks=tuple(LABELS[name] for name in names))


def figure_3a(spec: FigureSpec, data: Data) -> Figure:
    """Misclassification of congestion losses by JTCP in the C group."""

    def missed(group: pl.DataFrame) -> Estimate:
        right = _percent(share(group, "congestion_right", "congestion"))
        return Mean(100 - right.value, right.error, right.n)

    return _figure(
        spec,
        [_by_hops(variant(data, "C", "jtcp"), "JTCP", missed, ORANGE, "circle")],
        "Number of hops",
        "M_c (%)",
    )


def figure_3b(spec: FigureSpec, data: Data) -> Figure:
    """Goodput by hops in the C group."""
    return _goodput_by_hops(spec, data, "C", (("tcp", GREY, "square"), ("jtcp", ORANGE, "circle")))


def figure_4(spec: FigureSpec, data: Data) -> Figure:
    """Least, mean and largest improvement in the M group."""
    gains = [improvement(data, "M", name)["gain"] for name in PAPER]
    curves = [
        _bars("lowest", (Exact(float(gain.min()), len(gain)) for gain in gains), GREY, "triangle", filled=False),  # type: ignore[arg-type]
        _bars("mean", (mean(gain.to_numpy()) for gain in gains), ORANGE, "circle"),
        _bars("highest", (Exact(float(gain.max()), len(gain)) for gain in gains), GREY, "square", filled=False),  # type: ignore[arg-type]
    ]
    ticks = tuple(LABELS[name] for name in PAPER)
    return _figure(spec, curves, "", "Improvement over TCP (%)", x_ticks=ticks, y_from_zero=False)


#: What the extension compares with plain TCP, in the order of the figure.
LADDER = (
    "jtcp",
    "lda-eq",
    "learned",
    "oracle",
    "lda-eq + f-rto",
    "lda-eq + eifel",
    "lda-eq + fixed-rto",
    "lda-eq + nrt",
    "jtcp + aware",
    "lda-eq + aware",
    "learned + aware",
    "oracle + aware",
    "modern",
    "modern, oracle",
    "modern, jtcp + aware",
    "modern, lda-eq + aware",
    "modern, learned + aware",
    "modern, oracle + aware",
)


@dataclass(frozen=True, slots=True)
class GeometricMean:
    """The mean improvement in percent over scenarios whose ratios differ by orders of magnitude."""

    logs: Mean

    @classmethod
    def of(cls, gains: pl.DataFrame) -> GeometricMean:
        """From the goodputs of a variant and of what it is compared with."""
        return cls(mean(np.log((gains["goodput_kbps"] / gains["base"]).to_numpy())))

    @property
    def value(self) -> float:
        """The point estimate in percent."""
        return 100 * float(np.expm1(self.logs.value))

    @property
    def n(self) -> int:
        """Number of scenarios."""
        return self.logs.n

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Student's interval of the logarithms."""
        low, high = self.logs.interval(level)
        return 100 * float(np.expm1(low)), 100 * float(np.expm1(high))


def figure_5(spec: FigureSpec, data: Data) -> Figure:
    """How much there is to win, and who wins it."""
    groups = (("W", ORANGE, "circle"), ("M", GREEN, "diamond"), ("C", BLUE, "square"))
    curves = [
        _bars(
            f"{group} group",
            (GeometricMean.of(improvement(data, group, name)) for name in LADDER),
            colour,
            marker,
        )
        for group, colour, marker in groups
    ]
    return _figure(spec, curves, "", "Improvement over TCP (%)", x_ticks=LADDER, y_from_zero=False)


def figure_6(spec: FigureSpec, data: Data) -> Figure:
    """The whole trade-off of each differentiator on the losses of the M group, and the thresholds to take from it."""
    colours = ("#2f72b8", "#d5622a", "#2b9a6c", "#8b5cf6", "#b45309", "#0f766e", "#be123c", "#6b7280")
    losses = judged("M", data["M"]["losses"])
    curves, advice = [], []
    for name, colour in zip((*PAPER, "learned", "coin"), colours, strict=True):
        tradeoff = losses.tradeoff(name)
        shown = tradeoff.corners(0.01)
        label = LABELS.get(name, name)
        ys = tuple(Exact(100 * float(a_w), losses.runs) for a_w in shown.a_w)
        curves.append(Curve(label, tuple(100 * float(a_c) for a_c in shown.a_c), ys, Style(colour, "circle")))
        threshold = _threshold(name) if name != "coin" else None
        if threshold is not None:
            advice.append(f"{label}: {_at(threshold, tradeoff.best)}; {_at(threshold, tradeoff.bounded(SAFE))}")
    caption = (
        f"{spec.caption} Thresholds for equal costs of both mistakes; and for A_c ≥ {SAFE:.0%}. {'. '.join(advice)}."
    )
    return _figure(replace(spec, caption=caption), curves, "A_c (%)", "A_w (%)")


def figure_7(spec: FigureSpec, data: Data) -> Figure:
    """What differentiating brings to one flow, and what it costs the plain ones beside it."""
    found = gains.pairs(data["neighbours"]["goodputs"], "variant", own="tcp")
    return gains.figure(spec, found, labels=LABELS)


#: The accuracy on congestion losses that keeps a flow fair to others, for the second of the two thresholds.
SAFE = 0.95
#: The value of a threshold that cuts at a score, by where the differentiator says that it cuts.
VALUE: dict[str, Callable[[float], float]] = {
    "score": lambda score: score,
    "complement": lambda score: 1 - score,
    "inverse": lambda score: 1 / score,
    "falling": lambda score: 1 / score - 1,
    "rising": lambda score: score / (1 - score),
}


def _threshold(name: str) -> tuple[str, Callable[[float], float]] | None:
    """The first parameter of a differentiator that cuts its scores at a known place, and its value at a score."""
    parts = (part for part in _native.describe(name) if part["kind"] == "differentiator")
    thresholds = (threshold for part in parts for threshold in part.get("thresholds", []))
    return next(((t["parameter"], VALUE[t["cut"]]) for t in thresholds if t["cut"] in VALUE), None)


def _at(threshold: tuple[str, Callable[[float], float]], point: scoring.Point | None) -> str:
    """A point of a trade-off in the terms of the differentiator."""
    if point is None or point.a_w == 0:
        return "none that finds any corruption"
    parameter, value = threshold
    return f"{parameter} = {value(max(point.threshold, 1e-9)):.3g} (A_w {point.a_w:.0%}, A_c {point.a_c:.0%})"
