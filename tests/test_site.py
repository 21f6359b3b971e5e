"""The documentation site builds without a warning, and its blocks of code are as the program is."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

import whyloss
from conftest import ROOT
from whyloss.cli.app import app

DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOCS.rglob("*.md")),
    *sorted(ROOT.glob("papers/*/errata.md")),
]
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CALL = re.compile(r"(?:^|[|;&]\s*|sudo )(?:\.venv/bin/)?whyloss ([^|;&]*)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [Path(sys.executable).parent / "mkdocs", "build", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


def blocks(page: Path, kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.read_text(encoding="utf-8")) if found == kind]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))
    loaded = re.compile(r'(?:src="|<link rel="(?:stylesheet|preconnect|preload)"[^>]*href=")(https?://[^"]*)')
    assert {found for page in pages for found in loaded.findall(page.read_text(encoding="utf-8"))} == set()


def test_every_command_and_field_is_in_the_reference(site: Path) -> None:
    commands = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    for command in app.list_commands(click.Context(app)):
        assert f"<code>whyloss {command}</code>" in commands
    for kind in ("scenario", "sweep"):
        page = (site / "reference" / f"{kind}.html").read_text(encoding="utf-8")
        schema = json.loads((DOCS / f"{kind}.schema.json").read_text(encoding="utf-8"))
        for entry in (schema, *schema["$defs"].values()):
            for field in entry.get("properties", {}):
                assert f"<td><code>{field}</code></td>" in page, field
    python = (site / "reference" / "python.html").read_text(encoding="utf-8")
    assert 'id="whyloss.Scenario.run"' in python
    assert not re.search(r":(?:meth|mod|class|func):|<p>&gt;&gt;&gt;|<blockquote>", python)


def test_nothing_is_left_to_be_filled_in(site: Path) -> None:
    assert [
        page.name for page in site.rglob("*.html") if "filled by the site" in page.read_text(encoding="utf-8")
    ] == []


def mistake(call: str, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """What the command line would say against a call; files that only a reader has are taken to be there."""
    monkeypatch.setattr(click.Path, "convert", lambda _self, value, _parameter, _context: value)
    words = shlex.split(call, comments=True)
    command: click.Command = app
    context = click.Context(app, info_name="whyloss")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        below = command.get_command(context, words[0])
        if below is None:
            return f"no command {words[0]}"
        command, words = below, words[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    try:
        command.make_context(command.name, words)
    except click.exceptions.Exit:
        return None  # --help and the like
    except click.UsageError as error:
        text = error.format_message()
        return None if "no control group" in text else text
    except whyloss.InputError as error:
        return None if "no such file" in str(error) else str(error)
    return None


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")], ids=name)
def test_commands_are_ones_that_there_are(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for text in blocks(page, "sh") for line in text.replace("\\\n", "").splitlines()]
    calls = [call for line in lines for call in CALL.findall(line)]
    assert {call: told for call in calls if (told := mistake(call, monkeypatch))} == {}


def test_a_wrong_command_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mistake("run a.toml --set path.rate='1 Mbps' # good", monkeypatch) is None
    assert "--sett" in (mistake("run a.toml --sett b", monkeypatch) or "")
    assert "Missing" in (mistake("emulate a.toml", monkeypatch) or "")
    assert mistake("walk a.toml", monkeypatch) == "no command walk"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python") or blocks(page, "toml")], ids=name)
def test_python_and_toml_can_be_read(page: Path) -> None:
    for text in blocks(page, "toml"):
        tomllib.loads(text)
    for text in blocks(page, "python"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("whyloss"):
                module: Any = __import__(node.module, fromlist=[alias.name for alias in node.names])
                for alias in node.names:
                    assert hasattr(module, alias.name), alias.name
