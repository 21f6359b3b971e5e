"""Sweeps on the machines of a Dask cluster. It needs the extra ``cluster``."""

from __future__ import annotations

import logging
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from whyloss import _native
from whyloss.cluster.batches import Batches
from whyloss.cluster.campaign import Campaign
from whyloss.cluster.stores import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distributed import Client

    from whyloss.cluster.work import Failure

__all__ = ["RunsFailed", "connect", "run"]

#: Failed runs that a message names; the others are counted.
NAMED = 10

#: How addresses of schedulers begin, and what Dask calls it.
ADDRESSES = {"dask://": "tcp://", "tcp://": "tcp://", "tls://": "tls://"}


class RunsFailed(_native.WhylossError):
    """Some runs of a sweep failed; all others are computed and kept."""

    def __init__(self, failures: list[Failure]) -> None:
        """Names the first of them."""
        more = f"; and {len(failures) - NAMED} more" if len(failures) > NAMED else ""
        named = "; ".join(map(str, failures[:NAMED]))
        super().__init__(f"{len(failures)} of the runs failed, all others are kept: {named}{more}")
        self.failures = failures


@contextmanager
def connect(address: str, timeout_s: float = 10) -> Iterator[Client]:
    """The cluster whose scheduler listens at ``dask://HOST:PORT``.

    Raises:
        whyloss.InputError: it is no such address.
        whyloss.UnavailableError: nobody answers there.
    """
    from distributed import Client

    kind = next((kind for kind in ADDRESSES if address.startswith(kind)), None)
    if kind is None or not address.removeprefix(kind):
        raise _native.InputError(f"found {address!r}; allowed: the address of a Dask scheduler, dask://HOST:PORT")
    try:
        client = Client(ADDRESSES[kind] + address.removeprefix(kind), timeout=timeout_s, set_as_default=False)
    except (OSError, ValueError) as error:
        raise _native.UnavailableError(f"{address}: no Dask scheduler answers: {error}") from error
    with client:
        yield client


def run(
    sweep: _native.Sweep,
    client: Client,
    *,
    store: Path | None,
    progress: Callable[[_native.Progress], object] | None,
    note: Callable[[str], None] | None,
) -> _native.Results:
    """Computes on ``client``'s workers what is not in ``store`` yet.

    Raises:
        RunsFailed: some runs failed. The others are kept.
        whyloss.UnavailableError: no worker can compute it, or the scheduler is gone for good.
    """
    log = logging.getLogger("whyloss.cluster")
    with tempfile.TemporaryDirectory() as temporary:
        folder = store or Path(temporary)
        began, total = time.monotonic(), sweep.total()
        batches = Batches(sweep.missing(folder))
        found = total - batches.runs
        campaign = Campaign(client, sweep.to_recipe(), batches, Folder.of(folder), folder, note or log.warning)

        def tell() -> None:
            if progress is not None:
                progress(_native.Progress(found + campaign.done, total, found, time.monotonic() - began))

        tell()
        if batches.runs:
            campaign.run(tell)
        if campaign.failures:
            raise RunsFailed(campaign.failures)
        return sweep.run(folder, None, None)
