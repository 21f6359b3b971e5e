"""Why TCP lost a packet, congestion or corruption, and what it should do about it.

>>> import whyloss as wl
>>> results = wl.Scenario.load("examples/lossy-link.toml").run()
>>> results.losses  # one row a loss: its true cause, the verdict, what was done
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from whyloss import _native
from whyloss._native import InputError, PartError, Progress, WhylossError, write_pattern
from whyloss.parts import add_part
from whyloss.paths import path
from whyloss.results import Picture, Results, Table, drawers
from whyloss.scenario import Scenario
from whyloss.sweep import Sweep

if TYPE_CHECKING:
    from whyloss.comparison import Comparison, compare
    from whyloss.drawing import plot
    from whyloss.friendliness import Friendliness, friendly

__all__ = [
    "Comparison",
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
    "compare",
    "friendly",
    "path",
    "plot",
    "write_pattern",
]

__version__ = _native.VERSION


#: What is imported when it is asked for, and where it is: scipy and matplotlib take longer than many a run.
_LATE = {
    "Comparison": "comparison",
    "compare": "comparison",
    "Friendliness": "friendliness",
    "friendly": "friendliness",
    "plot": "drawing",
}


def __getattr__(name: str) -> object:
    """What is imported when it is asked for."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATE[name]}"), name)


def _draw(*given: Any, **options: Any) -> Picture:
    from whyloss import drawing

    return drawing.plot(*given, **options)


drawers.append(_draw)
