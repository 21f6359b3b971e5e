"""Writes docs/effect: what it is worth to know why packets were lost, over the share that a link loses by chance.

``--measure`` runs the sweep first (half a minute on two cores) and keeps its means; without it page and picture are
made from what was measured before.
"""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import polars as pl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from whyloss import files, plots
from whyloss.stats import mean
from whyloss.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "effect"
NUMBERS = FOLDER / "measured.csv"
PAGE = FOLDER / "README.md"
BEGIN, END = "<!-- numbers: generated -->", "<!-- numbers: end -->"
#: Of each sender: the words at its curve, its colour, and how far above its last point they stand, in Mbit/s.
SENDERS = {
    "oracle": ("oracle: is told every cause", "#444444", 0.95),
    "bbr": ("BBR: does not ask", "#8c4fb3", 0.35),
    "lda-eq": ("LDA_EQ: asks how full the queue was", "#2f72b8", -0.35),
    "cubic": ("CUBIC: takes each loss for congestion", "#c44e30", 0.0),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One sender at one share of losses: goodput in Mbit/s, with its interval of 95 %."""

    loss_percent: float
    sender: str
    runs: int
    mbps: float
    low: float
    high: float


def measure(runs: int = 30, shares: Sequence[str] = ()) -> list[Row]:
    """Runs the sweep, so many times at each point; ``shares`` are some of its shares of losses instead of all."""
    sweep = Sweep.load(FOLDER / "effect.toml").with_runs(runs)
    transfers = (sweep.only("loss", list(shares)) if shares else sweep).run().transfers.to_polars()
    rows = []
    for (loss, sender), group in transfers.group_by("loss", "sender", maintain_order=True):
        found = mean((group["goodput_bps"] / 1e6).to_numpy())
        low, high = found.interval()
        share = float(str(loss).removesuffix(" %"))
        rows.append(Row(share, str(sender), found.n, round(found.value, 4), round(low, 4), round(high, 4)))
    return rows


def read() -> list[Row]:
    """What was measured before."""
    return [
        Row(row["loss_percent"], row["sender"], row["runs"], row["mbps"], row["low"], row["high"])
        for row in pl.read_csv(NUMBERS, schema_overrides={"loss_percent": pl.Float64}).iter_rows(named=True)
    ]


def text(rows: list[Row]) -> str:
    """The rows as CSV."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(Row.__slots__)
    writer.writerows([getattr(row, name) for name in Row.__slots__] for row in rows)
    return made.getvalue()


def draw(rows: list[Row], path: Path) -> None:
    """The picture: a curve a sender, with its name beside it."""
    with mpl.rc_context(plots.STYLE):
        canvas = Canvas(figsize=(6.8, 3.6), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.subplots()
        for sender, (words, colour, lift) in SENDERS.items():
            own = [row for row in rows if row.sender == sender]
            shares = [row.loss_percent for row in own]
            axes.fill_between(
                shares, [row.low for row in own], [row.high for row in own], color=colour, alpha=0.2, lw=0
            )
            axes.plot(shares, [row.mbps for row in own], "o-", color=colour, markersize=3.5, linewidth=1.6)
            axes.text(shares[-1] + 0.12, own[-1].mbps + lift, words, color=colour, va="center", fontsize=8.5)
        axes.set(xlim=(0, 8.6), ylim=(0, 10.4), xticks=range(6))
        axes.spines["bottom"].set_bounds(0, 5)
        axes.set_xlabel("Packets that the link loses by chance (%)", loc="left")
        axes.set_ylabel("Goodput (Mbit/s)")
        plots.export(canvas, path)


def table(rows: list[Row]) -> str:
    """The numbers of the page."""
    shares = sorted({row.loss_percent for row in rows})
    found = {(row.loss_percent, row.sender): row for row in rows}
    lines = [
        "| packets lost | " + " | ".join(f"`{sender}`" for sender in SENDERS) + " |",
        "|---|" + "---|" * len(SENDERS),
    ]
    for share in shares:
        cells = [found[share, sender] for sender in SENDERS]
        told = " | ".join(f"{row.mbps:.2f} ({row.low:.2f} … {row.high:.2f})" for row in cells)
        lines.append(f"| {share:g} % | {told} |")
    return "\n".join(lines)


def page(rows: list[Row]) -> str:
    """The page, with its numbers as they were measured."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    if "--measure" in sys.argv[1:]:
        files.write(NUMBERS, text(measure()))
    draw(read(), FOLDER / "goodput.svg")
    files.write(PAGE, page(read()))
