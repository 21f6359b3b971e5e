"""The command ``whyloss``.

Results go to standard output, everything else to standard error. Exit status: 0 done, 1 failed, 2 bad input, 130
interrupted.
"""

from typing import NoReturn

from whyloss.cli.loading import load

__all__ = ["main"]


def main() -> NoReturn:
    """Runs the command and ends the process with its exit status."""
    load("whyloss.cli.app")
    from whyloss.cli import app

    app.main()
