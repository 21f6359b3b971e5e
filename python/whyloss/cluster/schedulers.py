"""Dask schedulers at an address: who answers there, and why not."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from whyloss import _native

__all__ = ["expect_scheduler"]

#: What a connection by TLS takes, in Dask's configuration.
CERTIFICATES = "distributed.comm.tls: ca-file, client.cert and client.key"


def expect_scheduler(where: str, address: str, timeout_s: float) -> None:
    """Asks who answers at ``address``, which somebody wrote as ``where``.

    A client of Dask would wait forever for somebody who takes the connection and says nothing.

    Raises:
        whyloss.UnavailableError: it is no scheduler, or does not answer in time.
    """
    try:
        # Not in this thread: notebooks have a loop in it.
        with ThreadPoolExecutor(1) as pool:
            kind = pool.submit(asyncio.run, _asked(address, timeout_s)).result()
    except (OSError, ValueError, TypeError) as error:
        reason = _reason(address, error, timeout_s)
        raise _native.UnavailableError(f"{where}: no Dask scheduler answers: {reason}") from error
    if kind != "Scheduler":
        raise _native.UnavailableError(f"{where}: no Dask scheduler answers but a {kind}; name the scheduler")


async def _asked(address: str, timeout_s: float) -> str:
    """What kind of server says that it is there."""
    from distributed.comm.core import connect
    from distributed.security import Security

    async def ask() -> str:
        comm = await connect(address, timeout=timeout_s, **Security().get_connection_args("client"))
        try:
            await comm.write({"op": "identity", "reply": True})
            return str((await comm.read())["type"])
        finally:
            comm.abort()

    # Somewhat longer, so that what the connection itself says comes first.
    return await asyncio.wait_for(ask(), timeout_s + 0.5)


def _reason(address: str, error: Exception, timeout_s: float) -> str:
    """What is wrong, and what somebody can do about it."""
    certificates = f"Dask's configuration has to name its certificates ({CERTIFICATES})"
    if type(error) is TimeoutError:
        return f"somebody takes the connection and says nothing for {timeout_s:g} s"
    if not address.startswith("tls://"):
        over = "Timed out" in str(error)
        return f"{error}" if over else f"{error}; if it speaks TLS, its address is tls://HOST:PORT, and {certificates}"
    if isinstance(error, TypeError) or type(error) is FileNotFoundError:
        # Neither says which certificate.
        return f"{certificates}, and they have to be there"
    if "cannot convert to SSL" in str(error) or not str(error):
        # Which of both comes depends on who speaks first.
        return "it seems that it does not speak TLS; then its address is dask://HOST:PORT"
    return str(error)
