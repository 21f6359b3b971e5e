"""Workers get ready: which of them may compute a sweep, and what they are told before the first batch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

import cloudpickle
from distributed import WorkerPlugin

from whyloss import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from whyloss.cluster.work import Order

__all__ = ["TOPIC", "Told", "asking", "plugin", "resource"]

#: What workers say of themselves goes to this topic of the scheduler.
TOPIC = "whyloss"


@dataclass(frozen=True, slots=True)
class Told:
    """What a worker says of itself."""

    worker: str
    ready: bool
    problem: str

    def __str__(self) -> str:
        """For people."""
        return f"worker {self.worker}: {self.problem}"


def resource(name: str) -> str:
    """What a worker offers, in Dask's terms, that is ready for the job called ``name``; batches ask for it."""
    return f"{name}-{_native.ENGINE[:16]}"


class _AsText:
    """What a function of `whyloss.cluster.ready` returns, made where it arrives.

    Code as Dask sends it crashes a worker of another Python.
    """

    def __init__(self, function: str, *arguments: object) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        text = files("whyloss.cluster").joinpath("ready.py").read_text(encoding="utf-8")
        names = {"text": text, "made": {"__name__": "whyloss_ready"}, "arguments": self.arguments}
        return (eval, (f"(exec(text, made), made['{self.function}'](*arguments))[1]", names))


class _Plugin(_AsText, WorkerPlugin):
    idempotent = True

    def __init__(self, name: str, *arguments: object) -> None:
        super().__init__("ready", name, *arguments)
        self.name = name


def plugin(name: str, order: Order) -> WorkerPlugin:
    """What makes workers ready for the job called ``name``, those that come later too.

    A worker of another version cannot read what this version writes, so that what comes first is understood without
    whyloss.
    """
    return _Plugin(name, (_native.VERSION, _native.ENGINE), resource(name), cloudpickle.dumps(order))


def asking(name: str) -> Callable[[Any], tuple[str, bool, str] | None]:
    """What asks a worker for what it says of itself."""
    return cast("Callable[[Any], tuple[str, bool, str] | None]", _AsText("said", name))
