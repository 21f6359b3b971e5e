"""Trains the learned differentiator and writes it as one Rust file.

    cargo run --release -p whyloss-training -- --worlds 200 --out losses.csv
    python training/fit.py losses.csv

The families of worlds in ``HELD_OUT`` are never trained on. What is reported of a family was measured on a model that has not seen it: the
final model for the held-out families, and a model trained without it for each of the others.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pyarrow.csv
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from trees import A_C, SEED, Bools, Floats, best, logistic, platt, raw, reliability, train, write

if TYPE_CHECKING:
    import lightgbm

HELD_OUT = ("bursts", "satellite", "parking-lot", "many", "short-queues", "asymmetric", "noisy", "radio", "red")
ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "crates/transport/src/differentiation/learned/model.rs"
REPORT = ROOT / "training/report.json"
PAGE = ROOT / "docs/learned.md"
CURVES = ROOT / "docs/figures/learned-reliability.svg"
FIRST_FEATURE, FEATURES = 6, 33
TREES, LEAVES, RATE = 90, 20, 0.11
#: How much better than the best published one it has to be, in A_t.
MARGIN = 0.10


@dataclass(frozen=True)
class Losses:
    """One entry a loss: its family and world, whether it was corruption, whether a differentiator was asked in earnest, what was seen."""

    family: npt.NDArray[np.str_]
    world: npt.NDArray[np.int64]
    corruption: Bools
    asked: Bools
    features: npt.NDArray[np.float32]
    scores: dict[str, Floats]
    verdicts: dict[str, Bools]
    names: list[str]


def read(path: Path) -> Losses:
    """Reads the table that ``whyloss-training`` wrote."""
    table = pyarrow.csv.read_csv(path)

    def column(name: str) -> npt.NDArray[Any]:
        return table[name].to_numpy()

    names = table.column_names[FIRST_FEATURE : FIRST_FEATURE + FEATURES]
    rivals = [name.removeprefix("score_") for name in table.column_names if name.startswith("score_")]
    rivals = [name for name in rivals if name not in ("learned", "coin")]
    return Losses(
        family=np.array(table["family"].to_pylist()),
        world=column("world").astype(np.int64),
        corruption=column("corruption").astype(bool),
        asked=column("invocation").astype(bool) & ~column("by_timeout").astype(bool),
        features=np.stack([column(name).astype(np.float32) for name in names], axis=1),
        scores={name: column(f"score_{name}").astype(np.float64) for name in rivals},
        verdicts={name: column(f"verdict_{name}").astype(bool) for name in rivals},
        names=names,
    )


def weights(losses: Losses, rows: Bools) -> Floats:
    """Each family counts the same, in it each cause, and in it each world up to the square root of its losses."""
    weight = np.zeros(len(rows))
    families = np.unique(losses.family[rows])
    for family in families:
        for cause in (False, True):
            chosen = np.flatnonzero(rows & (losses.family == family) & (losses.corruption == cause))
            worlds, inverse, counts = np.unique(losses.world[chosen], return_inverse=True, return_counts=True)
            own = 1 / np.sqrt(counts[inverse])
            weight[chosen] = own / own.sum() if len(worlds) else own
    return weight / weight[rows].mean() if rows.any() else weight


def fit(losses: Losses, rows: Bools) -> lightgbm.LGBMClassifier:
    """Trains on the given rows."""
    weight = weights(losses, rows)
    return train(losses.features[rows], losses.corruption[rows], weight[rows], TREES, LEAVES, RATE)


def area(score: Floats, corruption: Bools) -> float:
    """Area under the curve of A_w over 1 - A_c: the probability that a corrupted loss scores higher than a congested one."""
    order = np.argsort(score, kind="stable")
    _, inverse, counts = np.unique(score[order], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    truth = corruption[order]
    n_w, n_c = truth.sum(), (~truth).sum()
    return float((ranks[truth].sum() - n_w * (n_w + 1) / 2) / (n_w * n_c)) if n_w and n_c else float("nan")


def assess(losses: Losses, family: str, probability: Floats, threshold: float) -> dict[str, Any]:
    """How the model and its rivals do on a family."""
    rows = losses.asked & (losses.family == family)
    truth = losses.corruption[rows]
    if truth.all() or not truth.any():
        return {}
    own = probability[rows]
    verdict = own > threshold
    _, a_w, a_c = best(own, truth)
    rivals = {}
    for name, score in losses.scores.items():
        _, w, c = best(score[rows], truth)
        said = losses.verdicts[name][rows]
        rivals[name] = {
            "area": area(score[rows], truth),
            "a_t_at_a_c": (w + c) / 2,
            "a_w": float(said[truth].mean()),
            "a_c": float((~said[~truth]).mean()),
        }
    balance = np.where(truth, 0.5 / truth.mean(), 0.5 / (1 - truth.mean()))
    champion = max(rivals, key=lambda name: rivals[name]["a_t_at_a_c"], default="")
    return {
        "losses": int(rows.sum()),
        "corruption": float(truth.mean()),
        "trained_on": family not in HELD_OUT,
        "area": area(own, truth),
        "a_t_at_a_c": (a_w + a_c) / 2,
        "a_w": float(verdict[truth].mean()),
        "a_c": float((~verdict[~truth]).mean()),
        "best_published": champion,
        "best_published_a_t_at_a_c": rivals[champion]["a_t_at_a_c"] if champion else float("nan"),
        "reliability": reliability(own, truth, balance, least=20),
        "rivals": rivals,
    }


PAGE_HEAD = """# The learned differentiator

Written by `training/fit.py` when the model is trained (`make model`); version {version}.

`learned` listens to acknowledgements, describes each loss by {features} numbers without units
(`crates/transport/src/differentiation/learned/features.rs`), and lets {trees} gradient-boosted trees weigh them. The trees are one Rust table
without dependencies. Their sum, through a logistic function fitted to losses of families of worlds that the trees had not seen, is a
probability for even odds of both causes.

Worlds are random networks in families (`training/src/worlds.rs`). The model is trained on {trained}. Of the others it has never
seen a loss; and the figures of a family that it is trained on come from a second model that was not. The threshold, {threshold}, is the
median of those that keep A_c at 95 % in each training family; no held-out family had a say.

Counted are decisions on the first loss of an episode; losses found by the retransmission timer are left out. *A_t at A_c >= 95 %* is
(A_w + A_c) / 2 at the threshold that serves this family best among those that keep A_c at 95 %. It is the same for ours and for each of the
published ones. So it compares what their scores know, not where their authors put the threshold. The last columns are what the threshold above
really gives.

| family | losses | corrupted | area | A_t at A_c >= 95 % | best published | its A_t | more | A_w | A_c |
| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |
"""

PAGE_TAIL = """
![Reliability](figures/learned-reliability.svg)

Each line is a family: the share of corruption among the losses to which the model gave about that probability, both causes weighted evenly. On
the diagonal a probability means what it says.

What the trees look at most: {importance}.

## Where it fails

{failures}

The first losses of a connection are judged with little to go by, and what the radio gave up after collisions counts as corruption, as in the
literature. A world in which one cause is much rarer than the other has other odds: see the note on the page of the differentiator.
"""


def page(report: dict[str, Any], trained: list[str]) -> str:
    """The page of the documentation."""
    head = PAGE_HEAD.format(
        version=report["version"],
        features=FEATURES,
        trees=TREES,
        trained=", ".join(trained),
        threshold=report["threshold"],
    )
    rows, failures = [], []
    for family, row in report["families"].items():
        if not row:
            continue
        more = row["a_t_at_a_c"] - row["best_published_a_t_at_a_c"]
        name = family if row["trained_on"] else f"**{family}**"
        rows.append(
            f"| {name} | {row['losses']} | {row['corruption']:.0%} | {row['area']:.3f} | {row['a_t_at_a_c']:.1%} | "
            f"`{row['best_published']}` | {row['best_published_a_t_at_a_c']:.1%} | {100 * more:+.1f} | {row['a_w']:.1%} | {row['a_c']:.1%} |"
        )
        if more < MARGIN:
            failures.append(
                f"- **{family}**: {100 * more:+.1f} points over `{row['best_published']}` instead of at least {100 * MARGIN:.0f}."
            )
        if row["a_c"] < A_C - 0.02:
            failures.append(f"- **{family}**: the threshold does not keep A_c at 95 %: it is {row['a_c']:.1%}.")
    importance = ", ".join(f"`{name}` {share:.0%}" for name, share in list(report["importance"].items())[:10])
    tail = PAGE_TAIL.format(importance=importance, failures="\n".join(failures) or "In none of these families.")
    return head + "\n".join(rows) + "\n\nFamilies in bold were never trained on.\n" + tail


def draw(report: dict[str, Any]) -> None:
    """Draws the reliability curves."""
    with mpl.rc_context({"svg.hashsalt": "whyloss", "font.size": 9}):
        canvas = Figure(figsize=(6.4, 4.2), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.add_subplot()
        axes.plot([0, 1], [0, 1], color="#9ca3af", linewidth=0.8)
        for family, row in report["families"].items():
            if row:
                predicted, share, _ = zip(*row["reliability"], strict=True)
                axes.plot(
                    predicted,
                    share,
                    marker="o",
                    markersize=3,
                    linewidth=1,
                    label=family,
                    linestyle="-" if row["trained_on"] else "--",
                )
        axes.set_xlabel("Probability of corruption according to the model")
        axes.set_ylabel("Share of corruption")
        canvas.legend(loc="outside right upper", fontsize=8, frameon=False)
        canvas.savefig(CURVES, metadata={"Date": None, "Creator": "whyloss"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("losses", type=Path, help="the table that whyloss-training wrote")
    parser.add_argument("--version", type=int, default=1, help="version of the model")
    parser.add_argument("--dry", action="store_true", help="report only")
    arguments = parser.parse_args()
    losses = read(arguments.losses)
    families = list(dict.fromkeys(losses.family.tolist()))
    train = ~np.isin(losses.family, HELD_OUT)

    # Out-of-family predictions of the training families: for calibration, for the threshold, and for their own assessment.
    unseen = np.zeros(len(train))
    for family in [name for name in families if name not in HELD_OUT]:
        rows = losses.family == family
        unseen[rows] = raw(fit(losses, train & ~rows), losses.features[rows])
    model = fit(losses, train)
    unseen[~train] = raw(model, losses.features[~train])

    asked = train & losses.asked
    weight = weights(losses, asked)[asked]
    slope, intercept = platt(unseen[asked], losses.corruption[asked], weight)
    probability = logistic(slope * unseen + intercept)
    # The threshold keeps A_c in each training family although the model has not seen it.
    of_family = {
        family: best(
            probability[asked & (losses.family == family)], losses.corruption[asked & (losses.family == family)]
        )[0]
        for family in families
        if family not in HELD_OUT
    }
    threshold = round(float(np.median(list(of_family.values()))), 3)
    report = {family: assess(losses, family, probability, threshold) for family in families}
    print(f"threshold {threshold}; of each training family { ({k: round(v, 3) for k, v in of_family.items()}) }")
    print(f"{'family':14} {'losses':>7} {'corr':>5} {'area':>6} {'A_t@95':>7} {'A_w':>6} {'A_c':>6}  best published")
    for family, row in report.items():
        if row:
            print(
                f"{family:14} {row['losses']:7} {row['corruption']:5.2f} {row['area']:6.3f} {row['a_t_at_a_c']:7.3f} {row['a_w']:6.3f} "
                f"{row['a_c']:6.3f}  {row['best_published']} {row['best_published_a_t_at_a_c']:.3f}"
                f"{'' if row['trained_on'] else '  (held out)'}"
            )
    gain = dict(zip(losses.names, model.booster_.feature_importance("gain"), strict=True))
    total = sum(gain.values())
    importance = {name: round(value / total, 4) for name, value in sorted(gain.items(), key=lambda item: -item[1])}
    print("importance", dict(list(importance.items())[:12]))
    if not arguments.dry:
        trained = sorted(set(families) - set(HELD_OUT))
        note = f"Version {arguments.version}: {TREES} trees of up to {LEAVES} leaves, {int(train.sum())} losses of the families {', '.join(trained)}."
        chosen = np.random.default_rng(SEED).choice(np.flatnonzero(losses.asked), 40, replace=False)
        constants = {"VERSION: u32": str(arguments.version), "THRESHOLD: f64": repr(threshold)}
        write(model, MODEL, "fit.py", note, constants, (slope, intercept), losses.features[np.sort(chosen)])
        content = {"version": arguments.version, "threshold": threshold, "importance": importance, "families": report}
        REPORT.write_text(json.dumps(content, indent=1) + "\n")
        PAGE.write_text(page(content, trained))
        draw(content)


if __name__ == "__main__":
    main()
