"""Workers get ready: which of them may compute a sweep, and what they are told before the first batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle
from distributed import WorkerPlugin

from whyloss import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from whyloss.cluster.work import Order

__all__ = ["TOPIC", "Told", "asking", "plugin", "resource"]

#: What workers say of themselves goes to this topic of the scheduler.
TOPIC = "whyloss"


@dataclass(frozen=True, slots=True)
class Told:
    """What a worker says of itself."""

    worker: str
    ready: bool
    problem: str

    def __str__(self) -> str:
        """For people."""
        return f"worker {self.worker}: {self.problem}"


def resource(name: str) -> str:
    """What a worker offers, in Dask's terms, that is ready for the job called ``name``; batches ask for it."""
    return f"{name}-{_native.ENGINE[:16]}"


def plugin(name: str, order: Order) -> WorkerPlugin:
    """What makes workers ready for the job called ``name``, those that come later too.

    A worker of another version cannot read what this version writes, so that what comes first is understood without
    whyloss: it travels with its code.
    """
    wanted = (_native.VERSION, _native.ENGINE)
    job_name, offered = name, resource(name)
    packed = cloudpickle.dumps(order)

    class Ready(WorkerPlugin):
        idempotent = True
        name = job_name

        async def setup(self, worker: Any) -> None:
            self.job = None
            problem = self.look()
            if not problem:
                import pickle

                from whyloss.cluster.work import Job

                try:
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
            except ImportError:
                return f"it has no whyloss; here it is {mine}"
            its = (found.VERSION, getattr(found, "ENGINE", "unknown"))
            if its != wanted:
                return f"whyloss {its[0]} (engine {its[1][:12]}) is not the same as here, {mine}; it gets no runs"
            return ""

        def teardown(self, worker: Any) -> None:  # noqa: ARG002
            if self.job is not None:
                self.job.stopped.set()

    return Ready()


def asking(name: str) -> Callable[[Any], tuple[str, bool, str] | None]:
    """What asks a worker for what it says of itself; it travels with its code too."""

    def said(dask_worker: Any) -> tuple[str, bool, str] | None:
        return getattr(dask_worker.plugins.get(name), "told", None)

    return said
