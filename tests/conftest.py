"""What several test files need."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
WHYLOSS = Path(sys.executable).parent / "whyloss"

# A shell starts what it runs in the background with Ctrl-C ignored, and what the tests start would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Ended:
    """A finished command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which has to be JSON and nothing else."""
        return json.loads(self.out)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def whyloss(tmp_path: Path) -> Callable[..., Ended]:
    """Calls the installed command in an empty folder."""

    def call(*arguments: str | Path, cwd: Path = tmp_path) -> Ended:
        done = subprocess.run(
            [WHYLOSS, *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, "COLUMNS": "160"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A scenario that takes milliseconds."""
    path = tmp_path / "small.toml"
    path.write_text(
        """
        [scenario]
        seed = 3
        [path]
        rate = "1 Mbps"
        delay = "10 ms"
        queue = "20 pkt"
        forward.channel.loss = "2 %"
        [[flow]]
        size = "200 kB"
        scheme = "newreno"
        shadows = ["reported"]
        """
    )
    return path
