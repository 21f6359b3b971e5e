"""What tshark says of the segments of a capture, beside what ``whyloss explain`` says of them."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from conftest import ROOT, WHYLOSS

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "captures-tshark.md").read_text(encoding="utf-8")
#: Loss, reordering and copies at once, seen at the receiver, where tshark errs most.
SCENARIO = """
    [scenario]
    seed = 7
    [path]
    rate = "10 Mbps"
    delay = "15 ms"
    queue = "60 pkt"
    forward.channel.loss = "1 %"
    forward.duplicate = "1 %"
    [[flow]]
    size = "3 MB"
    scheme = "cubic"
    profile = "linux"
    [output]
    capture = [{ at = "client", snaplen = 96 }]
"""


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("tshark_flags_tool", ROOT / "tools" / "tshark_flags.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    folder: Path = tmp_path_factory.mktemp("beside")
    (folder / "copies.toml").write_text(SCENARIO)
    command: list[str | Path] = [WHYLOSS, "run", folder / "copies.toml", "--out", folder / "copies"]
    subprocess.run(command, check=True, capture_output=True)
    congested = (ROOT / "examples" / "captures" / "congested.toml").read_text(encoding="utf-8")
    (folder / "congested.toml").write_text(f'{congested}count = 2\n[output]\ncapture = ["server"]\n')
    command = [WHYLOSS, "run", folder / "congested.toml", "--out", folder / "congested"]
    subprocess.run(command, check=True, capture_output=True)
    return tool().compare(sorted(folder.glob("*/*.pcapng")))
    return tool().compare(sorted(folder.glob("*.pcapng")))


def test_the_same_segments_are_compared(compared: Any) -> None:
    segments = compared.segments
    assert len(segments) > 4000
    assert segments["theirs"].null_count() == segments["ours"].null_count() == segments["truth"].null_count() == 0
    counts = dict(segments["truth"].value_counts().iter_rows())
    assert min(counts[kind] for kind in ("retransmission", "duplicate")) >= 10


def test_where_tshark_says_something_else_the_truth_is_with_us(compared: Any) -> None:
    differences = compared.differences
    assert differences["packets"].sum() > 50
    assert differences["ours_right"].sum() >= 0.95 * differences["packets"].sum()


def test_each_kind_of_difference_is_explained(compared: Any) -> None:
    for theirs, ours in compared.differences.select("theirs", "ours").iter_rows():
        assert re.search(rf"^\| {theirs} \| {ours} \| \w+ .+\. \|$", PAGE, re.MULTILINE), (theirs, ours)


def test_claims_are_counted_against_the_truth(compared: Any) -> None:
    segments = compared.segments
    again = compared.claims.filter(pl.col("claim") == "sent again").to_dicts()[0]
    assert again["there"] == len(segments.filter(pl.col("truth") == "retransmission"))
    assert again["theirs"] == len(segments.filter(pl.col("theirs") == "retransmission"))
    assert again["theirs_right"] <= min(again["there"], again["theirs"])
    assert again["ours_right"] >= 0.99 * again["there"]


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(SystemExit, match="no marks"):
        tool().rewritten("nothing", "tour", "")
    assert "new" in tool().rewritten("<!-- measured: tour -->\nold\n<!-- measured: end -->", "tour", "new")
