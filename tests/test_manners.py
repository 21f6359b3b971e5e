"""How the command behaves in a terminal: help, tables, exit statuses, signals."""

from __future__ import annotations

import io
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from conftest import ROOT, WHYLOSS, Ended
from whyloss import InputError
from whyloss.cli import kernel
from whyloss.cli.app import app, main
from whyloss.cli.helping import Command, Group
from whyloss.cli.runs import DRAWN
from whyloss.scoring import Resampling
from whyloss.traces.series import MOST_FLOWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

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
    assert {one["name"] for one in listed} >= {"lossy-link", "error-rates", "pattern", "own_part", "random-loss"}
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
        ("compare --beside cub", "cubic"),
        ("friendly newren", "newreno"),
        ("kernel load wl_ven", "wl_veno"),
        ("kernel use wl_ven", "wl_veno"),
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


#: Types a line up to a tab into a shell that has taken the script, and prints what stands there then.
_TYPED = {
    "fish": 'whyloss completion fish | source; complete -C "whyloss {words}"',
    "zsh": r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1=; autoload -U compinit; compinit -u -D; eval "$(whyloss completion zsh)"; echo re""ady'
zpty -r shell seen '*ready*'
zpty -n -w shell $'whyloss {words}\t'
zpty -r shell seen '*{expected}*'
print -r -- "$seen"
zpty -d shell
""",
}


@pytest.mark.parametrize("shell", ["fish", "zsh"])
@pytest.mark.parametrize(("words", "expected"), [("reproduce garc", "garcia2004"), ("describe path.que", "path.queue")])
def test_a_shell_completes_what_is_typed(tmp_path: Path, shell: str, words: str, expected: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [program, *(["-f"] if shell == "zsh" else []), "-c", _TYPED[shell].format(words=words, expected=expected)],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "PATH": f"{WHYLOSS.parent}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert expected in done.stdout, done.stderr


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


@pytest.fixture
def kept(tmp_path: Path, small: Path) -> Path:
    """The folder of a run with a capture, as `whyloss run --out` leaves it."""
    (tmp_path / "captured.toml").write_text(small.read_text() + '[output]\ncapture = ["client"]\n')
    assert typed(tmp_path, "run", "captured.toml", "--out", "kept").status == 0
    return tmp_path / "kept"


def test_what_a_run_leaves_is_noted_and_what_an_earlier_one_left_goes_away(kept: Path, small: Path) -> None:
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=kept, check=True)
    assert len(list(kept.glob("*.pcapng"))) == 1
    (kept / "my-own.pcapng").write_text("mine")
    assert typed(kept.parent, "run", "captured.toml", "--out", "kept").status == 0
    assert len(list(kept.glob("*.pcapng"))) == 2
    assert typed(kept.parent, "run", small, "--out", "kept").status == 0
    assert [path.name for path in kept.glob("*.pcapng")] == ["my-own.pcapng"]
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=kept, check=True)


@pytest.mark.parametrize("command", ["score", "plot"])
def test_a_flipped_bit_in_a_table_is_told(kept: Path, command: str) -> None:
    for name in ("losses", "runs"):
        table = kept / f"{name}.parquet"
        octets = bytearray(table.read_bytes())
        octets[len(octets) // 3] ^= 4
        table.write_bytes(octets)
    done = typed(kept.parent, command, "kept")
    assert done.status == 2
    assert "it is not as it was written" in done.err
    assert "Traceback" not in done.err


def test_a_connection_that_gave_up_is_not_one_without_an_end(tmp_path: Path, small: Path) -> None:
    text = small.read_text().replace('"2 %"', '"100 %"') + "[flow.tcp]\nmax_retransmissions = 1\n"
    text = text.replace("seed = 3", 'seed = 3\nduration = "2000 s"')
    (tmp_path / "dead.toml").write_text(text)
    done = typed(tmp_path, "run", "dead.toml")
    assert done.status == 0, done.err
    assert "gave up" in done.out
    (tmp_path / "endless.toml").write_text(
        small.read_text().replace('size = "200 kB"', "").replace("seed = 3", 'duration = "1 s"')
    )
    assert "open-ended" in typed(tmp_path, "run", "endless.toml").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "small.toml", "--run", "99999999999999999999999"], "0<=x<=4294967294"),
        (["compare", "small.toml", "--seed", "99999999999999999999999"], ""),
        (["run", "small.toml", "--out", ""], "found ''; allowed: a path"),
        (["run", "small.toml", "--out="], "found ''; allowed: a path"),
        (["verify", ""], "found ''; allowed: a path"),
        (["plot", "small.toml", "--json", ""], "found ''; allowed: a path"),
        (["init", ""], "found ''; allowed: a name for the file"),
        (["friendly", "reno", "cubic", "--warm-up", "nan"], "found nan; allowed: a finite number"),
        (["report", "damaged"], "is no record of a reproduction"),
        (["run", "no\x1b[31mname.toml"], "no␛[31mname.toml: there is no such file"),
        (["report", "no\x1b[31mname.toml"], "does not exist"),
        (["run", "."], "this is a folder"),
    ],
)
def test_bad_input_is_told_without_a_traceback(tmp_path: Path, small: Path, words: list[str], told: str) -> None:
    assert small.parent == tmp_path
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "reproduction.json").write_text('{"readings": [{"figures": 3}]}')
    done = typed(tmp_path, *words)
    assert done.status == 2, done
    assert told in " ".join(done.err.replace("│", " ").split())
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([b"run", b"--rate", b"10Mbps", b"--delay", b"20\xb5s"], r"'--delay': found '20\xb5s'; allowed: text in UTF-8"),
        ([b"compare", b"--delay", b"20\xb5s"], r"'--delay': found '20\xb5s'"),
        ([b"run", b"small.toml", b"--set", b"scenario.name=\xff"], r"'--set': found 'scenario.name=\xff'"),
        ([b"link", b"20\xb5s", b"10Mbps", b"--", b"true"], r"'DELAY': found '20\xb5s'"),
        ([b"describe", b"\xff"], r"'NAME': found '\xff'"),
        ([b"explain", b"some.pcap", b"--differentiator", b"\xff"], r"'--differentiator': found '\xff'"),
        ([b"init", b"\xff"], r"'[NAME]': found '\xff'"),
    ],
)
def test_text_that_is_no_utf_8_is_a_mistake(tmp_path: Path, small: Path, words: list[bytes], told: str) -> None:
    assert small.parent == tmp_path
    done = subprocess.run([os.fsencode(WHYLOSS), *words], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 2
    assert told in " ".join(done.stderr.decode().replace("│", " ").split())
    assert b"Traceback" not in done.stderr


def test_file_names_may_have_any_octets(tmp_path: Path, small: Path) -> None:
    name, drawn = small.rename(tmp_path / os.fsdecode(b"\xff.toml")), tmp_path / os.fsdecode(b"\xfe.svg")
    words: list[str | Path] = [WHYLOSS, "plot", name, "--duration", "1s", "-o", drawn]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert drawn.exists()


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_output_in_any_encoding(tmp_path: Path, small: Path, environment: dict[str, str]) -> None:
    (tmp_path / "s.toml").write_text(f'[sweep]\nbase = "{small.name}"\nruns = 2\n')
    done = typed(tmp_path, "sweep", "s.toml", **environment)
    assert done.status == 0, done.err
    assert re.search(r"[\d.]+ Mbps (\.\.\.|…) [\d.]+ Mbps", done.out), done.out
    assert "\\u" not in done.out


def test_no_colour_and_no_control_without_a_terminal_or_where_it_is_not_wanted(tmp_path: Path, small: Path) -> None:
    for environment in ({}, {"NO_COLOR": "1", "FORCE_COLOR": ""}):
        done = typed(tmp_path, "run", small, **environment)
        assert "\x1b" not in done.out + done.err


def test_a_scenario_comes_from_the_standard_input(tmp_path: Path, small: Path) -> None:
    def piped(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([WHYLOSS, "run", "-", "--json"], cwd=tmp_path, input=text, capture_output=True, text=True)

    done = piped(small.read_text())
    assert json.loads(done.stdout)["transfers"][0]["octets_delivered"] == 200_000
    wrong = piped("[pth]")
    assert wrong.returncode == 2
    assert "standard input:1: pth" in wrong.stderr


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("plot", "-", "--to", "0.5"), "out/scenario/series.svg"),
        (("compare", "-", "--scheme", "sack", "--max-runs", "2", "--plot", "c.svg"), "c.svg"),
        (("friendly", "sack", "cubic", "--scenario", "-", "--runs", "2"), "out/store"),
        (("sweep", "-"), "out/sweep/runs.parquet"),
    ],
)
def test_other_commands_take_the_standard_input_too(
    tmp_path: Path, small: Path, words: tuple[str, ...], file: str
) -> None:
    text = f'[sweep]\nbase = "{small.name}"\nruns = 2\n' if words[0] == "sweep" else small.read_text()
    done = subprocess.run([WHYLOSS, *words], cwd=tmp_path, input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / file).exists()
    wrong = subprocess.run([WHYLOSS, *words], cwd=tmp_path, input="[pth]", capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 2
    assert "standard input:1: pth" in wrong.stderr


def test_a_panic_is_one_sentence_that_says_what_to_report() -> None:
    code = "from whyloss import _native; from whyloss.cli import app; app.app.main = {}; app.main()"
    panics = "lambda **_: _native.panic('slot 3\\x1b is free')"
    done = subprocess.run([sys.executable, "-c", code.format(panics)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    (told,) = done.stderr.splitlines()
    assert told.startswith("error: this is a mistake in whyloss ")
    assert "slot 3  is free (crates/python/src/panic.rs:" in told
    assert "please report this line" in told
    assert "github.com/whyloss/whyloss/issues" in told


@pytest.mark.parametrize(
    "words",
    [
        ("plot", "--rate", "100Mbps", "--duration", "2000 s"),
        ("compare", "--rate", "100Mbps", "--loss", "1%", "--duration", "2000 s"),
        ("report", "long.toml"),
        ("fit", ROOT / "examples" / "captures" / "policer.pcapng.zst", "-o", "path.toml", "--runs", "1000000"),
    ],
)
def test_ctrl_c_ends_a_command_within_a_moment(tmp_path: Path, small: Path, words: tuple[str | Path, ...]) -> None:
    (tmp_path / "long.toml").write_text(
        small.read_text().replace('size = "200 kB"', "").replace("seed = 3", 'duration = "2000000 s"')
    )
    process = subprocess.Popen(
        [WHYLOSS, *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "WHYLOSS_PROGRESS_S": "0.05"},
    )
    with process:
        assert process.stderr is not None
        begun = process.stderr.readline()
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    # A second at most; the machine may be busy with other tests.
    assert time.monotonic() - asked < 5
    assert " % after " in begun
    assert process.returncode == 130, err
    assert "stopped" in err
    assert "Traceback" not in err
    assert not (tmp_path / "path.toml").exists()


def test_one_ctrl_c_interrupts_once() -> None:
    """While polars works it would interrupt twice: the second time whoever tells what is known by then."""
    program = """
import os, signal, threading

import polars as pl
from whyloss.cli import app

app.interrupt_once()
table = pl.DataFrame({"a": range(200_000)}).lazy()

def told():
    pass

for _ in range(12):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            table.group_by(b=pl.col("a") % 7).agg(pl.col("a").sort().mean()).collect()
    except KeyboardInterrupt:
        told()
print("once each")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "once each\n"), done.stderr


_INTERRUPTED_IMPORT = """
import os, signal, sys

def hear(event, arguments, asked=sys.argv.pop(1)):
    if event == "import" and arguments[0] == asked and not sys.modules.get(asked):
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(hear)
from whyloss.cli import main
main()
"""


@pytest.mark.parametrize(
    "module",
    ["click", "whyloss._native", "rich.console", "whyloss.cli.helping", "polars._plr", "whyloss.results"],
)
def test_ctrl_c_while_the_command_is_imported(module: str) -> None:
    words = [sys.executable, "-c", _INTERRUPTED_IMPORT, module, "run", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


def test_the_version_and_the_list_of_commands_need_no_tables() -> None:
    program = f"{_WALK}\nprint(sorted({{'polars', 'numpy'}} & set(sys.modules)))"
    for line in ("--version", "--help"):
        done = subprocess.run(
            [sys.executable, "-c", program, line], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stdout.endswith(f"<{line}> 0\n[]\n")


def test_the_list_of_commands_says_what_their_own_help_says() -> None:
    for name, command in app.commands.items():
        assert command.name == name
        assert isinstance(command, (Command, Group))
        assert app.sentence(name) == command.first_sentence()


@pytest.mark.parametrize("stream", ["2>&1 | true", "2>/dev/full", "2>&-"])
@pytest.mark.parametrize(("words", "status"), [("nope", 2), ("run nope.toml", 2), ("score nope", 2), ("papers", 0)])
def test_standard_error_that_nobody_takes_changes_no_status(
    tmp_path: Path, words: str, status: int, stream: str
) -> None:
    if words == "papers" and "|" in stream:
        stream = f">/dev/null {stream}"
    script = f"set -o pipefail; {shlex.quote(str(WHYLOSS))} {words} {stream}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr


def test_sigterm_leaves_nothing_of_what_is_only_for_a_while(tmp_path: Path, small: Path) -> None:
    (tmp_path / "sweep.toml").write_text(f'[sweep]\nbase = "{small}"\nruns = 2\n')
    words = [str(WHYLOSS), "sweep", "sweep.toml", "--precision", "0.001%", "--store", "store"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while not list(tmp_path.glob("store/.look-*")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
        process.terminate()
        _, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGTERM, err
    assert err.startswith("stopped: ")
    assert "the same command" in err
    assert "Traceback" not in err
    assert not list(tmp_path.glob("store/.look-*"))


def test_no_step_of_a_long_bootstrap_makes_ctrl_c_wait() -> None:
    """Between two steps the interpreter hears signals; the draws do not depend on the steps."""
    clusters, steps = 30, 0
    rng = np.random.default_rng(7)
    losses = 500
    scores, cluster = rng.random(losses), rng.integers(0, clusters, losses)
    corruption = rng.random(losses) < scores
    few = Resampling(clusters, 50, seed=1)

    def follow(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal steps
        steps += event == "call" and frame.f_code.co_name == "_sums"

    sys.setprofile(follow)
    try:
        many = Resampling(clusters, 20_000, seed=1)
        areas = many.areas(scores, corruption, cluster)
    finally:
        sys.setprofile(None)
    assert np.array_equal(many.weights[:50], few.weights)
    assert np.allclose(areas[:50], few.areas(scores, corruption, cluster))
    assert areas.shape == (20_000,)
    assert steps == 2 * math.ceil(20_000 / 1024)


def test_ctrl_c_while_a_picture_is_drawn(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("whyloss.traces.draw_series", interrupted)
    monkeypatch.setattr(sys, "argv", ["whyloss", "plot", str(small), "-o", "x.svg"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert not (tmp_path / "x.svg").exists()


def test_progress_without_a_terminal_is_lines_with_how_far_it_is(tmp_path: Path, small: Path) -> None:
    (tmp_path / "s.toml").write_text(f'[sweep]\nbase = "{small.name}"\nruns = 300\n')
    done = typed(tmp_path, "sweep", "s.toml", WHYLOSS_PROGRESS_S="0.05")
    assert re.search(r"sweeping s: \d+ of 300 runs, \d+ % after \d+ s", done.err), done.err
    assert "of 300 runs" not in typed(tmp_path, "sweep", "s.toml").err


def test_a_picture_goes_to_a_folder_that_is_made_for_it(judged: Path, tmp_path: Path) -> None:
    done = typed(judged, "roc", "who", "-o", tmp_path / "new" / "roc.svg")
    assert done.status == 0, done.err
    (tmp_path / "file").write_text("in the way")
    failed = typed(judged, "roc", "who", "-o", tmp_path / "file" / "roc.svg")
    assert failed.status == 1
    assert "file: " in failed.err
    assert "[Errno" not in failed.err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("run small.toml", "--out a/b/tables"),
        ("plot small.toml", "--out a/b/picture.svg"),
        ("sweep sweep.toml", "--out a/b/tables"),
        ("compare small.toml --scheme cubic --scheme newreno --max-runs 2", "--plot a/b/picture.svg"),
    ],
)
def test_a_folder_on_the_way_to_an_output_is_made_and_named(
    tmp_path: Path, small: Path, words: str, option: str
) -> None:
    (tmp_path / "sweep.toml").write_text(f'[sweep]\nbase = "{small}"\nruns = 1\n')
    name, place = option.split()
    told = f"a{os.sep}b: there is no such folder yet; it is made for {name}"
    first = typed(tmp_path, *words.replace("small.toml", str(small)).split(), name, place)
    assert first.status == 0, first.err
    assert told in first.err.splitlines()
    assert (tmp_path / place).exists()
    again = typed(tmp_path, *words.replace("small.toml", str(small)).split(), name, place)
    assert again.status == 0, again.err
    assert "no such folder" not in again.err
    shown = " ".join(typed(tmp_path, words.split()[0], "--help").out.split())
    assert f"{name} that are not there yet are made, and named." in shown


def test_a_picture_of_a_run_with_any_name_stays_below_out(tmp_path: Path, small: Path) -> None:
    text = re.sub(r"^name = .*$", "", small.read_text(), flags=re.M).replace(
        "[scenario]", '[scenario]\nname = "../../a b"'
    )
    work = tmp_path / "one" / "two"
    work.mkdir(parents=True)
    done = subprocess.run([WHYLOSS, "plot", "-"], cwd=work, input=text, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "out/a-b/series.svg\n"), done.stderr
    for name in ("first.toml", "second.toml"):
        (work / name).write_text(text)
    several = typed(work, "plot", "first.toml", "second.toml")
    assert (several.status, several.out) == (0, "out/a-b-..-..-a-b/series.svg\n"), several.err
    assert {path.name for path in tmp_path.iterdir()} == {"one", small.name}


def test_commands_that_are_shown_can_be_typed_into_zsh() -> None:
    """There, brackets without quotes are a pattern of file names."""
    texts = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.*")]
    shown = [path.read_text(encoding="utf-8") for path in texts if path.suffix in (".md", ".toml", ".py")]
    shown += ["\n".join(getattr(command, "examples", ())) for _, command in commands()]
    for text in shown:
        assert not re.search(r"--set [a-z]+\[[^\s'\"]*=", text), re.findall(r".*--set [a-z]+\[.*", text)


OWNER = {"user": "anna", "uid": 1000, "process": 4711, "command": "whyloss kernel load", "loaded_at": 1_800_000_000}


@pytest.mark.parametrize(
    ("of_another", "answer", "status"), [(False, None, 0), (True, None, 2), (True, "n\n", 1), (True, "y\n", 0)]
)
def test_what_another_loaded_into_the_kernel_stays_without_force_or_an_answer(
    monkeypatch: pytest.MonkeyPatch, of_another: bool, answer: str | None, status: int
) -> None:
    removed: list[bool] = []
    share = {"control": "wl_veno", "network_namespace": 7, "own_namespace": False, "connections": 3, "becomes": "bbr"}
    before = {"owner": OWNER, "of_another": of_another, "controls": ["wl_veno"], "rules": [{}], "connections": [share]}

    def unload(*, force: bool) -> dict[str, Any]:
        if of_another and not force:
            raise InputError("loaded by anna; --force")
        removed.append(force)
        return {"controls": ["wl_veno"], "moved": 0, "kept": 0}

    native = SimpleNamespace(kernel_consequences=lambda: before, kernel_unload=unload)
    monkeypatch.setattr(kernel, "_native", native)
    # The runner puts its own input there for the time of the call.
    monkeypatch.setattr(kernel, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: answer is not None)))
    told: list[str] = []
    monkeypatch.setattr(kernel, "say", told.append)
    done = CliRunner().invoke(kernel.kernel, ["unload"], input=answer)
    assert bool(removed) == (status == 0), done.output
    if isinstance(done.exception, InputError):
        assert status == 2
    else:
        assert done.exit_code == status, done.output
    assert told[0].startswith("loaded by anna with `whyloss kernel load` (process 4711) at 2027-01-1")
    assert told[1:3] == [
        "1 rules of `use` go",
        "open connections in the network namespace 7 with wl_veno: 3 get bbr",
    ]
    assert CliRunner().invoke(kernel.kernel, ["unload", "--force"]).exit_code == 0


def test_the_list_of_controls_names_what_is_in_the_kernel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    controls = [
        {"name": f"wl_{name}", "kernel_name": f"wl_{name}", "loaded": name == "veno", "connections": 2}
        for name in ("veno", "bic")
    ]
    state = {
        "loaded": {"version": "0"},
        "owner": OWNER,
        "owner_runs": True,
        "controls": controls,
        "rules": [],
        "matches": True,
    }
    monkeypatch.setattr(kernel, "_native", SimpleNamespace(kernel_list=lambda: state))
    monkeypatch.setattr(kernel, "screen", Console(width=80, file=(shown := io.StringIO())))
    CliRunner().invoke(kernel.kernel, ["list"])
    lines = {line.split()[0]: line.split()[1:] for line in shown.getvalue().splitlines() if line.startswith("wl_")}
    assert lines == {"wl_veno": ["yes", "wl_veno", "2"], "wl_bic": ["no", "–", "–"]}
    assert "Loaded by anna with `whyloss kernel load` (process 4711)" in shown.getvalue()
    assert "which still runs" in shown.getvalue()


def test_a_long_list_is_shortened_and_says_how_to_see_all(tmp_path: Path, small: Path) -> None:
    (tmp_path / "many.toml").write_text(small.read_text().replace('size = "200 kB"', 'size = "2 kB"\ncount = 100'))
    shown = typed(tmp_path, "run", "many.toml")
    assert shown.status == 0, shown.err
    assert len(re.findall(r"^flow0\.\d+ +newreno", shown.out, re.M)) == 40
    assert "… and 60 more; --json and --out have all" in shown.out
    assert len(json.loads(typed(tmp_path, "run", "many.toml", "--json").out)["transfers"]) == 100


#: Commands that need root, a network or another machine, print what is not for people, or say a sentence alone.
_APART = {"link", "testbed", "emulate", "serve", "fetch", "kernel", "top", "demo", "completion", "verify"}
_WALK = """
import sys
from whyloss.cli import main
for words in [line.split() for line in sys.argv[1].splitlines()]:
    sys.argv = ["whyloss", *words]
    try:
        main()
    except SystemExit as ended:
        for stream in (sys.stdout, sys.stderr):
            print(f"<{words[0]}> {ended.code}", file=stream, flush=True)
"""


def walked(folder: Path, lines: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Commands in one process, which is started once; after each stand its name and its exit status."""
    return subprocess.run(
        [sys.executable, "-c", _WALK, lines],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=90,
        check=False,
    )


#: What is typed, and what must be told.
_MISTAKES = [
    ("plot --rate 10 --delay 20ms", '--rate: found "10"; .* \\(did you mean `10Mbps`\\?\\)'),
    ("link 20 10Mbps -- true", 'DELAY: found "20"; .* \\(did you mean `20ms`\\?\\)'),
    ("link 20ms 10 -- true", 'RATE: found "10"; .* \\(did you mean `10Mbps`\\?\\)'),
    ("explain nothing.pcap", "nothing.pcap: No such file or directory$"),
    ("run --rate 10Mbps --delay 20", '--delay: found "20"; .* \\(did you mean `20ms`\\?\\)'),
    ("compare --rate 10Mbps --loss 2", '--loss: found "2"; .* \\(did you mean `2%`\\?\\)'),
    ("run --damaged 150", '--damaged: found "150"; allowed: a number from 0 to 1, such as 8.3e-6, or .* "2 %"$'),
    ("friendly cubic reno --loss 1.5%%", '--loss: found "1.5%%"; allowed: a number from 0 to 1'),
    ("run --loss 150%", '--loss: found "150%"; allowed: '),
    ("run --run 4294967295", "Invalid value for '--run': 4294967295 is not in the range 0<=x<=4294967294"),
    ("plot --run 4294967295", "Invalid value for '--run': 4294967295 is not in the range 0<=x<=4294967294"),
    ("run examples/lossy-link.toml", "there is no such file; `whyloss examples lossy-link` copies the example"),
    ("sweep error-rates", "error-rates: there is no such file; `whyloss examples error-rates` copies the example"),
    ("verify link.toml", "link.toml/inputs.json: there is no such file; allowed: a folder that `whyloss run --out`, "),
    ("sweep mine.toml --plan", "mine.toml: there is no such file; `whyloss examples` lists sweeps to begin with"),
    ("run --rate 1Mbps --queue 100ms", '--queue: found "100ms"; allowed: at least '),
    ("run link.toml --rate fast", '--rate: found "fast"; allowed: a bit rate'),
    ("run link", "link: there is no such file \\(did you mean `link.toml`\\?\\)"),
    ("run other.toml", "other.toml: there is no such file; `whyloss init` writes a scenario"),
    ("plot cubic --rate 1Mbps", "cubic: there is no such file; a scheme is named by --scheme cubic"),
    ("compare link.toml cubic bbr", "Schemes are named by options: --scheme cubic --scheme bbr"),
    ("run --rate 1Mbps --scheme CUBIC", "no scheme `CUBIC` \\(did you mean `cubic`\\?\\)"),
    ("plot --rate 1Mbps --scheme cubic,bbr", "named by itself: --scheme cubic --scheme bbr"),
    ("--rate 1Mbps run", "It goes behind a command: run, "),
    ("sweep link.toml", "this is a scenario, not a sweep; `whyloss run link.toml` runs it"),
    ("run sweep.toml", "this is a sweep, not a scenario; `whyloss sweep sweep.toml` runs it"),
    ("plot link.toml --duration 1s -o away/x.svg", "^error: away/x.svg: "),
    ("run link.toml --set path.rat=5Mbps", "path.rat: unknown field \\(did you mean `rate`\\?\\)"),
    ("explain empty.pcap", "empty.pcap: the file is empty; a capture begins with"),
    ("fit header.pcap -o x.toml", "header.pcap: found no TCP data that was acknowledged"),
    ("explain link.toml", "link.toml: begins with .*; allowed is pcap or pcapng"),
    ("plott", "Did you mean 'plot'"),
]


def test_plausible_mistakes_are_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text('[sweep]\nbase = "link.toml"\nruns = 2\n')
    (tmp_path / "empty.pcap").touch()
    (tmp_path / "header.pcap").write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    (tmp_path / "away").symlink_to("/proc")
    done = walked(tmp_path, "\n".join(["init link", *(words for words, _ in _MISTAKES)]))
    _, *ended = re.split(r"^<\S+> (.*)\n", done.stderr.decode(), flags=re.M)
    assert ended[0] == "0"
    assert len(ended) == 2 * len(_MISTAKES) + 2
    for (words, told), err, status in zip(_MISTAKES, ended[1:-1:2], ended[2::2], strict=True):
        assert status in ("1", "2"), (words, err)
        assert re.search(told, err), (words, err)
        assert "Traceback" not in err, words
        assert ".part" not in err, words


def test_what_every_command_shows_fits_a_narrow_terminal_of_latin_1(tmp_path: Path) -> None:
    link = "--rate 2Mbps --loss 1% --duration 2s"
    capture = next((ROOT / "examples" / "captures").glob("policer.pcapng*"))
    lines = f"""init link
        examples
        examples error-rates
        run link.toml --duration 6s --queue 10pkt --set flow[0].shadows=["veno","spike"] --out out/one
        plot {link} --scheme cubic --scheme lda-eq
        compare {link} --max-runs 2
        friendly cubic newreno --runs 2 --duration 2s
        sweep sweep.toml
        report out/one
        schemes
        describe lda-eq
        describe path.queue
        score out/one
        roc out/one -o roc.svg
        papers
        reproduce garcia2004 --figure 8 --quick --reading pre-registered
        explain {capture}
        fit {capture} -o fitted.toml --runs 1
        cache"""
    (tmp_path / "sweep.toml").write_text('[sweep]\nbase = "link.toml"\nruns = 2\n[set]\nscenario.duration = "1 s"\n')
    latin = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = walked(tmp_path, lines, COLUMNS="60", NO_COLOR="1", **latin)
    shown = done.stdout.decode("latin-1")
    ended = dict(re.findall(r"^<(\w+)> (.*)$", shown, re.M))
    assert set(ended) == set(app.commands) - _APART
    assert set(ended.values()) == {"0"}, (ended, done.stderr.decode("latin-1")[-2000:])
    assert b"\x1b" not in done.stdout + done.stderr
    # Tables fit, as a terminal would break them anywhere; a sentence may go on below.
    wide = [line for line in shown.splitlines() if len(line) > 60 and len(re.findall(r"\S {2,}(?=\S)", line)) > 2]
    assert not wide, wide
    assert "?" * 3 not in shown


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("width", [60, 80])
def test_every_help_fits_a_narrow_terminal_of_any_encoding(
    monkeypatch: pytest.MonkeyPatch, encoding: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    for names, command in commands():
        shown = io.TextIOWrapper(octets := io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", shown)
        monkeypatch.setattr(sys, "argv", ["whyloss", *names, "--help"])
        with pytest.raises(SystemExit) as ended:
            main()
        shown.flush()
        told = octets.getvalue().decode(encoding)
        assert ended.value.code == 0, names
        assert "\x1b" not in told
        assert "\\u" not in told
        assert "\\x" not in told
        # Examples stand as they are typed.
        rest = told[told.index("Usage:") :]
        assert max(map(len, rest.splitlines())) <= width, (
            names,
            [line for line in rest.splitlines() if len(line) > width],
        )
        assert (command.name or "") in told


def test_every_command_that_writes_takes_o_and_out() -> None:
    for names, command in commands():
        for parameter in command.params:
            if {"-o", "--out"} & set(parameter.opts):
                assert {"-o", "--out"} <= set(parameter.opts), names


def test_what_is_shown_to_type_next_is_of_the_same_run(tmp_path: Path) -> None:
    link = ["--rate", "1Mbps", "--loss", "1%"]
    own = ["--with", ROOT / "examples" / "own_part.py"]
    done = typed(tmp_path, "run", *link, "--scheme", "reno", "--duration", "5s", "--run", "3", *own)
    shown = re.findall(r": (whyloss .*)$", done.err, re.MULTILINE)
    assert shown == [
        f"whyloss plot --rate 1Mbps --loss 1% --duration 5s --run 3 --scheme reno --with {own[1]}",
        f"whyloss compare --rate 1Mbps --loss 1% --duration 5s --with {own[1]}",
    ]
    assert "true cause" in done.out


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([], "whyloss plot link.toml"),
        (["--set", "output.sample=50 ms"], "whyloss plot out"),
        (["--set", "output.sample=50 ms", "--set", "flow[0].count=7"], "whyloss plot out --flow 0"),
    ],
)
def test_what_is_shown_to_draw_a_run_draws_it(tmp_path: Path, more: list[str], expected: str) -> None:
    (tmp_path / "link.toml").write_text(
        '[scenario]\nduration = "1 s"\n[path]\nrate = "1 Mbps"\ndelay = "9 ms"\nqueue = "9 pkt"\n[[flow]]\n'
    )
    done = typed(tmp_path, "run", "link.toml", "--out", "out", *more)
    (shown,) = re.findall(r"over time: (whyloss .*)$", done.err, re.MULTILINE)
    assert shown == expected
    drawn = typed(tmp_path, *shlex.split(shown)[1:], "-o", "run.svg")
    assert drawn.status == 0, drawn.err
    assert MOST_FLOWS == DRAWN


def test_no_picture_takes_the_place_of_what_is_read(tmp_path: Path, small: Path) -> None:
    world = small.rename(tmp_path / "world.svg")
    for command, option in (("plot", "--out"), ("compare", "--plot")):
        done = typed(tmp_path, command, world.name, option, world.name)
        assert done.status == 2
        assert f"{option}: world.svg is one of the files that are read" in " ".join(done.err.replace("│", " ").split())
    assert b"[path]" in world.read_bytes()
