"""Draws the pictures of docs/plots.md again, by the commands that stand on the page."""

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "plots.md"


def commands() -> list[list[str]]:
    """The commands of the page that draw into docs/figures."""
    lines = [
        shlex.split(line, comments=True)
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("whyloss plot ") and "-o docs/figures/" in line
    ]
    return [line[1:] for line in lines]


if __name__ == "__main__":
    for arguments in commands():
        subprocess.run([Path(sys.executable).parent / "whyloss", *arguments], cwd=ROOT, check=True)
