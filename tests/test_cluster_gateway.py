"""Sweeps on a cluster behind a real Dask Gateway, which starts its workers on this machine."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import whyloss as wl
from conftest import free_port
from whyloss._native import InputError, UnavailableError
from whyloss.cluster import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Ended

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
    # A gateway's client that is closed complains when it goes (dask-gateway 2026.3.0).
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.skipif(find_spec("dask_gateway_server") is None, reason="needs dask-gateway-server"),
]

SETTINGS = """
c.DaskGateway.backend_class = "dask_gateway_server.backends.local.UnsafeLocalBackend"
c.DaskGateway.authenticator_class = "dask_gateway_server.auth.SimpleAuthenticator"
c.DaskGateway.address = "127.0.0.1:{private}"
c.Backend.api_url = "http://127.0.0.1:{private}/api"
c.Proxy.address = "127.0.0.1:{public}"
c.ClusterConfig.scheduler_cmd = ["{dask}", "scheduler"]
c.ClusterConfig.worker_cmd = ["{dask}", "worker"]
"""


def started(address: str, proxy: str, server: subprocess.Popen[str]) -> str:
    """The name of a cluster of two workers behind the gateway at ``address``."""
    from dask_gateway import Gateway

    gateway = Gateway(address, proxy_address=proxy)
    for attempt in range(300):
        try:
            name = str(gateway.submit())
            break
        except Exception:
            if attempt == 299 or server.poll() is not None:
                raise
            time.sleep(0.1)
    cluster = gateway.connect(name)
    cluster.scale(2)
    with cluster.get_client(set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
    return name


@contextmanager
def running(place: Path, more: str = "") -> Iterator[tuple[int, str]]:
    """A gateway's port, and the name of a cluster of two workers. It ends with its gateway."""
    dask = Path(sys.executable).with_name("dask")
    public, private = free_port(), free_port()
    settings = place / "settings.py"
    settings.write_text(SETTINGS.format(private=private, public=public, dask=dask) + more)
    command = [sys.executable, "-m", "dask_gateway_server", "--config", str(settings)]
    with (place / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, text=True, cwd=place, start_new_session=True)
    try:
        yield public, started(f"http://127.0.0.1:{private}", f"gateway://127.0.0.1:{public}", server)
    finally:
        server.terminate()
        server.wait(30)
        gc.collect()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of two workers."""
    with running(tmp_path_factory.mktemp("gateway")) as (port, name):
        yield f"gateway+http://127.0.0.1:{port}/{name}"


def sweep(small: Path, runs: int = 20) -> wl.Sweep:
    return wl.Sweep(wl.Scenario.load(small).replace({"flow[0].size": "4 MB"}), runs=runs).vary(
        "path.rate", ["5 Mbps", "10 Mbps"]
    )


def test_the_command_computes_behind_a_gateway_what_one_core_does(
    small: Path, tmp_path: Path, gateway: str, whyloss: Callable[..., Ended]
) -> None:
    (tmp_path / "sweep.toml").write_text(f'[sweep]\nbase = "{small.name}"\nruns = 3\n')
    here = whyloss("sweep", "sweep.toml", "--store", "here", "--out", "out/here")
    # The second finds the cluster still at work.
    for name in ("first", "second"):
        there = whyloss("sweep", "sweep.toml", "--on", gateway, "--store", name, "--out", f"out/{name}")
        assert (here.status, there.status, "Exception ignored" in there.err) == (0, 0, False), there.err
        for path in (tmp_path / "out/here").iterdir():
            assert (tmp_path / "out" / name / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_killed_worker_changes_nothing(small: Path, gateway: str) -> None:
    with connect(gateway) as client:
        alive = list(client.run(os.getpid).values())
        seen: list[wl.Progress] = []

        def kill(now: wl.Progress) -> None:
            seen.append(now)
            if now.done >= 3 and alive:
                os.kill(alive.pop(), signal.SIGKILL)
                alive.clear()

        results = sweep(small).run(client, progress=kill)
    assert not alive
    assert (seen[-1].done, seen[-1].total) == (40, 40)
    assert results.digests() == sweep(small).run().digests()


def test_what_is_no_cluster_is_named(gateway: str) -> None:
    host, _, name = gateway.rpartition("/")
    reasons = {
        f"{host}/x": (UnavailableError, f"there is no such cluster; at work for you: {name}"),
        host: (InputError, "allowed: gateway+http://HOST:PORT/CLUSTER"),
        "gateway+http://127.0.0.1:1/x": (UnavailableError, "127.0.0.1:1/x: no Dask Gateway grants it"),
    }
    for where, (kind, reason) in reasons.items():
        with pytest.raises(kind, match=re.escape(reason)), connect(where):
            pass


def test_a_certificate_that_nobody_knows_is_named_and_can_be_trusted(
    small: Path, tmp_path: Path, whyloss: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    new_keypair = import_module("dask_gateway_server.tls").new_keypair
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    for path, octets in zip((certificate, key), new_keypair("localhost"), strict=True):
        path.write_bytes(octets)
    (tmp_path / "sweep.toml").write_text(f'[sweep]\nbase = "{small.name}"\nruns = 3\n')
    place = tmp_path / "gateway"
    place.mkdir()
    with running(place, f"c.Proxy.tls_cert = {str(certificate)!r}\nc.Proxy.tls_key = {str(key)!r}\n") as (port, name):
        words = ("sweep", "sweep.toml", "--on", f"gateway+https://localhost:{port}/{name}", "--out", "out/there")
        refused = whyloss(*words, "--store", "there")
        said = " ".join(refused.err.split())
        assert (refused.status, "Unclosed" in said) == (2, False), said
        assert "its certificate is not trusted: self-signed certificate; allowed: the environment variable" in said
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        there = whyloss(*words, "--store", "there")
    here = whyloss("sweep", "sweep.toml", "--store", "here", "--out", "out/here")
    assert (here.status, there.status) == (0, 0), there.err
    for path in (tmp_path / "out/here").iterdir():
        assert (tmp_path / "out/there" / path.name).read_bytes() == path.read_bytes(), path.name
