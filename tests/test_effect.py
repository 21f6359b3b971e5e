"""What it is worth to know why: the page, its picture and its numbers belong together."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("effect_tool", ROOT / "tools" / "effect.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_page_and_picture_show_the_numbers(tool: Any, tmp_path: Path) -> None:
    """`python tools/effect.py` writes them again."""
    rows = tool.read()
    assert tool.NUMBERS.read_text(encoding="utf-8") == tool.text(rows)
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(rows)
    tool.draw(rows, tmp_path / "goodput.svg")
    assert (tmp_path / "goodput.svg").read_bytes() == (tool.FOLDER / "goodput.svg").read_bytes()
    assert {row.runs for row in rows} == {30}


def test_at_one_percent_a_verdict_is_worth_twice_the_goodput(tool: Any) -> None:
    kept = {row.sender: row.mbps for row in tool.read() if row.loss_percent == 1}
    found = {row.sender: row.mbps for row in tool.measure(runs=2, shares=["1 %"])}
    assert found["lda-eq"] > 2 * found["cubic"]
    assert found == pytest.approx(kept, rel=0.1)
