"""A sweep on the workers of a Dask cluster: batches out, parts of the store in, whatever workers and scheduler do."""

from __future__ import annotations

import hashlib
import math
import queue
import secrets
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

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

__all__ = ["Campaign", "Detached"]

#: Batches that a thread has or waits for.
AHEAD = 2
#: How often workers may die of one run before it counts as failed.
DEATHS = 3
#: Seconds without any worker that could compute, after which it is said.
PATIENCE_S = 10.0
TICK_S = 0.1
#: Batches whose results are asked for at once, at most.
TAKEN = 200
#: Seconds that a result may take to come, at first: it doubles with each that did not.
RESULT_S = 5.0


class Detached(KeyboardInterrupt):
    """Somebody has gone away from a cluster that goes on."""


class Batch(NamedTuple):
    """A batch that is out."""

    pieces: tuple[Piece, ...]
    """What its task computes."""
    lacking: tuple[Piece, ...]
    """What of it the store lacked when it was sent, or found on the cluster."""

    @property
    def runs(self) -> int:
        """Number of the runs that the store lacked."""
        return sum(piece.runs for piece in self.lacking)


@dataclass
class Campaign:
    """What is done with a sweep on a cluster, and how far it is."""

    client: Client
    recipe: str
    batches: Batches
    store: Store
    folder: Path
    note: Callable[[str], None]
    detach: bool = False
    """Ctrl-C leaves the cluster at work."""
    failures: list[Failure] = field(default_factory=list)
    done: int = 0
    """Runs that are computed, or have failed."""
    busy: dict[str, tuple[int, float]] = field(default_factory=dict)
    """What each worker has done: runs, and seconds of one thread."""

    def __post_init__(self) -> None:
        """Gives the job a name that the same sweep has again, and workers one that nobody else's job has."""
        digest = hashlib.sha256("\0".join([_native.ENGINE, self.recipe, repr(self.store)]).encode()).hexdigest()
        self.name = f"whyloss-{digest[:16]}"
        self._mine = f"{self.name}-{secrets.token_hex(4)}"
        self._taken: tuple[str, ...] = ()
        self._ended: queue.SimpleQueue[Future[Done]] = queue.SimpleQueue()
        self._out: dict[Future[Done], Batch] = {}
        self._deaths: dict[tuple[int, int], int] = {}
        self._refused: dict[str, Told] = {}
        self._ready: set[str] = set()
        self._patience = RESULT_S
        self._threads = 0

    def run(self, tell: Callable[[], None]) -> None:
        """Computes everything. ``tell`` is called about ten times a second.

        Whatever ends it, workers stop within a moment, and what they have finished is kept. It begins with what the
        cluster has of the same sweep, if somebody has gone away from it.

        Raises:
            Detached: Ctrl-C was to leave the cluster at work, and has done so.
        """
        self.client.subscribe_topic(TOPIC, self._hear)
        left = False
        try:
            self._prepare()
            self._come_back()
            self._loop(tell)
        except KeyboardInterrupt:
            if not self.detach or self.client.status != "running":
                raise
            self._go_away()
            left = True
            raise Detached from None
        finally:
            if not left:
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
        ready = plugin(self._mine, order)
        for _ in range(DEATHS):
            try:
                self.client.register_plugin(ready)
                break
            except OSError:
                # A worker died while it was told. Whether all others were told is not known: all are told again.
                with suppress(OSError):
                    self.client.unregister_worker_plugin(self._mine)
        else:
            self.client.register_plugin(ready)
        # Those that come later speak for themselves; whether these were heard already is not known.
        for told in self.client.run(asking(self._mine), on_error="ignore").values():
            if told is not None:
                self._learn(Told(*told))

    def _go_away(self) -> None:
        """Sends all that is left, and publishes what is out under the name of the job: so the cluster keeps it."""
        for pieces in self.batches.cut(max(self._threads, 1)):
            self._send(pieces)
        runs = sum(batch.runs for batch in self._out.values())
        out = [(future, batch.pieces) for future, batch in self._out.items()]
        self.client.publish_dataset(((self._mine, *self._taken), out), name=self.name, override=True)
        with suppress(OSError):
            self.client.unsubscribe_topic(TOPIC)
        self.note(f"the cluster goes on with {runs} runs; the same command comes back to it")

    @property
    def left_at_work(self) -> bool:
        """Whether the cluster has been left with this sweep."""
        return self.name in self.client.list_datasets()

    def _come_back(self) -> None:
        """Takes over what the cluster has been left with."""
        if not self.left_at_work:
            return
        found: list[tuple[Future[Done], tuple[Piece, ...]]]
        self._taken, found = self.client.get_dataset(self.name)
        lacking = iter(self.batches.withdraw(piece for _, pieces in found for piece in pieces))
        for future, pieces in found:
            batch = Batch(pieces, tuple(part for _ in pieces for part in next(lacking)))
            # The others have been kept, by the workers themselves.
            if batch.runs:
                self._follow(future, batch)
        runs = sum(batch.runs for batch in self._out.values())
        self.note(f"the cluster was left at work with this sweep: it has {runs} of the runs")

    def _leave(self) -> None:
        out, self._out = list(self._out), {}
        if self.client.status != "running":
            return
        # A worker that dies at this very moment has nothing to be told any more.
        with suppress(OSError):
            self.client.unsubscribe_topic(TOPIC)
            self.client.cancel(out, force=True)
            self.client.unregister_worker_plugin(self._mine)
        # Somebody else may have come back to the same, and ended first.
        with suppress(OSError, KeyError, ValueError):
            for name in self._taken:
                self.client.unregister_worker_plugin(name)
            if self._taken:
                self.client.unpublish_dataset(self.name)

    def _look(self) -> int:
        """Threads of the workers that are ready."""
        offered = resource(self._mine)
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
        for batch in out.values():
            self.batches.back(batch.lacking)
        if out:
            self.client.cancel(list(out), force=True)

    def _loop(self, tell: Callable[[], None]) -> None:
        looked, waiting = -math.inf, time.monotonic()
        while self._out or self.batches.runs:
            if self.client.status != "running":
                self._await_scheduler()
            if time.monotonic() - looked >= 1 or not self._threads:
                looked, self._threads = time.monotonic(), self._look()
            threads = self._threads
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
            self._take_ended()
        tell()

    def _take_ended(self) -> None:
        """Waits a moment for batches that have ended, and takes all that have."""
        ended: list[Future[Done]] = []
        try:
            ended.append(self._ended.get(timeout=TICK_S))
            while len(ended) < TAKEN:
                ended.append(self._ended.get_nowait())
        except queue.Empty:
            pass
        batches = {future: batch for future in ended if (batch := self._out.pop(future, None))}
        done = self._gather([future for future in batches if future.status == "finished"])
        for future, batch in batches.items():
            if future in done:
                self._keep(done[future], batch)
            else:
                self._take(future, batch)

    def _gather(self, finished: list[Future[Done]]) -> dict[Future[Done], Done]:
        """What batches have computed, by one question for all: one for each takes ten times as long.

        Nothing if one of them cannot be had: then they are asked one by one.
        """
        if len(finished) < 2:
            return {}
        try:
            results = self.client.sync(self.client._gather, finished, callback_timeout=self._patience)
        except (OSError, TimeoutError, CancelledError, KilledWorker):
            return {}
        return dict(zip(finished, results, strict=True))

    def _check_refused(self) -> None:
        """Ends it if there are workers and none of them will do."""
        there = self.client.scheduler_info(n_workers=-1)["workers"]
        if there and there.keys() <= self._refused.keys():
            refused = "; ".join(str(told) for worker, told in self._refused.items() if worker in there)
            raise _native.UnavailableError(f"no worker can compute this sweep: {refused}")

    def _send(self, pieces: tuple[Piece, ...]) -> None:
        future = self.client.submit(compute, self._mine, pieces, pure=False, resources={resource(self._mine): 1})
        self._follow(future, Batch(pieces, pieces))

    def _follow(self, future: Future[Done], batch: Batch) -> None:
        self._out[future] = batch
        future.add_done_callback(self._ended.put)

    def _take(self, future: Future[Done], batch: Batch) -> None:
        if future.status == "finished":
            try:
                self._keep(future.result(timeout=self._patience), batch)
            except (OSError, TimeoutError):
                # The worker died before it could hand over what it had computed, or it has much to hand over.
                self._patience *= 2
                self.batches.back(batch.lacking)
        elif future.status == "error":
            error = future.exception()
            if not isinstance(error, KilledWorker):
                raise error
            self._bury(batch.lacking)
        else:
            # Nobody knows of it any more: the scheduler has begun anew.
            self.batches.back(batch.lacking)

    def _keep(self, done: Done, batch: Batch) -> None:
        put(self.folder, done.parts)
        for piece, seconds in zip(batch.pieces, done.seconds, strict=True):
            self.batches.learn(piece, seconds)
        self.failures += done.failures
        runs = batch.runs
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
