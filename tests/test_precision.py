"""Runs until the answer is sure enough."""

from __future__ import annotations

import itertools
import json
import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
import pytest

import whyloss as wl
from whyloss import precision, stats
from whyloss.verifying import verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from conftest import Ended


def test_the_looks_spend_the_error_once() -> None:
    spent = sum(1 - precision.look_level(look) for look in range(1, 100_000))
    assert spent == pytest.approx(0.05, rel=1e-4)
    assert precision.look_level(1) == pytest.approx(0.975)


def test_stopping_when_it_looks_narrow_misses_no_more_often_than_said() -> None:
    """Values with a mean of 10: without the correction this stopping rule misses far more than one in twenty."""
    random = np.random.default_rng(5)
    missed = {True: 0, False: 0}
    for _ in range(400):
        values = random.exponential(10.0, 3000)
        for corrected in missed:
            count = 10
            for look in itertools.count(1):
                level = precision.look_level(look) if corrected else stats.LEVEL
                low, high = stats.mean(values[:count]).interval(level)
                if (high - low) / 2 <= 0.15 * values[:count].mean() or count * 1.5 > 3000:
                    break
                count = int(count * 1.5) + 1
            missed[corrected] += not low <= 10 <= high
    # 400 trials at 5 %: above 37 is less likely than one in a thousand.
    assert missed[True] <= 37
    assert missed[False] > missed[True]


def known_after(values: NDArray[np.float64], share: float) -> tuple[int, precision.Judged] | None:
    """After how many of the values their mean counts as known, and what is known then."""
    count = 0
    for look in itertools.count(1):
        count = max(precision.FIRST, math.ceil(count * precision.GROWTH))
        if count > len(values):
            return None
        seen = values[:count]
        found = precision.judge(seen.tolist(), share * abs(seen.mean()), share, precision.look_level(look))
        if found.reached:
            return count, found
    raise AssertionError


@pytest.mark.parametrize(
    ("usual", "rare", "probability"),
    [(0, 1, 0.067), (0, 1, 0.15), (10, 0, 0.067), (10, 0, 0.15), (10, 30, 0.03), (10, 30, 0.067)],
)
def test_what_is_rare_is_not_overlooked(usual: float, rare: float, probability: float) -> None:
    """Without a bound on what is rare, half of all points are called known at 0 after ten equal values."""
    random = np.random.default_rng(3)
    worlds = [np.where(random.random(4000) < probability, rare, usual).astype(float) for _ in range(300)]
    mean = usual + (rare - usual) * probability
    ends = (known_after(world, 0.05) for world in worlds)
    wrong = sum(abs(ended[1].value - mean) > 0.05 * mean for ended in ends if ended is not None)
    assert wrong <= 0.05 * len(worlds)


def test_equal_values_are_known_when_few_runs_can_differ() -> None:
    for share, runs in ((0.05, 180), (0.02, 405)):
        ended = known_after(np.full(1000, 7.0), share)
        assert ended is not None
        count, found = ended
        look = 1 + precision.looks(precision.FIRST, 1000, precision.GROWTH).index(count)
        assert (count, found.value, found.low, found.high) == (runs, 7.0, -math.inf, math.inf)
        # The rule of three, for the error of this look instead of one in twenty.
        assert found.differ == pytest.approx(math.log(look * (look + 1) / 0.05) / count, rel=0.05)
        assert found.differ is not None
        assert found.differ <= share


def test_the_looks_end_with_the_most_runs_and_share_the_error() -> None:
    assert precision.looks(8, 128) == [8, 16, 32, 64, 128]
    assert precision.looks(10, 30, 1.5) == [10, 15, 23, 30]
    assert precision.looks(10, 4) == [4]
    assert 4 * (1 - precision.equal_level(4)) == pytest.approx(0.05)


def test_points_get_the_runs_that_they_need(small: Path, tmp_path: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("path.forward.channel.loss", ["0.1 %", "5 %"])
    known = sweep.until("4 %").known(store=tmp_path / "store")
    found = known.points
    assert all(point.reached for point in found)
    assert precision.FIRST <= found[0].runs < found[1].runs
    for point in found:
        assert (point.high - point.low) / 2 <= 0.04 * point.value
    kept = sweep.at([1]).with_runs(found[1].runs).run(store=tmp_path / "store").transfers.to_polars()
    assert kept["goodput_bps"].mean() == pytest.approx(found[1].value)
    # The tables have all runs of each point, once, and can be run again.
    rows = known.results.runs.to_polars().group_by("point").agg(pl.col("run").sort()).sort("point")
    assert [list(range(point.runs)) for point in found] == rows["run"].to_list()
    folder = known.results.save(tmp_path / "out")
    again = verify(folder, runs=None)
    assert (again.same, again.runs) == (True, sum(point.runs for point in found))
    assert verify(folder, runs=5).same
    # What a sweep is asked for, it does: no store and no threads change that.
    assert sweep.until(0.04).run(threads=1).digests() == known.results.digests()


def test_a_budget_ends_it_and_pairs_are_compared_run_by_run(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("flow[0].scheme", ["newreno", "sack"], name="variant")
    known = sweep.until("0.1 %", against={"variant": "newreno"}, budget=25).known()
    (found,) = known.points
    assert (found.labels, found.runs, found.reached) == ({"variant": "sack"}, 12, False)
    rows = sweep.with_runs(12).run().transfers.to_polars()
    assert rows.equals(known.results.transfers.to_polars())
    of = {name: rows.filter(variant=name)["goodput_bps"].to_numpy() for name in ("newreno", "sack")}
    assert found.value == pytest.approx(float((of["sack"] - of["newreno"]).mean()))


class Given(dict[str, Any]):
    """Tables of ten runs at two points, as results have them."""

    def __init__(self, values: dict[int, dict[int, float | None]]) -> None:
        every = [(point, run, value) for point in values for run, value in values[point].items()]
        rows = pl.DataFrame(every, ["point", "run", "rto_ns"], orient="row", schema_overrides={"rto_ns": pl.Float64})
        super().__init__(timeouts=rows)
        self.runs = pl.DataFrame({"point": [0, 1], "variant": ["one", "two"]})


def looking(values: dict[int, dict[int, float | None]], **against: str) -> precision.Looking:
    wish = SimpleNamespace(share=0.01, table="timeouts", column="rto_ns", against=against, budget=20)
    asks = precision.Looking(cast("Any", wish), ["variant"], [0, 1])
    assert asks.next() == ({0, 1}, 0, 10)
    asks.take(cast("Any", Given(values)))
    return asks


def test_pairs_are_of_the_same_run_where_some_have_nothing_to_measure() -> None:
    """As many values on both sides, but not of the same runs."""
    one = {run: 100.0 * run for run in (0, 1, 2, 4, 5)}
    two = {run: 100.0 * run + run % 2 for run in (1, 2, 3, 5, 7)}
    (found,) = (
        looking({0: {**one, 9: None}, 1: {**two, 0: None, 8: math.nan}}, variant="one").known(cast("Any", None)).points
    )
    assert (found.point, found.runs, found.measured) == (1, 10, 3)
    assert found.value == pytest.approx(2 / 3)


def test_a_point_with_nothing_to_measure_is_told_after_the_first_look() -> None:
    with pytest.raises(
        wl.InputError, match=r"point 1 \(variant two\): `timeouts.rto_ns` has no value in any of its 10 runs;"
    ):
        looking({0: {1: 2.0}, 1: {2: None}})
    with pytest.raises(wl.InputError, match=r"in any of its 10 runs together with the same run of point 0; allowed: "):
        looking({0: {1: 2.0}, 1: {2: 2.0}}, variant="one")


def test_what_is_not_known_is_nothing_in_json() -> None:
    found = precision.Precise(0, {}, math.nan, -math.inf, math.inf, None, 10, 0, reached=False)
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["value"] is None


def test_what_all_points_have_is_nothing_to_compare_with(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("path.rate", ["1 Mbps"])
    with pytest.raises(
        wl.InputError, match="against: found rate 1 Mbps, which all points have; allowed: a step that others"
    ):
        sweep.until("5 %", against={"rate": "1 Mbps"}).known()
    two = wl.Sweep(wl.Scenario.load(small)).vary("path.rate", ["1 Mbps", "2 Mbps"])
    with pytest.raises(wl.InputError, match="all points have the steps"):
        two.until("5 %", against={"rate": "1 Mbps"}).at([0]).known()


def test_what_it_looks_at_lies_beside_the_runs_and_goes(small: Path, tmp_path: Path) -> None:
    places: list[Path] = []

    def look(_now: wl.Progress) -> None:
        places.extend((tmp_path / "store").glob(".look-*"))

    sweep = wl.Sweep(wl.Scenario.load(small)).until("50 %")
    sweep.known(store=tmp_path / "store", progress=look)
    assert places
    assert not list((tmp_path / "store").glob(".look-*"))


def test_what_cannot_be_obeyed_is_refused(small: Path, tmp_path: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small))
    for chosen in (sweep, sweep.until("5 %")):
        for run in (chosen.run, lambda chosen=chosen, **asked: chosen.save(tmp_path / "out", **asked)):
            with pytest.raises(wl.InputError, match="threads: found 0; allowed: 1 or more"):
                run(threads=0)
            with pytest.raises(wl.InputError, match="detach: found no cluster"):
                run(detach=True)
    assert not (tmp_path / "out").exists()


def test_what_is_no_precision_or_quantity_is_told(small: Path) -> None:
    sweep = wl.Sweep(wl.Scenario.load(small)).vary("path.rate", ["1 Mbps", "2 Mbps"])
    for given in ("2", "0 %", "100 %", "much", 0, 1.5):
        with pytest.raises(wl.InputError, match="allowed: above 0 % and below 100 %"):
            sweep.until(given)
    with pytest.raises(wl.InputError, match=r"TABLE\.COLUMN"):
        sweep.until("5 %", quantity="goodput")
    with pytest.raises(wl.InputError, match=r"did you mean `transfers\.goodput_bps`"):
        sweep.until("5 %", quantity="transfers.goodput_bsp")
    with pytest.raises(wl.InputError, match=r"TABLE\.COLUMN"):
        sweep.until("5 %", quantity="transfers.scheme")
    with pytest.raises(wl.InputError, match=r"against\.variant: no such axis; .*rate"):
        sweep.until("5 %", against={"variant": "newreno"})
    with pytest.raises(
        wl.InputError, match=r'against\.rate: no such step; found "3 Mbps"; allowed: "1 Mbps", "2 Mbps"'
    ):
        sweep.until("5 %", against={"rate": "3 Mbps"})
    with pytest.raises(wl.InputError, match=r"budget: .*4 to 1000000"):
        sweep.until("5 %", budget=3)


FILE = """
[sweep]
base = "small.toml"
{wish}

[[axis]]
field = "path.forward.channel.loss"
values = ["0.1 %", "5 %"]
[[axis]]
name = "variant"
[[axis.variant]]
name = "newreno"
set."flow[0].scheme" = "newreno"
[[axis.variant]]
name = "sack"
set."flow[0].scheme" = "sack"
"""


def test_a_sweep_file_asks_for_it_and_the_command_obeys(
    small: Path, tmp_path: Path, whyloss: Callable[..., Ended]
) -> None:
    (tmp_path / "small.toml").write_text(small.read_text())
    file = tmp_path / "until.toml"
    file.write_text(FILE.format(wish='precision = "8 %"\nagainst = { variant = "newreno" }\nbudget = 400'))
    store = ("--store", tmp_path / "store")
    done = whyloss("sweep", file, *store, "--out", tmp_path / "out", "--json")
    assert done.status == 0, done.err
    told = done.json
    assert [point["variant"] for point in told["points"]] == ["sack", "sack"]
    assert all(point["reached"] for point in told["points"])
    assert told["runs"] == 2 * sum(point["runs"] for point in told["points"]) < 400
    kept = json.loads((tmp_path / "out" / "precision.json").read_text())
    assert kept == {name: value for name, value in told.items() if name != "out"}
    assert "  precision.json\n" in (tmp_path / "out" / "SHA256SUMS").read_text()
    shown = whyloss("sweep", file, *store, "--out", tmp_path / "out", "--against", "variant=sack", "--budget", "60")
    assert "newreno" in shown.out
    assert "less that of variant sack" in shown.out
    plan = whyloss("sweep", file, *store, "--plan")
    assert "runs before the first look; ± 8 % takes as many more as it needs, 400 at most" in plan.err
    plain = whyloss("sweep", file, *store, "--precision", "30%", "--quantity", "flows.losses", "--against", "variant")
    assert (plain.status, "allowed: AXIS=STEP" in plain.err) == (2, True)
    short = whyloss("sweep", file, *store, "--precision", "0.1%", "--budget", "8")
    assert "budget ended" in short.out
    assert "not known to ± 0.1 %: 2 of 2 points" in short.err
    for words, said in (
        (("--against", "variant=sack", "--against", "variant=newreno"), "found two steps of the axis variant"),
        (("--precision", "500%"), "found '500%'; allowed: above 0 % and below 100 %"),
        (("--plan", "--threads", "1"), "does not go with --threads"),
        (("--plan", "--out", "elsewhere"), "does not go with --out"),
        (("--plan", "--on", "dask://localhost:1"), "does not go with --on dask://localhost:1"),
    ):
        refused = whyloss("sweep", file, *words)
        assert (refused.status, said in " ".join(refused.err.split())) == (2, True), refused.err
    without = tmp_path / "plain.toml"
    without.write_text(FILE.format(wish="runs = 1"))
    assert whyloss("sweep", without, *store, "--out", tmp_path / "out").status == 0
    assert not (tmp_path / "out" / "precision.json").exists()


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("runs = 3\nprecision = 0.02", "sweep.runs: with `precision` there are as many runs as it takes"),
        ('precision = "200 %"', "sweep.precision"),
        ("budget = 9", "sweep.budget: this goes with `precision` only"),
        ('precision = "2 %"\nquantity = "flows.goodput"', "until.toml:5: sweep.quantity: no such quantity"),
        ('precision = "2 %"\nagainst = { loss = "9 %" }', "until.toml:5: sweep.against.loss: no such step"),
    ],
)
def test_mistakes_in_a_sweep_file_name_their_place(small: Path, tmp_path: Path, wish: str, said: str) -> None:
    (tmp_path / "small.toml").write_text(small.read_text())
    (tmp_path / "until.toml").write_text(FILE.format(wish=wish))
    with pytest.raises(wl.InputError) as told:
        wl.Sweep.load(tmp_path / "until.toml")
    assert said in str(told.value)


def test_options_without_a_precision_are_refused(small: Path, tmp_path: Path, whyloss: Callable[..., Ended]) -> None:
    (tmp_path / "small.toml").write_text(small.read_text())
    (tmp_path / "until.toml").write_text(FILE.format(wish="runs = 2"))
    done = whyloss("sweep", tmp_path / "until.toml", "--budget", "9")
    assert (done.status, "goes with --precision only" in done.err) == (2, True)
