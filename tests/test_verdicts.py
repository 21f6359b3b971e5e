"""The verdicts that are kept with a paper, and the tables made of them."""

import dataclasses
import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from whyloss import papers, verdicts
from whyloss.claims import Comparison, Region, Verdict, judge
from whyloss.pack import Pack, PackError
from whyloss.records import Found
from whyloss.stats import mean

ROOT = Path(__file__).parents[1]
GARCIA = ROOT / "papers" / "garcia2004"


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("verdicts_tool", ROOT / "tools" / "verdicts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    shutil.copytree(GARCIA, tmp_path / "garcia2004")
    (tmp_path / "garcia2004" / verdicts.FILE).unlink(missing_ok=True)
    return Pack.load(tmp_path / "garcia2004")


def found(pack: Pack, name: str, value: float, skipped: tuple[str, ...] = ()) -> Found:
    estimate = mean([value - 0.1, value, value + 0.1])
    claims = [
        judge(claim, "", "", "", Comparison("x", estimate, Region(low=0.0)))
        for claim in pack.claims
        if claim not in skipped
    ]
    return Found(pack.reading(name), tuple(claims), skipped, (), {"of errors": (Comparison("y", estimate, Region()),)})


def test_verdicts_are_kept_and_found_again(pack: Pack) -> None:
    assert verdicts.columns(pack) == []
    # The order is that of the paper's description, whatever that of the run.
    both = (found(pack, "behaviour", -1.0), found(pack, "pre-registered", 1.23456789))
    verdicts.keep(both, 30, pack.folder / verdicts.FILE)
    first, second = verdicts.columns(pack)
    assert (first.reading, first.title, second.reading) == ("pre-registered", "Pre-registered", "behaviour")
    assert (first.count(Verdict.REPRODUCED), second.count(Verdict.NOT_REPRODUCED)) == (12, 12)
    assert first.claims["GB-1"]["measured"] == 1.2346
    assert [(row["what"], row["measured"]) for row in second.behaviour] == [("y", -1.0)]


def test_the_interval_that_decides_is_kept_with_its_level(pack: Pack) -> None:
    one = found(pack, "behaviour", 1.0)
    strict = dataclasses.replace(one.claims[0], level=1 - 0.05 / 40_000)
    one = dataclasses.replace(one, claims=(strict, *one.claims[1:]))
    readings = tuple(dataclasses.replace(one, reading=pack.reading(name)) for name in ("pre-registered", "behaviour"))
    verdicts.keep(readings, 30, pack.folder / verdicts.FILE)
    first, second, *_ = (verdicts.columns(pack)[0].claims[claim.id] for claim in one.claims)
    assert (first["low"], first["high"]) == (pytest.approx(strict.low, rel=1e-4), pytest.approx(strict.high, rel=1e-4))
    assert first["high"] > second["high"]
    assert " at 99.99988 %; n = 3" in tool()._cell(first, numbers=True)
    assert " at " not in tool()._cell(second, numbers=True)


def test_only_a_whole_run_is_kept(pack: Pack) -> None:
    with pytest.raises(PackError, match="only a run of all figures is kept; not judged are GB-3"):
        verdicts.keep((found(pack, "behaviour", 1.0, skipped=("GB-3",)),), 30, pack.folder / verdicts.FILE)


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", json.dumps({"readings": {"x": {"claims": {"GB-1": {"verdict": "fine"}}}}})]
)
def test_a_spoilt_record_is_told(pack: Pack, content: str) -> None:
    (pack.folder / verdicts.FILE).write_text(content)
    with pytest.raises(PackError, match=r"verdicts.json: this is no record of verdicts .*; `make verdicts` writes one"):
        verdicts.columns(pack)


def test_kept_verdicts_are_of_the_claims_and_readings_that_there_are() -> None:
    for name in papers.list_papers():
        paper = papers.load(name)
        for column in paper.verdicts:
            assert list(column.claims) == paper.claims
        kept = verdicts.load(paper.pack)
        if kept is not None:
            assert list(kept["readings"]) == list(paper.pack.readings)


def test_tables_show_the_kept_verdicts() -> None:
    """`make generated` writes them again."""
    for page, text in tool().pages().items():
        assert page.read_text(encoding="utf-8") == text, page


def test_errata_say_what_each_verdict_hangs_on_and_the_readme_counts() -> None:
    """Interval and number of runs stand beside each verdict of each reading."""
    paper = papers.load("paul2006")
    errata, tally = tool().table(paper, paper.verdicts, numbers=True), tool().tally(paper.verdicts)
    rows = [line for line in errata.splitlines() if line.startswith("| **ST-")]
    assert len(rows) == 13
    assert all(row.count("; n = 100; expected ") == len(paper.verdicts) == 4 for row in rows)
    kept = paper.verdicts[0].claims["ST-1"]
    assert f"{kept['measured']:.3g} ({kept['low']:.3g} … {kept['high']:.3g}; n = 100" in rows[0]
    counts = [[int(count) for count in row.split("|")[2].split("·")] for row in tally.splitlines()[2:]]
    assert [sum(count) for count in counts] == [13] * 4
