"""Where there is no Linux: what needs it says so in a sentence, and all else works."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

#: A system without what only Linux, or only POSIX, has: by the time that whyloss is imported, it is gone.
#: The libraries that ask which system this is are asked before; so is the list of fonts, which is made once a user.
WITHOUT = """
import asyncio, contextlib, io, json, os, select, signal, subprocess, sys, tempfile
import click, matplotlib.font_manager, plotext, polars, rich.console, rich.live, rich.progress

sys.platform = sys.argv[1]
for module in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[module] = None
for name in ("fork", "getegid", "geteuid", "getgid", "getuid", "setsid", "uname"):
    delattr(os, name)
del select.poll, signal.SIGPIPE

import whyloss
from whyloss import _native

def refuse(*_, **__):
    raise _native.UnavailableError("real packets need Linux")

for name in ("Bed", "Bridge", "BulkTransfer", "WireHost"):
    setattr(_native, name, type(name, (), {"__new__": refuse}))

from whyloss.cli.app import main

told = []
for words in json.loads(sys.argv[2]):
    sys.argv = ["whyloss", *words]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        from whyloss.cli import console
        console.screen.file, console.err.file = out, err
        try:
            main()
        except SystemExit as end:
            told.append((end.code, out.getvalue(), err.getvalue()))
print(json.dumps(told))
"""

NEED_LINUX = {
    "link 20ms 10Mbps -- true": "link",
    "testbed examples/lossy-link.toml": "testbed",
    "emulate examples/lossy-link.toml --tun left --tun right": "emulate",
    "serve README.md": "serve",
    "fetch http://198.18.2.1/file": "fetch",
    "kernel check": "kernel check",
    "kernel load": "kernel load",
    "demo kernel": "demo kernel",
    "top --once": "top",
    "reproduce garcia2004 --on engine": "reproduce --on",
}
WORK = [
    "run --rate 10Mbps --delay 20ms --duration 1s",
    "explain examples/captures/policer.pcapng.zst",
    "schemes",
    "top --help",
    "kernel load --help",
]


def typed(platform: str, *lines: str) -> list[tuple[int, str, str]]:
    """Exit status, output and messages of each line on such a system, in one process."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, platform, json.dumps([line.split(" ") for line in lines])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(status, out, err) for status, out, err in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def told() -> dict[str, tuple[int, str, str]]:
    """What each line ends with, where there is no Linux."""
    lines = [*NEED_LINUX, *WORK, "explain -"]
    return dict(zip(lines, typed("win32", *lines), strict=True))


@pytest.mark.parametrize(("line", "command"), NEED_LINUX.items())
def test_what_needs_linux_says_so_in_a_sentence(told: dict[str, tuple[int, str, str]], line: str, command: str) -> None:
    status, out, err = told[line]
    assert (status, out) == (2, "")
    assert err.startswith(f"error: `whyloss {command}` needs Linux, for ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("line", WORK)
def test_all_else_works(told: dict[str, tuple[int, str, str]], line: str) -> None:
    status, out, err = told[line]
    assert (status, bool(out)) == (0, True), err


def test_a_capture_that_comes_is_explained_where_it_can_be_waited_for(told: dict[str, tuple[int, str, str]]) -> None:
    status, _, err = told["explain -"]
    assert status == 2
    assert "save it, and name its file" in err


def test_the_classes_that_stand_for_real_packets_are_those_that_linux_has() -> None:
    folder = ROOT / "crates" / "python" / "src"

    def named(path: Path, mark: str) -> set[str]:
        lines = path.read_text(encoding="utf-8").splitlines()
        (line,) = (line for line in lines if line.startswith(mark))
        return set(line.removeprefix(mark).rstrip(" }").split())

    here = (folder / "real" / "mod.rs").read_text(encoding="utf-8").splitlines()
    used = {line.rstrip(";").rpartition("::")[2] for line in here if line.startswith("pub use ")}
    assert used == named(folder / "elsewhere.rs", "absent! { ")
