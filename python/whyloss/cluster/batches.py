"""What is still to be run, cut into batches by what runs have cost so far."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["BATCH_S", "Batches", "Piece"]

#: Seconds that a batch is to take: long beside what a scheduler needs for a task, short beside a working day.
BATCH_S = 10.0
#: Batches that one scheduler is to be asked for in a second: with many threads they take longer. It carries some more.
BATCHES_PER_S = 100
#: Batches that each thread has before it at the end, at least: so that no thread waits long for the last one.
SHARE = 3
#: Batches for each thread of which nobody knows how long they take.
UNMEASURED = 10
#: How much longer a batch may be than all that its point has been measured on.
GROWTH = 8


class Piece(NamedTuple):
    """Runs of a point that follow each other."""

    point: int
    first: int
    runs: int


class Batches:
    """The runs that are still to come. What is learnt of their cost makes the next batches."""

    def __init__(self, missing: Iterable[tuple[int, int, int]]) -> None:
        """Takes stretches of runs: number of the point, first run, how many."""
        self._left = deque(Piece(*stretch) for stretch in missing)
        self.runs = sum(piece.runs for piece in self._left)
        self._costs: dict[int, tuple[int, float]] = {}
        self._all = (0, 0.0)

    def take(self, threads: int) -> tuple[Piece, ...]:
        """The next batch for one of so many threads; empty if nothing is left."""
        if not self._left:
            return ()
        budget = min(max(BATCH_S, threads / BATCHES_PER_S), self.cost() / (SHARE * threads))
        taken: list[Piece] = []
        while self._left:
            piece = self._left[0]
            each, known = self._cost(piece.point)
            # What nobody has measured is tried by one run.
            fits = min(int(budget / each), GROWTH * known) if known else 0
            if taken and not fits:
                break
            count = min(max(fits, 1), piece.runs)
            budget -= count * each
            taken.append(piece._replace(runs=count))
            self.runs -= count
            self._left.popleft()
            if count < piece.runs:
                self._left.appendleft(Piece(piece.point, piece.first + count, piece.runs - count))
                break
        return tuple(taken)

    def cut(self, threads: int) -> Iterator[tuple[Piece, ...]]:
        """All that is left, for so many threads, without learning anything meanwhile."""
        # Before anything is measured all runs count as equally long.
        share = math.ceil(self.runs / (UNMEASURED * threads))
        while self._left:
            if self._all[0]:
                yield self.take(threads)
                continue
            piece = self._left.popleft()
            count = min(share, piece.runs)
            if count < piece.runs:
                self._left.appendleft(Piece(piece.point, piece.first + count, piece.runs - count))
            self.runs -= count
            yield (piece._replace(runs=count),)

    def back(self, pieces: Iterable[Piece]) -> None:
        """Takes back what could not be done."""
        for piece in pieces:
            self._left.appendleft(piece)
            self.runs += piece.runs

    def withdraw(self, pieces: Iterable[Piece]) -> list[tuple[Piece, ...]]:
        """Takes ``pieces`` out of what is left: somebody has them already. Gives, for each, what was left of it."""
        asked = list(pieces)
        found: list[tuple[Piece, ...]] = [()] * len(asked)
        # Both in order, so that each is looked at once.
        left, rest = deque(sorted(self._left)), deque[Piece]()
        for number in sorted(range(len(asked)), key=lambda number: asked[number]):
            point, first, runs = asked[number]
            parts: list[Piece] = []
            while left and left[0][:2] < (point, first + runs):
                piece = left.popleft()
                ends = piece.first + piece.runs
                begin, end = max(piece.first, first), min(ends, first + runs)
                if piece.point != point or begin >= end:
                    rest.append(piece)
                    continue
                if piece.first < begin:
                    rest.append(Piece(point, piece.first, begin - piece.first))
                parts.append(Piece(point, begin, end - begin))
                if end < ends:
                    left.appendleft(Piece(point, end, ends - end))
            found[number] = tuple(parts)
        self._left = rest + left
        self.runs = sum(piece.runs for piece in self._left)
        return found

    def learn(self, piece: Piece, seconds: float) -> None:
        """Notes that a piece took so long on one thread."""
        runs, spent = self._costs.get(piece.point, (0, 0.0))
        self._costs[piece.point] = (runs + piece.runs, spent + seconds)
        self._all = (self._all[0] + piece.runs, self._all[1] + seconds)

    def cost(self) -> float:
        """Seconds that all that is left will take one thread, as far as is known."""
        return self.runs * (self._all[1] / self._all[0]) if self._all[0] else 0.0

    def _cost(self, point: int) -> tuple[float, int]:
        """Seconds that a run of the point takes, and on how many runs that rests."""
        runs, spent = self._costs.get(point, self._all)
        return (max(spent / runs, 1e-6), runs) if runs else (0.0, 0)
