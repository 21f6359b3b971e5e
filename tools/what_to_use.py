"""Writes docs/what-to-use: what the kernel's congestion controls carry over a bad link, and what they do to others.

``--measure`` runs the kernel over emulated links first (as root, about half an hour) and writes measured.json; without
it the page and the pictures are made from what was measured before. ``--only`` measures some of the controls and keeps
what was measured of the others. ``--quick`` measures a small part to a folder of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyloss import files, plots
from whyloss.figures import Style
from whyloss.harm import harm as taken
from whyloss.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "what-to-use"
#: Queue in packets by what it is in bandwidth-delay products (17 packets).
QUEUES = {5: "5 packets", 17: "one bandwidth-delay product", 67: "four bandwidth-delay products"}
SHARES = (0, 1, 2, 5, 10, 15)
EFFECTS = {"damage": "damaged", "erase": "erased"}
CONTROLS = {
    "reno": Style("#777777", "circle"),
    "cubic": Style("#2b9a6c", "square"),
    "bbr": Style("#8c4fb3", "diamond"),
    "wl_veno": Style("#b8860b", "triangle"),
    "wl_cubic_ld": Style("#d5622a", "triangle"),
    "wl_checksum": Style("#2f72b8", "circle"),
    "wl_checksum_delay": Style("#14365c", "square"),
    "wl_auto": Style("#b3446c", "diamond"),
}
#: What the picture shows.
SEEN = (
    "What to see: how far above CUBIC (grey) each control stays as losses grow. `wl_checksum` does where packets\n"
    "arrive damaged and does not where they vanish; `wl_auto`, `wl_cubic_ld` and BBR do in both."
)
REPETITIONS = 3
GENERATED = "<!-- Generated from measured.json: `python tools/what_to_use.py`. -->"
#: The guide of which a part is written here: what stands between these lines.
GUIDE = ROOT / "docs" / "how-to" / "my-kernel.md"
BEGIN, END = "<!-- what to use: generated -->", "<!-- what to use: end -->"


@dataclass(frozen=True, slots=True)
class Point:
    """What is varied."""

    control: str
    effect: str
    share: int
    queue: int
    competing: bool

    def scenario(self, base: Scenario) -> Scenario:
        """The scenario of this point."""
        flows = base.to_dict()["flow"]
        fields: dict[str, object] = {
            "path.queue": f"{self.queue} pkt",
            "path.forward.channel.loss": f"{self.share} %",
            "path.forward.channel.effect": self.effect,
        }
        if not self.competing:
            fields["flow"] = flows[:1]
        return base.replace(fields)


def points(quick: bool, controls: Sequence[str]) -> list[Point]:
    """All of these controls; damage and erasure are the same where nothing is lost."""
    shares = (0, 2) if quick else SHARES
    queues = (17,) if quick else tuple(QUEUES)
    return [
        Point(control, effect, share, queue, competing)
        for competing in (False, True)
        for queue in queues
        for effect in EFFECTS
        for share in shares
        if share or effect == "damage"
        for control in controls
    ]


def measure(folder: Path, quick: bool, controls: Sequence[str], parallel: int) -> None:
    """Runs ``controls`` and writes measured.json; what it says of others stays."""
    from whyloss.cli.console import Watch
    from whyloss.stacks import Job, run_jobs

    base = Scenario.load(FOLDER / "path.toml")
    repetitions = 1 if quick else REPETITIONS
    wanted = points(quick, controls)
    jobs = [
        Job(point.scenario(base), run, "kernel", {"judged": point.control, "neighbour": "cubic"})
        for point in wanted
        for run in range(repetitions)
    ]
    with Watch("measuring") as watch:
        outcomes = run_jobs(jobs, Path("out/store/real"), parallel=parallel, progress=watch.count)
    file = folder / "measured.json"
    record = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"measured": {}, "rows": []}
    rows = [row for row in record["rows"] if row["control"] not in controls]
    for index, point in enumerate(wanted):
        group = outcomes[index * repetitions : (index + 1) * repetitions]
        rows.append(
            {
                "control": point.control,
                "effect": point.effect,
                "share": point.share,
                "queue": point.queue,
                "competing": point.competing,
                "valid": [outcome.valid for outcome in group],
                "goodput_mbps": [_goodput(outcome, "judged") for outcome in group],
                "others_mbps": [_goodput(outcome, "neighbour") for outcome in group],
                "queueing_ms": [outcome.mean_wait_ms for outcome in group],
                "retransmissions": [outcome.transfers[0].retransmissions for outcome in group],
            }
        )
    how = {
        "kernel": platform.release().split("-")[0],
        "cores": os.cpu_count(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "parallel": parallel,
    }
    record = {"measured": record["measured"] | dict.fromkeys(controls, how), "rows": rows}
    folder.mkdir(parents=True, exist_ok=True)
    files.write(file, json.dumps(record, indent=1) + "\n")


def _goodput(outcome: Any, flow: str) -> float:
    return math.fsum(row.goodput_bps for row in outcome.transfers if row.transfer.split(".")[0] == flow) / 1e6


class Measured:
    """The rows of measured.json, found by what was varied; ``measured`` says of each control when and how."""

    def __init__(self, record: dict[str, Any]) -> None:
        """Takes the file's content."""
        self.record = record
        self._rows = {Point(**{k: row[k] for k in Point.__slots__}): row for row in record["rows"]}

    def values(self, point: Point, quantity: str) -> list[float]:
        """One value a repetition; nothing lost is one and the same for damage and erasure."""
        if point.share == 0:
            point = Point(point.control, "damage", 0, point.queue, point.competing)
        values: list[float] = self._rows[point][quantity]
        return values

    def mean(self, point: Point, quantity: str) -> float:
        """Their mean."""
        return statistics.fmean(self.values(point, quantity))

    def occasions(self) -> str:
        """When and how the controls were measured, those of one occasion together."""
        controls: dict[tuple[tuple[str, Any], ...], list[str]] = {}
        for control in CONTROLS:
            controls.setdefault(tuple(self.record["measured"][control].items()), []).append(f"`{control}`")
        lines = []
        for how, names in controls.items():
            of = dict(how)
            runs = f"{of['parallel']} runs at a time on {of['cores']} cores"
            lines.append(f"- {', '.join(names)}: {of['date']}, Linux {of['kernel']}, {runs}")
        return "\n".join(lines)

    def kernel(self) -> str:
        """The kernels, each once."""
        return " and ".join(sorted({of["kernel"] for of in self.record["measured"].values()}))

    def invalid(self) -> int:
        """How many runs went over links that did not keep their time."""
        return sum(row["valid"].count(False) for row in self.record["rows"])

    def runs(self) -> int:
        """How many runs there were."""
        return sum(len(row["valid"]) for row in self.record["rows"])

    def repetitions(self) -> str:
        """How many of them are behind a cell, in words."""
        least = min(len(row["valid"]) for row in self.record["rows"])
        return f"Means of {least} runs" if least > 1 else "One run"


def harm(measured: Measured, point: Point) -> float:
    """What four CUBIC neighbours lose beside this control, as a share of what they have beside a fifth CUBIC flow."""
    fair = Point("cubic", point.effect, point.share, point.queue, True)
    return taken(measured.values(point, "others_mbps"), measured.values(fair, "others_mbps")).value


def pictures(measured: Measured, folder: Path) -> None:
    """A panel a control and effect: goodput of one flow over the share of packets lost, with CUBIC's in grey."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    judged = [control for control in CONTROLS if control != "cubic"]
    with mpl.rc_context(plots.STYLE):
        canvas = Canvas(figsize=(9.6, 4.2), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.subplots(len(EFFECTS), len(judged), sharex=True, sharey=True)
        for row, (effect, word) in zip(axes, EFFECTS.items(), strict=True):
            for place, control in zip(row, judged, strict=True):
                for queue, line in zip(QUEUES, ("dotted", "solid", "dashed"), strict=True):
                    points = [Point(control, effect, share, queue, False) for share in SHARES]
                    values = [measured.mean(point, "goodput_mbps") for point in points]
                    place.plot(SHARES, values, color=CONTROLS[control].colour, linestyle=line, linewidth=1.4)
                fair = [measured.mean(Point("cubic", effect, share, 17, False), "goodput_mbps") for share in SHARES]
                place.plot(SHARES, fair, color="#aaaaaa", linewidth=1.4, zorder=1)
                place.set(ylim=(0, 10), xticks=(0, 5, 10, 15))
            row[0].set_ylabel(f"{word}\nGoodput (Mbit/s)")
            row[0].text(14.6, fair[2], "CUBIC", color="#888888", fontsize=8, ha="right")
        for place, control in zip(axes[0], judged, strict=True):
            place.set_title(control, fontsize=9, loc="left", color=CONTROLS[control].colour)
        canvas.supxlabel(
            "Packets lost (%); queue of 5 packets dotted, 1 BDP solid, 4 BDP dashed; CUBIC with 1 BDP grey", fontsize=9
        )
        plots.export(canvas, folder / "goodput.svg")


def table(measured: Measured, effect: str, queue: int) -> list[str]:
    """Goodput and queueing delay of one flow, and harm to four CUBIC neighbours."""
    lines = [
        f"| packets {EFFECTS[effect]} | " + " | ".join(f"`{control}`" for control in CONTROLS) + " |",
        "|---|" + "---|" * len(CONTROLS),
    ]
    for share in SHARES:
        cells = []
        for control in CONTROLS:
            alone = Point(control, effect, share, queue, False)
            beside = Point(control, effect, share, queue, True)
            goodput, delay = measured.mean(alone, "goodput_mbps"), measured.mean(alone, "queueing_ms")
            cells.append(f"{goodput:.1f} · {delay:.0f} ms · {harm(measured, beside):+.0%}".replace("-", "−"))
        lines.append(f"| {share} % | " + " | ".join(cells) + " |")
    return lines


def page(measured: Measured) -> str:
    """The page with everything."""
    lines = [
        "# What to use today",
        "",
        GENERATED,
        "",
        f"{measured.runs()} runs of 8 s over emulated links of 10 Mbit/s and a round trip of 20 ms",
        f"([path.toml](path.toml)); {measured.invalid()} of them went over links that did not keep their time.",
        "Each cell: goodput of one flow in Mbit/s · mean queueing delay that it makes · what four CUBIC flows lose",
        "beside it, compared with a fifth CUBIC flow in its place (negative: they gain).",
        f"{measured.repetitions()} a cell.",
        "",
        measured.occasions(),
        "",
        "![Goodput over the share of packets lost](goodput.svg)",
        "",
        SEEN,
    ]
    for queue, name in QUEUES.items():
        lines += ["", f"## Queue: {name}", ""]
        for effect in EFFECTS:
            lines += [*table(measured, effect, queue), ""]
    return "\n".join(lines).rstrip() + "\n"


def summary(measured: Measured) -> str:
    """The part of the guide."""
    lines = [
        f"**What to use today**, measured on Linux {measured.kernel()} over an emulated link of",
        f"10 Mbit/s and 20 ms whose queue holds {QUEUES[17]}. {measured.repetitions()} of 8 s a cell: goodput in",
        "Mbit/s · mean queueing delay · what four CUBIC flows lose beside it, compared with a fifth CUBIC flow in its",
        "place.",
        "",
        *table(measured, "damage", 17),
        "",
        "![Goodput of one flow over the share of packets damaged or erased](../what-to-use/goodput.svg)",
        "",
        SEEN,
    ]
    return "\n".join([BEGIN, "", *lines, "", END])


def write_summary(measured: Measured, guide: Path) -> None:
    """Replaces what stands between the marks."""
    text = guide.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    files.write(guide, before + summary(measured) + rest.split(END)[1])


def main() -> None:
    """Measures if asked to, and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help="run the kernel over emulated links (as root)")
    parser.add_argument("--quick", action="store_true", help="with --measure: a small part, to out/what-to-use")
    parser.add_argument(
        "--only", action="append", choices=list(CONTROLS), metavar="CONTROL", help="with --measure: this control"
    )
    parser.add_argument("--parallel", type=int, default=8, help="runs at a time")
    chosen = parser.parse_args()
    folder = Path("out/what-to-use") if chosen.quick else FOLDER
    if chosen.measure:
        measure(folder, chosen.quick, chosen.only or list(CONTROLS), chosen.parallel)
    if chosen.quick:
        return
    measured = Measured(json.loads((folder / "measured.json").read_text(encoding="utf-8")))
    pictures(measured, folder)
    files.write(folder / "README.md", page(measured))
    write_summary(measured, GUIDE)


if __name__ == "__main__":
    main()
