"""Scores against numbers worked out by hand, and against what must hold of any."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import whyloss as wl
from whyloss import scoring
from whyloss.scoring import Confusion, Rules, ScoringError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ended

    Call = Callable[..., Ended]

SEEDS = range(8)

# The worked example of docs/scoring.md: one run, two flows, eight losses.
ROWS = [
    # flow, trigger, episode, true cause, verdict, score, judgement
    ("a", "duplicate-acks", 0, "queue-full", "congestion", 0.2, "reduced"),
    ("a", "duplicate-acks", 0, "erased", "corruption", 0.9, "covered"),
    ("a", "partial-ack", 1, "payload-damaged", "corruption", 0.8, "kept"),
    ("a", "timeout", 2, "erased", "congestion", 0.4, "reduced"),
    ("a", "timeout", 2, "arrived", "congestion", 0.1, "reduced"),
    ("b", "rack", 0, "queue-full", "corruption", 0.7, "kept"),
    ("b", "rack", 1, "erased", "unknown", 0.0, "reduced"),
    ("b", "rack", 2, "arrived", "corruption", 0.6, "kept"),
]


def losses(rows: list[tuple[Any, ...]] = ROWS, shadow: str = "judge") -> pl.DataFrame:
    """A table of losses whose shadow says what the rows say, and whose ruling differentiator always says congestion."""
    names = ["flow", "trigger", "episode", "true_cause", f"verdict_{shadow}", f"score_{shadow}", "judgement"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    return table.with_columns(
        pl.lit(0, dtype=pl.UInt32).alias("run"),
        pl.lit("congestion").alias("verdict"),
        pl.lit(0.0).alias("score"),
        pl.col("episode").cast(pl.UInt32),
    )


def sample(seed: int, n: int = 400) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Scores with ties that know a little of the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < rng.uniform(0.2, 0.8)
    return np.round(rng.random(n) + 0.4 * truth, 2), truth


def counted_area(scores: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> float:
    """The area as Mann and Whitney count it: over all pairs."""
    w, c = scores[truth][:, None], scores[~truth][None, :]
    return float(np.mean((w > c) + (w == c) / 2))


def test_the_worked_example() -> None:
    judged = scoring.read(losses())
    assert judged.differentiators == ["ruling", "judge"]
    # The first of each episode that no timeout began: queue-full, payload-damaged; queue-full, erased, arrived.
    found = judged.confusion("judge")
    assert found.counts == ((1, 1, 0), (0, 1, 1), (0, 1, 0))
    assert (found.a_c, found.a_w, found.a_t, found.weighted) == (0.5, 0.5, 0.5, 0.5)
    assert (found.m_c, found.m_w, found.decided) == (0.5, 0.5, 0.75)
    assert found.matthews == 0
    # 0.8 and no opinion for corruption, 0.2 and 0.7 for congestion: 0.8 wins against both, the other against none.
    curve = judged.tradeoff("judge")
    assert curve.auc == 0.5
    assert curve.best is not None
    assert (curve.best.threshold, curve.best.a_c, curve.best.a_w, curve.best.a_t) == (0.7, 1, 0.5, 0.75)

    segments = judged.with_rules(unit="segment").confusion("judge")
    assert segments.counts == ((1, 1, 0), (0, 2, 1), (0, 1, 0))
    assert segments.a_w == pytest.approx(2 / 3)
    assert segments.a_t == pytest.approx(7 / 12)
    assert segments.weighted == 0.6
    # (2·1 − 1·1) / √(3 · 2 · 3 · 2)
    assert segments.matthews == pytest.approx(1 / 6)

    late = judged.with_rules(timeouts="only").confusion("judge")
    assert late.counts == ((0, 0, 0), (1, 0, 0), (1, 0, 0))
    assert (late.a_w, late.a_c, late.a_t, late.matthews) == (0, None, None, None)
    assert judged.with_rules(timeouts="include").confusion("judge").a_w == pytest.approx(1 / 3)


def test_what_senders_acted_on() -> None:
    judged = scoring.read(losses())
    fast, timeout = judged.events("fast"), judged.events("timeout")
    assert (fast.congestion, fast.corruption, fast.spurious, fast.reduced) == (2, 2, 1, 2)
    assert (timeout.congestion, timeout.corruption, timeout.spurious, timeout.reduced) == (0, 1, 1, 2)
    assert (fast.without_congestion, timeout.total) == (3, 2)


def test_an_episode_is_reduced_by_whichever_of_its_losses() -> None:
    rows = [
        ("a", "rack", 0, "erased", "corruption", 0.9, "covered"),
        ("a", "rack", 0, "queue-full", "congestion", 0.1, "reduced"),
        ("a", "timeout", 1, "queue-full", "congestion", 0.1, "kept"),
    ]
    judged = scoring.read(losses(rows))
    assert judged.events("fast").reduced == 1
    assert judged.events("timeout").reduced == 0


def test_published_numbers_hold_together() -> None:
    # Park & Chung give 67 % and 93 % and call 80 % the total; TCP without differentiation has 0 and 100.
    assert Confusion.of([[93, 7, 0], [33, 67, 0], [0, 0, 0]]).a_t == pytest.approx(0.80)
    plain = Confusion.of([[40, 0, 0], [60, 0, 0], [0, 0, 0]])
    assert (plain.a_c, plain.a_w, plain.a_t, plain.weighted) == (1, 0, 0.5, 0.4)
    assert plain.matthews is None  # it always says the same


def test_what_is_undefined_is_not_a_number() -> None:
    only = [row for row in ROWS if row[3] == "queue-full"]
    judged = scoring.read(losses(only))
    found = judged.confusion("judge")
    assert (found.a_c, found.a_w, found.a_t, found.m_w) == (0.5, None, None, None)
    assert found.weighted == 0.5
    curve = judged.tradeoff("judge")
    assert (curve.auc, curve.best, curve.bounded(0.95), curve.at(0.5)) == (None, None, None, None)
    (score,) = scoring.scores(judged, differentiators=["judge"])
    assert score.interval("a_w") is None
    assert json.loads(json.dumps(score.as_dict()))["a_w"] is None


def test_collisions_are_what_the_rules_say() -> None:
    rows = [
        ("a", "rack", 0, "queue-full", "congestion", 0.1, "reduced"),
        ("a", "rack", 1, "collision", "corruption", 0.9, "kept"),
        ("a", "rack", 2, "erased", "corruption", 0.9, "kept"),
    ]
    judged = scoring.read(losses(rows))
    totals = {
        rule: [judged.with_rules(collisions=rule).confusion("judge").total(truth) for truth in scoring.TRUTHS]
        for rule in ("corruption", "congestion", "exclude")
    }
    assert totals == {"corruption": [1, 2, 0], "congestion": [2, 1, 0], "exclude": [1, 1, 0]}


def test_the_curve_by_hand() -> None:
    # Corruption scored 0.9, 0.5, 0.5; congestion 0.5, 0.1.
    curve = scoring.tradeoff([0.9, 0.5, 0.1, 0.5, 0.5], [True, True, False, False, True])
    assert curve.thresholds.tolist() == [0.9, 0.5, 0.1, -math.inf]
    assert curve.a_w.tolist() == pytest.approx([0, 1 / 3, 1, 1])
    assert curve.a_c.tolist() == [1, 1, 0.5, 0]
    # Pairs: 0.9 beats both; each 0.5 beats 0.1 and ties with 0.5: (2 + 1.5 + 1.5) / 6.
    assert curve.auc == pytest.approx(5 / 6)
    assert curve.best is not None
    assert (curve.best.threshold, curve.best.a_t) == (0.1, 0.75)
    bounded = curve.bounded(0.95)
    assert bounded is not None
    assert [bounded.threshold, bounded.a_c, bounded.a_w] == pytest.approx([0.5, 1, 1 / 3])
    for threshold, index in [(2, 0), (0.9, 0), (0.7, 1), (0.5, 1), (0.3, 2), (0.1, 2), (0, 3), (-math.inf, 3)]:
        point = curve.at(threshold)
        assert point is not None
        assert (point.a_c, point.a_w) == (curve.a_c[index], curve.a_w[index]), threshold


def test_no_opinion_is_below_every_threshold() -> None:
    curve = scoring.tradeoff([0.9, math.nan, 0.2, math.nan], [True, True, False, False])
    assert np.isnan(curve.thresholds[-1])
    assert (curve.a_c[-1], curve.a_w[-1]) == (0, 1)
    assert (curve.a_c[-2], curve.a_w[-2], curve.thresholds[-2]) == (0.5, 0.5, -math.inf)
    # 0.9 beats 0.2 and the one without; the other corruption loses to 0.2 and ties: (2 + 0.5) / 4.
    assert curve.auc == 0.625


def test_guesses_that_no_threshold_makes_are_not_the_best() -> None:
    curve = scoring.tradeoff([math.nan, 0.5], [True, False])
    assert curve.best is not None
    assert (curve.best.a_c, curve.best.a_w) == (1, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_curve_goes_one_way_from_corner_to_corner(seed: int) -> None:
    curve = scoring.tradeoff(*sample(seed))
    assert (np.diff(curve.a_c) <= 0).all()
    assert (np.diff(curve.a_w) >= 0).all()
    assert (np.diff(curve.thresholds) < 0).all()
    assert (curve.a_c[0], curve.a_w[0], curve.a_c[-1], curve.a_w[-1]) == (1, 0, 0, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_area_counts_pairs(seed: int) -> None:
    scores, truth = sample(seed)
    auc = scoring.tradeoff(scores, truth).auc
    assert auc == pytest.approx(counted_area(scores, truth))
    assert scoring.tradeoff(scores, truth).corners().auc == pytest.approx(auc)
    # Inverted scores lose what these win.
    assert scoring.tradeoff(-scores, truth).auc == pytest.approx(1 - counted_area(scores, truth))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("bend", [np.exp, lambda x: 3 * x - 7, np.arctan, lambda x: x**3])
def test_only_the_order_of_scores_counts(seed: int, bend: Callable[[Any], Any]) -> None:
    scores, truth = sample(seed)
    straight, bent = scoring.tradeoff(scores, truth), scoring.tradeoff(bend(scores), truth)
    assert (straight.a_c == bent.a_c).all()
    assert (straight.a_w == bent.a_w).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_each_point_is_what_its_threshold_gives(seed: int) -> None:
    scores, truth = sample(seed)
    curve = scoring.tradeoff(scores, truth)
    for threshold, a_c, a_w in zip(curve.thresholds, curve.a_c, curve.a_w, strict=True):
        taken = scores > threshold
        assert (a_c, a_w) == (np.mean(~taken[~truth]), np.mean(taken[truth]))
    best, bounded = curve.best, curve.bounded(0.95)
    assert best is not None
    assert bounded is not None
    assert best.a_t == pytest.approx(max((curve.a_c + curve.a_w) / 2))
    assert bounded.a_w == max(curve.a_w[curve.a_c >= 0.95])


def test_perfect_useless_and_inverted_scores() -> None:
    truth = np.arange(100) % 3 == 0
    assert scoring.tradeoff(truth.astype(float), truth).auc == 1
    assert scoring.tradeoff(np.full(100, 0.3), truth).auc == 0.5
    assert scoring.tradeoff(1 - truth, truth).auc == 0
    rng = np.random.default_rng(0)
    auc = scoring.tradeoff(rng.random(20_000), rng.random(20_000) < 0.5).auc
    assert auc == pytest.approx(0.5, abs=0.02)  # five standard errors


def test_calibration_by_hand() -> None:
    found = scoring.calibration([0.1, 0.3, 0.9, 0.9, math.nan], [False, True, True, False, True], bins=2)
    assert found is not None
    assert [one.losses for one in found.bins] == [2, 2]
    assert [one.observed for one in found.bins] == [0.5, 0.5]
    assert [one.score for one in found.bins] == pytest.approx([0.2, 0.9])
    assert found.expected_error == pytest.approx((2 * 0.3 + 2 * 0.4) / 4)
    assert found.brier == pytest.approx((0.01 + 0.49 + 0.01 + 0.81) / 4)
    assert (found.losses, found.without_score) == (4, 1)
    assert scoring.calibration([0.5, 1.2], [True, False]) is None
    assert scoring.calibration([math.nan], [True]) is None


def test_true_probabilities_are_calibrated() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(50_000)
    found = scoring.calibration(p, rng.random(p.size) < p)
    assert found is not None
    assert found.expected_error < 0.01
    assert found.brier == pytest.approx(1 / 6, abs=0.01)  # the mean of p(1 − p)


def runs(count: int, each: int, seed: int = 1) -> pl.DataFrame:
    """Losses of several runs, found with 70 % and spared with 90 %."""
    rng = np.random.default_rng(seed)
    n = count * each
    corruption = rng.random(n) < 0.5
    score = np.where(rng.random(n) < np.where(corruption, 0.7, 0.1), 0.9, 0.1)
    return pl.DataFrame(
        {
            "run": np.repeat(np.arange(count, dtype=np.uint32), each),
            "flow": ["f"] * n,
            "trigger": ["rack"] * n,
            "episode": np.tile(np.arange(each, dtype=np.uint32), count),
            "true_cause": np.where(corruption, "erased", "queue-full"),
            "verdict": np.where(score > 0.5, "corruption", "congestion"),
            "score": score,
            "judgement": ["kept"] * n,
        }
    )


def test_intervals_are_as_wide_as_the_binomial_says() -> None:
    (score,) = scoring.scores(scoring.read(runs(200, 20)))
    low, high = score.interval("a_w") or (0, 0)
    assert low < 0.7 < high
    # About 2000 independent losses: 1.96 · √(0.7 · 0.3 / 2000) to each side.
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(0.21 / 2000), rel=0.15)
    area = score.interval("auc") or (0, 0)
    assert area[0] < 0.8 < area[1]
    assert score.estimates["auc"].draws.mean() == pytest.approx(score.tradeoff.auc, abs=0.003)
    again = next(iter(scoring.scores(scoring.read(runs(200, 20)))))
    assert again.interval("a_w") == (low, high)


def test_one_run_has_no_interval_and_equal_runs_have_none_to_show() -> None:
    (single,) = scoring.scores(scoring.read(runs(1, 500)))
    assert single.interval("a_t") is None
    one = runs(1, 500)
    same = pl.concat([one, one.with_columns(pl.lit(1, dtype=pl.UInt32).alias("run"))])
    (score,) = scoring.scores(scoring.read(same))
    assert score.interval("a_t") == pytest.approx((score.confusion.a_t, score.confusion.a_t))


def test_differences_pair_by_draw() -> None:
    table = runs(50, 20)
    twins = table.with_columns(pl.col("verdict").alias("verdict_twin"), pl.col("score").alias("score_twin"))
    ruling, twin = scoring.scores(scoring.read(twins))
    assert (ruling.estimates["a_t"] - twin.estimates["a_t"]).interval() == (0, 0)


def test_areas_of_draws_agree_with_the_exact_ones() -> None:
    rng = np.random.default_rng(3)
    truth = rng.random(30_000) < 0.4
    scores = rng.normal(size=truth.size) + truth
    cluster = np.repeat(np.arange(30), 1000)
    drawn = scoring.Resampling(30, draws=5)
    areas = drawn.areas(scores, truth, cluster)
    for weights, area in zip(drawn.weights, areas, strict=True):
        again = np.repeat(np.arange(truth.size), weights.astype(int)[cluster])
        assert area == pytest.approx(scoring.tradeoff(scores[again], truth[again]).auc, abs=0.002)


def test_groups_partition_the_losses() -> None:
    table = runs(6, 30).with_columns((pl.col("run") % 2).alias("rate"))
    judged = scoring.read(table)
    parts = list(judged.split(["rate"]))
    assert [group["rate"] for group, _ in parts] == [0, 1]
    counts = np.array([part.confusion("ruling").counts for _, part in parts])
    assert counts.sum(axis=0).tolist() == [list(row) for row in judged.confusion("ruling").counts]
    with pytest.raises(ScoringError, match="cannot group by 'rte'"):
        list(judged.split(["rte"]))


def test_a_flow_without_the_shadow_does_not_count_for_it() -> None:
    table = losses().with_columns(
        pl.when(pl.col("flow") == "a").then(pl.col(name)).alias(name) for name in ("verdict_judge", "score_judge")
    )
    judged = scoring.read(table)
    assert sum(map(sum, judged.confusion("judge").counts)) == 2
    assert sum(map(sum, judged.confusion("ruling").counts)) == 5
    assert judged.tradeoff("judge").auc == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"true_cause": pl.lit("gremlins")}, "column `true_cause` has 'gremlins'; allowed: queue-full, erased"),
        (
            {"verdict_judge": pl.lit("maybe")},
            "column `verdict_judge` has 'maybe'; allowed: congestion, corr",
        ),
    ],
)
def test_what_no_rule_is_for_is_named(change: dict[str, pl.Expr], message: str) -> None:
    with pytest.raises(ScoringError, match=message):
        scoring.read(losses().with_columns(**change))


def test_what_is_no_table_of_losses_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScoringError, match="it has no column `trigger`"):
        scoring.read(losses().drop("trigger"))
    with pytest.raises(ScoringError, match=r"holds no losses\.parquet"):
        scoring.read(tmp_path)
    (tmp_path / "losses.parquet").write_text("no")
    with pytest.raises(ScoringError, match="not a whole Parquet file"):
        scoring.read(tmp_path)
    with pytest.raises(ScoringError, match="no differentiator is called 'vneo'; there are ruling, judge"):
        scoring.read(losses()).confusion("vneo")


def test_a_run_is_scored_with_its_coverage(small: Path) -> None:
    results = wl.Scenario.load(small).run()
    judged = scoring.read(results, rules=Rules(unit="segment"))
    table = results.losses.to_polars()
    noticed = table.filter((pl.col("trigger") != "timeout") & pl.col("true_class").is_not_null())
    flows = results.flows.to_polars()
    lost = int((flows["forward_dropped_queue"] + flows["forward_dropped_other"]).sum())
    assert judged.coverage("ruling") == pytest.approx(len(noticed) / lost)
    # Nobody reports, so `reported` takes every loss for congestion; these were all erased.
    assert judged.confusion("reported").a_w == 0
    assert sum(map(sum, judged.confusion("reported").counts)) == len(table.filter(pl.col("trigger") != "timeout"))
    assert "scheme" in judged.axes


def test_classes_are_those_of_the_tables(small: Path) -> None:
    table = wl.Scenario.load(small).replace({"path.queue": "5 pkt"}).run().losses.to_polars()
    judged = scoring.read(table, rules=Rules(unit="segment", timeouts="include"))
    counts = table["true_class"].value_counts().drop_nulls().rows()
    assert {"congestion", "corruption"} == {truth for truth, _ in counts}
    for truth, count in counts:
        assert judged.confusion("ruling").total(truth) == count


@pytest.fixture
def mixed(small: Path, tmp_path: Path) -> Path:
    """Results of a sweep with losses of both classes."""
    folder = tmp_path / "mixed"
    scenario = wl.Scenario.load(small).replace({"path.queue": "5 pkt"})
    wl.Sweep(scenario, runs=3).vary("flow[0].scheme", ["newreno", "checksum-ld"], name="who").run().save(folder)
    return folder


def test_score_tells_people_and_machines(whyloss: Call, mixed: Path) -> None:
    shown = whyloss("score", mixed)
    assert shown.status == 0, shown.err
    assert "reported" in shown.out
    assert "fast retransmit" in shown.out
    told = whyloss("score", mixed, "--json", "--unit", "segment").json
    assert [one["differentiator"] for one in told["scores"]] == ["ruling", "reported"]
    expected = scoring.read(mixed, rules=Rules(unit="segment")).confusion("reported")
    assert told["scores"][1]["a_w"] == expected.a_w
    assert told["scores"][1]["counts"]["congestion"]["congestion"] == expected["congestion", "congestion"]
    groups = whyloss("score", mixed, "--json", "--group-by", "who").json["scores"]
    assert {one["group"]["who"] for one in groups} == {"newreno", "checksum-ld"}


def test_roc_draws_the_same_picture_every_time(whyloss: Call, mixed: Path, tmp_path: Path) -> None:
    done = whyloss("roc", mixed, "-o", "a.svg", "--calibration", "c.png")
    assert done.status == 0, done.err
    assert done.out.split() == ["a.svg", "c.png"]
    assert whyloss("roc", mixed, "-o", "b.svg").status == 0
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("keep", "arguments", "message"),
    [
        (pl.col("true_class") == "congestion", (), "losses of both classes; by these rules there are"),
        (pl.col("trigger") == "timeout", (), "0 by congestion and 0 by corruption"),
        (pl.lit(True), ("--differentiator", "vneo"), "no differentiator is called 'vneo'"),
        (None, (), "no differentiator listened in shadow"),
    ],
)
def test_roc_says_what_is_missing(
    whyloss: Call, mixed: Path, keep: pl.Expr | None, arguments: tuple[str, ...], message: str
) -> None:
    table = pl.read_parquet(mixed / "losses.parquet")
    kept = table.drop("verdict_reported", "score_reported") if keep is None else table.filter(keep)
    (mixed / "SHA256SUMS").unlink()
    kept.write_parquet(mixed / "losses.parquet")
    done = whyloss("roc", mixed, "-o", "a.svg", *arguments)
    assert done.status == 2
    assert message in " ".join(done.err.split())


def test_bad_arguments_are_told(whyloss: Call, mixed: Path) -> None:
    for arguments, message in [
        (("score", "nowhere"), "there is no such file or folder"),
        (("score", mixed, "--group-by", "colour"), "cannot group by 'colour'"),
        (("roc", mixed, "-o", "a.gif"), "a picture ends in .svg or .png"),
    ]:
        done = whyloss(*arguments)
        assert done.status == 2, arguments
        assert message in " ".join(done.err.split())
