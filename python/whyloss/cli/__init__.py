"""The command ``whyloss``.

Results go to standard output, everything else to standard error. Exit status: 0 done, 1 failed, 2 bad input, 130
interrupted.
"""

from whyloss.cli.app import main

__all__ = ["main"]
