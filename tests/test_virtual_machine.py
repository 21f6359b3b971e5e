"""``tools/virtual_machine.py``: which kernels it finds, what it prints of a run, and what it says where that fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parent.parent / "tools" / "virtual_machine.py"
#: Stands for virtme-ng: does what the machine does with the command of the script, without the machine.
VNG = """#!/bin/sh
for argument; do last=$argument; done
echo "a console of $2" >&2
[ -z "$WHYLOSS_TEST_PANIC" ] || exit 1
sed -n '/^(/,$p' "${last#sh }" | grep -v '^sync$' | sh
"""


def _kernels(folder: Path, *versions: str) -> Path:
    for version in versions:
        (folder / "boot").mkdir(exist_ok=True)
        (folder / "boot" / f"vmlinuz-{version}").touch()
        (folder / "usr" / "lib" / "modules" / version).mkdir(parents=True)
    return folder


def _run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("vng", "qemu-system-x86_64", "busybox", "depmod"):
        (programs / name).write_text(VNG if name == "vng" else "#!/bin/sh\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, TOOL, folder, *arguments],
        env={**os.environ, "PATH": path, "WHYLOSS_VNG": str(programs / "vng"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_kernel_runs_the_command_the_oldest_first(tmp_path: Path) -> None:
    _kernels(tmp_path, "6.18.15+deb13-amd64", "6.9.1-amd64", "6.12.117+deb13-amd64")
    done = _run(tmp_path, "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, "out\nerr\n" * 3)
    listed = _run(tmp_path, "--kernel", "7", "--", "true").stderr
    assert "there are 6.9.1-amd64, 6.12.117+deb13-amd64, 6.18.15+deb13-amd64" in listed


def test_only_kernels_that_begin_so(tmp_path: Path) -> None:
    _kernels(tmp_path, "6.18.15+deb13-amd64", "6.12.117+deb13-amd64")
    done = _run(tmp_path, "--kernel", "6.12", "--", "echo", "a b")
    assert (done.returncode, done.stdout) == (0, "a b\n")


def test_a_folder_without_kernels_says_how_to_get_one(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / "vmlinuz-6.12.0").touch()
    done = _run(tmp_path, "--", "true")
    assert done.returncode == 1
    assert "no boot/vmlinuz-VERSION beside usr/lib/modules/VERSION" in done.stderr


def test_a_machine_that_ends_before_its_command_shows_its_console(tmp_path: Path) -> None:
    _kernels(tmp_path, "6.12.0")
    done = _run(tmp_path, "--", "true", WHYLOSS_TEST_PANIC="1")
    assert done.returncode == 1
    assert "6.12.0: the machine ended before the command did" in done.stderr
    assert "a console of" in done.stderr


def test_a_command_or_tests_but_not_both(tmp_path: Path) -> None:
    _kernels(tmp_path, "6.12.0")
    for arguments in ([], ["--tests", "--", "true"]):
        done = _run(tmp_path, *arguments)
        assert done.returncode == 2
        assert "name a command behind --, or --tests" in done.stderr
