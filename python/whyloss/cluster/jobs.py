"""Workers that a batch system starts: SLURM, PBS, LSF or SGE, by ``dask-jobqueue``."""

from __future__ import annotations

import asyncio
import importlib
import logging
import shlex
import shutil
import signal
import sys
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whyloss import _native
from whyloss.cluster.clients import client_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Client

__all__ = ["SYSTEMS", "Jobs", "queued"]

#: What dask-jobqueue calls the cluster of each batch system, and the program that takes its jobs.
SYSTEMS = {
    "slurm": ("SLURMCluster", "sbatch"),
    "pbs": ("PBSCluster", "qsub"),
    "lsf": ("LSFCluster", "bsub"),
    "sge": ("SGECluster", "qsub"),
}

#: Memory of a job for each of its cores, where Dask's configuration says nothing.
MEMORY_PER_CORE = 2 << 30
#: Folder for what jobs print, where Dask's configuration says nothing.
LOGS = "out/jobs"
#: How often jobs that have ended, mostly at their time limit, are replaced.
REPLACE_S = 15.0
#: Seconds that the program which takes jobs may need to answer after Ctrl-C.
ANSWER_S = 60.0
#: How dask-jobqueue says that a job was not taken: the program failed, or printed no number.
REFUSALS = (RuntimeError, ValueError)


@dataclass(frozen=True, slots=True)
class Jobs:
    """Jobs of a batch system, a worker each. What is not said here is taken from Dask's configuration."""

    count: int = 1
    cores: int | None = None
    """Of each job: so many runs at a time."""
    partition: str | None = None
    """The partition or queue; the system's own default if nothing is said."""


@contextmanager
def queued(system: str, jobs: Jobs) -> Iterator[Client]:
    """A cluster whose workers are jobs of ``system``, a key of `SYSTEMS`; its scheduler is in this process.

    Jobs that end are replaced. All are cancelled when the context ends.

    Raises:
        whyloss.UnavailableError: the batch system is not there, or takes no jobs.
    """
    import dask

    name, submit = SYSTEMS[system]
    if shutil.which(submit) is None:
        raise _native.UnavailableError(f"{system}: there is no `{submit}` on this machine")
    said = dask.config.get(f"jobqueue.{system}", {})
    cores = jobs.cores or said.get("cores") or 1
    options: dict[str, Any] = {
        "cores": cores,
        # Threads of one process: a run needs the interpreter only for parts in Python.
        "processes": said.get("processes") or 1,
        "memory": said.get("memory") or str(cores * MEMORY_PER_CORE),
        "python": said.get("python") or sys.executable,
        "log_directory": said.get("log-directory") or LOGS,
        "scheduler_options": {"dashboard_address": ":0", **said.get("scheduler-options", {})},
    }
    if jobs.partition is not None:
        options["queue"] = jobs.partition
    kind = getattr(_jobqueue(), name)
    with kind(job_cls=_audible(kind.job_cls), **options) as cluster:
        try:
            _submitted(cluster, jobs.count)
        except REFUSALS as error:
            raise _native.UnavailableError(f"{system} refuses the jobs: {_reason(error)}") from error
        cluster.loop.add_callback(_replaced, cluster, jobs.count)
        with client_of(cluster) as client:
            yield client


def _jobqueue() -> Any:
    """The module. As it is imported it makes both signals end the process with status 0, as if all were computed."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return importlib.import_module("dask_jobqueue")
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _submitted(cluster: Any, count: int) -> None:
    """Waits until the batch system has taken so many jobs. Ctrl-C waits for what is being submitted."""
    taken = asyncio.run_coroutine_threadsafe(_submit(cluster, count), cluster.loop.asyncio_loop)
    try:
        taken.result()
    except KeyboardInterrupt:
        # A job that is broken off here stays in the queue: nobody knows its number.
        try:
            wait([taken], ANSWER_S)
        finally:
            taken.cancel()
            _give_up(cluster)
        raise


def _give_up(cluster: Any) -> None:
    """Jobs that were not taken count as failed: a cluster does not close while one of it seems about to begin."""
    from distributed.core import Status

    for job in list(cluster._created):
        if job.status is Status.created:
            job.status = Status.failed


async def _submit(cluster: Any, count: int) -> None:
    """Waits until the batch system has taken so many jobs; those that it has still count."""
    while len(cluster.worker_spec) < count:
        cluster.worker_spec.update(cluster.new_worker_spec())
    # `cluster.scale` would keep errors to itself.
    try:
        await cluster
    except REFUSALS:
        _give_up(cluster)
        raise


async def _replaced(cluster: Any, count: int) -> None:
    """Replaces jobs that have ended, as long as the cluster is there."""
    while True:
        await asyncio.sleep(REPLACE_S)
        if cluster.status.name != "running":
            return
        try:
            await _submit(cluster, count)
        except REFUSALS as error:
            logging.getLogger("whyloss.cluster").warning("a job was not replaced: %s", _reason(error))


def _audible(kind: Any) -> Any:
    """The kind of jobs, where what ``bsub`` says of a refusal is read: dask-jobqueue sends that to ``/dev/null``."""
    if kind.submit_command != "bsub":
        return kind

    class Audible(kind):  # type: ignore[misc]
        async def _submit_job(self, script_filename: str) -> Any:
            if not self.use_stdin:
                return await super()._submit_job(script_filename)
            return await self._call([f"{self.submit_command} < {shlex.quote(script_filename)}"], shell=True)

    return Audible


def _reason(error: RuntimeError | ValueError) -> str:
    """What the program that takes jobs said. Grid Engine's ends with a farewell."""
    if isinstance(error, ValueError):
        said = str(error).partition("output is:\n")[2]
        return f"no number of a job is in its answer: {' '.join(said.split()) or 'nothing'}"
    out, _, err = str(error).partition("\nstdout:\n")[2].partition("\nstderr:\n")
    lines = [line.strip() for line in [*err.splitlines(), *out.splitlines()]]
    return "; ".join(line for line in lines if line not in ("", "Exiting.")) or " ".join(str(error).split())
