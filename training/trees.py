"""What both training scripts share: training on weighted rows, the measures of a score, and the Rust table of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lightgbm
import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

if TYPE_CHECKING:
    from pathlib import Path

SEED = 1
#: The accuracy on congestion losses that has to be kept.
A_C = 0.95

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Features = npt.NDArray[np.float32]


def train(
    features: Features, truth: Bools, weight: Floats, trees: int, leaves: int, rate: float
) -> lightgbm.LGBMClassifier:
    """Trains ``trees`` trees of up to ``leaves`` leaves each, at the learning rate ``rate``."""
    model = lightgbm.LGBMClassifier(
        n_estimators=trees,
        num_leaves=leaves,
        learning_rate=rate,
        min_child_samples=200,
        subsample=0.7,
        subsample_freq=1,
        colsample_bytree=0.6,
        reg_lambda=5.0,
        random_state=SEED,
        deterministic=True,
        force_row_wise=True,
        n_jobs=1,
        verbose=-1,
    )
    return model.fit(features, truth, sample_weight=weight)


def raw(model: lightgbm.LGBMClassifier, features: Features) -> Floats:
    """The sum of the trees, before the logistic function."""
    return np.asarray(model.predict(features, raw_score=True), dtype=np.float64)


def logistic(x: Floats) -> Floats:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def platt(score: Floats, truth: Bools, weight: Floats) -> tuple[float, float]:
    """Slope and intercept that turn scores into probabilities (Platt 1999)."""
    line = LogisticRegression(C=1e6).fit(score[:, None], truth, sample_weight=weight)
    return float(line.coef_[0, 0]), float(line.intercept_[0])


def best(score: Floats, corruption: Bools, a_c: float = A_C) -> tuple[float, float, float]:
    """The threshold with the largest A_w among those whose A_c is at least ``a_c``; with its A_w and A_c."""
    order = np.argsort(-score, kind="stable")
    sorted_score, truth = score[order], corruption[order]
    last = np.append(sorted_score[1:] != sorted_score[:-1], True)
    a_w = np.cumsum(truth)[last] / max(truth.sum(), 1)
    kept = 1 - np.cumsum(~truth)[last] / max((~truth).sum(), 1)
    allowed = np.flatnonzero(kept >= a_c)
    if len(allowed) == 0:
        return float("inf"), 0.0, 1.0
    at = allowed[-1]
    steps = sorted_score[last]
    below = steps[at + 1] if at + 1 < len(steps) else steps[at] - 1
    return float((steps[at] + below) / 2), float(a_w[at]), float(kept[at])


def reliability(probability: Floats, corruption: Bools, weight: Floats, least: int) -> list[tuple[float, float, int]]:
    """Mean prediction, share of corruption and number of losses in ten bins of the prediction, of those with ``least`` losses at least."""
    bins = np.minimum((probability * 10).astype(int), 9)
    rows = []
    for index in range(10):
        chosen = bins == index
        if chosen.sum() >= least:
            mean = np.average(probability[chosen], weights=weight[chosen])
            share = np.average(corruption[chosen], weights=weight[chosen])
            rows.append((round(float(mean), 4), round(float(share), 4), int(chosen.sum())))
    return rows


def floor(threshold: float) -> float:
    """The largest single-precision number not above ``threshold``: it splits single-precision features in the same way."""
    single = np.float32(threshold)
    return float(single if float(single) <= threshold else np.nextafter(single, np.float32("-inf")))


def write(
    model: lightgbm.LGBMClassifier,
    path: Path,
    script: str,
    note: str,
    constants: dict[str, str],
    line: tuple[float, float],
    examples: Features,
    size: str = "COUNT",
) -> None:
    """Writes the model as a Rust table, with what it says of some examples for a test.

    ``constants`` are further ones, such as ``"VERSION: u32"``, and their values; ``line`` is what :func:`platt` found, ``size``
    the name of the number of features.
    """
    slope, intercept = line
    said = logistic(slope * raw(model, examples) + intercept)
    nodes: list[tuple[int | None, int, int, float]] = []

    def add(tree: dict[str, Any]) -> int:
        index = len(nodes)
        if "leaf_value" in tree:
            nodes.append((None, index, index, tree["leaf_value"]))
            return index
        if tree["decision_type"] != "<=":
            raise ValueError(f"a tree decides by {tree['decision_type']}; only <= is understood")
        nodes.append((tree["split_feature"], 0, 0, 0.0))
        low, high = add(tree["left_child"]), add(tree["right_child"])
        nodes[index] = (tree["split_feature"], low, high, floor(tree["threshold"]))
        return index

    constants = constants | {"SLOPE: f64": repr(slope), "INTERCEPT: f64": repr(intercept)}
    roots = [add(tree["tree_structure"]) for tree in model.booster_.dump_model()["tree_info"]]
    if len(nodes) > 65_535:
        raise ValueError(f"{len(nodes)} nodes do not fit into 16-bit indices")

    def number(value: float) -> str:
        text = repr(float(np.float32(value)))
        return text if "e" in text or "." in text else text + ".0"

    lines = [
        f"//! The trained model. Written by `training/{script}`; do not edit.",
        "//!",
        f"//! {note}",
        "",
        "use super::{TreeNode, LEAF};",
        "",
        *(f"pub(super) const {name} = {value};" for name, value in constants.items()),
        "",
        "#[rustfmt::skip]",
        f"pub(super) static ROOTS: &[u16] = &{roots};",
        "",
        "const fn n(feature: u8, low: u16, high: u16, threshold: f32) -> TreeNode {",
        "    TreeNode { feature, low, high, threshold }",
        "}",
        "",
        "#[rustfmt::skip]",
        "pub(super) static NODES: &[TreeNode] = &[",
    ]
    row = "   "
    for feature, low, high, value in nodes:
        item = f" n({'LEAF' if feature is None else feature}, {low}, {high}, {number(value)}),"
        if len(row) + len(item) > 130:
            lines.append(row)
            row = "   "
        row += item
    lines += [
        row,
        "];",
        "",
        "/// Features, and what the trained model says of them.",
        "#[cfg(test)]",
        "#[rustfmt::skip]",
    ]
    lines += [f"pub(super) static EXAMPLES: &[([f32; super::{size}], f64)] = &["]
    lines += [
        f"    ([{', '.join(map(number, row))}], {p!r}),"
        for row, p in zip(examples.tolist(), said.tolist(), strict=True)
    ]
    lines += ["];", ""]
    path.write_text("\n".join(lines))
