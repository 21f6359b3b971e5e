"""How the command behaves in a terminal: help, tables, exit statuses, signals."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import click
import pytest

from conftest import ROOT, WHYLOSS, Ended
from whyloss.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Call = Callable[..., Ended]


def typed(folder: Path, *arguments: object, **environment: str) -> Ended:
    """What a user types, in an environment of his own."""
    done = subprocess.run(
        [WHYLOSS, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    return Ended(done.returncode, done.stdout.decode(encoding), done.stderr.decode(encoding))


def commands(group: click.Group = app, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group with the words that call it."""
    yield names, group
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))
        else:
            yield (*names, name), command


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with many differentiators that listen."""
    folder = tmp_path_factory.mktemp("judged")
    done = typed(folder, "run", ROOT / "examples" / "who-can-tell.toml", "--out", "who")
    assert done.status == 0, done.err
    return folder


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("more", [(), ("--group-by", "flow", "--group-by", "scheme")])
def test_a_narrow_terminal_gets_every_number_whole(judged: Path, width: int, more: tuple[str, ...]) -> None:
    wide = typed(judged, "score", "who", *more, COLUMNS="400").out
    narrow = typed(judged, "score", "who", *more, COLUMNS=str(width)).out
    number = r"-?\d+(?:\.\d+)?(?: %)?"
    beside = Counter(re.findall(number, wide))
    assert beside["97.9 %"] or sum(beside.values()) > 40
    assert not beside - Counter(re.findall(number, narrow))
    assert max(map(len, narrow.splitlines())) <= width


def test_help_begins_with_an_example_and_is_not_one_paragraph() -> None:
    for names, command in commands():
        context = click.Context(command, info_name=" ".join(["whyloss", *names]), max_content_width=80)
        help_text = command.get_help(context)
        first, second = help_text.splitlines()[:2]
        assert first in ("Example:", "Examples:"), names
        assert "whyloss" in second, names
        assert "\\b" not in help_text, names
        assert "..." not in help_text.partition("Usage:")[2].partition("\n\n")[2], names
        assert "Exit status: " in help_text, names
        for status in ("130 interrupted", "141 nobody reads"):
            assert status in " ".join(help_text.split()), names


def test_the_first_help_lists_every_command_under_a_heading() -> None:
    shown = app.get_help(click.Context(app, info_name="whyloss"))
    for name in app.commands:
        assert len(re.findall(rf"^  {name} +\S", shown, re.M)) == 1, name
    assert "Others:" not in shown
