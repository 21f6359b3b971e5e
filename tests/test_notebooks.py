"""Notebooks run from top to bottom, and show what their words say."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.py"))
RUN = """
import importlib, json, sys
import polars as pl
sys.path.insert(0, sys.argv[1])
_, names = importlib.import_module(sys.argv[2]).app.run()
tables = {name: value for name, value in names.items() if isinstance(value, pl.DataFrame) and len(value) < 10}
print(json.dumps({name: value.to_dicts() for name, value in tables.items()}))
"""


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(notebook: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, notebook.parent, notebook.stem],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tables = json.loads(done.stdout.splitlines()[-1])
    if notebook.stem == "misjudged":
        goodput = {row["sender"]: row["Mbit/s"] for row in tables["goodput"]}
        wrong = {row["sender"]: row["misjudged (%)"] for row in tables["misjudged"]}
        assert goodput["lda-eq"] > 2 * goodput["cubic"]
        assert wrong["lda-eq"] < 20 < 50 < min(wrong["cubic"], wrong["bbr"])

    if notebook.stem == "capture":
        found = {(row["said"], row["truth"]): row["count"] for row in tables["truth"]}
        for cause in ("congestion", "corruption"):
            of = sum(count for (_, truth), count in found.items() if truth == cause)
            assert of > 50
            assert found[cause, cause] > 0.7 * of


def test_there_is_one() -> None:
    assert NOTEBOOKS
