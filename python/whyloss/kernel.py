"""The kernel part from Python: congestion controls that are there for as long as they are needed."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from whyloss import _native

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["available", "loaded", "name_in_kernel"]

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
PREFIX = "wl_"


def available() -> set[str]:
    """The congestion controls that connections can be given now.

    Raises:
        whyloss.UnavailableError: this is not Linux.
    """
    if not _AVAILABLE.exists():
        raise _native.UnavailableError("there are no congestion controls to choose from: that needs Linux")
    return set(_AVAILABLE.read_text(encoding="ascii").split())


def name_in_kernel(control: str) -> str:
    """What the kernel calls ``control``: its names have 15 letters at most."""
    if not control.startswith(PREFIX):
        return control
    known: dict[str, str] = {row["name"]: row["kernel_name"] for row in _native.kernel_list()["controls"]}
    return known.get(control, control)


@contextmanager
def loaded(controls: Iterable[str]) -> Iterator[None]:
    """Sees to it that those of ``controls`` that are ours are loaded.

    What was loaded before stays. What is loaded for this goes at the end, or with this process, however it ends.

    Raises:
        whyloss.WhylossError: this kernel cannot load them, or others are loaded.
    """
    ours = {control for control in controls if control.startswith(PREFIX)}
    if {name_in_kernel(control) for control in ours} <= available():
        yield
        return
    held = _native.KernelHeld(sorted(ours))
    try:
        yield
    finally:
        held.close()
