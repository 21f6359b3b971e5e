"""What a worker does to get ready. It travels as text, to workers of another Python and to those without whyloss.

So nothing of whyloss is imported here at first.
"""

from __future__ import annotations

from typing import Any

from distributed import WorkerPlugin

__all__ = ["ready", "said"]


def ready(job_name: str, wanted: tuple[str, str], offered: str, packed: bytes) -> WorkerPlugin:
    """Makes a worker ready that has the wanted version and engine; it then offers the resource ``offered``."""

    class Ready(WorkerPlugin):
        idempotent = True
        name = job_name

        async def setup(self, worker: Any) -> None:
            self.job = None
            problem = self.look()
            if not problem:
                import pickle

                try:
                    from whyloss.cluster.work import Job

                    self.job = Job(pickle.loads(packed))
                    await worker.set_resources(**{offered: 1e9})
                except Exception as error:
                    problem = f"{type(error).__name__}: {error}"
            self.told = (worker.address, not problem, problem)
            worker.log_event("whyloss", self.told)

        def look(self) -> str:
            mine = f"{wanted[0]} (engine {wanted[1][:12]})"
            try:
                from whyloss import _native as found
            except ImportError as error:
                import sys

                why = "it has no whyloss" if error.name == "whyloss" else f"whyloss does not begin: {error}"
                return f"{why}; here it is {mine}, its Python is {sys.version.split()[0]}"
            its = (found.VERSION, getattr(found, "ENGINE", "unknown"))
            if its != wanted:
                return f"whyloss {its[0]} (engine {its[1][:12]}) is not the same as here, {mine}; it gets no runs"
            return ""

        def teardown(self, worker: Any) -> None:  # noqa: ARG002
            if self.job is not None:
                self.job.stopped.set()

    return Ready()


def said(job_name: str) -> Any:
    """What asks a worker for what it says of itself."""

    def told(dask_worker: Any) -> tuple[str, bool, str] | None:
        return getattr(dask_worker.plugins.get(job_name), "told", None)

    return told
