"""Sweeps on a Dask cluster of this machine: the same bytes, whatever the cluster does."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from dask import config as dask_config
from distributed import Client, LocalCluster
from distributed.security import Security

import whyloss as wl
from whyloss._native import UnavailableError
from whyloss.cluster import Detached, RunsFailed, connect
from whyloss.cluster.batches import Batches, Piece
from whyloss.cluster.clients import client_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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


def test_tables_that_cannot_be_held_are_refused_before_the_cluster_computes(
    small: Path, tmp_path: Path, client: Client
) -> None:
    large = wl.Sweep(wl.Scenario.load(small).replace({"flow[0].count": 5000}), runs=1_000_000)
    with pytest.raises(wl.WhylossError, match=r"no room: the tables of 5000000000 transfers take .* GB of memory"):
        large.run(client, store=tmp_path / "store")
    assert not list((tmp_path / "store").rglob("*.part"))


def test_tables_of_a_cluster_are_written_without_being_held(small: Path, tmp_path: Path, client: Client) -> None:
    sweep(small).run().save(tmp_path / "held")
    for number, store in enumerate((tmp_path / "store", None)):
        saved = sweep(small).save(tmp_path / f"{number}", client, store=store)
        assert len(saved.runs) == 12
        sums = [(tmp_path / folder / "SHA256SUMS").read_text() for folder in ("held", f"{number}")]
        assert sums[0] == sums[1]


def test_batches_get_longer_where_one_scheduler_would_get_too_many() -> None:
    batches = Batches([(0, 0, 10_000_000)])
    batches.learn(Piece(0, 0, 1000), 100.0)
    for threads, seconds in ((2, 10), (1000, 10), (2000, 20)):
        assert sum(piece.runs for piece in batches.take(threads)) == 10 * seconds


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


@pytest.mark.parametrize(
    ("preload", "reason"),
    [
        (OTHER, rf"0\.0\.9 \(engine ffffffffffff\).*{wl.__version__}"),
        (
            "import sys; sys.modules['whyloss'] = None",
            rf"no worker can compute .*: it has no whyloss; .*{wl.__version__}",
        ),
    ],
    ids=["another version", "no whyloss"],
)
def test_a_worker_that_cannot_compute_is_refused(preload: str, reason: str, small: Path, tmp_path: Path) -> None:
    (tmp_path / "preload.py").write_text(preload)
    begins: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 1, "preload": [str(tmp_path / "preload.py")]}
    with (
        LocalCluster(processes=True, dashboard_address="127.0.0.1:0", **begins) as other,
        Client(other, set_as_default=False) as client,
        pytest.raises(UnavailableError, match=reason),
    ):
        sweep(small).run(client)


def other_python(packages: str) -> str | None:
    """Another Python that Dask begins with."""
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for name in ("3.12", "3.13", "3.14", "3.11"):
        found = shutil.which(f"python{name}")
        tried = [found or "", "-c", "import distributed, sys; print('{0}.{1}'.format(*sys.version_info))"]
        if found and name != own:
            ended = subprocess.run(tried, env={**os.environ, "PYTHONPATH": packages}, capture_output=True, text=True)
            if ended.stdout.strip() == name:
                return found
    return None


@pytest.mark.filterwarnings("ignore:Mismatched versions")
def test_a_worker_of_another_python_is_named_and_lives(small: Path, tmp_path: Path) -> None:
    packages = sysconfig.get_path("purelib")
    if (python := other_python(packages)) is None:
        pytest.skip("needs another version of Python, which Dask's packages begin with")
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as own, Client(own, set_as_default=False) as client:
        command = [python, "-m", "distributed.cli.dask_worker", own.scheduler_address, "--no-nanny", "--no-dashboard"]
        worker = subprocess.Popen(
            command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": packages}, stderr=subprocess.DEVNULL
        )
        try:
            client.wait_for_workers(1, timeout=30)
            with pytest.raises(
                UnavailableError, match=r"no worker can compute .*: (it has no whyloss|whyloss does not)"
            ):
                sweep(small).run(client)
            assert worker.poll() is None
        finally:
            worker.kill()
            worker.wait()


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


def test_a_paper_is_reproduced_on_a_cluster(
    tmp_path: Path, cluster: LocalCluster, whyloss: Callable[..., Ended]
) -> None:
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    words = ("reproduce", "garcia2004", "--figure", "8", "--quick", "--reading", "behaviour")
    for place, where in (("here", ()), ("there", ("--on", address))):
        done = whyloss(*words, *where, "--store", f"{place}-store", "--out", place)
        assert (done.status, "report: " in done.err) == (0, True), done.err
    points = (tmp_path / "here/points.csv").read_bytes()
    assert (tmp_path / "there/points.csv").read_bytes() == points
    assert points.count(b"\n") > 10


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ("--on", "moon"),
            "found 'moon'; allowed: dask://HOST:PORT, gateway+https://HOST/CLUSTER, "
            "kernel, engine, slurm, pbs, lsf, sge",
        ),
        (("--on", "kernel", "--on", "slurm"), "slurm does not go with another"),
        (("--on", "slurm", "--on", "pbs"), "slurm does not go with another"),
        (("--jobs", "2"), "--jobs: goes with a batch system"),
        (("--on", "dask://127.0.0.1:1", "--partition", "long"), "--partition: goes with a batch system"),
        (("--on", "kernel", "--job-cores", "2"), "--job-cores: goes with a batch system"),
    ],
)
def test_where_to_compute_is_said_once(words: tuple[str, ...], reason: str, whyloss: Callable[..., Ended]) -> None:
    refused = whyloss("reproduce", "garcia2004", *words)
    assert (refused.status, reason in " ".join(refused.err.split())) == (2, True), refused.err


def test_a_batch_system_that_is_not_there_is_named(small: Path, tmp_path: Path, whyloss: Callable[..., Ended]) -> None:
    (tmp_path / "sweep.toml").write_text(f'[sweep]\nbase = "{small.name}"\nruns = 1\n')
    refused = whyloss("sweep", "sweep.toml", "--on", "lsf")
    assert (refused.status, "lsf: there is no `bsub` on this machine" in refused.err) == (2, True), refused.err


def test_an_address_where_nobody_answers_is_named() -> None:
    with (
        pytest.raises(UnavailableError, match=r"dask://127.0.0.1:1: no Dask scheduler answers"),
        connect("dask://127.0.0.1:1", timeout_s=0.2),
    ):
        pass


def test_ctrl_c_comes_when_a_client_is_made_and_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    class Slow:
        def __init__(self, where: object, **_options: object) -> None:
            signal.raise_signal(signal.SIGINT)
            done.append(f"made for {where}")

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None:
            done.append("closed")

    monkeypatch.setattr("distributed.Client", Slow)
    with pytest.raises(KeyboardInterrupt), client_of("tcp://there:1"):
        done.append("used")
    assert done == ["made for tcp://there:1", "closed"]


def test_who_is_no_scheduler_is_named_in_time(cluster: LocalCluster) -> None:
    (worker, *_) = cluster.scheduler_info["workers"]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for where, reason in {
            f"dask://127.0.0.1:{silent.getsockname()[1]}": "somebody takes the connection and says nothing for 0.5 s",
            worker.replace("tcp:", "dask:"): "no Dask scheduler answers but a Worker",
            "tls://127.0.0.1:1": "Dask's configuration has to name its certificates",
        }.items():
            began = time.monotonic()
            with pytest.raises(UnavailableError, match=reason), connect(where, timeout_s=0.5):
                pass
            assert time.monotonic() - began < 10
    # The connection that was given up closes here, where its warning is ignored.
    gc.collect()


def test_a_scheduler_and_a_client_of_which_one_speaks_tls_are_told(cluster: LocalCluster, tmp_path: Path) -> None:
    secret = Security.temporary()
    names = {"ca-file": secret.tls_ca_file, "client.cert": secret.tls_client_cert, "client.key": secret.tls_client_key}
    settings = {}
    for name, text in names.items():
        (tmp_path / name).write_text(text)
        settings[f"distributed.comm.tls.{name}"] = str(tmp_path / name)
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", security=secret) as own:
        plain = own.scheduler_address.replace("tls:", "dask:")
        with pytest.raises(UnavailableError, match=r"if it speaks TLS, its address is tls://"), connect(plain):
            pass
        with dask_config.set(settings):
            with connect(own.scheduler_address) as client:
                assert client.status == "running"
            secure = cluster.scheduler_address.replace("tcp:", "tls:")
            with pytest.raises(UnavailableError, match=r"it does not speak TLS"), connect(secure):
                pass
    gc.collect()


@pytest.mark.parametrize("rest", ["localhost", "localhost:", "localhost:abc", "localhost:70000", ":8786", "a:1/b", ""])
def test_an_address_without_a_port_is_refused_before_anybody_is_asked(rest: str) -> None:
    began = time.monotonic()
    with (
        pytest.raises(wl.InputError, match=rf"found 'dask://{rest}'; allowed: .*dask://HOST:PORT"),
        connect(f"dask://{rest}"),
    ):
        pass
    assert time.monotonic() - began < 5


def longer(small: Path, runs: int) -> wl.Sweep:
    """Each run takes some hundredths of a second, so that there is a middle."""
    return wl.Sweep(wl.Scenario.load(small).replace({"flow[0].size": "4 MB"}), runs=runs).vary(
        "path.rate", ["5 Mbps", "10 Mbps"]
    )


def test_workers_killed_in_the_middle_change_nothing(small: Path, client: Client) -> None:
    alive = list(client.run(os.getpid).values())
    killed: list[int] = []

    def kill(now: wl.Progress) -> None:
        if alive and now.done > 4 * (1 + len(killed)):
            killed.append(alive.pop())
            os.kill(killed[-1], signal.SIGKILL)

    results = longer(small, 30).run(client, progress=kill)
    assert len(killed) == 2
    assert results.digests() == longer(small, 30).run().digests()


def test_an_interrupted_sweep_leaves_nothing_on_the_cluster_and_goes_on(
    small: Path, tmp_path: Path, client: Client
) -> None:
    def interrupt(now: wl.Progress) -> None:
        if now.done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        longer(small, 20).run(client, store=tmp_path / "store", progress=interrupt)
    assert not any("whyloss" in name for names in client.run(plugins).values() for name in names)
    seen: list[wl.Progress] = []
    results = longer(small, 20).run(client, store=tmp_path / "store", progress=seen.append)
    assert 3 <= seen[-1].found < 40
    assert results.digests() == longer(small, 20).run().digests()


def test_who_ends_first_does_not_disturb_who_runs_the_same_sweep(
    small: Path, tmp_path: Path, cluster: LocalCluster
) -> None:
    chosen = longer(small, 20)
    began = threading.Event()

    def begin(now: wl.Progress) -> None:
        if now.done:
            began.set()

    def end(_now: wl.Progress) -> None:
        if began.is_set():
            raise KeyboardInterrupt

    with (
        Client(cluster, set_as_default=False) as one,
        Client(cluster, set_as_default=False) as two,
        ThreadPoolExecutor() as pool,
    ):
        stays = pool.submit(chosen.run, one, store=tmp_path / "store", progress=begin)
        leaves = pool.submit(chosen.run, two, store=tmp_path / "store", progress=end)
        with pytest.raises(KeyboardInterrupt):
            leaves.result(timeout=60)
        assert stays.result(timeout=60).digests() == chosen.run().digests()
        assert not any("whyloss" in name for names in one.run(plugins).values() for name in names)


@pytest.mark.parametrize("shared", [True, False], ids=["writing to the store", "sending back"])
def test_a_cluster_that_was_left_at_work_goes_on_and_is_come_back_to(
    small: Path, tmp_path: Path, *, shared: bool
) -> None:
    store, chosen = tmp_path / "store", longer(small, 30)
    notes: list[str] = []
    told: list[wl.Progress] = []

    def interrupt(now: wl.Progress) -> None:
        if now.done >= 3:
            raise KeyboardInterrupt

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as own:
        with Client(own.scheduler_address, set_as_default=False) as client:
            if not shared:
                client.run(exec, f"import whyloss.cluster.stores as s; s.MARK = {str(tmp_path / 'elsewhere')!r}")
            with pytest.raises(Detached):
                chosen.run(client, store=store, progress=interrupt, note=notes.append, detach=True)
        left = re.search(r"the cluster goes on with (\d+) runs; the same command comes back to it", notes[-1])
        assert left, notes
        at_work = int(left[1])
        assert 40 < at_work <= 57
        if shared:
            # Nobody asks, and it gets done all the same.
            wait_for(lambda: not chosen.native.missing(store))
        with Client(own.scheduler_address, set_as_default=False) as client:
            results = chosen.run(client, store=store, progress=told.append, note=notes.append)
            # Nothing is computed twice.
            assert told[0].found == (60 if shared else 60 - at_work)
            assert told[-1].done == told[-1].total == 60
            assert not client.list_datasets()
            assert not any("whyloss" in name for names in client.run(plugins).values() for name in names)
    assert (f"it has {at_work} of the runs" in notes[-1]) is not shared
    assert results.digests() == longer(small, 30).run().digests()


def test_who_goes_away_needs_a_store_and_a_cluster_that_stays(
    small: Path, client: Client, whyloss: Callable[..., Ended]
) -> None:
    with pytest.raises(wl.InputError, match="allowed with `detach`: a store"):
        sweep(small).run(client, detach=True)
    (small.parent / "s.toml").write_text('[sweep]\nbase = "small.toml"\nruns = 2\n')
    for where in ([], ["--on", "slurm"]):
        refused = whyloss("sweep", "s.toml", *where, "--detach")
        assert (refused.status, "goes with --on dask://HOST:PORT" in " ".join(refused.err.split())) == (2, True)


def runs_of(pieces: Iterable[Piece]) -> list[tuple[int, int]]:
    return [(piece.point, piece.first + more) for piece in pieces for more in range(piece.runs)]


@pytest.mark.parametrize("seed", range(50))
def test_what_somebody_has_already_is_withdrawn_from_what_is_left(seed: int) -> None:
    random = Random(seed)
    left, ends = [], [0, 0]
    for _ in range(8):
        point, gap, runs = random.randrange(2), random.randrange(3), random.randrange(1, 6)
        left.append(Piece(point, ends[point] + gap, runs))
        ends[point] += gap + runs
    asked = [Piece(random.randrange(3), random.randrange(25), random.randrange(1, 8)) for _ in range(6)]
    batches = Batches(left)
    found = batches.withdraw(asked)
    for wanted, parts in zip(asked, found, strict=True):
        assert set(runs_of(parts)) <= set(runs_of([wanted]))
    taken = [run for parts in found for run in runs_of(parts)]
    assert sorted(taken) == sorted(set(runs_of(left)) & set(runs_of(asked)))
    assert batches.runs == len(runs_of(left)) - len(taken)
    assert sorted(run for pieces in batches.cut(3) for run in runs_of(pieces)) == sorted(
        set(runs_of(left)) - set(taken)
    )
    assert batches.runs == 0


def test_what_is_left_is_cut_evenly_before_anything_is_measured_and_by_cost_then() -> None:
    batches = Batches([(0, 0, 1000)])
    assert len(list(batches.cut(2))) == 20
    batches = Batches([(0, 0, 1000)])
    batches.learn(Piece(0, 0, 100), 100.0)
    sizes = [sum(piece.runs for piece in pieces) for pieces in batches.cut(2)]
    assert (sum(sizes), max(sizes)) == (1000, 10)


def wait_for(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def plugins(dask_worker: Any) -> list[str]:
    return list(dask_worker.plugins)


def dask(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [Path(sys.executable).parent / "dask", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.mark.realtime
def test_a_scheduler_that_is_killed_and_comes_back_is_waited_for(small: Path, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    began: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        began.append(
            dask("scheduler", "--host", "127.0.0.1", "--port", str(port), "--dashboard-address", "127.0.0.1:0")
        )
        began.append(
            dask("worker", address, "--nthreads", "1", "--no-nanny", "--local-directory", str(tmp_path / "dask"))
        )

    def again(now: wl.Progress) -> None:
        if now.done >= 3 and len(began) == 2:
            for process in began:
                process.kill()
                process.wait()
            start()

    notes: list[str] = []
    start()
    try:
        with Client(address, timeout=20, set_as_default=False) as client:
            results = longer(small, 20).run(client, progress=again, note=notes.append)
    finally:
        for process in began:
            process.kill()
            process.wait()
    assert len(began) == 4
    assert "the scheduler is back" in notes
    assert results.digests() == longer(small, 20).run().digests()
