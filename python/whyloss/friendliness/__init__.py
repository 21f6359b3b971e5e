"""How friendly two schemes are to each other: the protocol-pair test.

Flows of both kinds share a path, half and half and one against all others. What each has is compared with runs that
differ in one thing only: all flows are of one kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from whyloss import _native
from whyloss.friendliness.result import Effect, Friendliness
from whyloss.friendliness.worlds import dumbbell, load, mixtures, told
from whyloss.harm import goodputs
from whyloss.kinds import Kind, names
from whyloss.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from whyloss.scenario import Scenario

__all__ = ["Effect", "Friendliness", "Kind", "dumbbell", "friendly", "names"]

FLOWS = 4
RUNS = 30
#: The share of the duration at its beginning that does not count.
WARM_UP = 0.2
#: The most flows that one test takes.
MOST_FLOWS = 200


def friendly(
    first: str | Mapping[str, object],
    second: str | Mapping[str, object],
    *,
    world: Scenario | str | PathLike[str] | None = None,
    flows: int = FLOWS,
    runs: int = RUNS,
    warm_up: float = WARM_UP,
    store: str | PathLike[str] | None = None,
    threads: int | None = None,
    progress: Callable[[_native.Progress], object] | None = None,
) -> Friendliness:
    """Runs flows of two kinds side by side and tells what each does to the other.

    There are five mixes: all of the first kind, all of the second, half and half, and one of either against all others
    of the other. Run ``n`` has the same random numbers in each.

    Args:
        first: the one kind, as :meth:`Kind.of` takes it.
        second: the other.
        world: a scenario, or its file; :func:`dumbbell` if nothing is said. Cross traffic in it (``cbr``, ``stream``,
            ``web``) stays. The first of its other flows is the pattern of all: its hosts, its start, its profile and
            settings.
        flows: how many flows there are, an even number.
        runs: how often each mix is run.
        warm_up: the share of the duration at its beginning that does not count.
        store: folder in which finished runs are kept and found again.
        threads: runs at a time; one for each core if nothing is said. It changes no result.
        progress: is told how far it is, about ten times a second.

    Raises:
        whyloss.InputError: a scheme does not exist, or the world has no place for the flows.
    """
    kinds = (Kind.of(first), Kind.of(second))
    if not (2 <= flows <= MOST_FLOWS and flows % 2 == 0):
        msg = f"found {flows} flows; allowed: an even number from 2 to {MOST_FLOWS}"
        raise _native.InputError(msg)
    if not 0 < warm_up < 1:
        msg = f"found a warm-up of {warm_up}; allowed: a share of the duration above 0 and below 1"
        raise _native.InputError(msg)
    scenario = load(world)
    begin_s = warm_up * scenario.native.duration_s()
    begin_ns = round(begin_s * 1e9)
    sampled = scenario.replace({"output.sample": f"{begin_ns} ns"})
    sweep = Sweep(sampled, runs).variants(
        "mix", {name: {"flow": list_of} for name, list_of in mixtures(scenario, kinds, flows).items()}
    )
    results = sweep.run(store=store, threads=threads, progress=progress)
    table = goodputs(results, begin_ns).filter(pl.col("entry") < flows)
    return Friendliness(kinds, flows, runs, told(scenario, begin_s), table, results)
