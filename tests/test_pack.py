"""The description of a paper: what is read, and how mistakes are told."""

from pathlib import Path

import pytest

from whyloss.pack import Pack, PackError

GARCIA = Path(__file__).parents[1] / "papers" / "garcia2004"


def test_garcia2004_is_complete() -> None:
    pack = Pack.load(GARCIA)
    assert pack.paper.repetitions == 30
    assert set(map(str, range(4, 19))) <= set(pack.figures)
    assert sum(figure.at["delay"] == "200 ms" for figure in pack.figures.values()) == 6
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
        ("[paper]", "[papers]", "unknown field 'papers'"),
        ("[paper]", "[paper", "paper.toml: "),
    ],
)
def test_mistakes_are_told(tmp_path: Path, before: str, after: str, message: str) -> None:
    text = (GARCIA / "paper.toml").read_text()
    assert before in text
    (tmp_path / "paper.toml").write_text(text.replace(before, after, 1))
    with pytest.raises(PackError) as caught:
        Pack.load(tmp_path)
    assert message in str(caught.value)
    assert str(tmp_path / "paper.toml") in str(caught.value)


def test_a_folder_without_a_paper(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="there is no such file"):
        Pack.load(tmp_path)
