"""How the command behaves in a terminal: help, tables, exit statuses, signals."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections import Counter
from typing import TYPE_CHECKING

import click
import jsonschema
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


def test_init_writes_what_runs_and_what_editors_check_it_by(tmp_path: Path) -> None:
    done = typed(tmp_path, "init", "mine")
    assert (done.status, done.out) == (0, "mine.toml\n")
    text = (tmp_path / "mine.toml").read_text()
    assert text.startswith("#:schema ./scenario.schema.json\n")
    schema = json.loads((tmp_path / "scenario.schema.json").read_text())
    document = tomllib.loads(text)
    jsonschema.validate(document, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "path": {**document["path"], "rte": 1}}, schema)
    assert typed(tmp_path, "run", "mine.toml").status == 0
    (tmp_path / "mine.toml").write_text(text + "# my own\n")
    again = typed(tmp_path, "init", "mine")
    assert again.status == 2
    assert "mine.toml is there already" in again.err
    assert typed(tmp_path, "init", "mine", "--force").status == 0


def test_examples_are_listed_and_copied_with_what_they_name(tmp_path: Path) -> None:
    listed = json.loads(typed(tmp_path, "examples", "--json").out)
    assert {one["name"] for one in listed} >= {"lossy-link", "error-rates", "pattern", "own_part", "policer"}
    assert all(10 < len(one["about"]) < 200 for one in listed), listed
    assert "lossy-link" in typed(tmp_path, "examples").out
    for name, files in (("pattern", {"pattern.bits"}), ("error-rates", {"lossy-link.toml", "sweep.schema.json"})):
        done = typed(tmp_path, "examples", name, "--to", "try")
        assert done.status == 0, done.err
        assert files <= {path.name for path in (tmp_path / "try").iterdir()}
    assert typed(tmp_path, "run", "try/pattern.toml").status == 0
    missing = typed(tmp_path, "examples", "lossy")
    assert missing.status == 2
    assert "lossy-link" in missing.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run --set path.forw", "path.forward"),
        ("run --set flow[0].tcp.ack_p", "flow[0].tcp.ack_policy"),
        ("run --scheme checksum-", "checksum-ld"),
        ("reproduce garc", "garcia2004"),
        ("describe cubi", "cubic"),
        ("describe path.que", "path.queue"),
        ("examples lossy-l", "lossy-link"),
        ("comp", "completion"),
    ],
)
def test_shells_complete_names_and_fields(tmp_path: Path, words: str, expected: str) -> None:
    told = typed(
        tmp_path,
        _WHYLOSS_COMPLETE="bash_complete",
        COMP_WORDS=f"whyloss {words}",
        COMP_CWORD=str(len(words.split())),
    )
    assert expected in [line.partition(",")[2] for line in told.out.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_that_the_shell_takes(tmp_path: Path, shell: str) -> None:
    done = typed(tmp_path, "completion", shell)
    assert done.status == 0
    assert "_WHYLOSS_COMPLETE" in done.out
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=done.out, text=True, check=True)


def test_cache_shows_and_cleans_what_is_stored(tmp_path: Path, small: Path) -> None:
    (tmp_path / "s.toml").write_text(f'[sweep]\nbase = "{small.name}"\nruns = 2\n')
    assert typed(tmp_path, "sweep", "s.toml").status == 0
    (tmp_path / "out" / "store" / "mine.txt").write_text("not of the store")
    there = json.loads(typed(tmp_path, "cache", "--json").out)
    assert there["files"] == there["points"] == 1
    assert there["octets"] > 1000
    assert json.loads(typed(tmp_path, "cache", "--clean", "--older-than", "1", "--json").out)["removed"]["files"] == 0
    assert "removed 1 files" in typed(tmp_path, "cache", "--clean").err
    assert json.loads(typed(tmp_path, "cache", "--json").out)["files"] == 0
    assert (tmp_path / "out" / "store" / "mine.txt").exists()
