"""Many real runs at a time, kept as they are finished."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyloss import _native, files, kernel
from whyloss.stacks.kernel import control_of
from whyloss.stacks.measure import Glance, MeasuredRun, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from whyloss.scenario import Scenario

__all__ = ["Job", "run_jobs"]

#: A run whose links did not keep their time is run again this often.
RETRIES = 2


@dataclass(frozen=True, slots=True)
class Job:
    """A real run."""

    scenario: Scenario
    run: int
    on: str
    controls: Mapping[str, str] = field(default_factory=dict)

    def key(self) -> str:
        """A name for its result that changes with everything that it depends on."""
        system = os.uname()
        parts: dict[str, Any] = {
            "scenario": self.scenario.native.digest(self.run),
            "on": self.on,
            "controls": dict(self.controls),
            "kernel": [system.release, system.version],
            "build": build(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


@cache
def build() -> str:
    """A digest of the code that makes a real run: the extension module with the kernel's programs, and its drivers."""
    package = Path(__file__).parent.parent
    drivers = [*package.glob("stacks/*.py"), package / "kernel.py", package / "testbed.py"]
    digest = hashlib.sha256()
    for path in (Path(_native.__file__), *sorted(drivers)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _StoppedError(Exception):
    """Someone wants all runs to end."""


def run_jobs(
    jobs: Sequence[Job],
    store: Path,
    *,
    parallel: int = 4,
    progress: Callable[[int, int], object] | None = None,
) -> list[MeasuredRun]:
    """The outcomes of ``jobs``, in their order.

    Finished runs are kept in ``store`` and not run again. A run whose links did not keep their time is run again, and
    then taken as it is, marked invalid.

    Args:
        jobs: what to run.
        store: folder, made if it is not there.
        parallel: how many runs at a time. Every run has its own links; too many at a time are found out by the audit.
        progress: is told how many are done, and how many there are.
    """
    store.mkdir(parents=True, exist_ok=True)
    outcomes: dict[int, MeasuredRun] = {}
    for index, job in enumerate(jobs):
        if (kept := _read(store, job)) is not None:
            outcomes[index] = kept
    stopped = threading.Event()

    def tell() -> None:
        if progress is not None:
            progress(len(outcomes), len(jobs))

    def work(job: Job) -> MeasuredRun:
        def tick(_: Glance) -> None:
            if stopped.is_set():
                raise _StoppedError

        for attempt in range(RETRIES + 1):
            outcome = measure(job.scenario, job.run, job.on, job.controls, tick)
            if outcome.valid or attempt == RETRIES:
                break
        _write(store, job, outcome)
        return outcome

    tell()
    needed = {name for index, job in enumerate(jobs) if index not in outcomes for name in _controls(job)}
    with kernel.loaded(needed):
        _run(jobs, outcomes, work, parallel, stopped, tell)
    return [outcomes[index] for index in range(len(jobs))]


def _controls(job: Job) -> list[str]:
    if job.on != "kernel":
        return []
    return [control_of(planned, job.controls) for planned in job.scenario.native.agenda(job.run)]


def _run(
    jobs: Sequence[Job],
    outcomes: dict[int, MeasuredRun],
    work: Callable[[Job], MeasuredRun],
    parallel: int,
    stopped: threading.Event,
    tell: Callable[[], None],
) -> None:
    """Does the work of those that have no outcome yet."""
    pool = ThreadPoolExecutor(max_workers=parallel)
    running: dict[Future[MeasuredRun], int] = {
        pool.submit(work, job): index for index, job in enumerate(jobs) if index not in outcomes
    }
    try:
        while running:
            done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                outcomes[running.pop(future)] = future.result()
                tell()
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)


def _read(store: Path, job: Job) -> MeasuredRun | None:
    path = store / f"{job.key()}.json"
    if not path.is_file():
        return None
    return MeasuredRun.from_dict(json.loads(path.read_text(encoding="utf-8")))


def _write(store: Path, job: Job, outcome: MeasuredRun) -> None:
    files.write(store / f"{job.key()}.json", json.dumps(outcome.to_dict()) + "\n")
