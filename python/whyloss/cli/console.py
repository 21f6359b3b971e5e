"""What every command needs: output for people or machines, progress, and one way to fail."""

from __future__ import annotations

import json
import os
import sys
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
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from whyloss import _native

__all__ = [
    "Command",
    "Watch",
    "as_json",
    "complain",
    "err",
    "rate",
    "row",
    "say",
    "screen",
    "stopping",
    "table",
    "tell_json",
]

INTERRUPTED = 130

# Lines of a pipe or file are not broken for a terminal that is not there.
screen = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160)
err = Console(stderr=True, highlight=False, soft_wrap=True)

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines and nothing else.")


class Command(click.Command):
    """A command whose help ends with examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        """Takes the examples beside what every command takes."""
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the examples as they stand."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            formatter.write_paragraph()
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


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


def table(title: str, *columns: str) -> Table:
    """A table for people; a column whose name starts with ``>`` is aligned to the right."""
    made = Table(
        title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim"
    )
    for position, column in enumerate(columns):
        right = column.startswith(">")
        made.add_column(
            column.removeprefix(">"),
            justify="right" if right else "left",
            no_wrap=right or position == 0,
            overflow="fold",
        )
    return made


def row(into: Table, *cells: object) -> None:
    """Adds a row of plain text."""
    into.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in cells))


def rate(bps: float) -> str:
    """A bit rate for people."""
    for unit, size in (("Gbps", 1e9), ("Mbps", 1e6), ("kbps", 1e3)):
        if bps >= size:
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
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self._task = self._bars.add_task(what, total=None)

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
        self._bars.update(self._task, completed=fraction, total=1.0, description=text)


@contextmanager
def stopping(explain: Callable[[], str]) -> Iterator[None]:
    """Turns Ctrl-C into a sentence on what is kept and how to go on, and exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"stopped: {explain()}")
        raise click.exceptions.Exit(INTERRUPTED) from None
