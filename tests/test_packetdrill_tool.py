"""The tool that runs packetdrill scripts, without packetdrill."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "packetdrill.py"
SPEC = importlib.util.spec_from_file_location("packetdrill_tool", TOOL)
assert SPEC is not None
assert SPEC.loader is not None
tool = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)


def test_a_program_is_found_from_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts run in folders of their own: a relative path has to be made absolute before."""
    here = tmp_path / "built" / "packetdrill"
    here.parent.mkdir()
    here.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    here.chmod(0o755)
    script = tmp_path / "scripts" / "one.pkt"
    script.parent.mkdir()
    script.write_text("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    program = tool.program("built/packetdrill")
    assert program == here
    assert tool.run(script, program, here, [], 10.0) == ("passed", "")
    with pytest.raises(argparse.ArgumentTypeError, match="no program 'built/nothing'"):
        tool.program("built/nothing")


def test_commands_in_the_middle_reach_the_shared_object(tmp_path: Path) -> None:
    """What only clears up is dropped, everything else goes to the file that the shared object reads."""
    later = tmp_path / "commands"
    text = "+0 `sysctl -q \\\n  net.ipv4.tcp_sack=0`\n+0 `/tmp/sysctl_restore_${PPID}.sh`\n"
    followed = tool.follow(text, later)
    assert f"net.ipv4.tcp_sack=0' >> {later}" in followed
    assert followed.count("printf") == 1
    assert "restore" not in followed
