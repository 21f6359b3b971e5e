"""The live view in a terminal.

It draws the rows that are on the screen and no others, so that thousands of connections cost no more than a few.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Footer, Static

from whyloss.top.columns import cell, fitting, rate
from whyloss.top.order import SORT_KEYS, ordered

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events
    from textual.binding import BindingType

    from whyloss.top.columns import Column
    from whyloss.top.tally import Line, Machine

__all__ = ["View"]

PLAIN = Style()
HEAD = Style(bold=True, reverse=True)
SORTED = Style(bold=True)
LOSING = Style(color="yellow")
DAMAGED = Style(color="red")


class Table(ScrollView, can_focus=True):
    """Rows of connections; the first row of the screen says what the columns are, and by which it is sorted."""

    def __init__(self) -> None:
        """An empty table."""
        super().__init__()
        self.lines: list[Line] = []
        self.sort_key = "out"

    def show(self, lines: list[Line], sort_key: str) -> None:
        """Replaces what is shown."""
        self.lines = lines
        self.sort_key = sort_key
        self.virtual_size = Size(1, len(lines) + 1)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draws one line of the screen."""
        width = self.scrollable_content_region.width
        columns = fitting(width, self.sort_key)
        if y == 0:
            segments = self._head(columns)
        else:
            row = y - 1 + self.scroll_offset.y
            if row >= len(self.lines):
                return Strip.blank(width)
            line = self.lines[row]
            text = " ".join(cell(column, column.text(line)) for column in columns)
            segments = [Segment(text, _style(line))]
        return Strip(segments).adjust_cell_length(width)

    def _head(self, columns: list[Column]) -> list[Segment]:
        cells = [
            Segment(cell(column, column.title), SORTED if column.key == self.sort_key else HEAD) for column in columns
        ]
        return [part for one in cells for part in (one, Segment(" ", HEAD))][:-1]


def _style(line: Line) -> Style:
    if line["damaged_in"]:
        return DAMAGED
    return LOSING if line.retransmits_per_s else PLAIN


class View(App[None]):
    """Shows what ``look`` gives, every ``interval`` seconds."""

    CSS = """
        Screen { layout: vertical; }
        #summary, Footer { height: 1; }
        Table { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q,ctrl+c", "quit", "quit"),
        ("greater_than_sign,full_stop", "sort(1)", "next key"),
        ("less_than_sign,comma", "sort(-1)", "key before"),
        ("r", "reverse", "reverse"),
        ("p", "pause", "pause"),
    ]

    def __init__(
        self, look: Callable[[], Machine], drain: Callable[[], None], interval: float, sort_key: str, *, reverse: bool
    ) -> None:
        """Takes snapshots with ``look``, and calls ``drain`` in between."""
        super().__init__(ansi_color=True)
        self.animation_level = "none"
        self.look = look
        self.drain = drain
        self.interval = interval
        self.sort_key = sort_key
        self.reversed = reverse
        self.paused = False
        self.machine: Machine | None = None

    def compose(self) -> ComposeResult:
        """Summary, table, keys."""
        yield Static(id="summary", markup=False)
        yield Table()
        yield Footer()

    def on_mount(self) -> None:
        """Begins to look."""
        # The terminal is to be as before, however this ends.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.exit)
        self.query_one(Table).focus()
        self._tick()
        self.set_interval(self.interval, self._tick)
        # Textual looks into what it calls, which a method of an extension module does not bear.
        self.set_interval(min(self.interval, 0.5), lambda: self.drain())

    def on_resize(self, _: events.Resize) -> None:
        """Draws again: other columns may fit."""
        self._draw()

    def _tick(self) -> None:
        # The counts go on while the picture stands still.
        machine = self.look()
        if not self.paused:
            self.machine = machine
            self._draw()

    def _draw(self) -> None:
        machine = self.machine
        if machine is None:
            return
        self.query_one(Table).show(ordered(machine.lines, self.sort_key, reverse=self.reversed), self.sort_key)
        self.query_one("#summary", Static).update(self._summary(machine))

    def _summary(self, machine: Machine) -> str:
        out = rate(sum(line.out_bps for line in machine.lines))
        into = rate(sum(line.in_bps for line in machine.lines))
        state = "paused, " if self.paused else ""
        order = " reversed" if self.reversed else ""
        return (
            f"{state}by {self.sort_key}{order}: {len(machine.lines)} connections, {len(machine.closed)} ended; "
            f"out {out}, in {into} bit/s; damaged in {machine.damaged_in}"
        )

    def action_sort(self, step: int) -> None:
        """Sorts by the next key, or the one before."""
        keys = list(SORT_KEYS)
        self.sort_key = keys[(keys.index(self.sort_key) + step) % len(keys)]
        self._draw()

    def action_reverse(self) -> None:
        """Turns the order round."""
        self.reversed = not self.reversed
        self._draw()

    def action_pause(self) -> None:
        """Holds the picture, or lets it go on."""
        self.paused = not self.paused
        self._draw()
