"""Clusters that run behind a Dask Gateway, by ``dask-gateway``."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from whyloss import _native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dask_gateway import Gateway
    from distributed import Client

__all__ = ["GATEWAYS", "gateway_client"]

#: How the addresses of such clusters begin, and those of their gateways.
GATEWAYS = {"gateway+http://": "http://", "gateway+https://": "https://"}


@contextmanager
def gateway_client(where: str) -> Iterator[Client]:
    """The cluster at ``gateway+https://HOST/CLUSTER``, which goes on when the context ends.

    Who asks is told by Dask's configuration, as ``dask-gateway`` has it.

    Raises:
        whyloss.InputError: the address names no cluster.
        whyloss.UnavailableError: no gateway answers there, it refuses, or it has no such cluster at work.
    """
    from aiohttp import ClientConnectorCertificateError, ClientError
    from dask_gateway import Gateway, GatewayClusterError, GatewayServerError

    kind = next(kind for kind in GATEWAYS if where.startswith(kind))
    host, _, name = where.removeprefix(kind).rpartition("/")
    if not host or not name:
        raise _native.InputError(f"found {where!r}; allowed: {kind}HOST:PORT/CLUSTER")
    try:
        # It closes itself when it goes, and complains if that was done before.
        gateway = Gateway(GATEWAYS[kind] + host)
        known = _at_work(gateway)
        if name not in known:
            at_work = ", ".join(known) or "none"
            raise _native.UnavailableError(f"{where}: there is no such cluster; at work for you: {at_work}")
        cluster = gateway.connect(name)
    except ClientConnectorCertificateError as error:
        reason = getattr(error.certificate_error, "verify_message", "") or error
        what = "the environment variable SSL_CERT_FILE names a file with the certificate of who signed it (PEM)"
        raise _native.UnavailableError(f"{where}: its certificate is not trusted: {reason}; allowed: {what}") from error
    except (ClientError, GatewayClusterError, GatewayServerError, OSError, ValueError) as error:
        raise _native.UnavailableError(f"{where}: no Dask Gateway grants it: {error}") from error
    with cluster, cluster.get_client(set_as_default=False) as client:
        yield client


def _at_work(gateway: Gateway) -> list[str]:
    """The names of the clusters that are at work."""
    try:
        return [report.name for report in gateway.list_clusters(status="running")]
    except BaseException:
        # Otherwise its session complains that nobody has closed it.
        gateway.sync(gateway._cleanup)
        raise
