"""What all reproductions have in common: sweeps are run one after the other, and each is reduced before the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from distributed import Client

    from whyloss import _native
    from whyloss.results import Results
    from whyloss.sweep import Sweep

__all__ = ["Done", "Part", "Plan", "measure"]


@dataclass(frozen=True, slots=True)
class Part:
    """A sweep and what is kept of it, so that only one sweep's tables are in memory."""

    sweep: Sweep
    reduce: Callable[[Results], Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """The sweeps behind the figures and claims of a paper in one reading."""

    parts: tuple[Part, ...]
    collect: Callable[[list[Any]], Any]
    """Makes of what is kept of each part what figures and claims take."""

    @property
    def size(self) -> int:
        """Number of runs."""
        return sum(len(part.sweep) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Done:
    """What was run."""

    measurements: Any
    transfers: tuple[int, ...]
    """Of each part."""


def measure(
    plans: Sequence[Plan],
    store: Path | None,
    progress: Callable[[int, int], None] | None,
    client: Client | None = None,
) -> list[Done]:
    """Runs all parts of each plan, on the workers of ``client`` if there is one.

    Finished runs are kept in ``store``; ``progress(done, total)`` counts runs.
    """
    total = sum(plan.size for plan in plans)
    before, finished = 0, []
    for plan in plans:
        kept, transfers = [], []
        for part in plan.parts:

            def tell(now: _native.Progress, before: int = before) -> None:
                if progress is not None:
                    progress(before + now.done, total)

            results = part.sweep.run(client, store=store, progress=tell)
            before += len(part.sweep)
            transfers.append(len(results.transfers))
            kept.append(part.reduce(results))
        finished.append(Done(plan.collect(kept), tuple(transfers)))
    return finished
