"""Workers that a batch system starts: SLURM, PBS, LSF or SGE, by ``dask-jobqueue``."""

from __future__ import annotations

import asyncio
import importlib
import logging
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whyloss import _native

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
    from distributed import Client

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
    with getattr(importlib.import_module("dask_jobqueue"), name)(**options) as cluster:
        try:
            cluster.sync(_submit, cluster, jobs.count)
        except RuntimeError as error:
            raise _native.UnavailableError(f"{system} refuses the jobs: {_reason(error)}") from error
        cluster.loop.add_callback(_replaced, cluster, jobs.count)
        with Client(cluster, set_as_default=False) as client:
            yield client


async def _submit(cluster: Any, count: int) -> None:
    """Waits until the batch system has taken so many jobs; those that it has still count."""
    from distributed.core import Status

    while len(cluster.worker_spec) < count:
        cluster.worker_spec.update(cluster.new_worker_spec())
    # `cluster.scale` would keep errors to itself.
    try:
        await cluster
    except RuntimeError:
        # A cluster does not close while a job of it seems about to begin.
        for job in cluster.workers.values():
            if job.status is Status.created:
                job.status = Status.failed
        raise


async def _replaced(cluster: Any, count: int) -> None:
    """Replaces jobs that have ended, as long as the cluster is there."""
    while True:
        await asyncio.sleep(REPLACE_S)
        if cluster.status.name != "running":
            return
        try:
            await _submit(cluster, count)
        except RuntimeError as error:
            logging.getLogger("whyloss.cluster").warning("a job was not replaced: %s", _reason(error))


def _reason(error: RuntimeError) -> str:
    """What the program that takes jobs said: the last line that says anything. Grid Engine's ends with a farewell."""
    lines = (line.strip() for line in reversed(str(error).splitlines()))
    return next((line for line in lines if line not in ("", "Exiting.")), str(error))
