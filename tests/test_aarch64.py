"""What `make aarch64` needs, and what it says where that is missing. It says itself whether the digests differ."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "tools" / "aarch64"


def call(folder: Path, **tools: str) -> subprocess.CompletedProcess[str]:
    """Calls it with tools that print these lines."""
    named = {}
    for name, text in tools.items():
        path = folder / name.lower()
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        named[name] = str(path)
    return subprocess.run(
        [SCRIPT, "-p", "whyloss-lab"], env={**os.environ, **named}, capture_output=True, text=True, check=False
    )


def test_everything_that_is_missing_is_named_with_the_way_to_get_it(tmp_path: Path) -> None:
    done = call(tmp_path, CARGO="exit 9", RUSTC="exit 1", AARCH64_LINKER="echo libc.a")
    assert done.returncode == 1
    assert "nothing was tested" in done.stderr
    for words in ("rustup target add aarch64-unknown-linux-gnu", "libstd-rust-dev:arm64", "libc6-dev-arm64-cross"):
        assert words in done.stderr


def test_the_test_is_run_by_the_emulator_with_the_named_tools(tmp_path: Path) -> None:
    (tmp_path / "libstd-0.rlib").touch()
    show = 'echo "$@"; env | grep -E "AARCH64_UNKNOWN|^CC_"'
    done = call(
        tmp_path,
        CARGO=f"{show}; exit 7",
        RUSTC=f"echo {tmp_path}",
        AARCH64_LINKER="echo /usr/lib/libc.a",
        AARCH64_QEMU="exit 0",
    )
    # A digest that differs ends it as the test does.
    assert done.returncode == 7, done.stderr
    assert done.stdout.startswith("test --target aarch64-unknown-linux-gnu -p whyloss-lab\n")
    emulator = "" if platform.machine() == "aarch64" else str(tmp_path / "aarch64_qemu")
    assert f"RUNNER={emulator}\n" in done.stdout
    assert f"LINKER={tmp_path / 'aarch64_linker'}\n" in done.stdout
