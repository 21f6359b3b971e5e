"""Sweeps on the machines of a Dask cluster. It needs the extra ``cluster``."""

from __future__ import annotations

import logging
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from whyloss import _native
from whyloss.cluster.batches import Batches
from whyloss.cluster.buckets import Bucket, BucketError
from whyloss.cluster.campaign import Campaign, Detached
from whyloss.cluster.clients import client_of
from whyloss.cluster.gateways import GATEWAYS, gateway_client
from whyloss.cluster.jobs import SYSTEMS, Jobs, queued
from whyloss.cluster.schedulers import expect_scheduler
from whyloss.cluster.stores import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distributed import Client

    from whyloss.cluster.work import Failure

__all__ = ["Detached", "Jobs", "RunsFailed", "connect", "run"]

T = TypeVar("T")

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
def connect(where: str, jobs: Jobs | None = None, timeout_s: float = 10) -> Iterator[Client]:
    """The cluster whose scheduler listens at ``dask://HOST:PORT``, or one of ``jobs`` of a batch system.

    ``gateway+http://HOST:PORT/CLUSTER`` and ``gateway+https://…`` name a cluster that runs behind a Dask Gateway.

    Raises:
        whyloss.InputError: it is neither an address nor a batch system.
        whyloss.UnavailableError: nobody answers there, there is no such cluster, or the batch system takes no jobs.
    """
    if where in SYSTEMS:
        with queued(where, jobs or Jobs()) as client:
            yield client
        return
    if where.startswith(tuple(GATEWAYS)):
        with gateway_client(where) as client:
            yield client
        return
    kind = next((kind for kind in ADDRESSES if where.startswith(kind)), None)
    if kind is None or not _names_port(where):
        addresses = "the address of a Dask scheduler, dask://HOST:PORT, or of a cluster behind a Dask Gateway, "
        allowed = f"{addresses}gateway+https://HOST/CLUSTER, or a batch system: {', '.join(SYSTEMS)}"
        raise _native.InputError(f"found {where!r}; allowed: {allowed}")
    address = ADDRESSES[kind] + where.removeprefix(kind)
    expect_scheduler(where, address, timeout_s)
    with ExitStack() as stack:
        try:
            client = stack.enter_context(client_of(address, timeout=timeout_s))
        except (OSError, ValueError) as error:
            raise _native.UnavailableError(f"{where}: no Dask scheduler answers: {error}") from error
        yield client


def _names_port(address: str) -> bool:
    """Whether it is ``…://HOST:PORT``."""
    try:
        parts = urlsplit(address)
        return bool(parts.hostname and parts.port) and not parts.path
    except ValueError:
        return False


def run(
    sweep: _native.Sweep,
    client: Client,
    finish: Callable[[Path], T],
    *,
    store: Path | str | None,
    progress: Callable[[_native.Progress], object] | None,
    note: Callable[[str], None] | None,
    detach: bool = False,
) -> T:
    """Computes on ``client``'s workers what is not in ``store`` yet: a folder, or the address of a bucket.

    What ``finish`` makes of the folder that has all runs then is returned. With ``detach``, Ctrl-C leaves the cluster
    at work, and the same call comes back to it.

    Raises:
        Detached: Ctrl-C has left the cluster at work.
        RunsFailed: some runs failed. The others are kept.
        whyloss.UnavailableError: no worker can compute it, the scheduler is gone for good, or the bucket refuses.
    """
    try:
        return _run(sweep, client, finish, store, progress, note, detach)
    except BucketError as error:
        raise _native.UnavailableError(str(error)) from error


def _run(
    sweep: _native.Sweep,
    client: Client,
    finish: Callable[[Path], T],
    store: Path | str | None,
    progress: Callable[[_native.Progress], object] | None,
    note: Callable[[str], None] | None,
    detach: bool,
) -> T:
    log = logging.getLogger("whyloss.cluster")
    if detach and store is None:
        raise _native.InputError("nobody finds again what is computed without a store; allowed with `detach`: a store")
    with tempfile.TemporaryDirectory() as temporary:
        bucket = Bucket(store) if isinstance(store, str) else None
        folder = store if isinstance(store, Path) else Path(temporary)
        if bucket:
            bucket.check()
            stems = set(sweep.part_stems())
            bucket.fetch_headers(stems, folder)
        began, total = time.monotonic(), sweep.total()
        batches = Batches(sweep.missing(folder))
        found = total - batches.runs
        kept = bucket or Folder.of(folder)
        campaign = Campaign(client, sweep.to_recipe(), batches, kept, folder, note or log.warning, detach)

        def tell() -> None:
            if progress is not None:
                progress(_native.Progress(found + campaign.done, total, found, time.monotonic() - began))

        tell()
        if batches.runs or campaign.left_at_work:
            campaign.run(tell)
        if campaign.failures:
            raise RunsFailed(campaign.failures)
        if bucket:
            bucket.fetch(stems, folder)
        return finish(folder)
