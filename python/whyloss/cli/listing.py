"""Tables for people: as wide as the terminal, and never with a number cut."""

from __future__ import annotations

import codecs
import re
import sys
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import RenderHook
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, ConsoleOptions, ConsoleRenderable, JustifyMethod, RenderResult

__all__ = ["FILE_WIDTH", "SPELT", "Listing", "Printable", "printable", "row", "table"]

#: A text that is broken into lines keeps this width, if it is not shorter anyway.
_READABLE = 16
_GAP = 2
#: The width of lines for a file or pipe, where nobody says another.
FILE_WIDTH = 160

#: Characters that move the cursor, change colours or the direction of writing.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


#: How a stream writes what its encoding does not know, such as Latin-1 a minus: this name is for `errors`.
SPELT = "whyloss-spelt"
_SPELLINGS = {"…": "...", "–": "-", "−": "-", "—": "-", "±": "+-", "×": "x", "≥": ">=", "≤": "<=", "█": "#", "·": "."}


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    known = (_SPELLINGS.get(sign) or sign.encode("ascii", "backslashreplace").decode("ascii") for sign in found)
    return "".join(known), error.end


codecs.register_error(SPELT, _spell)


def printable(text: str) -> str:
    """``text`` with a visible sign in the place of each character that would command the terminal."""
    return _CONTROLS.sub(lambda found: chr(0x2400 + ord(found[0])) if found[0] < " " else "\ufffd", text)


class Printable(RenderHook):
    """Lets nothing reach the terminal that commands it, such as a name in a file that holds an escape."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Replaces these characters in texts; what has cells of its own cleans them itself."""
        return [_clean(found) if isinstance(found, Text) else found for found in renderables]


def _clean(text: Text) -> Text:
    if _CONTROLS.search(text.plain):
        text = text.copy()
        text.plain = printable(text.plain)  # as long as before, so that styles stay where they are
    return text


class Listing:
    """Rows under headings.

    Texts and headings are broken at words. What is still too wide continues below, or is shown row by row, one value a
    line. Numbers and names stay whole.
    """

    def __init__(self, title: str, columns: Sequence[str]) -> None:
        """No rows yet; a column whose name starts with ``>`` holds numbers and is aligned to the right."""
        self.title = title
        self.headings = [column.removeprefix(">") for column in columns]
        self.numeric = [column.startswith(">") for column in columns]
        self.rows: list[list[Text]] = []
        self.rest = ""

    def add(self, cells: Sequence[object]) -> None:
        """Adds a row of texts, or of what becomes text."""
        texts = [_clean(cell if isinstance(cell, Text) else Text(str(cell))) for cell in cells]
        if len(texts) != len(self.headings):
            raise ValueError(f"a row of {len(texts)} cells for {len(self.headings)} columns")
        self.rows.append(texts)

    def shortened(self, how: str, most: int = 40) -> Listing:
        """With ``most`` rows, and a line that says how many there are more and ``how`` to see all."""
        if len(self.rows) > most:
            self.rest = f"… and {len(self.rows) - most} more; {how}"
            del self.rows[most:]
        return self

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draws it in the width that there is."""
        if self.title:
            yield Text(printable(self.title), style="bold")
        room = options.max_width
        if not console.is_terminal and room >= FILE_WIDTH:
            room = max(room, self._taken(range(len(self.headings))))  # nothing is there to be too narrow
        blocks = self._blocks(room)
        if not blocks:
            yield from self._records()
        for position, block in enumerate(blocks):
            if position:
                yield Text("")
            yield from console.render(self._drawn(block, room), options.update(width=room, no_wrap=False))
        if self.rest:
            yield Text(self.rest, style="dim")

    def _blocks(self, room: int) -> list[list[int]]:
        """Columns that stand beside each other; those after the first block with the rows' names again.

        None if that could not be read: a single row, or one with more to say than numbers.
        """
        every = list(range(len(self.headings)))
        if self._taken(every) <= room:
            return [every]
        names = every[: self.numeric.index(True)] if True in self.numeric else every
        if len(self.rows) < 2 or not all(self.numeric[len(names) :]):
            return []
        blocks = [[*names]]
        for column in every[len(names) :]:
            if self._taken([*blocks[-1], column]) > room:
                blocks.append([*names])
            blocks[-1].append(column)
        return [] if any(block == names or self._taken(block) > room for block in blocks) else blocks

    def _taken(self, columns: Sequence[int]) -> int:
        return sum(map(self._least, columns)) + _GAP * (len(columns) - 1)

    def _drawn(self, columns: Sequence[int], room: int) -> Table:
        widths = _shared(
            [self._widest(column) for column in columns],
            [self._least(column) for column in columns],
            room - _GAP * (len(columns) - 1),
        )
        made = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
        for column, width in zip(columns, widths, strict=True):
            justify: JustifyMethod = "right" if self.numeric[column] else "left"
            made.add_column(Text(self.headings[column]), justify=justify, width=width, overflow="fold")
        for cells in self.rows:
            made.add_row(*(cells[column] for column in columns))
        return made

    def _records(self) -> RenderResult:
        label = max(map(cell_len, self.headings), default=0)
        for position, cells in enumerate(self.rows):
            if position:
                yield Text("")
            for heading, cell in zip(self.headings, cells, strict=True):
                if cell.plain.strip():
                    yield Text.assemble((f"{heading.strip():<{label}}  ", "dim"), cell)

    def _widest(self, column: int) -> int:
        return max([cell_len(self.headings[column]), *(_width(cells[column]) for cells in self.rows)])

    def _least(self, column: int) -> int:
        """The width below which this column cannot be read."""
        heading = max(map(cell_len, self.headings[column].split()), default=0)
        if self.numeric[column]:
            return max([heading, *(_width(cells[column]) for cells in self.rows)])
        words = [cell_len(word) for cells in self.rows for word in cells[column].plain.split()]
        return max(heading, max(words, default=0), min(self._widest(column), _READABLE) if column else 0)


def _width(cell: Text) -> int:
    return max(map(cell_len, cell.plain.splitlines()), default=0)


def _shared(widest: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths that fit into ``room``: the widest columns give first, none more than it can."""
    widths = list(widest)
    while (over := sum(widths) - room) > 0:
        giving = [column for column, width in enumerate(widths) if width > least[column]]
        if not giving:
            break
        column = max(giving, key=lambda candidate: widths[candidate])
        others = max((widths[candidate] for candidate in giving if candidate != column), default=0)
        widths[column] -= max(1, min(over, widths[column] - max(least[column], others)))
    return widths


def table(title: str, *columns: str) -> Listing:
    """A table for people; a column whose name starts with ``>`` holds numbers."""
    return Listing(title, columns)


def row(into: Listing, *cells: object) -> None:
    """Adds a row of plain text, spelt as the output will spell it: how wide it is decides how the table is laid out."""
    known = sys.stdout.encoding or "utf-8"
    into.add([cell.encode(known, SPELT).decode(known) if isinstance(cell, str) else cell for cell in cells])
