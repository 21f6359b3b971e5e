"""What workers do: they compute batches of runs, and write them to the store or send them back."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyloss import _native, parts
from whyloss.cluster.batches import Piece

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whyloss.cluster.stores import Store

__all__ = ["Done", "Failure", "Job", "Order", "compute"]


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker has to know of a sweep before its first batch."""

    recipe: str
    """The sweep as JSON."""
    own: dict[str, str]
    """Files with parts of one's own: path and text."""
    store: Store


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed."""

    point: int
    run: int
    seed: int
    message: str

    def __str__(self) -> str:
        """Which run, and why."""
        return f"point {self.point}, run {self.run} (seed {self.seed}): {self.message}"


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a batch."""

    seconds: tuple[float, ...]
    """What each of its pieces took."""
    failures: tuple[Failure, ...]
    parts: dict[str, bytes]
    """What the worker could not write to the store itself: parts of it by name."""
    worker: str = ""


@dataclass
class Job:
    """A sweep on a worker."""

    order: Order
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Makes the sweep of its recipe."""
        with tempfile.TemporaryDirectory() as folder:
            for number, (name, text) in enumerate(self.order.own.items()):
                path = Path(folder) / str(number) / Path(name).name
                path.parent.mkdir()
                path.write_text(text, encoding="utf-8")
                parts.add_file(path)
        self.sweep = _native.Sweep.from_recipe(self.order.recipe, "sweep")
        self.store = self.order.store.at_worker()

    def run(self, pieces: Sequence[Piece]) -> Done:
        """Computes ``pieces``; a run that fails does not stop the others."""
        seconds: list[float] = []
        failures: list[Failure] = []
        with self.store.place() as place:
            for piece in pieces:
                began = time.monotonic()
                failures += self._piece(place, piece)
                seconds.append(time.monotonic() - began)
            sent = self.store.keep(place)
        return Done(tuple(seconds), tuple(failures), sent)

    def _piece(self, place: Path, piece: Piece) -> Iterator[Failure]:
        point = self.sweep.point(piece.point)
        try:
            point.with_runs(piece.first, piece.runs).run(place, 1, self._listen)
        except (_native.WhylossError, _native.PanicException) as error:
            if piece.runs > 1:
                # What was computed is kept: only the one that failed is tried again.
                for run in range(piece.first, piece.first + piece.runs):
                    yield from self._piece(place, Piece(piece.point, run, 1))
            else:
                scenario = json.loads(point.scenarios()[0].to_json())["scenario"]
                yield Failure(piece.point, piece.first, scenario["seed"], str(error))

    def _listen(self, _progress: _native.Progress) -> None:
        if self.stopped.is_set():
            raise StoppedError


class StoppedError(Exception):
    """Nobody waits for the batch any more."""


def compute(name: str, pieces: Sequence[Piece]) -> Done:
    """The task: a batch of the job called ``name`` that this worker was told of before."""
    from dataclasses import replace

    from distributed import get_worker

    worker: Any = get_worker()
    job: Job = worker.plugins[name].job
    return replace(job.run(pieces), worker=worker.address)
