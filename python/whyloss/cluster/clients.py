"""Clients of Dask that Ctrl-C ends."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Client

__all__ = ["client_of"]


@contextmanager
def client_of(where: object, **options: Any) -> Iterator[Client]:
    """A client of a cluster, or of a scheduler's address, closed at the end.

    Ctrl-C comes when it is made: one that is broken off before would wait for ever when the process ends.
    """
    from distributed import Client

    with ExitStack() as stack:
        with _signals_later():
            client = stack.enter_context(Client(where, set_as_default=False, **options))
        yield client


@contextmanager
def _signals_later() -> Iterator[None]:
    """What Ctrl-C and SIGTERM do, they do at the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, does in before.items():
        if callable(does):
            signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, does in before.items():
            signal.signal(number, does)
    if came:
        signal.raise_signal(came[0])
