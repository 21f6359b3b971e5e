"""Trains the model that judges the losses in captures, writes it as one Rust file, and its accuracy as a page.

    cargo run --release -p whyloss-training -- --captures --worlds 14 --out captures.csv
    python training/fit_offline.py captures.csv

What is reported of a family of worlds was measured on a model that has seen no loss of it, calibrated on losses of the others. The model that is written
has seen all families.
"""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow.csv
from trees import SEED, Bools, Floats, best, logistic, platt, raw, reliability, train, write

if TYPE_CHECKING:
    from collections.abc import Callable

    import lightgbm

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "crates/capture/src/causes/learned/model.rs"
DOWN = ROOT / "crates/capture/src/causes/learned/down.rs"
REPORT = ROOT / "training/report_offline.json"
PAGE = ROOT / "docs/captures-accuracy.md"
PLACES = ("sender", "middle", "receiver")
#: Columns before the features.
FIRST_FEATURE = 14
TREES, LEAVES, RATE = 120, 24, 0.1
#: Those of the model that tells losses on links that were down from others.
DOWN_TREES, DOWN_LEAVES = 60, 16
#: Features of the row of losses that a loss is in: for that model only.
ROW = "row"
#: How much better than the live differentiator it has to be.
MARGIN = 0.10
#: How far a probability may be from the frequency.
CALIBRATED = 0.05
#: Losses of one world, place and cause that are looked at; of more, as many at equal distances.
MOST = 200
#: What a damaged copy in the capture says.
CERTAIN = 0.999


def at_once(task: Callable[[str], None], families: list[str]) -> None:
    """Does something for each family, on all processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(task, families))


@dataclass(frozen=True)
class Losses:
    """One entry a loss and capture."""

    family: npt.NDArray[np.str_]
    world: npt.NDArray[np.int64]
    place: npt.NDArray[np.str_]
    corruption: Bools
    asked: Bools
    live: Floats
    rules: Floats
    damaged: Bools
    features: npt.NDArray[np.float32]
    names: list[str]
    arrived: int
    arrived_noticed: int


def read(path: Path) -> Losses:
    """Reads the table that ``whyloss-training --captures`` wrote."""
    strings = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    table = pyarrow.csv.read_csv(path, convert_options=strings)
    names = [name for name in table.column_names[FIRST_FEATURE:] if not name.startswith(ROW)]

    def column(name: str) -> npt.NDArray[Any]:
        return table[name].to_numpy()

    label = column("corruption").astype(np.float64)
    unneeded = column("unneeded").astype(bool)
    arrived = np.array(table["cause"].to_pylist()) == "arrived"
    live = column("live").astype(np.float64)
    # What shows by itself that it arrived is no matter of these two causes.
    rows = np.isfinite(label) & ~unneeded & np.isfinite(live)
    rows &= thinned(table, rows)
    return Losses(
        family=np.array(table["family"].to_pylist())[rows],
        world=column("world").astype(np.int64)[rows],
        place=np.array(table["place"].to_pylist())[rows],
        corruption=label[rows] > 0.5,
        asked=(column("asked").astype(bool) & ~column("by_timeout").astype(bool))[rows],
        live=live[rows],
        rules=column("rules").astype(np.float64)[rows],
        damaged=column("damaged").astype(bool)[rows],
        features=np.stack([column(name).astype(np.float32) for name in names], axis=1)[rows],
        names=list(names),
        arrived=int(arrived.sum()),
        arrived_noticed=int((arrived & unneeded).sum()),
    )


def thinned(table: pyarrow.Table, rows: Bools, by: str = "corruption") -> Bools:
    """Which of ``rows`` remain when no world, place and cause has more than ``MOST``."""
    columns = (np.array(table[name].to_pylist()).astype(str) for name in ("family", "world", "place", by))
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, key in enumerate(zip(*columns, strict=True)):
        if rows[index]:
            groups.setdefault(key, []).append(index)
    kept = np.zeros(len(rows), dtype=bool)
    for group in groups.values():
        kept[np.array(group)[np.linspace(0, len(group) - 1, min(MOST, len(group))).astype(int)]] = True
    return kept


def weights(losses: Losses, rows: Bools, *, balanced: bool) -> Floats:
    """Each family and place counts the same, in it each world up to the square root of its losses; each cause too if ``balanced``."""
    weight = np.zeros(len(rows))
    for family in np.unique(losses.family[rows]):
        for place in PLACES:
            of = rows & (losses.family == family) & (losses.place == place)
            for part in (of & losses.corruption, of & ~losses.corruption) if balanced else (of,):
                chosen = np.flatnonzero(part)
                if len(chosen):
                    _, inverse, counts = np.unique(losses.world[chosen], return_inverse=True, return_counts=True)
                    own = 1 / np.sqrt(counts[inverse])
                    weight[chosen] = own / own.sum()
    return weight / weight[rows].mean()


def fit(losses: Losses, rows: Bools) -> lightgbm.LGBMClassifier:
    """Trains on the given rows."""
    weight = weights(losses, rows, balanced=True)
    return train(losses.features[rows], losses.corruption[rows], weight[rows], TREES, LEAVES, RATE)


def calibrated(score: Floats, losses: Losses, rows: Bools) -> tuple[float, float]:
    """Slope and intercept that turn the scores of some losses into probabilities."""
    weight = weights(losses, rows, balanced=False)[rows]
    return platt(score[rows], losses.corruption[rows], weight)


def a_t(score: Floats, corruption: Bools) -> float:
    """The mean accuracy at A_c >= 95 %."""
    return sum(best(score, corruption)[1:]) / 2


def miscalibration(probability: Floats, corruption: Bools, weight: Floats) -> float:
    """Mean distance between prediction and frequency over ten bins, by their weight."""
    bins = np.minimum((probability * 10).astype(int), 9)
    off = 0.0
    for index in range(10):
        chosen = bins == index
        if chosen.any():
            gap = np.average(probability[chosen], weights=weight[chosen])
            gap -= np.average(corruption[chosen], weights=weight[chosen])
            off += abs(gap) * weight[chosen].sum() / weight.sum()
    return float(off)


def assess(losses: Losses, rows: Bools, probability: Floats) -> dict[str, Any]:
    """How model, live differentiator and rules do on some losses."""
    truth = losses.corruption[rows]
    if truth.sum() < 30 or (~truth).sum() < 30:
        return {"losses": int(rows.sum()), "corruption": float(truth.mean()) if rows.any() else None}
    flat = np.ones(int(rows.sum()))
    _, a_w, a_c = best(probability[rows], truth)
    return {
        "losses": int(rows.sum()),
        "corruption": float(truth.mean()),
        "a_w": a_w,
        "a_c": a_c,
        "a_t": (a_w + a_c) / 2,
        "a_t_live": a_t(losses.live[rows], truth),
        "a_t_rules": a_t(losses.rules[rows], truth),
        "miscalibration": miscalibration(probability[rows], truth, flat),
        "reliability": reliability(probability[rows], truth, flat, least=50),
    }


@dataclass(frozen=True)
class Outages:
    """Losses of all causes, for the model that tells which of them happened while a link was down."""

    family: npt.NDArray[np.str_]
    down: Bools
    #: How many losses each one stands for, each family and place the same in all.
    weight: Floats
    features: npt.NDArray[np.float32]


def read_outages(path: Path) -> Outages:
    """Reads the same table for that model."""
    table = pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True))
    cause = np.array(table["cause"].to_pylist()).astype(str)
    family = np.array(table["family"].to_pylist()).astype(str)
    down = cause == "link-down"
    lost = down | np.isfinite(table["corruption"].to_numpy().astype(np.float64))
    rows = lost & ~table["unneeded"].to_numpy().astype(bool) & ~table["damaged"].to_numpy().astype(bool)
    kept = thinned(table, rows, "cause")
    groups = np.char.add(
        np.char.add(family, table["world"].to_numpy().astype(str)), np.array(table["place"].to_pylist()).astype(str)
    )
    groups = np.char.add(groups, cause)
    _, inverse = np.unique(groups, return_inverse=True)
    weight = np.bincount(inverse[rows], minlength=inverse.max() + 1) / np.maximum(
        np.bincount(inverse[kept], minlength=inverse.max() + 1), 1
    )
    weight = weight[inverse]
    for name in np.unique(family):
        own = kept & (family == name)
        weight[own] /= max(weight[own].sum(), 1)
    names = table.column_names[FIRST_FEATURE:]
    features = np.stack([table[name].to_numpy().astype(np.float32) for name in names], axis=1)[kept]
    return Outages(family[kept], down[kept], weight[kept] / weight[kept].mean(), features)


def fit_outages(of: Outages, rows: Bools) -> lightgbm.LGBMClassifier:
    """Trains on the given rows."""
    return train(of.features[rows], of.down[rows], of.weight[rows], DOWN_TREES, DOWN_LEAVES, RATE)


def outages(of: Outages) -> tuple[lightgbm.LGBMClassifier, tuple[float, float], dict[str, Any]]:
    """The model of all families, its calibration, and what models that had not seen a family made of that."""
    families = list(dict.fromkeys(of.family.tolist()))
    score = np.zeros(len(of.family))

    def unseen(family: str) -> None:
        own = of.family == family
        score[own] = raw(fit_outages(of, ~own), of.features[own])

    at_once(unseen, families)
    line = platt(score, of.down, of.weight)
    said = logistic(line[0] * score + line[1]) > 0.5
    rows = {}
    for family in families:
        own = of.family == family
        total, called, right = (
            float(of.weight[own & which].sum() / of.weight[own].sum()) for which in (of.down, said, of.down & said)
        )
        rows[family] = {"losses": int(own.sum()), "down": total, "called": called, "right": right}
    return fit_outages(of, np.ones(len(of.family), dtype=bool)), line, rows


HEAD = """# How far to trust causes in captures

Written by `training/fit_offline.py` when the model is trained (`make model-captures`).

`whyloss explain` gives each lost packet a probability over causes. Whether a loss was congestion or corruption, a model decides:
{trees} gradient-boosted trees over {features} numbers that a capture shows around a loss ({own} of its own, in
`crates/capture/src/causes/features.rs`, which also know what came after, and the {live} of the live differentiator `learned`). It is trained on
captures that the simulator wrote of {worlds} random worlds in {families} families (`training/src/worlds.rs`), taken at the sender, at a router
and at the receiver: {losses} losses, of each world, place and cause {most} at most.

**Nothing here was measured on what a model was trained on.** The figures of each family come from a model that has seen no loss of that
family, and whose probabilities were calibrated on losses of the others.

*A_w* is the share of losses by corruption that are called so, *A_c* that of losses by congestion; *A_t* is their mean. Each score is cut where
it serves a family best while A_c stays at 95 % or above, for ours and for `learned`, which listened live at the senders and judged the very
same losses with what a sender knows at that moment. (`learned` has seen some of these families when it was trained; that is in its favour.)
*Rules* are the plain weights that the model replaced. *Off* is the mean distance between probability and frequency, in points.

## All losses

| family | losses | corrupted | A_t | `learned` live | more | rules | off | |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
"""


def rows_of(table: dict[str, dict[str, Any]]) -> str:
    """The rows of a table of the page."""
    text = ""
    for name, row in table.items():
        if "a_t" not in row:
            text += f"| {name} | {row['losses']} | | | | | | | one cause is too rare to tell |\n"
            continue
        more = row["a_t"] - row["a_t_live"]
        missed = [] if more >= MARGIN else ["accuracy"]
        missed += [] if row["miscalibration"] <= CALIBRATED else ["calibration"]
        text += (
            f"| {name} | {row['losses']} | {row['corruption']:.0%} | {row['a_t']:.1%} | {row['a_t_live']:.1%} | {100 * more:+.1f} | "
            f"{row['a_t_rules']:.1%} | {100 * row['miscalibration']:.1f} | {'missed: ' + ', '.join(missed) if missed else 'both met'} |\n"
        )
    return text


def why(families: dict[str, dict[str, Any]]) -> str:
    """What is behind the misses, from the figures."""
    lines = []
    for name, row in families.items():
        if "a_t" not in row:
            continue
        more = row["a_t"] - row["a_t_live"]
        if more < MARGIN:
            # A_c is at least 95 %, so A_t is at most 1 and `learned` leaves this much.
            room = 1 - row["a_t_live"]
            if room < MARGIN:
                lines.append(
                    f"- **{name}**: `learned` leaves {100 * room:.1f} points; ten more are not there to be had."
                )
            else:
                known = row["known"] - row["a_t_live"]
                reason = (
                    "what is missing is not in these features"
                    if known < MARGIN
                    else "the family is unlike those that were learned from"
                )
                lines.append(
                    f"- **{name}**: {100 * more:+.1f} points of {100 * room:.1f} that are left; A_w is {row['a_w']:.0%} at A_c {row['a_c']:.0%}. "
                    f"A model that has seen other worlds of this family gets {100 * known:+.1f}: {reason}."
                )
        if row["miscalibration"] > CALIBRATED:
            predicted = sum(p * n for p, _, n in row["reliability"]) / max(sum(n for *_, n in row["reliability"]), 1)
            lines.append(
                f"- **{name}**: probabilities are {100 * row['miscalibration']:.1f} points off; {predicted:.0%} corruption is predicted in the mean, "
                f"{row['corruption']:.0%} it is. Ranks within the family are not affected."
            )
    return "\n".join(lines) or "No family misses a target."


def page(report: dict[str, Any]) -> str:
    """The page of the documentation."""
    families = report["families"]
    text = HEAD.format(**report["note"])
    text += rows_of(families)
    text += "\n## By the place of the capture\n\n| place | losses | corrupted | A_t | `learned` live | more | rules | off | |\n"
    text += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n" + rows_of(report["places"])
    text += "\nFigures of a place are means over families, each of which counts the same.\n"
    text += "\n## First losses of an episode, noticed by acknowledgements\n\nThese are the losses on which `learned` decides in earnest.\n\n"
    text += "| family | losses | corrupted | A_t | `learned` live | more | rules | off | |\n"
    text += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n" + rows_of(report["asked"])
    text += "\n## Calibration over all families\n\nEach family and place counts the same. Mean distance: "
    text += f"{100 * report['calibration']:.1f} points; the target is {100 * CALIBRATED:.0f}.\n\n"
    text += "| probability said | corruption found | losses |\n| ---: | ---: | ---: |\n"
    text += "".join(f"| {p:.1%} | {q:.1%} | {n} |\n" for p, q, n in report["reliability"])
    met = [row for row in families.values() if "a_t" in row]
    accurate = sum(row["a_t"] - row["a_t_live"] >= MARGIN for row in met)
    calibrated = sum(row["miscalibration"] <= CALIBRATED for row in met)
    mean = np.mean([row["a_t"] - row["a_t_live"] for row in met])
    text += "\n## Where the targets are met and missed\n\n"
    text += (
        f"Ten points above `learned` live: {accurate} of {len(met)} families; {100 * mean:+.1f} points in the mean. "
    )
    text += f"Calibrated within five points: {calibrated} of {len(met)} families, and "
    text += f"{'so' if report['calibration'] <= CALIBRATED else 'not so'} all together.\n\n"
    text += (
        "Why a family misses, a second measurement tells: models trained on one half of the worlds of every family judge the other half. "
        "Where these do not\nreach ten points either, it is not that the family is new to the model.\n\n"
    )
    text += why(families) + "\n"
    text += f"\nOf {report['arrived']} transmissions that were taken for lost though they arrived, {report['arrived_noticed']} show it in the captures.\n"
    text += "\nWhat the trees look at most: "
    text += ", ".join(f"`{name}` {share:.0%}" for name, share in list(report["importance"].items())[:12]) + ".\n"
    text += DOWN_HEAD
    for name, row in report["outages"].items():
        if row["down"] > 0 or row["called"] >= 0.001:
            found = f"{row['right'] / row['down']:.0%}" if row["down"] > 0 else ""
            right = f"{row['right'] / row['called']:.0%}" if row["called"] > 0 else ""
            text += f"| {name} | {row['losses']} | {row['down']:.1%} | {row['called']:.1%} | {found} | {right} |\n"
    text += TAIL
    return text


DOWN_HEAD = """
## Links that were down

Another model of trees judges first whether a link was down; it sees the row of losses that a loss is in, too. These figures, too, come from models that had
seen nothing of a family, and count losses as often as the worlds have them. Families in which fewer than one loss of a thousand is called so are left out.

| family | losses | while down | called so | found | right |
| --- | ---: | ---: | ---: | ---: | ---: |
"""


TAIL = """
How many were lost together is not shown to the model. In a trial with 12 worlds a family it brought less than two points on `last-hop`,
`short-queues`, `upstream` and `parking-lot`, and took more than ten from `bursts`, which lose several in a row as full queues do.

## What is not measured here

As no world, place and cause has more than so many losses here, the causes are more even than they are in the worlds. A probability means what it
says at such odds; on a path where one cause is far rarer than the other, it leans too far to the rare one.

These worlds have no policers, no hand-offs and no receivers that drop; what is said of these causes rests on rules
(`crates/capture/src/causes/rules.rs`) with unit tests. The same holds for `reordering`, `spurious-timeout`
and `ack-loss`, and for `unknown`. Losses that were never repaired have no evidence beyond themselves.
"""


def familiar(losses: Losses) -> dict[str, float]:
    """A_t of each family by models that have seen other worlds of it: what the features can tell, whatever the family."""
    halves = np.unique(losses.world, return_inverse=True)[1].reshape(-1) % 2 == 0
    score = np.zeros(len(halves))
    for half in (halves, ~halves):
        score[half] = raw(fit(losses, ~half), losses.features[half])
    score[losses.damaged] = np.inf
    return {
        family: a_t(score[own], losses.corruption[own])
        for family in np.unique(losses.family).tolist()
        for own in [losses.family == family]
    }


def mean_of(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean of several families' figures."""
    known = [part for part in parts if "a_t" in part]
    names = ("corruption", "a_w", "a_c", "a_t", "a_t_live", "a_t_rules", "miscalibration")
    row = {name: float(np.mean([part[name] for part in known])) for name in names}
    return row | {"losses": sum(part["losses"] for part in parts)}


def main() -> None:
    """Trains, measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "losses",
        type=Path,
        nargs="?",
        help="the table that whyloss-training --captures wrote; without it the page alone is written",
    )
    parser.add_argument("--dry", action="store_true", help="report only")
    arguments = parser.parse_args()
    if arguments.losses is None:
        PAGE.write_text(page(json.loads(REPORT.read_text())))
        return
    losses = read(arguments.losses)
    down, down_line, down_rows = outages(of := read_outages(arguments.losses))
    families = list(dict.fromkeys(losses.family.tolist()))
    everything = np.ones(len(losses.family), dtype=bool)
    score = np.zeros(len(everything))

    def unseen(family: str) -> None:
        own = losses.family == family
        score[own] = raw(fit(losses, ~own), losses.features[own])

    at_once(unseen, families)
    probability = np.zeros(len(everything))
    for family in families:
        own = losses.family == family
        slope, intercept = calibrated(score, losses, ~own)
        probability[own] = logistic(slope * score[own] + intercept)
    probability[losses.damaged] = CERTAIN
    known = familiar(losses)
    per_place = {
        place: [assess(losses, (losses.family == family) & (losses.place == place), probability) for family in families]
        for place in PLACES
    }
    model = fit(losses, everything)
    line = calibrated(score, losses, everything)
    gain = dict(zip(losses.names, model.booster_.feature_importance("gain").tolist(), strict=True))
    natural = weights(losses, everything, balanced=False)
    worlds = len(np.unique(np.char.add(losses.family, losses.world.astype(str))))
    live = sum(name.startswith("live_") for name in losses.names)
    report = {
        "note": {
            "trees": TREES,
            "features": len(losses.names),
            "own": len(losses.names) - live,
            "live": live,
            "worlds": worlds,
            "families": len(families),
            "losses": len(everything),
            "most": MOST,
        },
        "families": {
            family: assess(losses, losses.family == family, probability) | {"known": known[family]}
            for family in families
        },
        "asked": {family: assess(losses, (losses.family == family) & losses.asked, probability) for family in families},
        "places": {place: mean_of(parts) for place, parts in per_place.items()},
        "by_place": {place: dict(zip(families, parts, strict=True)) for place, parts in per_place.items()},
        "calibration": miscalibration(probability, losses.corruption, natural),
        "reliability": reliability(probability, losses.corruption, natural, least=50),
        "outages": down_rows,
        "arrived": losses.arrived,
        "arrived_noticed": losses.arrived_noticed,
        "importance": {
            name: round(value / sum(gain.values()), 4)
            for name, value in sorted(gain.items(), key=lambda item: -item[1])
        },
    }
    print(rows_of(report["families"]))
    print(rows_of(report["asked"]))
    print(rows_of(report["places"]))
    print(down_rows)
    print("calibration", report["calibration"], report["reliability"])
    print("importance", dict(list(report["importance"].items())[:20]))
    if not arguments.dry:
        note = f"{TREES} trees of up to {LEAVES} leaves, {len(everything)} losses of the families {', '.join(sorted(families))}."
        chosen = np.random.default_rng(SEED).choice(len(everything), 40, replace=False)
        write(model, MODEL, "fit_offline.py", note, {}, line, losses.features[np.sort(chosen)])
        note = f"{DOWN_TREES} trees of up to {DOWN_LEAVES} leaves: whether a link was down. {len(of.family)} losses of the same families."
        chosen = np.random.default_rng(SEED).choice(len(of.family), 40, replace=False)
        write(down, DOWN, "fit_offline.py", note, {}, down_line, of.features[np.sort(chosen)], "ALL")
        REPORT.write_text(json.dumps(report, indent=1) + "\n")
        PAGE.write_text(page(report))


if __name__ == "__main__":
    main()
