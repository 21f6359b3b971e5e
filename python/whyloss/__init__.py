"""Why TCP lost a packet, congestion or corruption, and what it should do about it.

>>> import whyloss as wl
>>> results = wl.Scenario.load("examples/lossy-link.toml").run()
>>> results.losses  # one row a loss: its true cause, the verdict, what was done
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whyloss import _native
from whyloss._native import InputError, PartError, Progress, WhylossError, write_pattern
from whyloss.parts import add_part
from whyloss.results import Results, Table
from whyloss.scenario import Scenario
from whyloss.sweep import Sweep

if TYPE_CHECKING:
    from whyloss.friendliness import Friendliness, friendly

__all__ = [
    "Friendliness",
    "InputError",
    "PartError",
    "Progress",
    "Results",
    "Scenario",
    "Sweep",
    "Table",
    "WhylossError",
    "__version__",
    "add_part",
    "friendly",
    "write_pattern",
]

__version__ = _native.VERSION


def __getattr__(name: str) -> object:
    """What is imported when it is asked for: scipy takes longer than many a run."""
    if name not in ("Friendliness", "friendly"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from whyloss import friendliness

    return getattr(friendliness, name)
