"""Writes what was measured of packet control and of Selective-TCP into their pages under docs, and draws their figures.

``--measure`` runs the sweeps beside the pages first (a few minutes of one core) and keeps goodput of each run in
measured.json; without it pages and figures are made from what was measured before. Names after it choose among the
studies.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from whyloss import files, plots
from whyloss.figures import Curve, Figure, Style
from whyloss.stats import LEVEL, Mean, function_of_means, mean
from whyloss.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from whyloss.stats import Estimate, Sample

DOCS = Path(__file__).parent.parent / "docs"
FILE = "measured.json"
PATH = "path.toml"
BLOCK = re.compile(r"(<!-- table (\w[\w-]*): generated -->\n).*?(<!-- table: end -->)", re.DOTALL)
DIGITS = 4


class Measured:
    """Goodput in Mbit/s of every run, found by sweep, point and transfer."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        """Takes the rows of a measured.json."""
        self._rows = {self._key(row): np.array(row["mbps"]) for row in rows}

    @staticmethod
    def _key(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
        return tuple(sorted((name, str(value)) for name, value in row.items() if name != "mbps"))

    def of(self, sweep: str, transfer: str = "transfer", **point: Any) -> Sample:
        """One value a run; runs of the same number pair."""
        return self._rows[self._key({"sweep": sweep, "transfer": transfer, **point})]


def sweeps(folder: Path) -> dict[str, Path]:
    """The sweeps of a study."""
    return {path.stem: path for path in sorted(folder.glob("*.toml")) if path.name != PATH}


def measure(folder: Path) -> None:
    """Runs all sweeps of a study and keeps what they carried."""
    rows: list[dict[str, Any]] = []
    for name, path in sweeps(folder).items():
        table = Sweep.load(path).run(store="out/store").transfers.to_polars()
        axes = table.columns[2 : table.columns.index("transfer")]
        # What tables have beside an axis of quantities is the same in base units.
        key = [name for name in axes if name != "point" and not name.endswith(("_bps", "_ns"))] + ["transfer"]
        found = table.sort("run").group_by(key, maintain_order=True).agg(pl.col("goodput_bps") / 1e6)
        for *point, values in found.iter_rows():
            mbps = [float(f"{value:.{DIGITS}g}") for value in values]
            rows.append({"sweep": name, **dict(zip(key, map(_plain, point), strict=True)), "mbps": mbps})
        print(f"{folder.name}: {name}")
    text = ",\n".join(json.dumps(row) for row in rows)
    files.write(folder / FILE, f"[\n{text}\n]\n")


def _plain(value: Any) -> str:
    """A step of an axis as pages have it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- what tables and figures are made of -----------------------------------------------------------------------------


def ratio(ours: Sample, theirs: Sample) -> Mean:
    """Mean over mean, of pairs of runs."""
    return function_of_means(lambda a, b: a / b, [ours, theirs])


def change(ours: Sample, theirs: Sample) -> str:
    """By how much of theirs ours is more, with its interval."""
    estimate = ratio(ours, theirs)
    low, high = estimate.interval()
    return f"{_percent(estimate.value)} % ({_percent(low)} … {_percent(high)})"


def _percent(value: float) -> str:
    return f"{100 * (value - 1):+.0f}".replace("-", "−").replace("+0", "0").replace("−0", "0")


def level(values: Sample) -> str:
    """Mean and half of its interval, in Mbit/s."""
    estimate = mean(values.tolist())
    return f"{estimate.value:.2f} ± {estimate.value - estimate.interval()[0]:.2f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


@dataclass(frozen=True, slots=True)
class Spread:
    """Where runs lie: their median, and the range in which four of five lie."""

    values: Sample

    @property
    def value(self) -> float:
        """The median."""
        return float(np.median(self.values))

    @property
    def n(self) -> int:
        """Number of runs."""
        return len(self.values)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:  # noqa: ARG002  # the same whatever is asked
        """From the tenth to the ninetieth in a hundred runs."""
        low, high = np.quantile(self.values, [0.1, 0.9])
        return float(low), float(high)


def panels(figures: Sequence[Figure], size: tuple[float, float], path: Path) -> None:
    """Draws figures beside and below each other, two in a row, each with its own legend, or things with one for all."""
    with mpl.rc_context(plots.STYLE):
        canvas = Canvas(figsize=size, layout="constrained")
        FigureCanvasAgg(canvas)
        aside = any(map(plots.beside, figures))
        axes = canvas.subplots((len(figures) + 1) // 2, 2, sharex=aside, sharey=not aside)
        for figure, place in zip(figures, axes.flat, strict=True):
            plots.draw(figure, place)
            if len(figure.curves) > 1 and not aside:
                place.legend(fontsize=7)
        for row in axes:
            row[1].set_ylabel("")
        if aside:
            canvas.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
            for place in axes[:-1].flat:
                place.set_xlabel("")
        plots.export(canvas, path)


# --- packet control --------------------------------------------------------------------------------------------------

CLASSIC = "NewReno"
TODAY = "CUBIC today"
TCPS = (CLASSIC, "Reno", TODAY)
PACKETS = (1, 2, 4, 6, 10, 20, 40)
LOSSES = ("0.1 %", "0.5 %", "1 %", "2 %", "5 %")
LASTS = ("200 ms", "500 ms", "1 s", "2 s", "4 s")
SHARES = ("0.1 %", "1 %", "5 %")
THRESHOLDS = {"none": "#6b7280", "D = 6": "#2f72b8", "D = 12": "#2b9a6c", "D = 30": "#d5622a"}
FILTERS = {"none": "#6b7280", "both filters": "#d5622a", "ACK filter": "#2f72b8", "data filter": "#2b9a6c"}
MARKERS = ("circle", "square", "diamond", "triangle")


def _over_base(
    measured: Measured, sweep: str, tcps: Sequence[str], agents: Sequence[str], axis: str, values: Sequence[Any]
) -> str:
    """What is carried without an agent, and by how much more with each, over an axis."""
    rows = []
    for tcp in tcps:
        base = [measured.of(sweep, tcp=tcp, agent="none", **{axis: value}) for value in values]
        rows.append([f"{tcp}, no agent, Mbit/s", *map(level, base)])
        for agent in agents:
            ours = [measured.of(sweep, tcp=tcp, agent=agent, **{axis: value}) for value in values]
            rows.append([f"{tcp}, {agent}", *map(change, ours, base)])
    return table([axis, *map(str, values)], rows)


def _paths(measured: Measured) -> str:
    rows = []
    for tcp in (CLASSIC, TODAY):
        for rate in ("1 Mbps", "10 Mbps"):
            for delay in ("20 ms", "50 ms", "200 ms"):
                cells = [
                    [
                        measured.of("paths", tcp=tcp, agent=agent, rate=rate, delay=delay, share=share)
                        for share in SHARES
                    ]
                    for agent in ("D = 30", "none")
                ]
                rows.append([f"{tcp}, {rate}, {delay}", *map(change, *cells)])
    return table(["late packets", *SHARES], rows)


def packet_control_tables() -> dict[str, Callable[[Measured], str]]:
    """What stands in its page."""
    thresholds, filters = list(THRESHOLDS)[1:], list(FILTERS)[1:]
    return {
        "reordering": lambda m: _over_base(m, "reordering", TCPS, thresholds, "packets", PACKETS),
        "paths": _paths,
        "spikes": lambda m: _over_base(m, "spikes", TCPS, filters, "lasts", LASTS),
        "ack-spikes": lambda m: _over_base(m, "ack-spikes", TCPS, filters, "lasts", LASTS),
        "losses": lambda m: _over_base(m, "losses", TCPS, thresholds, "loss", LOSSES),
    }


def packet_control_figure(measured: Measured, path: Path) -> None:
    """Where it wins and where it does not."""

    def panel(title: str, label: str, sweep: str, tcp: str, agents: dict[str, str], axis: str, values: Any) -> Figure:
        curves = [
            Curve(
                "no agent" if agent == "none" else agent,
                tuple(map(float, range(len(values)))),
                tuple(mean(measured.of(sweep, tcp=tcp, agent=agent, **{axis: value}).tolist()) for value in values),
                Style(colour, marker),
            )
            for (agent, colour), marker in zip(agents.items(), MARKERS, strict=True)
        ]
        ticks = tuple(map(str, values))
        return Figure("", title, "", label, "Goodput (Mbit/s)", tuple(curves), y_limit=10, x_ticks=ticks)

    panels(
        [
            panel(f"1 % late, {CLASSIC}", "Packets late", "reordering", CLASSIC, THRESHOLDS, "packets", PACKETS),
            panel(f"1 % late, {TODAY}", "Packets late", "reordering", TODAY, THRESHOLDS, "packets", PACKETS),
            panel(f"Data held up, {CLASSIC}", "Every 10 s for", "spikes", CLASSIC, FILTERS, "lasts", LASTS),
            panel(f"Erased, {CLASSIC}", "Packets erased", "losses", CLASSIC, THRESHOLDS, "loss", LOSSES),
        ],
        (7.2, 5.6),
        path,
    )


# --- Selective-TCP ---------------------------------------------------------------------------------------------------

WORLDS = {
    "hand-offs": "A hand-off every 4 s",
    "leo": "Low orbit, 25 ms",
    "geo": "Geostationary, 250 ms",
    "marks": "A queue that marks",
}
ALONE, BESIDE = "none", "newreno"
VARIANTS = (
    "newreno",
    "sack",
    "cubic",
    "snack",
    "selective, raw",
    "selective, bdp",
    "selective, ms",
    "selective-sack",
    "selective-cubic",
)
MARKED = (
    "newreno",
    "sack",
    "cubic",
    "snack",
    "selective",
    "selective, marks",
    "selective-sack",
    "selective-sack, marks",
    "selective-cubic",
    "selective-cubic, marks",
)


def _variants(world: str) -> tuple[str, ...]:
    return MARKED if world == "marks" else VARIANTS


def _world(measured: Measured, world: str) -> str:
    def of(variant: str, neighbour: str, transfer: str = "transfer") -> Sample:
        return measured.of(world, transfer, variant=variant, neighbour=neighbour)

    rows = []
    for variant in _variants(world):
        alone = Spread(of(variant, ALONE))
        low, high = alone.interval()
        rows.append(
            [
                f"`{variant}`",
                f"{alone.value:.2f} ({low:.2f} … {high:.2f})",
                change(of(variant, ALONE), of("newreno", ALONE)),
                level(of(variant, BESIDE)),
                level(of(variant, BESIDE, "neighbour")),
                change(of(variant, BESIDE, "neighbour"), of("newreno", BESIDE, "neighbour")),
            ]
        )
    head = ["", "alone", "mean against `newreno`", "beside NewReno", "the neighbour", "its change"]
    return table(head, rows)


def selective_tables() -> dict[str, Callable[[Measured], str]]:
    """What stands in its page."""

    def of(world: str) -> Callable[[Measured], str]:
        return lambda measured: _world(measured, world)

    return {world: of(world) for world in WORLDS}


def selective_figure(measured: Measured, path: Path) -> None:
    """How much each carries alone, and how much a NewReno flow carries beside it."""

    def points(world: str, label: str, neighbour: str, transfer: str, shift: float, style: Style) -> Curve:
        names = _variants(world)
        ys: tuple[Estimate, ...] = tuple(
            Spread(measured.of(world, transfer, variant=name, neighbour=neighbour)) for name in names
        )
        return Curve(label, tuple(place + shift for place in range(len(names))), ys, style)

    def panel(world: str, title: str) -> Figure:
        curves = (
            points(world, "alone", ALONE, "transfer", -0.1, Style("#2f72b8", "circle", line=False)),
            points(world, "NewReno beside it", BESIDE, "neighbour", 0.1, Style("#d5622a", "square", line=False)),
        )
        return Figure("", title, "", "", "Goodput (Mbit/s)", curves, y_limit=4, x_ticks=_variants(world))

    panels([panel(world, title) for world, title in WORLDS.items()], (7.6, 6.4), path)


# --- pages -----------------------------------------------------------------------------------------------------------

STUDIES: dict[str, tuple[Callable[[], dict[str, Callable[[Measured], str]]], Callable[[Measured, Path], None]]] = {
    "packet-control": (packet_control_tables, packet_control_figure),
    "selective": (selective_tables, selective_figure),
}


def load(name: str) -> Measured:
    """What was measured of a study."""
    return Measured(json.loads((DOCS / name / FILE).read_text(encoding="utf-8")))


def page(name: str) -> tuple[Path, str]:
    """The page of a study as it should be."""
    path, measured, tables = DOCS / name / "README.md", load(name), STUDIES[name][0]()
    filled = BLOCK.sub(
        lambda block: f"{block[1]}\n{tables[block[2]](measured)}\n{block[3]}", path.read_text(encoding="utf-8")
    )
    return path, filled


if __name__ == "__main__":
    wanted = [argument for argument in sys.argv[1:] if not argument.startswith("-")] or list(STUDIES)
    for study in wanted:
        if "--measure" in sys.argv[1:]:
            measure(DOCS / study)
        files.write(*page(study))
        STUDIES[study][1](load(study), DOCS / study / "goodput.svg")
