"""Pages of documentation are written in sentences that one reads once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Words of the longest sentence that a page may have. A name in code is one word.
MOST = 45

_FENCE = re.compile(r"^\s*(```|~~~).*?^\s*\1\s*$", re.M | re.S)
#: Tables, headings, HTML, pictures, definitions of links, code that is indented.
_NO_PROSE = re.compile(r"^(\s*(\||#|<|!\[|\[[^\]]*\]: )| {4,}(?![-*\d])).*$", re.M)
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+", re.M)
_END = re.compile(r"(?<=[.!?:])[)*_\"”]*\s+(?=[(*_\[\"“]*[A-Z0-9])")
_WORD = re.compile(r"[^\W_][\w'\u2019.,%-]*")


def sentences(page: str) -> Iterator[str]:
    """The sentences of a page's paragraphs and items of lists; what stands after a colon with a capital is one, too."""
    text = _NO_PROSE.sub("", _FENCE.sub("", re.sub(r"<!--.*?-->", "", page, flags=re.S)))
    text = re.sub(r"\]\([^)\s]*\)", "]", re.sub(r"`[^`]*`", "Name", text))
    for paragraph in re.split(r"\n\s*\n", _ITEM.sub("\n\n", text)):
        yield from _END.split(" ".join(paragraph.split()))


def words(sentence: str) -> int:
    """How many words it has."""
    return len(_WORD.findall(sentence))


def test_sentences_are_found_and_counted() -> None:
    page = "# Title of it\n\nOne two `three four`. `five` six:\n\n- seven, [eight](nine.md)\n  ten.\n\n"
    page += "| no | row |\n\n```\nno code\n```\n"
    assert [(found, words(found)) for found in sentences(page) if found] == [
        ("One two Name.", 3),
        ("Name six:", 2),
        ("seven, [eight] ten.", 3),
    ]


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.relative_to(ROOT / "docs").as_posix()
)
def test_no_sentence_has_to_be_read_twice(page: Path) -> None:
    """Cut it in two: the limit is far above what reads well."""
    long = [found for found in sentences(page.read_text(encoding="utf-8")) if words(found) > MOST]
    assert not long, "\n".join(f"{words(found)} words: {found}" for found in long)
