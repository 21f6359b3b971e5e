"""Measures what a campaign of ten million runs would take of the machine that asks, for docs/how-to/my-cluster.md.

It prints what the client takes to plan a million runs, the most that a sweep may have; what reading finished runs back
takes, into memory and into files; and what 100,000 tasks that compute nothing take of a Dask scheduler, of workers with
a thousand threads and of the client, two thousand at a time as a sweep sends them, and all at once as `--detach` does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import Client

import whyloss as wl
from whyloss.cluster import campaign
from whyloss.cluster.batches import BATCH_S, Batches, Piece
from whyloss.cluster.stores import Folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whyloss.cluster.work import Done

#: Workers that the scheduler knows, and threads of all of them: a thousand cores.
WORKERS, THREADS = 10, 1000
#: What is run: a transfer of 100 kB over a lossy link.
SCENARIO = Path(__file__).parent.parent / "examples" / "lossy-link.toml"
#: The scheduler, or workers that know it, in a process of their own; it ends when it is told so.
PART = """
import asyncio, logging, sys
from distributed import Scheduler, Worker

async def main():
    logging.getLogger("distributed").setLevel(logging.ERROR)
    if len(sys.argv) == 1:
        it = await Scheduler(host="127.0.0.1", port=0, dashboard=False)
        print(it.address, flush=True)
    else:
        address, workers, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        its = [await Worker(address, nthreads=threads, memory_limit=None, dashboard=False) for _ in range(workers)]
        print(len(its), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)

asyncio.run(main())
"""


def idle(_name: str, pieces: Sequence[Piece]) -> Done:
    """A task that computes nothing, and says that it took as long as tasks do."""
    from whyloss.cluster.work import Done

    return Done(tuple(BATCH_S for _ in pieces), (), {})


def peak_mb(process: int | str = "self") -> float:
    """The most memory that a process has had since its program began, unlike what `getrusage` tells."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) / 1024


def spent_s(process: int | str = "self") -> float:
    """Processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def part(*words: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process of the cluster, and what it says when it is ready."""
    command = [sys.executable, "-c", PART, *map(str, words)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as it:
        assert it.stdin is not None
        assert it.stdout is not None
        try:
            yield it, it.stdout.readline().strip()
        finally:
            it.terminate()


def scheduler(tasks: int, workers: int, *, at_once: bool) -> dict[str, Any]:
    """Sends so many tasks to a thousand threads that do nothing: as a sweep does, or all at once as `--detach` does."""
    # Workers get it with its code.
    setattr(campaign, "compute", idle)  # noqa: B010
    with (
        part() as (it, address),
        part(address, workers, THREADS // workers) as (crew, _),
        tempfile.TemporaryDirectory() as folder,
        Client(address, set_as_default=False) as client,
    ):
        kept, recipe = Folder.of(Path(folder)), sweep(1, 1).native.to_recipe()

        def job(*, detach: bool) -> campaign.Campaign:
            batches = Batches((0, 2 * number, 1) for number in range(tasks))
            return campaign.Campaign(client, recipe, batches, kept, Path(folder), print, detach)

        first = job(detach=at_once)
        before, began, most, sent = [spent_s(it.pid), spent_s(crew.pid), spent_s()], time.monotonic(), 0, 0.0

        def tell() -> None:
            nonlocal most
            most = max(most, len(first._out))
            if at_once:
                raise KeyboardInterrupt

        try:
            first.run(tell)
        except campaign.Detached:
            sent, most = time.monotonic() - began, len(first._out)
            job(detach=True).run(lambda: None)
        took = time.monotonic() - began
        after = [spent_s(it.pid), spent_s(crew.pid), spent_s()]
        each = [1000 * (end - begin) / tasks for begin, end in zip(before, after, strict=True)]
        names = ("scheduler_ms_per_task", "workers_ms_per_task", "client_ms_per_task")
        return {
            "tasks": tasks,
            **dict(zip(names, each, strict=True)),
            "tasks_per_s": tasks / took,
            "most_tasks_out": most,
            "sent_s": sent,
            "scheduler_mb": peak_mb(it.pid),
            "client_mb": peak_mb(),
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
    parser.add_argument("--only", choices=["planning", "reading", "scheduler", "detached"], help="measure this alone")
    parser.add_argument("--tasks", type=int, default=100_000, help="tasks to send to the scheduler")
    parser.add_argument(
        "--workers", type=int, default=WORKERS, help="workers that the scheduler knows, of a thousand threads in all"
    )
    parser.add_argument("--read", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.read:
        way, store, points, runs = chosen.read
        print(json.dumps(read(way, store, int(points), int(runs))))
        return
    measures = {
        "planning": lambda: planning(1_000, 1_000),
        "reading": lambda: reading(1_000, 100),
        "scheduler": lambda: scheduler(chosen.tasks, chosen.workers, at_once=False),
        "detached": lambda: scheduler(chosen.tasks, chosen.workers, at_once=True),
    }
    for name in [chosen.only] if chosen.only else measures:
        print(name, {key: round(value, 3) for key, value in measures[name]().items()}, flush=True)


if __name__ == "__main__":
    main()
