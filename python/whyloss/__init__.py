"""Why TCP lost a packet, congestion or corruption, and what it should do about it.

>>> import whyloss as wl
>>> results = wl.Scenario.load("examples/lossy-link.toml").run()
>>> results.losses  # one row a loss: its true cause, the verdict, what was done
"""

from whyloss import _native
from whyloss._native import InputError, PartError, Progress, WhylossError, write_pattern
from whyloss.parts import add_part
from whyloss.results import Results, Table
from whyloss.scenario import Scenario
from whyloss.sweep import Sweep

__all__ = [
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
    "write_pattern",
]

__version__ = _native.VERSION
