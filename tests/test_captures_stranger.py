"""A stranger's first capture: ``tcpdump -i any -s 96``, and the sentence in a terminal of 80 columns.

Linux' TCP over links of a test bed; skipped where this machine can have neither that nor tcpdump.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import whyloss as wl
from conftest import ROOT, WHYLOSS
from whyloss import _native

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.realtime


def _linux() -> Any:
    spec = importlib.util.spec_from_file_location("linux_transfers", ROOT / "examples" / "captures" / "linux.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


LINUX = _linux()
#: Path, transfer, and what the first sentence has to say.
ILLNESSES: dict[str, tuple[str, Any, str]] = {
    "loss": (
        'rate = "20 Mbps"\ndelay = "20 ms"\nqueue = "200 pkt"\nforward.channel = { loss = 0.02, effect = "erase" }',
        LINUX.Transfer(1.5e6),
        r"\d+ (of \d+ )?lost packets were damaged, not dropped",
    ),
    "short queue": (
        'rate = "5 Mbps"\ndelay = "15 ms"\nqueue = "20 pkt"',
        LINUX.Transfer(1.5e6),
        r"lost packets? w(as|ere) dropped by a full queue",
    ),
    "small receive window on a long path": (
        'rate = "100 Mbps"\ndelay = "150 ms"\nqueue = "500 pkt"',
        LINUX.Transfer(1e6, receive_buffer=65536),
        r"nothing was lost; the receiver's window limits it to [\d.]+ kB a round trip of 30\d ms",
    ),
    "small send buffer": (
        'rate = "50 Mbps"\ndelay = "20 ms"\nqueue = "200 pkt"',
        LINUX.Transfer(1.5e6, send_buffer=16384),
        r"nothing was lost; the sender.* limits it.* to [\d.]+ kB a round trip of 4\d(\.\d)? ms",
    ),
    "slow application": (
        'rate = "50 Mbps"\ndelay = "20 ms"\nqueue = "200 pkt"',
        LINUX.Transfer(6e5, write=40_000, write_pause=0.15),
        r"nothing was lost; the sender's application had nothing to send",
    ),
    "slow reader": (
        'rate = "50 Mbps"\ndelay = "10 ms"\nqueue = "200 pkt"',
        LINUX.Transfer(1.5e6, read=100_000, read_pause=0.2, receive_buffer=65536),
        r"the receiver's window (limits it|was closed)",
    ),
    "bufferbloat": (
        'rate = "4 Mbps"\ndelay = "10 ms"\nqueue = "2000 pkt"',
        LINUX.Transfer(1.5e6, control="reno"),
        r"the path was full .*round trips grew from 2\d(\.\d)? ms to [\d.]+ (ms|s)",
    ),
    "outage": (
        'rate = "5 Mbps"\ndelay = "20 ms"\nqueue = "100 pkt"\noutage = [{ at = "1500 ms", lasts = "2 s" }]',
        LINUX.Transfer(1.5e6),
        r"s went to \d+ timeouts?; .*(while the path was down|lost packets)",
    ),
}


@pytest.mark.parametrize("illness", ILLNESSES)
def test_the_first_sentence_tells_a_stranger_why(illness: str, tmp_path: Path) -> None:
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    path, transfer, said = ILLNESSES[illness]
    scenario = wl.Scenario.parse(f"[scenario]\nseed = 5\n[path]\n{path}\n")
    capture = tmp_path / "any.pcap"
    try:
        LINUX.captured(scenario, transfer, tcpdump=capture)
    except _native.UnavailableError as reason:
        pytest.skip(str(reason))
    done = subprocess.run(
        [WHYLOSS, "explain", capture],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "80"},
    )
    sentence = " ".join(done.stdout.split("\n\n")[0].split())
    assert re.search(said, sentence), done.stdout
