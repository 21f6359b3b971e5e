"""Sweeps on a Dask cluster of this machine: the same bytes, whatever the cluster does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from distributed import Client, LocalCluster

import whyloss as wl
from whyloss._native import UnavailableError
from whyloss.cluster import RunsFailed, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Ended

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as started:
        yield started


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster, set_as_default=False) as connected:
        yield connected


def sweep(small: Path, runs: int = 6) -> wl.Sweep:
    return wl.Sweep(wl.Scenario.load(small), runs=runs).vary("path.rate", ["500 kbps", "1 Mbps"])


def test_a_cluster_gives_the_same_tables_in_a_shared_folder_and_sent_back(
    small: Path, tmp_path: Path, client: Client
) -> None:
    wanted = sweep(small).run()
    seen: list[wl.Progress] = []
    for store in (tmp_path / "store", None):
        results = sweep(small).run(client, store=store, progress=seen.append)
        assert all(results[name].to_polars().equals(wanted[name].to_polars()) for name in wanted.names)
    again = sweep(small).run(client, store=tmp_path / "store", progress=seen.append)
    assert (seen[-1].found, seen[-1].done, seen[-1].total) == (12, 12, 12)
    assert again.losses.to_polars().equals(wanted.losses.to_polars())


FAILS = """
from whyloss.parts import CongestionControl

class Brittle(CongestionControl):
    name = "brittle"
    summary = "Fails in some runs."
    reference = "none"

    def on_ack(self, window, ack):
        window.grow(ack.acked)
        if ack.path.now_ns % 199 == 0:
            raise ArithmeticError("brittle")

    def threshold(self, window, path):
        return window.used(path) / 2
"""


def test_a_run_that_fails_is_named_with_its_seed_and_the_others_go_on(
    small: Path, tmp_path: Path, client: Client
) -> None:
    path = tmp_path / "brittle.py"
    path.write_text(FAILS)
    wl.parts.add_file(path)
    scenario = wl.Scenario.load(small).replace({"flow[0].congestion": "brittle", "flow[0].scheme": None})
    alone = []
    for run in range(8):
        try:
            scenario.run(run)
        except wl.WhylossError:
            alone.append(run)
    assert 0 < len(alone) < 8
    notes: list[str] = []
    with pytest.raises(RunsFailed, match=r"seed 3") as failed:
        wl.Sweep(scenario, runs=8).run(client, store=tmp_path / "store", note=notes.append)
    assert sorted(failure.run for failure in failed.value.failures) == alone
    assert len(notes) == len(alone)


#: What a worker of another version has that is of this version otherwise.
OTHER = "import whyloss._native as native; native.ENGINE = 'f' * 64; native.VERSION = '0.0.9'"


def test_a_worker_of_another_version_is_refused_with_both_versions(small: Path, tmp_path: Path) -> None:
    preload = tmp_path / "other.py"
    preload.write_text(OTHER)
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", preload=[str(preload)]
        ) as other,
        Client(other, set_as_default=False) as client,
        pytest.raises(UnavailableError, match=rf"0\.0\.9 \(engine ffffffffffff\).*{wl.__version__}"),
    ):
        sweep(small).run(client)


def test_the_command_sweeps_on_a_cluster_and_goes_on_where_it_was(
    small: Path, tmp_path: Path, cluster: LocalCluster, whyloss: Callable[..., Ended]
) -> None:
    (tmp_path / "sweep.toml").write_text(
        f"""
        [sweep]
        base = "{small.name}"
        runs = 3
        [[axis]]
        field = "path.rate"
        values = ["500 kbps", "1 Mbps"]
        """
    )
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    here = whyloss("sweep", "sweep.toml", "--store", "here", "--out", "out/here", "--json")
    there = whyloss("sweep", "sweep.toml", "--on", address, "--store", "there", "--out", "out/there", "--json")
    assert there.status == 0, there.err
    assert there.json["points"] == here.json["points"]
    names = sorted(path.name for path in (tmp_path / "out/here").iterdir())
    assert "runs.parquet" in names
    for name in names:
        assert (tmp_path / "out/there" / name).read_bytes() == (tmp_path / "out/here" / name).read_bytes(), name
    wrong = whyloss("sweep", "sweep.toml", "--on", "moon", "--store", "other")
    assert (wrong.status, "dask://HOST:PORT" in wrong.err) == (2, True), wrong.err


def test_an_address_where_nobody_answers_is_named() -> None:
    with (
        pytest.raises(UnavailableError, match=r"dask://127.0.0.1:1: no Dask scheduler answers"),
        connect("dask://127.0.0.1:1", timeout_s=0.2),
    ):
        pass
