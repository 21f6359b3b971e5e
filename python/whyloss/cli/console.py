"""What every command needs: output for people or machines, progress, and one way to fail."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from whyloss.cli.helping import Command, Group
from whyloss.cli.listing import FILE_WIDTH, SPELT, Printable, printable, row, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whyloss import _native

__all__ = [
    "ALL",
    "SPELT",
    "Command",
    "Group",
    "Watch",
    "as_json",
    "complain",
    "err",
    "printable",
    "rate",
    "row",
    "say",
    "screen",
    "stopping",
    "table",
    "tell_json",
]

INTERRUPTED = 130
#: Without a terminal, a line tells so often how far the work is.
LINE_EVERY_S = float(os.environ.get("WHYLOSS_PROGRESS_S", "10"))

# Lines of a pipe or file are not broken for a terminal that is not there.
_WIDTH = None if sys.stdout.isatty() or "COLUMNS" in os.environ else FILE_WIDTH
screen = Console(highlight=False, soft_wrap=True, width=_WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True)
for console in (screen, err):
    console.push_render_hook(Printable())

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines and nothing else.")


def say(text: str) -> None:
    """Tells people something beside the results."""
    err.print(text, markup=False)


def complain(message: str) -> None:
    """Says what went wrong."""
    err.print(f"[bold red]error:[/] {escape(message)}")


def tell_json(value: object) -> None:
    """Prints ``value`` as JSON; numbers that JSON does not know become null."""
    as_it_is = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    json.dump(_finite(value), sys.stdout, indent=2, ensure_ascii=not as_it_is)
    sys.stdout.write("\n")


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if value - value == 0 else None
        case dict():
            return {str(key): _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case _:
            return value


#: How to see all rows of a table that is shortened.
ALL = "--json and --out have all"


def rate(bps: float) -> str:
    """A bit rate for people."""
    for unit, size in (("Gbps", 1e9), ("Mbps", 1e6), ("kbps", 1e3)):
        if abs(bps) >= size:
            return f"{bps / size:.4g} {unit}"
    return f"{bps:.4g} bps"


class Watch:
    """Follows work that counts runs: a bar with time left for people, and the last count for whoever is interrupted."""

    def __init__(self, what: str) -> None:
        """Watches ``what``."""
        self.what = what
        self.done = 0
        self.total = 0
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("left"),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self._task = self._bars.add_task(what, total=None)
        self._began = self._told = time.monotonic()

    def __enter__(self) -> Watch:
        """Shows the bar."""
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Takes the bar away."""
        self._bars.stop()

    def count(self, done: int, total: int) -> None:
        """Notes that ``done`` of ``total`` runs are done."""
        self.done, self.total = done, total
        self._move(done / max(total, 1), f"{self.what}: {done} of {total} runs")

    def follow(self, now: _native.Progress) -> None:
        """Notes what the engine says."""
        if now.total > 1:
            self.count(now.done, now.total)
        else:
            self._move(now.fraction, self.what)

    def _move(self, fraction: float, text: str) -> None:
        now = time.monotonic()
        if not err.is_terminal and now - self._told >= LINE_EVERY_S:
            self._told = now
            say(f"{text}, {100 * fraction:.0f} % after {now - self._began:.0f} s")
        self._bars.update(self._task, completed=fraction, total=1.0, description=text)


@contextmanager
def stopping(explain: Callable[[], str]) -> Iterator[None]:
    """Turns Ctrl-C into a sentence on what is kept and how to go on, and exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"stopped: {explain()}")
        raise click.exceptions.Exit(INTERRUPTED) from None
