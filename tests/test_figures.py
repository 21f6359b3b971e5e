"""No figure without its numbers, the command that makes it, and a sentence that says what to see."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import polars as pl
import pytest

import whyloss as wl
from conftest import ROOT

DOCS = ROOT / "docs"
GALLERY = (DOCS / "gallery.md").read_text(encoding="utf-8")
#: Of a differentiator's own page; all of them come with one command from one file.
CURVES = {path for path in (DOCS / "differentiators").glob("*.svg") if path.stem != "all"}
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
LARGEST_SVG = 150_000


def committed(*patterns: str) -> set[Path]:
    """Files of the repository; of a copy without its history, what lies there."""
    done = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=False)
    names = done.stdout.split() if done.returncode == 0 else []
    return {ROOT / name for name in names if (ROOT / name).exists()}


def read(path: Path) -> int:
    """How many rows or entries a file of numbers has."""
    match path.suffix:
        case ".csv":
            return len(pl.read_csv(path))
        case ".json":
            return len(json.loads(path.read_text(encoding="utf-8")))
        case ".toml":
            return len(tomllib.loads(path.read_text(encoding="utf-8"))) and len(wl.Scenario.load(path).to_dict())
        case _:
            return path.stat().st_size


ENTRIES = [entry for entry in GALLERY.split("\n## ")[1:] if not entry.startswith("Five")]


def test_the_gallery_is_complete() -> None:
    shown = {(DOCS / name).resolve() for name in PICTURE.findall(GALLERY)}
    assert shown == committed("docs/*.svg", "docs/*.png", "docs/*.webp") - CURVES


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.splitlines()[0])
def test_a_figure_has_a_command_and_numbers(entry: str) -> None:
    assert len(PICTURE.findall(entry)) == 1
    assert re.search(r"^What to see: .{20}", entry, re.MULTILINE)
    made = re.search(r"^Made by `(python (\S+)|whyloss \w+)[^`]*`\. Numbers: (.+)\.$", entry, re.MULTILINE)
    assert made is not None
    assert made[2] is None or (ROOT / made[2]).is_file()
    numbers = re.search(r"\]\(([^)#]+)", made[3])
    if numbers is None:
        assert made[3] == "the run of this command"
    else:
        assert read(DOCS / numbers[1]) >= 2


@pytest.mark.parametrize("row", re.findall(r"^\| !.*$", GALLERY, re.MULTILINE), ids=lambda row: row.split("]")[0][4:])
def test_a_figure_of_a_capture_has_the_capture(row: str) -> None:
    capture = re.search(r"\[the capture\]\(([^)]+)\)", row)
    assert capture is not None
    assert read(DOCS / capture[1]) > 10_000
    assert f"`whyloss explain {Path(capture[1]).name} --html" in row


def test_the_curves_of_differentiators_have_their_numbers() -> None:
    measured = json.loads((DOCS / "differentiators" / "measured.json").read_text(encoding="utf-8"))["differentiators"]
    assert {path.stem for path in CURVES} == set(measured)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_words_follow_each_figure(page: Path) -> None:
    """A figure alone tells nothing; what comes after it says what to see."""
    text = re.sub(r"^\|.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for after in re.findall(r"^!\[[^\]]*\]\([^)]+\)\n+(.*)", text, re.MULTILINE):
        assert re.match(r"[-*`A-Z0-9\[]", after), after
        assert not after.startswith("#"), after


def test_no_picture_is_larger_than_a_page_may_load() -> None:
    large = {path for path in committed("*.svg") if path.stat().st_size > LARGEST_SVG}
    assert large == set()
