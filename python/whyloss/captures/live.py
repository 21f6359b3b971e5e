"""The live view of a capture that is still coming: the summary so far, again and again.

What came until now lies in a file; it is explained anew from its beginning, so that the view says what the summary at
the end would say now. The more there is, the more seldom: explaining takes a fifth of the time at most.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Footer, Static

from whyloss.captures import words

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.binding import BindingType

    from whyloss.captures.summary import Summary

__all__ = ["View"]

_LEAST_S = 1.0
_SHARE = 5.0
_SHOWN = 20
#: Columns of an IPv4 address with its port; a longer address takes two lines where there is little room.
_ADDRESS = 23


class View(App[None]):
    """Shows what ``look`` says of the capture so far, until ``over`` says that it has ended, or somebody wants out."""

    CSS = """
        #sentence { height: auto; text-style: bold; padding: 0 0 1 0; }
        #about { height: auto; padding: 0 0 1 0; }
        #state { height: 1; color: $text-muted; }
        #worst, #causes { height: auto; padding: 0 0 1 0; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [("q,ctrl+c", "quit", "end the capture, and show its summary")]

    def __init__(self, look: Callable[[], tuple[Summary, int] | None], over: Callable[[], bool]) -> None:
        """``look`` gives the summary so far and the packets in it; nothing before the first packet."""
        super().__init__(ansi_color=True)
        self.animation_level = "none"
        self._look = look
        self._over = over
        self._shown: tuple[Summary, int] | None = None
        self._looker = threading.Thread(target=self._keep_looking, daemon=True)
        self._ended = threading.Event()

    def compose(self) -> ComposeResult:
        """Sentence, paragraph, connections, causes, keys."""
        yield Static("waiting for packets …", id="sentence", markup=False)
        with VerticalScroll():
            yield Static("", id="about", markup=False)
            yield Static("", id="worst")
            yield Static("", id="causes")
        yield Static("", id="state", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begins to look."""
        self._looker.start()
        self.set_interval(0.25, self._draw)

    def on_unmount(self) -> None:
        """Ends to look."""
        self._ended.set()

    def _keep_looking(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            self._shown = self._look() or self._shown
            self._ended.wait(max(_LEAST_S, _SHARE * (time.monotonic() - began)))

    def _draw(self) -> None:
        if self._over():
            self.exit()
            return
        if self._shown is None:
            return
        summary, packets = self._shown
        self.query_one("#sentence", Static).update(summary.sentence)
        self.query_one("#about", Static).update(summary.about)
        self.query_one("#worst", Static).update(_worst(summary))
        self.query_one("#causes", Static).update(_causes(summary))
        self.query_one("#state", Static).update(f"{packets:,} packets so far")


def _worst(summary: Summary) -> Table:
    flows = summary.worst.head(_SHOWN).to_dicts()
    longest = max((len(flow[name]) + 2 for flow in flows for name in ("sender", "receiver")), default=0)
    made = Table(box=None, pad_edge=False, header_style="dim")
    # Where there is no room, words and long addresses are broken; nothing is cut.
    made.add_column("sender, → receiver", overflow="fold", no_wrap=longest <= _ADDRESS)
    for name in ("data", "lost", "resent", "timeouts"):
        made.add_column(name, justify="right", no_wrap=True)
    made.add_column("mostly", overflow="fold")
    made.add_column("limited by", overflow="fold")
    for flow in flows:
        counts = (str(flow[name] or "") for name in ("lost", "retransmissions", "timeouts"))
        cause = words.cause(flow["cause"]) if flow["cause"] else ""
        ends = f"{flow['sender']}\n→ {flow['receiver']}"
        cells = (ends, words.amount(flow["acknowledged_octets"]), *counts, cause)
        made.add_row(*map(Text, (*cells, flow["most_limit"] or "")))
    return made


def _causes(summary: Summary) -> Table:
    made = Table("cause", box=None, pad_edge=False, header_style="dim")
    made.add_column("packets", justify="right")
    for name, packets, _ in summary.causes.iter_rows():
        made.add_row(Text(words.cause(name)), str(packets))
    return made
