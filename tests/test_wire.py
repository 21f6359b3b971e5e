"""``whyloss serve`` and ``whyloss fetch``: what the command line adds to the engine on the wire."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.realtime

WHYLOSS = [sys.executable, "-c", "from whyloss.cli import main; main()"]
PATIENCE_S = 30


@pytest.fixture
def namespace() -> Iterator[list[str]]:
    """A command that runs others in a network namespace of their own."""
    if os.geteuid() != 0 or shutil.which("ip") is None or not Path("/dev/net/tun").exists():
        pytest.skip("root, `ip` and /dev/net/tun are needed")
    name = f"whyloss-{uuid.uuid4().hex[:8]}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode != 0:
        pytest.skip("network namespaces cannot be made here")
    inside = ["ip", "netns", "exec", name]
    subprocess.run([*inside, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1"], check=True)
    yield inside
    subprocess.run(["ip", "netns", "delete", name], check=True)


def test_a_file_goes_from_engine_to_engine_and_both_tell_of_it(namespace: list[str], tmp_path: Path) -> None:
    file = tmp_path / "some file"
    file.write_bytes(os.urandom(3_000_000))
    there = tmp_path / "there"
    there.mkdir()
    server = subprocess.Popen(
        [*namespace, *WHYLOSS, "serve", str(file), "--scheme", "cubic", "--shadow", "veno", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    assert "http://198.18.1.2/some%20file" in server.stderr.readline()
    fetched = subprocess.run(
        [*namespace, *WHYLOSS, "fetch", "http://198.18.1.2/some%20file", "--json"],
        cwd=there,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert fetched.returncode == 0, fetched.stderr
    report = json.loads(fetched.stdout)
    assert (report["octets"], report["file"]) == (3_000_000, "some file")
    assert file.read_bytes() == (there / "some file").read_bytes()
    server.send_signal(signal.SIGTERM)
    out, err = server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 0, err
    report = json.loads(out)
    assert (report["clients"], report["requests"], report["scheme"], report["shadows"]) == (1, 1, "cubic", ["veno"])
    assert report["octets"] > 3_000_000


def test_an_interrupted_fetch_leaves_nothing_behind(namespace: list[str], tmp_path: Path) -> None:
    # Nobody answers behind a device that has no reader.
    command = [*namespace, *WHYLOSS, "fetch", "http://192.0.2.1/file", "-o", str(tmp_path / "file")]
    fetch = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.iterdir()):
        assert fetch.poll() is None, fetch.communicate()
    fetch.send_signal(signal.SIGINT)
    _, err = fetch.communicate(timeout=PATIENCE_S)
    assert (fetch.returncode, list(tmp_path.iterdir())) == (130, []), err
    assert "nothing is kept" in err


def test_without_root_one_sentence_and_status_2() -> None:
    command = [*WHYLOSS, "fetch", "http://192.0.2.1/", "-o", "/dev/null"]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("`setpriv` is not installed (Debian package util-linux)")
        command = ["setpriv", "--bounding-set=-net_admin", *command]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1
    assert "root (CAP_NET_ADMIN)" in lines[0] or "/dev/net/tun" in lines[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fetch", "http://192.0.2.1/", "--scheme", "cubicc"], "did you mean `cubic`"),
        (["fetch", "http://192.0.2.1/", "--profile", "old"], "there is no profile `old`; there are modern"),
        (["fetch", "https://192.0.2.1/"], "no TLS"),
        (["fetch", "http://192.0.2.1/", "--address", "198.18.1"], "no IPv4 or IPv6 address"),
        (["fetch", "http://192.0.2.1/", "-o", "-", "--json"], "standard output"),
        (["serve", "/no/such/file"], "does not exist"),
    ],
)
def test_wrong_input_is_told_with_status_2(arguments: list[str], said: str) -> None:
    result = subprocess.run([*WHYLOSS, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert result.returncode == 2, result.stderr
    assert said in result.stderr
