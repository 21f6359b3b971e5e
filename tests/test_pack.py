"""The description of a paper: what is read, and how mistakes are told."""

import shutil
from pathlib import Path

import pytest

from whyloss import Sweep, documents
from whyloss.pack import Pack, PackError

GARCIA = Path(__file__).parents[1] / "papers" / "garcia2004"


def test_garcia2004_is_complete() -> None:
    pack = Pack.load(GARCIA)
    assert pack.paper.repetitions == 30
    assert set(map(str, range(4, 19))) <= set(pack.figures)
    assert sum(figure.at["delay"] == "200 ms" for figure in pack.figures.values()) == 7
    assert list(pack.claims) == [f"GB-{number}" for number in range(1, 13)]
    tests = (GARCIA / "claims.py").read_text()
    assert all(f"def {claim.test}(" in tests for claim in pack.claims.values())


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('where = "4.1, Figure 11"', "", "claim[3]: missing 1 required positional argument: 'where'"),
        ('where = "4.1, Figure 11"', 'wehre = "x"', "claim[3]: unknown field 'wehre'; allowed are asserts,"),
        ('id = "5"', 'id = "4"', "figure[1].id: there are two called '4'"),
        ('figures = ["4", "11"]', 'figures = ["44"]', "claim GB-4: figures: there is no '44'; there are 4, 5,"),
        ('ours = "single-vs-ld"', 'ours = "single"', "figure 12h: harm: there is no 'single'; there are normal, ld,"),
        ('ours = "single-vs-ld",', "", "figure[19].harm: missing 1 required positional argument: 'ours'"),
        ("harm = {", 'series = ["ld"]\nharm = {', "figure 12h: give either series, or harm, or studies and draw"),
        ("[paper]", "[papers]", "unknown field 'papers'"),
        ("[paper]", "[paper", "paper.toml: "),
        ("[reading.behaviour]", "[reading.Behaviour_2]", "reading.Behaviour_2: a name is lower-case letters, digits"),
        ("[reading.behaviour]", "[reading.behaviour]\nname = 'x'\ncolour = 1", "unknown field 'colour'; allowed are"),
        (
            'sweeps = ["shared"]',
            'sweeps = ["sharde"]',
            "change: sweeps: there is no 'sharde'; there are alone",
        ),
        (
            "[reading.behaviour]",
            "[reading.behaviour.claim.GB-99]\n[reading.behaviour]",
            "reading.behaviour.claim: there is no 'GB-99'; there are GB-1,",
        ),
        ("[reading.pre-registered]", "[reading]\nfoo = 1\n[reading.pre-registered]", "[reading.NAME]"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, before: str, after: str, message: str) -> None:
    text = (GARCIA / "paper.toml").read_text()
    assert before in text
    shutil.copytree(GARCIA / "sweeps", tmp_path / "sweeps")
    (tmp_path / "paper.toml").write_text(text.replace(before, after, 1))
    with pytest.raises(PackError) as caught:
        Pack.load(tmp_path)
    assert message in str(caught.value)
    assert str(tmp_path / "paper.toml") in str(caught.value)


def test_a_folder_without_a_paper(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="there is no such file"):
        Pack.load(tmp_path)


def changed(folder: Path, change: str) -> Pack:
    """A copy of the pack with a reading ``other`` that changes something."""
    shutil.copytree(GARCIA, folder)
    text = (GARCIA / "paper.toml").read_text()
    (folder / "paper.toml").write_text(f'{text}\n[reading.other]\ntitle = "Other"\n{change}')
    return Pack.load(folder)


def test_a_reading_changes_scenarios_and_claims(tmp_path: Path) -> None:
    pack = changed(
        tmp_path / "pack",
        """
[reading.other.claim.GB-1]
test = "small_buffer"

[[reading.other.change]]
sweeps = ["shared"]
set = { "flow[0].tcp.min_rto" = "200 ms" }
unset = ["flow[0].size"]

[[reading.other.change]]
sweeps = ["shared"]
where = { sender = ["ld"] }
set = { "flow[1].timeout" = "f-rto" }
""",
    )
    other = pack.reading("other")
    claims = {name: other.of(claim) for name, claim in pack.claims.items()}
    assert (claims["GB-1"].test, claims["GB-1"].asserts) == ("small_buffer", pack.claims["GB-1"].asserts)
    assert claims["GB-2"] == pack.claims["GB-2"]
    assert documents.read(pack, "alone", other) == documents.read(pack, "alone", pack.reading("pre-registered"))
    document = documents.read(pack, "shared", other)
    scenarios = Sweep.load(documents.write(document, tmp_path / "shared.json")).scenarios
    flows = [scenario.to_dict()["flow"] for scenario in scenarios]
    assert all(others.get("size") is None and single["size"] is not None for others, single in flows)
    assert all(others["tcp"]["min_rto"] == "200 ms" for others, _ in flows)
    assert {(single["scheme"], single.get("timeout")) for _, single in flows} == {
        ("newreno", None),
        ("checksum-ld", "f-rto"),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('set = { "path.rate" = "2 Mbps" }', "in sweep alone: path.rate is what axis 'rate' varies"),
        ('set = { "flow[0].scheme" = "veno" }', "in sweep alone: flow[0].scheme is what axis 'sender' varies"),
        ('where = { rate = ["1 Mbps"] }', "where: there is no axis of variants called 'rate'; there are sender"),
        ('where = { sender = ["LD"] }', "where: there is no 'LD'; there are normal, ld"),
        ('where = { sender = ["ld"], rate = ["1 Mbps"] }', "where: found the axes sender, rate; one is allowed"),
    ],
)
def test_a_change_that_does_not_fit_is_told(tmp_path: Path, change: str, message: str) -> None:
    pack = changed(tmp_path / "pack", f"[[reading.other.change]]\n{change}\n")
    with pytest.raises(PackError) as caught:
        documents.read(pack, "alone", pack.reading("other"))
    assert message in str(caught.value)
    assert "paper.toml: reading.other.change[0]" in str(caught.value)
