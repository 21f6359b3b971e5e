"""A paper from end to end, small."""

import csv
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest

from whyloss import experiments, papers
from whyloss.claims import Verdict
from whyloss.pack import PackError

if TYPE_CHECKING:
    from whyloss.results import Results

SNAPSHOT = Path(__file__).parent / "snapshots" / "garcia2004-figure-4.csv"
REPETITIONS = 3
READINGS = ["pre-registered", "behaviour"]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> papers.Reproduction:
    out = tmp_path_factory.mktemp("garcia2004")
    paper = papers.load("garcia2004")
    return paper.reproduce(["4", "11"], out=out, store=out / "store", repetitions=REPETITIONS, readings=READINGS)


def test_papers_are_found() -> None:
    assert "garcia2004" in papers.list_papers()
    assert papers.load("garcia2004").title.startswith("An experimental study")


def test_a_wrong_name_gets_a_hint() -> None:
    with pytest.raises(PackError, match="Did you mean 'garcia2004'"):
        papers.load("garcia204")


def test_a_figure_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="has no figure '3'; there are 4, 5"):
        papers.load("garcia2004").reproduce(["3"], out=tmp_path)


def test_figures_have_every_point(found: papers.Reproduction) -> None:
    assert [figure.id for figure in found.figures] == ["4", "11"]
    for figure in found.figures:
        assert [curve.label for curve in figure.measured()] == ["1 flow", "1 ld flow", "5 flows"]
        assert all(len(curve.x) == 7 for curve in figure.measured())
        assert all(estimate.n == REPETITIONS for curve in figure.measured() for estimate in curve.y)
        for kind in ("svg", "png"):
            for reading in READINGS:
                assert (found.out / "figures" / reading / f"figure-{figure.id}.{kind}").is_file()


def test_throughput_is_what_the_link_can_carry(found: papers.Reproduction) -> None:
    # 1448 of 1500 octets are data; the error-free flow loses little more than its slow start.
    for curve in found.figures[0].measured():
        assert all(0 < estimate.value <= 1000 * 1448 / 1500 for estimate in curve.y)
        assert curve.y[0].value > 900


def test_errors_hurt_the_normal_flow_more_than_the_differentiating_one(found: papers.Reproduction) -> None:
    normal, ld, _ = found.figures[0].measured()
    assert normal.y[-1].value < 0.2 * normal.y[0].value
    assert all(theirs.value > ours.value for theirs, ours in zip(ld.y[3:], normal.y[3:], strict=True))


def test_claims_are_judged_if_their_figures_were_run(found: papers.Reproduction) -> None:
    # GB-7 needs no figure; GB-4 needs these two.
    assert [claim.id for claim in found.claims] == ["GB-4", "GB-7"]
    assert set(found.skipped) == {f"GB-{number}" for number in range(1, 13)} - {"GB-4", "GB-7"}
    window = found.claims[1]
    assert (window.verdict, window.n) == (Verdict.REPRODUCED, REPETITIONS)


def test_readings_stand_side_by_side(found: papers.Reproduction) -> None:
    assert [one.reading.name for one in found.readings] == READINGS
    assert [[claim.id for claim in one.claims] for one in found.readings] == [["GB-4", "GB-7"]] * 2
    # What sets off a repair is nothing to a flow that hears of no damage, and much to one that does.
    as_registered, as_behaved = (
        {curve.label: curve.y[-1].value for curve in one.figures[0].measured()} for one in found.readings
    )
    assert as_behaved["1 flow"] == pytest.approx(as_registered["1 flow"], rel=0.1)
    assert as_behaved["1 ld flow"] > 3 * as_registered["1 ld flow"]


def test_readings_that_are_headlines_are_run_if_none_is_named(tmp_path: Path) -> None:
    paper = papers.load("garcia2004")
    done = paper.reproduce(["8"], out=tmp_path, store=tmp_path / "store", repetitions=1)
    assert [one.reading.name for one in done.readings] == paper.pack.headline == READINGS
    record = json.loads((tmp_path / "reproduction.json").read_text())
    assert record["rerun"] == ["whyloss reproduce garcia2004 --figure 8"]


@pytest.mark.parametrize(
    ("name", "there_are"),
    [("garcia2004", "pre-registered, behaviour, competing, at-once"), ("park2010", "ratio, literal")],
)
def test_a_reading_that_does_not_exist(name: str, there_are: str, tmp_path: Path) -> None:
    with pytest.raises(PackError, match=f"paper.toml: there is no reading 'guess'; there are {there_are}"):
        papers.load(name).reproduce(out=tmp_path, readings=["guess"])


def test_everything_lies_in_the_folder(found: papers.Reproduction) -> None:
    record = json.loads((found.out / "reproduction.json").read_text())
    named = "--reading pre-registered --reading behaviour"
    assert record["rerun"] == [f"whyloss reproduce garcia2004 {named} --figure 4 --figure 11"]
    assert record["provenance"]["repetitions"] == REPETITIONS
    assert found.report.read_text().startswith("<!doctype html>")
    assert len(list((found.out / "patterns").glob("*/*.bits"))) == 7 * REPETITIONS


def test_a_second_reproduction_finds_the_same_in_the_store(found: papers.Reproduction, tmp_path: Path) -> None:
    again = papers.load("garcia2004").reproduce(["4"], out=tmp_path, store=found.out / "store", repetitions=REPETITIONS)
    assert again.figures[0].measured()[0].rows() == found.figures[0].measured()[0].rows()


def test_only_what_is_undecided_is_repeated_and_looking_is_corrected_for(
    found: papers.Reproduction, tmp_path: Path
) -> None:
    def run(store: Path, until_decided: bool) -> papers.Reproduction:
        out = tmp_path / store.name
        figures, readings = ["4", "8", "11"], ["pre-registered"]
        return papers.load("garcia2004").reproduce(
            figures, out=out, store=store, repetitions=8, readings=readings, until_decided=until_decided
        )

    done, whole = run(found.out / "store", True), run(tmp_path / "whole", False)
    claims = {claim.id: claim for claim in done.claims}
    assert claims.keys() == {claim.id for claim in whole.claims}
    # After 5 and after 8 repetitions: each look has half of the 5 %.
    assert claims["GB-7"].n == 5
    assert all(claim.n == 8 for claim in claims.values() if claim.verdict == Verdict.UNDECIDED)
    assert {claim.n for claim in claims.values()} == {5, 8}
    assert all(claim.level >= 0.975 for claim in claims.values())
    record = json.loads((done.out / "reproduction.json").read_text())
    assert record["provenance"]["looks"] == "after 5, 8 repetitions, of 2; corrected for all of them"
    assert record["rerun"][0].endswith(" --until-decided")
    runs, all_runs = (
        int(json.loads((one.out / "reproduction.json").read_text())["provenance"]["runs"].replace(",", ""))
        for one in (done, whole)
    )
    assert runs < all_runs
    assert [figure.id for figure in done.figures] == [figure.id for figure in whole.figures]


def test_figure_4_is_as_it_was(found: papers.Reproduction) -> None:
    """Every change of a number has a reason: say it in the commit that renews the snapshot (``UPDATE=1 pytest``)."""
    with (found.out / "points.csv").open(newline="") as file:
        rows = [row[1:] for row in csv.reader(file) if row[:2] in (["reading", "figure"], ["pre-registered", "4"])]
    if os.environ.get("UPDATE"):
        SNAPSHOT.parent.mkdir(exist_ok=True)
        with SNAPSHOT.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    with SNAPSHOT.open(newline="") as file:
        assert rows == list(csv.reader(file))


def test_corruption_that_the_receiver_never_saw_is_counted_apart() -> None:
    judged = [
        ("corruption", "payload-damaged", "corruption"),
        ("corruption", "transport-header-damaged", "congestion"),
        ("corruption", "ip-header-damaged", "congestion"),
        ("corruption", "no-flow", "corruption"),
        ("congestion", "queue-full", "corruption"),
        ("congestion", "queue-full", "congestion"),
    ]
    losses = pl.DataFrame(judged, schema=["true_class", "true_cause", "verdict"], orient="row")
    losses = losses.with_columns(point=pl.lit(0), run=pl.lit(0), flow=pl.lit("f"))
    flows = pl.DataFrame(
        {"point": [0], "run": [0], "entry": [0], "flow": ["f"]}, schema_overrides={"point": pl.Int32, "run": pl.Int32}
    )
    results = cast("Results", SimpleNamespace(losses=SimpleNamespace(to_polars=lambda: losses)))
    counts = experiments._judged(results, flows).drop("point", "run", "entry").row(0, named=True)
    assert counts == {
        "corruption_losses": 4,
        "corruption_as_congestion": 2,
        "corruption_unseen": 2,
        "congestion_losses": 2,
        "congestion_as_corruption": 1,
    }


def test_gain_stands_beside_harm(tmp_path: Path) -> None:
    paper = papers.load("garcia2004")
    found = paper.reproduce(["14", "14h"], out=tmp_path, readings=["behaviour"], repetitions=3)
    throughput = {curve.label: [y.value for y in curve.y] for curve in found.figures[0].measured()}
    gain, harm = found.figures[1].measured()
    assert (gain.label, harm.label) == ("gain", "harm to the others")
    assert gain.x == found.figures[0].measured()[0].x
    ld, normal = throughput["1 ld flow"][-1], throughput["1 normal flow"][-1]
    # But for the jackknife's correction of the bias.
    assert gain.y[-1].value == pytest.approx(100 * (ld / normal - 1), rel=0.05)
    beside, among = throughput["4 flows vs. 1 ld flow"][-1], throughput["4 flows vs. 1 normal flow"][-1]
    assert harm.y[-1].value == pytest.approx(100 * (1 - beside / among), abs=1)
    assert harm.y[-1].value > 10
    # Without errors there is nothing to report: the runs are the same.
    assert harm.y[0].value == pytest.approx(0, abs=0.1)


def test_figures_of_harm_are_not_drawn_from_real_packets(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="drawn from simulated runs only"):
        papers.load("garcia2004").reproduce(["14h"], out=tmp_path, on=("engine",))
