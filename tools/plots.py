"""Draws the pictures of docs/plots.md and docs/compare.md again, by the commands that stand on the pages."""

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "docs" / name for name in ("plots.md", "compare.md")]


def commands() -> list[list[str]]:
    """The commands of the pages that draw into docs/figures."""
    lines = [
        shlex.split(line, comments=True)
        for page in PAGES
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("whyloss ") and " docs/figures/" in line
    ]
    return [line[1:] for line in lines]


if __name__ == "__main__":
    for arguments in commands():
        subprocess.run([Path(sys.executable).parent / "whyloss", *arguments], cwd=ROOT, check=True)
