"""Sweeps on a Dask cluster whose workers write to a bucket: a real S3 API on this machine."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from email.utils import formatdate
from typing import TYPE_CHECKING

import obstore
import pytest
from distributed import Client, LocalCluster
from obstore.store import from_url

import whyloss as wl
from conftest import free_port
from whyloss._native import InputError, UnavailableError
from whyloss.cluster.buckets import Bucket, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Ended

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


#: The account of Azure's emulator, which is the same everywhere.
AZURE = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def serve(**environment: str) -> tuple[subprocess.Popen[bytes], str]:
    """A server of the S3 API, and its address."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment}
    )
    address = f"http://127.0.0.1:{port}"
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{address}/moto-api/data.json", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
        else:
            return server, address
    server.kill()
    raise RuntimeError("the server of the S3 API does not answer")


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """A server with the bucket ``kept``; this process and its children know it."""
    server, address = serve()
    urllib.request.urlopen(urllib.request.Request(f"{address}/kept", method="PUT"), timeout=10).close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", address)
        patch.setenv("AWS_ALLOW_HTTP", "true")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_REGION", "us-east-1")
        yield address
    server.kill()
    server.wait()


@pytest.fixture(scope="module")
def cluster(s3: str) -> Iterator[LocalCluster]:  # noqa: ARG001
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as started:
        yield started


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster, set_as_default=False) as connected:
        yield connected


def sweep(small: Path, runs: int = 20) -> wl.Sweep:
    return wl.Sweep(wl.Scenario.load(small).replace({"flow[0].size": "4 MB"}), runs=runs).vary(
        "path.rate", ["5 Mbps", "10 Mbps"]
    )


def names(url: str) -> list[str]:
    return sorted(object_["path"] for page in obstore.list(from_url(url)) for object_ in page)


def test_workers_write_to_the_bucket_and_the_tables_are_those_of_one_core(small: Path, client: Client) -> None:
    store = "s3://kept/same"
    seen: list[wl.Progress] = []
    results = sweep(small).run(client, store=store, progress=seen.append)
    assert results.digests() == sweep(small).run(threads=1).digests()
    written = names(store)
    assert written
    assert all(name.endswith(".part") for name in written)
    again = sweep(small).run(client, store=store, progress=seen.append)
    assert (seen[-1].found, seen[-1].total) == (40, 40)
    assert again.digests() == results.digests()
    assert names(store) == written


def test_what_other_sweeps_left_there_is_not_fetched(
    small: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = "s3://kept/shared"
    sweep(small).run(client, store=store)
    other = wl.Sweep(wl.Scenario.load(small), runs=2)
    fetched: list[str] = []
    taken = Bucket._range

    def count(bucket: Bucket, part: Part, octets: int) -> bytes:
        fetched.append(part.name)
        return taken(bucket, part, octets)

    monkeypatch.setattr(Bucket, "_range", count)
    assert other.run(client, store=store).digests() == other.run().digests()
    assert 0 < len(set(fetched)) <= 2 < len(names(store))


def test_after_a_killed_worker_and_a_stop_it_goes_on_from_the_bucket(small: Path, client: Client) -> None:
    store = "s3://kept/killed"
    alive = list(client.run(os.getpid).values())

    def kill(now: wl.Progress) -> None:
        if now.done >= 3 and alive:
            os.kill(alive.pop(), signal.SIGKILL)
            alive.clear()
        if now.done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(small).run(client, store=store, progress=kill)
    assert not alive
    seen: list[wl.Progress] = []
    results = sweep(small).run(client, store=store, progress=seen.append)
    assert 8 <= seen[-1].found < 40
    assert results.digests() == sweep(small).run().digests()


def test_a_bucket_that_is_not_there_is_named(small: Path, client: Client) -> None:
    with pytest.raises(UnavailableError, match=r"s3://nowhere/x: there is no such bucket"):
        sweep(small).run(client, store="s3://nowhere/x")


def test_a_bucket_that_refuses_is_named(small: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    server, address = serve(INITIAL_NO_AUTH_ACTION_COUNT="0")
    try:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        with pytest.raises(UnavailableError, match=r"s3://kept/refused: access is refused"):
            sweep(small).run(client, store="s3://kept/refused")
    finally:
        server.kill()
        server.wait()


def test_a_bucket_wants_a_cluster(small: Path) -> None:
    with pytest.raises(InputError, match="allowed without a cluster: a folder"):
        sweep(small).run(store="s3://kept/x")


def test_the_command_keeps_runs_in_a_bucket(
    small: Path, tmp_path: Path, cluster: LocalCluster, whyloss: Callable[..., Ended]
) -> None:
    (tmp_path / "sweep.toml").write_text(f'[sweep]\nbase = "{small.name}"\nruns = 3\n')
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    here = whyloss("sweep", "sweep.toml", "--store", "here", "--out", "out/here")
    words = ("sweep", "sweep.toml", "--store", "s3://kept/command")
    there = whyloss(*words, "--on", address, "--out", "out/there")
    assert (here.status, there.status) == (0, 0), there.err
    for path in (tmp_path / "out/here").iterdir():
        assert (tmp_path / "out/there" / path.name).read_bytes() == path.read_bytes(), path.name
    assert names("s3://kept/command")
    assert not (tmp_path / "s3:").exists()
    for more in ((), ("--on", address, "--plan")):
        refused = whyloss(*words, *more)
        assert (refused.status, "goes with --on" in refused.err) == (2, True), refused.err


@pytest.fixture
def azure() -> Iterator[None]:
    """Azure's own emulator with the container ``kept``."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("azurite-blob is not installed: npm has it as azurite")
    port = free_port()
    words = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry", f"--blobPort={port}"]
    server = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    date, path = formatdate(usegmt=True), f"/{AZURE}/kept"
    signed = f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:2021-08-06\n/{AZURE}{path}\nrestype:container"
    mac = hmac.new(base64.b64decode(AZURE_KEY), signed.encode(), hashlib.sha256).digest()
    headers = {"Authorization": f"SharedKey {AZURE}:{base64.b64encode(mac).decode()}"}
    headers |= {"x-ms-date": date, "x-ms-version": "2021-08-06"}
    address = f"http://127.0.0.1:{port}"
    request = urllib.request.Request(f"{address}{path}?restype=container", method="PUT", headers=headers)
    try:
        for attempt in range(100):
            try:
                urllib.request.urlopen(request, timeout=10).close()
                break
            except OSError:
                if attempt == 99:
                    raise
                time.sleep(0.1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
            patch.setenv("AZURITE_BLOB_STORAGE_URL", address)
            yield
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def google() -> Iterator[None]:
    """A server of Google's XML API with the bucket ``kept``."""
    program = os.environ.get("WHYLOSS_FAKE_GCS") or shutil.which("fake-gcs-server")
    if program is None:
        pytest.skip("fake-gcs-server is not installed; WHYLOSS_FAKE_GCS names one that has the XML API")
    port = free_port()
    words = ["-scheme=http", "-host=127.0.0.1", f"-port={port}", f"-public-host=127.0.0.1:{port}", "-backend=memory"]
    server = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    headers = {"Content-Type": "application/json"}
    bucket = urllib.request.Request(f"{address}/storage/v1/b", b'{"name": "kept"}', headers, method="POST")
    account = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    try:
        for attempt in range(100):
            try:
                urllib.request.urlopen(bucket, timeout=10).close()
                break
            except OSError:
                if attempt == 99:
                    raise
                time.sleep(0.1)
        try:
            urllib.request.urlopen(urllib.request.Request(f"{address}/kept/a", b"a", method="PUT"), timeout=10).close()
        except urllib.error.HTTPError as refused:
            refused.close()
            pytest.skip("this fake-gcs-server has no XML API, which obstore speaks (its branch support-xml-api has)")
        with pytest.MonkeyPatch.context() as patch:
            told = {**account, "gcs_base_url": address, "disable_oauth": True}
            patch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", json.dumps(told))
            yield
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize(("scheme", "server"), [("az", "azure"), ("gs", "google")])
def test_other_clouds_have_stores(small: Path, scheme: str, server: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(server)
    store = f"{scheme}://kept/same"
    seen: list[wl.Progress] = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as started,
        Client(started, set_as_default=False) as client,
    ):
        results = sweep(small, 4).run(client, store=store)
        assert results.digests() == sweep(small, 4).run(threads=1).digests()
        assert names(store)
        again = sweep(small, 4).run(client, store=store, progress=seen.append)
        assert (seen[-1].found, seen[-1].total) == (8, 8)
        assert again.digests() == results.digests()
        with pytest.raises(UnavailableError, match=f"{scheme}://nowhere/x: there is no such bucket"):
            sweep(small).run(client, store=f"{scheme}://nowhere/x")
