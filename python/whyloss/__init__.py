"""Why TCP lost a packet, congestion or corruption, and what it should do about it.

>>> import whyloss as wl
>>> results = wl.Scenario.load("examples/lossy-link.toml").run()
>>> results.losses  # one row a loss: its true cause, the verdict, what was done
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whyloss._native import InputError, PartError, Progress, UnavailableError, WhylossError, write_pattern
    from whyloss.comparison import Comparison, compare
    from whyloss.drawing import plot
    from whyloss.friendliness import Friendliness, friendly
    from whyloss.parts import add_part
    from whyloss.paths import path
    from whyloss.results import Results, Table
    from whyloss.scenario import Scenario
    from whyloss.sweep import Sweep

    __version__: str

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
    "UnavailableError",
    "WhylossError",
    "__version__",
    "add_part",
    "compare",
    "friendly",
    "path",
    "plot",
    "write_pattern",
]

#: What is imported when it is asked for, and where it is: polars, scipy and matplotlib take longer than many a run, and
#: the command answers Ctrl-C before it imports any of them.
_LATE = {
    "Comparison": "comparison",
    "Friendliness": "friendliness",
    "InputError": "_native",
    "PartError": "_native",
    "Progress": "_native",
    "Results": "results",
    "Scenario": "scenario",
    "Sweep": "sweep",
    "Table": "results",
    "UnavailableError": "_native",
    "WhylossError": "_native",
    "add_part": "parts",
    "compare": "comparison",
    "friendly": "friendliness",
    "path": "paths",
    "plot": "drawing",
    "write_pattern": "_native",
}


def __getattr__(name: str) -> object:
    """What is imported when it is asked for."""
    if name == "__version__":
        return importlib.import_module(f"{__name__}._native").VERSION
    if name in _LATE:
        return getattr(importlib.import_module(f"{__name__}.{_LATE[name]}"), name)
    # Modules are there without being imported, too.
    if not name.startswith("__") and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is, imported or not."""
    return sorted({*globals(), *__all__})
