"""The links of our pages lead somewhere."""

import re
from functools import cache
from pathlib import Path

import pytest

from conftest import ROOT

PAGES = sorted(
    page
    for page in ROOT.rglob("*.md")
    if not {"target", "out", "dist", "node_modules"} & set(page.relative_to(ROOT).parts)
    and not any(part.startswith(".") for part in page.relative_to(ROOT).parts)
)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
DEFINITION = re.compile(r"^\[([^\]]+)\]: (\S+)$", re.MULTILINE)
#: The package page shows the README, too, so that its links say where the repository is.
OURS = re.compile(
    r"https://(?:github\.com/whyloss/whyloss/(?:blob|tree)|raw\.githubusercontent\.com/whyloss/whyloss)/main/(.*)"
)


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(page: Path) -> set[str]:
    """What headings of a page can be linked to as, the way forges make it of them."""
    titles = re.findall(r"^#+ +(.*?)\s*$", prose(page), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in plain}


def defined(name: str, source: Path) -> bool:
    """Whether a file of Rust code defines ``name``."""
    return re.search(rf"\b(fn|struct|enum|trait|type|const|static|mod) {name}\b", source.read_text()) is not None


def wrong(page: Path, text: str, target: str) -> str | None:
    """What is wrong with a link, if anything is."""
    if ours := OURS.fullmatch(target):
        page, target = ROOT / "README.md", ours[1]
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    found = (page.parent / path).resolve() if path else page
    if not found.exists():
        return f"{target}: there is no such file"
    if anchor and found.suffix == ".md" and anchor not in anchors(found):
        return f"{target}: there is no such heading"
    name = re.fullmatch(r"`(\w+)`", text)
    if name and found.suffix == ".rs" and not defined(name[1], found):
        return f"{target}: it defines no {name[1]}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = prose(page)
    mistakes = [wrong(page, words, target) for words, target in LINK.findall(text) + DEFINITION.findall(text)]
    assert [mistake for mistake in mistakes if mistake] == []


def test_the_readme_stands_by_itself() -> None:
    """On a package page there are no files beside it."""
    text = prose(ROOT / "README.md")
    defined = {name.lower() for name, _ in DEFINITION.findall(text)}
    used = {(name or words).lower() for words, name in re.findall(r"\[([^\]\[]+)\]\[([^\]]*)\]", text)}
    assert used == defined
    assert LINK.findall(text) == []
    assert len(text.split("## Where to go")[0].splitlines()) < 30


def test_a_wrong_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two`: three\n[a](page.md#one-two-three)\n")
    code = tmp_path / "code.rs"
    code.write_text("pub(super) fn respond(now: Instant) {}\n")
    assert wrong(page, "a", "#one-two-three") is None
    assert wrong(page, "a", "#two") == "#two: there is no such heading"
    assert wrong(page, "a", "other.md") == "other.md: there is no such file"
    forge = "https://github.com/whyloss/whyloss/blob/main/"
    assert wrong(page, "a", forge + "README.md") is None
    assert wrong(page, "a", forge + "nowhere.md") == "nowhere.md: there is no such file"
    assert wrong(page, "`respond`", "code.rs") is None
    assert wrong(page, "`respon`", "code.rs") == "code.rs: it defines no respon"
    assert wrong(page, "`code.rs`", "code.rs") is None
    assert wrong(page, "a", "https://example.org/") is None


def test_the_places_of_a_loss_a_reduction_and_a_timeout_are_linked() -> None:
    page = ROOT / "docs" / "architecture.md"
    block = re.search(r"## Where to look\n(.*?)\n## ", page.read_text(), re.DOTALL)
    assert block is not None
    for question in ("is it judged", "does the window fall", "is a timeout handled"):
        row = next(line for line in block[1].splitlines() if question in line)
        assert any(target.endswith(".rs") for _, target in LINK.findall(row)), question
