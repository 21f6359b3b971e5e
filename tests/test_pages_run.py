"""Pages that are executed as a reader would: files are written, commands run, and what they print stands on the page.

A block with ``title="NAME"`` is a file. Every line of a block of ``sh`` is run, every other block of ``python`` too. A
block of ``text`` right after it is what they print; ``UPDATE=1`` writes it again.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

PAGES = ["README.md", "docs/tutorial.md", "docs/how-to/my-link.md", "docs/how-to/my-cluster.md"]
BLOCK = re.compile(r'^```(sh|text|python|toml)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)


def printed(kind: str, text: str, folder: Path) -> str:
    """What a block prints, on standard output."""
    command = ["bash", "-ec", text] if kind == "sh" else [sys.executable, "-c", text]
    environment = {**os.environ, "COLUMNS": "120", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{text}\n{done.stderr}"
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


@pytest.mark.parametrize("page", PAGES)
def test_the_page_prints_what_it_shows(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    output, runs = "", 0

    def done(block: re.Match[str]) -> str:
        nonlocal output, runs
        kind, title, content = block.groups()
        if title:
            (tmp_path / title).write_text(content, encoding="utf-8")
        elif kind == "text":
            return f"```text\n{output}```"
        elif kind in ("sh", "python"):
            output = printed(kind, content, tmp_path)
            runs += 1
        return block[0]

    found = BLOCK.sub(done, text)
    assert runs >= 2
    if "UPDATE" in os.environ:
        (ROOT / page).write_text(found, encoding="utf-8")
    else:
        assert found == text
