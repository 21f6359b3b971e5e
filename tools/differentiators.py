"""Writes docs/differentiators: a page for each differentiator and one of all, from the tables and from measurements.

``--measure`` runs the benchmark first and writes its numbers and pictures; without it they stay as they are.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from whyloss import Sweep, _native, files, plots, scoring

FOLDER = Path(__file__).parent.parent / "docs" / "differentiators"
SWEEP = FOLDER / "benchmark" / "tradeoffs.toml"
MEASURED = FOLDER / "measured.json"
INDEX = FOLDER / "README.md"
#: The axis whose values get a curve of their own.
AXIS = "situation"

GENERATED = "<!-- Generated from the tables of the code and from measured.json: `make generated`. -->"
INTRODUCTION = """\
Each judges why a segment was lost, and each is one file in `crates/transport/src/differentiation`. A scenario chooses
one with `differentiator = "…"`, or lets any number listen with `shadows = ["…"]`: those judge every loss and change
nothing. [Scoring](../scoring.md) says what A_c, A_w, A_t and the area under the curve are.

Measured on {congestion} losses by congestion and {corruption} by corruption in {runs} runs of the
[benchmark](benchmark/README.md), with default parameters. Those that need help from the network or from options
on data get none there and stay silent, which counts as congestion:
"""

SEEN = """\
What to see: how often each scores a loss by corruption above one by congestion. At 1 it always does, at 1/2 it guesses,
left of that it points the wrong way. Hollow: without help from the network it said nothing."""
CURVES = """\
What to see: the nearer a curve comes to the upper right corner, the better; on the dotted diagonal it guesses. The dot
is where it runs by default, the number the area under the curve: 1 is always right, 0.5 by chance."""
COLOURS = {"sender": "#2f72b8", "receiver": "#d5622a"}


def differentiators() -> list[_native.Description]:
    """All of them, by name."""
    found = (part for part in _native.parts() if part["kind"] == "differentiator")
    return sorted(found, key=lambda part: part["name"])


def arguments(names: list[str]) -> list[str]:
    """What makes all ``names`` listen in the benchmark."""
    return [f"flow[judged].shadows={json.dumps(names)}"]


def measure() -> None:
    """Runs the benchmark; writes ``measured.json`` and the pictures."""
    from whyloss.scoring import pictures

    names = [part["name"] for part in differentiators()]
    sweep = Sweep.load(SWEEP).with_arguments(arguments(names))
    results = sweep.run(store=Path("out/store"))
    judged = scoring.read(results)
    for old in FOLDER.glob("*.svg"):
        old.unlink()
    document: dict[str, Any] = {"runs": len(results.runs), "differentiators": {}}
    pooled = list(scoring.scores(judged, differentiators=names))
    for score in pooled:
        name = score.differentiator
        apart = list(scoring.scores(judged, by=[AXIS], differentiators=[name]))
        document["differentiators"][name] = {
            "all": _numbers(score),
            "situations": {part.group[AXIS]: _numbers(part) for part in apart},
        }
        pictures.roc(apart, FOLDER / f"{name}.svg", name, lambda part: str(part.group[AXIS]))
    files.write(MEASURED, json.dumps(document, indent=1) + "\n")


def _numbers(score: scoring.Score) -> dict[str, Any]:
    def short(value: Any) -> Any:
        match value:
            case float():
                return round(value, 4)
            case dict():
                return {key: short(item) for key, item in value.items()}
            case tuple():
                return [short(item) for item in value]
            case _:
                return value

    whole = score.as_dict()
    kept = ("a_c", "a_w", "a_t", "matthews", "decided", "auc", "best", "at_a_c_95")
    intervals = {name: whole["intervals"][name] for name in ("a_c", "a_w", "a_t", "auc")}
    losses = {truth: score.confusion.total(truth) for truth in scoring.TRUTHS[:2]}
    numbers: dict[str, Any] = short({**losses, **{name: whole[name] for name in kept}, "intervals": intervals})
    return numbers


def pages() -> dict[Path, str]:
    """The text of every page, by its path."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    every = differentiators()
    texts = {INDEX: _index(every, measured)}
    for part in every:
        texts[FOLDER / f"{part['name']}.md"] = _page(part, measured["differentiators"].get(part["name"]))
    return texts


def _index(every: list[_native.Description], measured: dict[str, Any]) -> str:
    rows = []
    for part in every:
        name = part["name"]
        found = measured["differentiators"].get(name, {}).get("all")
        cells = ["–"] * 4 if found is None else [*(_percent(found[key]) for key in ("a_c", "a_w", "a_t")), _area(found)]
        place = dict(part["notes"])["place"]
        rows.append([f"[`{name}`]({name}.md)", place, part["summary"], part.get("reference", ""), *cells])
    head = ["differentiator", "works at the", "what it does", "reference", "A_c", "A_w", "A_t", "area under the curve"]
    totals = next(iter(measured["differentiators"].values()))["all"]
    introduction = INTRODUCTION.format(runs=measured["runs"], **{key: totals[key] for key in scoring.TRUTHS[:2]})
    picture = "![Area under the trade-off curve of each differentiator, with its interval, in order](all.svg)"
    text = ["# Loss differentiators", "", GENERATED, "", picture, "", SEEN, "", introduction, _table(head, rows)]
    return "\n".join(text)


def _page(part: _native.Description, measured: dict[str, Any] | None) -> str:
    notes = dict(part["notes"])
    reference = f" ({part['reference']})" if part.get("reference") else ""
    lead = f"{part['summary']}{reference} It works at the {notes['place']}."
    parameters = _table(["parameter", "meaning"], [[f"`{name}`", meaning] for name, meaning in part["details"]])
    text = [f"# `{part['name']}`", "", GENERATED, "", lead, ""]
    sections = {
        "Idea": notes.get("idea"),
        "Rule": notes.get("formula") and f"```text\n{notes['formula']}\n```",
        "Threshold": notes.get("threshold"),
        "Parameters": parameters.strip() if part["details"] else None,
        "Where it fails": notes.get("fails"),
        "Errata and readings": notes.get("errata"),
    }
    for title, body in sections.items():
        if body:
            text += [f"## {title}", "", body, ""]
    text += ["## Measured", ""]
    if measured is None:
        text += ["The benchmark has not been run with it; `make tradeoffs` does.", ""]
        return "\n".join(text)
    situations = {**measured["situations"], "all together": measured["all"]}
    rows = [_row(name, found) for name, found in situations.items()]
    head = ["situation", "congestion", "corruption", "A_c", "A_w", "A_t", "area under the curve", "A_w with A_c ≥ 95 %"]
    where = "[The benchmark](benchmark/README.md) and [what is counted](../scoring.md)."
    undecided = 1 - (measured["all"]["decided"] or 0)
    if undecided > 0:
        where += f" {100 * undecided:.1f} % of the losses got no verdict, which counts as congestion."
    text += [_table(head, rows), f"![A_w over A_c of {part['name']}]({part['name']}.svg)", "", CURVES, "", where, ""]
    return "\n".join(text)


def _row(name: str, found: dict[str, Any]) -> list[str]:
    bounded = found["at_a_c_95"]
    estimates = [_estimate(found, key) for key in ("a_c", "a_w", "a_t")]
    best = "n/a" if bounded is None else _percent(bounded["a_w"])
    return [name, str(found["congestion"]), str(found["corruption"]), *estimates, _area(found), best]


def _estimate(found: dict[str, Any], key: str) -> str:
    interval = found["intervals"][key]
    return _percent(found[key]) + (f" ({100 * interval[0]:.1f} … {100 * interval[1]:.1f})" if interval else "")


def _area(found: dict[str, Any]) -> str:
    interval = found["intervals"]["auc"]
    return "n/a" if found["auc"] is None else f"{found['auc']:.3f} ({interval[0]:.3f} … {interval[1]:.3f})"


def _percent(value: float | None) -> str:
    return "n/a" if value is None else f"{100 * value:.1f} %"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def ranking(path: Path) -> None:
    """Draws the area under the curve of each, with its interval."""
    every = json.loads(MEASURED.read_text(encoding="utf-8"))["differentiators"]
    places = {part["name"]: dict(part["notes"])["place"] for part in differentiators()}
    order = sorted(every, key=lambda name: (every[name]["all"]["auc"], name))
    with mpl.rc_context(plots.STYLE):
        canvas = Canvas(figsize=(6.4, 0.19 * len(order) + 0.8), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.subplots()
        for height, name in enumerate(order):
            found = every[name]["all"]
            colour, silent = COLOURS[places[name]], found["decided"] == 0
            axes.plot(found["intervals"]["auc"], [height, height], color=colour, linewidth=1.5)
            axes.plot(found["auc"], height, "o", color=colour, markersize=4.5, mfc="white" if silent else colour)
        axes.axvline(0.5, color="#777777", linewidth=0.8, linestyle="--")
        axes.set(yticks=range(len(order)), yticklabels=order, xlim=(0.4, 1.01), ylim=(-0.7, len(order) - 0.3))
        axes.set_xlabel("Area under the trade-off curve")
        for place, level in (("sender", 4.0), ("receiver", 2.6)):
            axes.text(0.8, level, f"works at the {place}", color=COLOURS[place])
        plots.export(canvas, path)


def write() -> None:
    """Writes all pages, draws their order, and takes away those of differentiators that are no more."""
    texts = pages()
    for old in FOLDER.glob("*.md"):
        if old not in texts:
            old.unlink()
    for path, text in texts.items():
        files.write(path, text)
    ranking(FOLDER / "all.svg")


if __name__ == "__main__":
    if "--measure" in sys.argv[1:]:
        measure()
    write()
