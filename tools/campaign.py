"""Measures what a campaign of ten million runs would take of the machine that asks, for docs/how-to/my-cluster.md.

It prints what the client takes to plan a million runs, the most that a sweep may have; what reading finished runs back
takes, into memory and into files; and the tasks a second that one Dask scheduler and one client carry, with 100,000
tasks that compute nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import Client

import whyloss as wl
from whyloss.cluster import campaign
from whyloss.cluster.batches import BATCH_S, Batches, Piece
from whyloss.cluster.stores import Folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whyloss.cluster.work import Done

#: Workers that the scheduler knows, and threads of each: a thousand cores.
WORKERS, THREADS = 10, 100
#: What is run: a transfer of 100 kB over a lossy link.
SCENARIO = Path(__file__).parent.parent / "examples" / "lossy-link.toml"
CLUSTER = """
import resource, sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    many = {{"n_workers": {workers}, "threads_per_worker": {threads}, "processes": False, "memory_limit": None}}
    with LocalCluster(protocol="tcp", dashboard_address=None, **many) as it:
        print(it.scheduler_address, flush=True)
        sys.stdin.readline()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
"""


def idle(_name: str, pieces: Sequence[Piece]) -> Done:
    """A task that computes nothing, and says that it took as long as tasks do."""
    from whyloss.cluster.work import Done

    return Done(tuple(BATCH_S for _ in pieces), (), {})


def peak_mb() -> float:
    """The most memory that this process has had since its program began, unlike what `getrusage` tells."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) / 1024


def scheduler(tasks: int) -> dict[str, Any]:
    """Sends so many tasks to a thousand threads that do nothing, all in one process with the scheduler."""
    program = CLUSTER.format(workers=WORKERS, threads=THREADS)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as it:
        assert it.stdin is not None
        assert it.stdout is not None
        address = it.stdout.readline().strip()
        # Workers get it with its code.
        setattr(campaign, "compute", idle)  # noqa: B010
        with tempfile.TemporaryDirectory() as folder, Client(address, set_as_default=False) as client:
            batches = Batches((0, 2 * number, 1) for number in range(tasks))
            recipe = sweep(1, 1).native.to_recipe()
            job = campaign.Campaign(client, recipe, batches, Folder.of(Path(folder)), Path(folder), print)
            began, before, most = time.monotonic(), time.process_time(), 0

            def tell() -> None:
                nonlocal most
                most = max(most, len(job._out))

            job.run(tell)
            took, spent = time.monotonic() - began, time.process_time() - before
        it.stdin.write("\n")
        it.stdin.flush()
        memory = int(it.stdout.readline()) / 1024
    return {
        "tasks": tasks,
        "tasks_per_s": tasks / took,
        "client_ms_per_task": 1000 * spent / tasks,
        "most_tasks_out": most,
        "scheduler_and_workers_mb": memory,
    }


def sweep(points: int, runs: int) -> wl.Sweep:
    """A sweep of so many points."""
    base = wl.Scenario.load(SCENARIO).replace({"flow[0].size": "100 kB"})
    return wl.Sweep(base, runs=runs).vary("path.delay", [f"{10_000 + number} us" for number in range(points)])


def planning(points: int, runs: int) -> dict[str, Any]:
    """Makes a sweep of a million runs, the most that one may have, and looks which of its runs are there."""
    began = time.monotonic()
    chosen = sweep(points, runs)
    made = time.monotonic()
    with tempfile.TemporaryDirectory() as store:
        batches = Batches(chosen.native.missing(Path(store)))
    return {
        "runs": batches.runs,
        "make_s": made - began,
        "missing_s": time.monotonic() - made,
        "client_mb": peak_mb(),
    }


def reading(points: int, runs: int) -> dict[str, Any]:
    """Computes runs; reads them back, and writes their tables to files, each in a process of its own."""
    total = points * runs
    with tempfile.TemporaryDirectory() as store:
        began = time.process_time()
        sweep(points, runs).run(store=store)
        computed = time.process_time() - began
        sizes = [part.stat().st_size for part in Path(store).glob("??/*.part")]
        found: dict[str, float] = {}
        for way in ("held", "saved"):
            words = [sys.executable, __file__, "--read", way, store, str(points), str(runs)]
            found |= json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return {
        "runs": total,
        "cpu_ms_per_run": 1000 * computed / total,
        "kb_per_run": sum(sizes) / total / 1000,
        "parts": len(sizes),
        **found,
    }


def read(way: str, store: str, points: int, runs: int) -> dict[str, float]:
    """Reads runs that are there into memory, or from the store into files."""
    began, chosen = time.monotonic(), sweep(points, runs)
    if way == "held":
        chosen.run(store=store)
    else:
        with tempfile.TemporaryDirectory() as folder:
            chosen.save(folder, store=store)
    return {f"{way}_s": time.monotonic() - began, f"{way}_mb": peak_mb()}


def main() -> None:
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["planning", "reading", "scheduler"], help="measure this alone")
    parser.add_argument("--tasks", type=int, default=100_000, help="tasks to send to the scheduler")
    parser.add_argument("--read", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.read:
        way, store, points, runs = chosen.read
        print(json.dumps(read(way, store, int(points), int(runs))))
        return
    measures = {
        "planning": lambda: planning(1_000, 1_000),
        "reading": lambda: reading(1_000, 100),
        "scheduler": lambda: scheduler(chosen.tasks),
    }
    for name in [chosen.only] if chosen.only else measures:
        print(name, {key: round(value, 3) for key, value in measures[name]().items()}, flush=True)


if __name__ == "__main__":
    main()
