"""A paper's figures on real stacks, drawn over the simulator's curves for the very same scenarios."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from whyloss import documents, experiments
from whyloss.figures import Curve, Figure, Style
from whyloss.measurements import Measurements
from whyloss.pack import PackError
from whyloss.stacks.batch import Job, run_jobs
from whyloss.stats import Mean, mean
from whyloss.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from whyloss.pack import FigureSpec, Pack, Reading
    from whyloss.scenario import Scenario
    from whyloss.stacks.measure import MeasuredRun

__all__ = ["Compared", "agreement", "curves", "run"]


class Compared:
    """The same scenarios on real stacks and on the simulator."""

    def __init__(self, real: dict[str, Measurements], simulated: Measurements, runs: int, invalid: int) -> None:
        """Takes the measurements by stack, how many real runs there were, and how many of them kept no time."""
        self.real = real
        self.simulated = simulated
        self.runs = runs
        self.invalid = invalid

    @property
    def transfers(self) -> int:
        """Number of rows measured on real stacks."""
        return sum(len(measurements.table) for measurements in self.real.values())


def run(
    pack: Pack,
    reading: Reading,
    requests: Iterable[experiments.Request],
    repetitions: int,
    out: Path,
    store: Path,
    stacks: tuple[str, ...],
    *,
    parallel: int,
    progress: Callable[[int, int], None] | None = None,
) -> Compared:
    """Runs what ``requests`` ask for on each of ``stacks``, and on the simulator.

    Transfers are shortened as the pack's ``[real]`` says, on the simulator too, so that both do the same. The error
    patterns are the first ``repetitions`` of the paper's.

    Raises:
        PackError: the pack does not say how its runs fit real time.
    """
    if pack.real is None:
        raise PackError(f"{pack.folder / 'paper.toml'}: without [real] its experiments run on the simulator only")
    jobs = experiments.jobs(pack, reading, requests, repetitions, out)
    points = [(job, *point) for job in jobs for point in _points(pack, job, out / "sweeps" / reading.name)]
    batch = [
        Job(scenario, number, stack) for _, _, scenario in points for number in range(repetitions) for stack in stacks
    ]
    outcomes = iter(run_jobs(batch, store / "real", parallel=parallel, progress=progress))
    tables: dict[str, list[pl.DataFrame]] = {stack: [] for stack in (*stacks, "simulator")}
    invalid = 0
    for job, labels, scenario in points:
        for number in range(repetitions):
            for stack in stacks:
                outcome = next(outcomes)
                invalid += not outcome.valid
                rows = _quantities(outcome).with_columns(pl.lit(number).alias("run"), **_literals(labels))
                tables[stack] += experiments.rows_of_series(job, rows)
        simulated = experiments.quantities(Sweep(scenario, runs=repetitions).run())
        tables["simulator"] += experiments.rows_of_series(job, simulated.with_columns(**_literals(labels)))
    axes = tuple(dict.fromkeys(name for job in jobs for name, _ in job.at))
    measured = {name: Measurements(pl.concat(rows), axes) for name, rows in tables.items()}
    return Compared({stack: measured[stack] for stack in stacks}, measured["simulator"], len(batch), invalid)


def _points(pack: Pack, job: experiments.SweepPart, folder: Path) -> list[tuple[dict[str, Any], Scenario]]:
    """The labels and the scenario of each point, its transfers shortened."""
    axes = job.document["axis"]
    labels = [dict(zip([axis["name"] for axis in axes], steps, strict=True)) for steps in _product(axes)]
    scenarios = Sweep.load(job.write(folder)).scenarios
    return [(label, _shortened(pack, label, scenario)) for label, scenario in zip(labels, scenarios, strict=True)]


def _product(axes: list[dict[str, Any]]) -> Iterable[tuple[Any, ...]]:
    return itertools.product(*(documents.labels_of(axis) for axis in axes))


def _shortened(pack: Pack, labels: dict[str, Any], scenario: Scenario) -> Scenario:
    assert pack.real is not None
    sizes = pack.real.sizes
    size = next((size for label, size in sizes.items() if label in labels.values()), None)
    if size is None:
        return scenario
    flows = enumerate(scenario.to_dict()["flow"])
    return scenario.replace({f"flow[{index}].size": size for index, flow in flows if flow.get("size") is not None})


def _literals(labels: dict[str, Any]) -> dict[str, pl.Expr]:
    return {name: pl.lit(value) for name, value in labels.items()}


def _quantities(outcome: MeasuredRun) -> pl.DataFrame:
    """As :func:`whyloss.experiments.quantities` of a simulated run, as far as real stacks tell it."""
    rows: dict[int, dict[str, Any]] = {}
    for transfer in outcome.transfers:
        row = rows.setdefault(
            transfer.entry,
            {"flows": transfer.transfer.split(".")[0], "throughput_kbps": 0.0, "unfinished": 0},
        )
        row["throughput_kbps"] += transfer.goodput_bps / 1000
        row["unfinished"] += transfer.finished_ns is None
    return pl.DataFrame(list(rows.values()))


def curves(pack: Pack, spec: FigureSpec, data: Compared) -> tuple[Curve, ...]:
    """The curves of one figure: each stack has a marker of its own, the simulator's line is dashed."""
    drawn = []
    for name in spec.series:
        series = pack.series[name]
        label = spec.labels.get(name, series.label)
        for stack, measurements in data.real.items():
            style = replace(series.style, marker=_MARKERS[stack], filled=True)
            drawn.append(_curve(f"{label}, {stack}", name, spec, measurements, style))
        dashed = replace(series.style, marker="circle", filled=False, dashed=True)
        drawn.append(_curve(f"{label}, simulator", name, spec, data.simulated, dashed))
    return tuple(drawn)


def _curve(label: str, name: str, spec: FigureSpec, data: Measurements, style: Style) -> Curve:
    xs = data.xs(name, **spec.at)
    return Curve(label, tuple(xs), tuple(mean(data.sample(name, x, **spec.at)) for x in xs), style)


def agreement(figures: Iterable[FigureSpec], data: Compared) -> Figure:
    """How far a real stack and the simulator agree: the ratio of their throughputs at every point of every figure."""
    colours = {"kernel": "#2f72b8", "engine": "#d5622a"}
    drawn = []
    for stack, measurements in data.real.items():
        points: list[tuple[float, Mean]] = []
        for spec, name in itertools.chain.from_iterable(((spec, name) for name in spec.series) for spec in figures):
            for x in measurements.xs(name, **spec.at):
                real = measurements.sample(name, x, **spec.at)
                simulated = data.simulated.sample(name, x, **spec.at)
                points.append((float(simulated.mean()), _ratio(real, simulated)))
        points.sort(key=lambda point: point[0])
        ratios = np.array([ratio.value for _, ratio in points])
        share = float(np.mean(np.abs(ratios - 1) <= _CLOSE))
        label = f"{stack}: median {np.median(ratios):.2f}, {share:.0%} within {_CLOSE:.0%}"
        style = Style(colours[stack], _MARKERS[stack], filled=False, line=False)
        drawn.append(Curve(label, tuple(x for x, _ in points), tuple(ratio for _, ratio in points), style))
    return Figure(
        id="agreement",
        title="How far real stacks and the simulator agree",
        caption="Each point is one point of one curve of the figures above: throughput measured over that simulated.",
        x_label="Simulated throughput (kbps)",
        y_label="Measured / simulated",
        curves=tuple(drawn),
        printed=False,
    )


_CLOSE = 0.1
_MARKERS = {"kernel": "triangle", "engine": "square"}


def _ratio(real: Any, simulated: Any) -> Mean:
    """The ratio of means; its spread by the delta method, both sides being paired runs."""
    ratio = float(real.mean() / simulated.mean())
    if real.size < 2:
        return Mean(ratio, math.inf, int(real.size))
    residual = (real - ratio * simulated) / simulated.mean()
    return Mean(ratio, float(residual.std(ddof=1)) / math.sqrt(real.size), int(real.size))
