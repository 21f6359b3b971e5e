"""A sweep on the workers of a Dask cluster: batches out, parts of the store in, whatever workers and scheduler do."""

from __future__ import annotations

import hashlib
import math
import queue
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from distributed.scheduler import KilledWorker

from whyloss import _native, parts
from whyloss.cluster.batches import Batches, Piece
from whyloss.cluster.stores import put
from whyloss.cluster.work import Done, Failure, Order, compute
from whyloss.cluster.workers import TOPIC, Told, asking, plugin, resource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from distributed import Client, Future

    from whyloss.cluster.stores import Store

__all__ = ["Campaign"]

#: Batches that a thread has or waits for.
AHEAD = 2
#: How often workers may die of one run before it counts as failed.
DEATHS = 3
#: Seconds without any worker that could compute, after which it is said.
PATIENCE_S = 10.0
TICK_S = 0.1
#: Seconds that a result may take to come, at first: it doubles with each that did not.
RESULT_S = 5.0


@dataclass
class Campaign:
    """What is done with a sweep on a cluster, and how far it is."""

    client: Client
    recipe: str
    batches: Batches
    store: Store
    folder: Path
    note: Callable[[str], None]
    failures: list[Failure] = field(default_factory=list)
    done: int = 0
    """Runs that are computed, or have failed."""
    busy: dict[str, tuple[int, float]] = field(default_factory=dict)
    """What each worker has done: runs, and seconds of one thread."""

    def __post_init__(self) -> None:
        """Gives the job a name that the same sweep has again."""
        digest = hashlib.sha256("\0".join([_native.ENGINE, self.recipe, repr(self.store)]).encode()).hexdigest()
        self.name = f"whyloss-{digest[:16]}"
        self._ended: queue.SimpleQueue[Future[Done]] = queue.SimpleQueue()
        self._out: dict[Future[Done], tuple[Piece, ...]] = {}
        self._deaths: dict[tuple[int, int], int] = {}
        self._refused: dict[str, Told] = {}
        self._ready: set[str] = set()
        self._patience = RESULT_S

    def run(self, tell: Callable[[], None]) -> None:
        """Computes everything. ``tell`` is called about ten times a second.

        Whatever ends it, workers stop within a moment, and what they have finished is kept.
        """
        self.client.subscribe_topic(TOPIC, self._hear)
        try:
            self._prepare()
            self._loop(tell)
        finally:
            self._leave()

    def _hear(self, event: tuple[float, Any]) -> None:
        self._learn(Told(*event[1]))

    def _learn(self, told: Told) -> None:
        if not told.ready and told.worker not in self._refused:
            self._refused[told.worker] = told
            self.note(str(told))

    def _prepare(self) -> None:
        """Makes all workers ready, those that are there and those that will come."""
        order = Order(self.recipe, parts.added_files(), self.store)
        ready = plugin(self.name, order)
        for _ in range(DEATHS):
            try:
                self.client.register_plugin(ready)
                break
            except OSError:
                # A worker died while it was told. Whether all others were told is not known: all are told again.
                with suppress(OSError):
                    self.client.unregister_worker_plugin(self.name)
        else:
            self.client.register_plugin(ready)
        # Those that come later speak for themselves; whether these were heard already is not known.
        for told in self.client.run(asking(self.name), on_error="ignore").values():
            if told is not None:
                self._learn(Told(*told))

    def _leave(self) -> None:
        out, self._out = list(self._out), {}
        if self.client.status != "running":
            return
        # A worker that dies at this very moment has nothing to be told any more.
        with suppress(OSError):
            self.client.unsubscribe_topic(TOPIC)
            self.client.cancel(out, force=True)
            self.client.unregister_worker_plugin(self.name)

    def _look(self) -> int:
        """Threads of the workers that are ready."""
        offered = resource(self.name)
        workers = self.client.scheduler_info(n_workers=-1)["workers"].items()
        ready = {name: worker["nthreads"] for name, worker in workers if offered in worker.get("resources", {})}
        if ready:
            if self._ready.isdisjoint(ready):
                # Batches for which there was no worker at all are not given to those that get ready later.
                self._recall()
            self._ready = set(ready)
        return sum(ready.values())

    def _recall(self) -> None:
        """Takes all batches back that are out."""
        out, self._out = self._out, {}
        for pieces in out.values():
            self.batches.back(pieces)
        if out:
            self.client.cancel(list(out), force=True)

    def _loop(self, tell: Callable[[], None]) -> None:
        looked, threads, waiting = -math.inf, 0, time.monotonic()
        while self._out or self.batches.runs:
            if self.client.status != "running":
                self._await_scheduler()
            if time.monotonic() - looked >= 1 or not threads:
                looked, threads = time.monotonic(), self._look()
            if threads:
                waiting = time.monotonic()
            else:
                self._check_refused()
                if time.monotonic() - waiting >= PATIENCE_S:
                    waiting = math.inf
                    self.note("the cluster has no workers yet; waiting for some")
            while len(self._out) < AHEAD * threads and (pieces := self.batches.take(threads)):
                self._send(pieces)
            tell()
            try:
                ended = self._ended.get(timeout=TICK_S)
            except queue.Empty:
                continue
            if pieces := self._out.pop(ended, ()):
                self._take(ended, pieces)
        tell()

    def _check_refused(self) -> None:
        """Ends it if there are workers and none of them will do."""
        there = self.client.scheduler_info(n_workers=-1)["workers"]
        if there and there.keys() <= self._refused.keys():
            refused = "; ".join(str(told) for worker, told in self._refused.items() if worker in there)
            raise _native.UnavailableError(f"no worker can compute this sweep: {refused}")

    def _send(self, pieces: tuple[Piece, ...]) -> None:
        future = self.client.submit(compute, self.name, pieces, pure=False, resources={resource(self.name): 1})
        self._out[future] = pieces
        future.add_done_callback(self._ended.put)

    def _take(self, future: Future[Done], pieces: tuple[Piece, ...]) -> None:
        if future.status == "finished":
            try:
                self._keep(future.result(timeout=self._patience), pieces)
            except (OSError, TimeoutError):
                # The worker died before it could hand over what it had computed, or it has much to hand over.
                self._patience *= 2
                self.batches.back(pieces)
        elif future.status == "error":
            error = future.exception()
            if not isinstance(error, KilledWorker):
                raise error
            self._bury(pieces)
        else:
            # Nobody knows of it any more: the scheduler has begun anew.
            self.batches.back(pieces)

    def _keep(self, done: Done, pieces: tuple[Piece, ...]) -> None:
        put(self.folder, done.parts)
        for piece, seconds in zip(pieces, done.seconds, strict=True):
            self.batches.learn(piece, seconds)
        self.failures += done.failures
        runs = sum(piece.runs for piece in pieces)
        self.done += runs
        before = self.busy.get(done.worker, (0, 0.0))
        self.busy[done.worker] = (before[0] + runs, before[1] + sum(done.seconds))
        for failure in done.failures:
            self.note(f"failed: {failure}")

    def _bury(self, pieces: tuple[Piece, ...]) -> None:
        """Several workers have died of a batch: its runs are tried one by one, to find out which of them it was."""
        runs = [Piece(piece.point, piece.first + more, 1) for piece in pieces for more in range(piece.runs)]
        if len(runs) > 1:
            for run in runs:
                self._send((run,))
            return
        (run,) = runs
        key = (run.point, run.first)
        self._deaths[key] = self._deaths.get(key, 0) + 1
        if self._deaths[key] < DEATHS:
            self._send((run,))
            return
        failure = Failure(run.point, run.first, 0, "the workers that computed it died, each time that it was tried")
        self.failures.append(failure)
        self.done += 1
        self.note(f"failed: {failure}")

    def _await_scheduler(self) -> None:
        """Waits until the scheduler is back, and begins with it anew."""
        self.note("the scheduler is gone; waiting for it")
        while self.client.status == "connecting":
            time.sleep(TICK_S)
        if self.client.status != "running":
            raise _native.UnavailableError(
                "the scheduler is gone and has not come back; what is finished is kept, and the same goes on from there"
            )
        self.client.subscribe_topic(TOPIC, self._hear)
        self._prepare()
        self.note("the scheduler is back")
