"""A run in the terminal while it is simulated: windows, round trips, queue and goodput grow from left to right."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import plotext
import polars as pl
from rich.live import Live
from rich.text import Text

from whyloss.cli.console import rate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from rich.console import Console, ConsoleOptions, RenderResult

    from whyloss import _native
    from whyloss.results import Results
    from whyloss.scenario import Scenario

__all__ = ["LiveView", "pace_of", "sampled"]

#: Flows whose lines are drawn; of more nobody could follow the lines.
MOST_FLOWS = 4
#: Points that a line keeps; of more every second one is let go.
MOST_POINTS = 2000
#: A run takes so long to look at, if nothing is said.
_LASTS_S = 10.0
#: Terminal colours of lines, in the order of flows.
_LINES = (33, 208, 36, 175)
_CORRUPTION, _CONGESTION, _TIMEOUT = 45, 202, 196
#: Lines of a panel with its axis, at least, and the share of the screen that the panel of windows has.
_LEAST, _SHARE = 6, 0.42
#: More losses a column than this stand above the window, not on it.
_CROWD = 0.3
_PER_S = 1e9


def sampled(scenario: Scenario) -> Scenario:
    """The scenario with time series, as many as a terminal can show, if it asks for none."""
    if scenario.to_dict().get("output", {}).get("sample"):
        return scenario
    interval = min(max(scenario.native.duration_s() / 2000, 0.001), 0.01)
    return scenario.replace({"output.sample": f"{round(interval * 1e9)} ns"})


def pace_of(scenario: Scenario, asked: float | None) -> float | None:
    """Simulated seconds a second; ``None`` for as many as there can be."""
    if asked is not None:
        return asked or None
    if scenario.to_dict()["scenario"].get("duration") is None:
        return 1.0
    return scenario.native.duration_s() / _LASTS_S


@dataclass(slots=True)
class _Line:
    """Points of a line, thinned when they become too many."""

    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)

    def add(self, x: float, y: float) -> None:
        """One more point."""
        self.x.append(x)
        self.y.append(y)
        if len(self.x) > MOST_POINTS:
            del self.x[1:-1:2], self.y[1:-1:2]


@dataclass(slots=True)
class _Flow:
    """What has been seen of a flow."""

    cwnd: _Line = field(default_factory=_Line)
    srtt: _Line = field(default_factory=_Line)
    goodput: _Line = field(default_factory=_Line)
    marks: list[tuple[float, float, str]] = field(default_factory=list)
    timeouts: _Line = field(default_factory=_Line)
    lost: int = 0
    expired: int = 0
    since: tuple[float, int] = (0.0, 0)


class LiveView:
    """The picture of a run that goes on. Give :meth:`follow` to a run as its ``progress``."""

    def __init__(self, scenario: Scenario, console: Console) -> None:
        """Takes the scenario that runs and where to draw."""
        self.name = scenario.name
        self.length = scenario.native.duration_s()
        self.fixed = scenario.to_dict()["scenario"].get("duration") is not None
        self.now = 0.0
        self.flows: dict[str, _Flow] = {}
        self.queue = _Line()
        self.over = False
        self._bin = self.length / 60 if self.fixed else 0.25
        self._live = Live(self, console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> LiveView:
        """Begins to draw."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the last picture on the screen."""
        self._live.stop()

    def follow(self, progress: _native.Progress) -> None:
        """Takes what was sampled since the last time, and draws."""
        self.add(progress.senders, progress.queues, progress.losses)
        self._live.refresh()

    def add(
        self,
        senders: Sequence[tuple[str, int, int, int | None, int | None, int, int, int]],
        queues: Sequence[tuple[int, int]],
        losses: Sequence[tuple[str, int, str | None]] = (),
    ) -> None:
        """Takes samples, and losses with their true causes."""
        for name, at_ns, cwnd, _, srtt, delivered, lost, timeouts in senders:
            at = at_ns / _PER_S
            self.now = max(self.now, at)
            if name not in self.flows:
                if len(self.flows) >= MOST_FLOWS:
                    continue
                self.flows[name] = _Flow()
            flow = self.flows[name]
            flow.cwnd.add(at, cwnd / 1e3)
            if srtt is not None:
                flow.srtt.add(at, srtt / 1e6)
            began, had = flow.since
            if at - began >= self._bin:
                flow.goodput.add(at, (delivered - had) * 8 / (at - began) / 1e6)
                flow.since = (at, delivered)
            if timeouts > flow.expired:
                flow.timeouts.add(at, 0.0)
            flow.lost, flow.expired = lost, timeouts
        for at_ns, packets in queues:
            self.queue.add(at_ns / _PER_S, packets)
        for name, at_ns, true in losses:
            if name in self.flows and true is not None:
                flow, at = self.flows[name], at_ns / _PER_S
                flow.marks.append((at, _at(flow.cwnd, at), true))
                if len(flow.marks) > MOST_POINTS:
                    del flow.marks[::2]

    def finish(self, results: Results) -> None:
        """Draws the whole run, with what came after the last look at it."""
        shown, self.flows, self.queue, self.now = list(self.flows), {}, _Line(), 0.0
        names = ("flow", "at_ns", "cwnd_octets", "ssthresh_octets", "srtt_ns", "octets_delivered")
        rows = results.samples.to_polars().select(names).iter_rows()
        senders = [(*row, 0, 0) for row in rows if not shown or row[0] in shown]
        losses = results.losses.to_polars().select("flow", "at_ns", "true_class").rows()
        self.add(senders, [], losses)
        waiting = results.queues.to_polars().group_by("at_ns", maintain_order=True)
        self.add([], waiting.agg(pl.col("queue_packets").max()).rows())
        self.now = float(results.runs["ended_at_ns"][0]) / _PER_S
        for name, lost, expired in results.flows.to_polars().select("flow", "losses", "timeouts").iter_rows():
            if name in self.flows:
                self.flows[name].lost, self.flows[name].expired = lost or 0, expired or 0
        for name, at_ns in results.timeouts.to_polars().select("flow", "at_ns").iter_rows():
            if name in self.flows:
                self.flows[name].timeouts.add(at_ns / _PER_S, 0.0)
        self.over = True
        self._live.refresh()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Panels below each other, as wide as the terminal and no higher."""
        width, height = options.max_width, console.size.height - 3
        parts: list[tuple[str, list[tuple[str, _Line, int]]]] = [("window (kB)", self._lines("cwnd"))]
        for title, lines in (
            ("SRTT (ms)", self._lines("srtt")),
            ("goodput (Mbps)", self._lines("goodput")),
            ("longest queue (packets)", [("", self.queue, 250)]),
        ):
            if (len(parts) + 1) * _LEAST <= height:
                parts.append((title, lines))
        lower = max(_LEAST, int((1 - _SHARE) * height / max(1, len(parts) - 1)))
        first = max(_LEAST, height - lower * (len(parts) - 1))
        yield Text(self._status(), overflow="ellipsis", no_wrap=True)
        for number, (title, lines) in enumerate(parts):
            drawn = self._panel(title, lines, width, first if number == 0 else lower, marks=number == 0)
            yield Text.from_ansi(drawn, no_wrap=True, overflow="crop")
        yield Text.from_ansi(self._legend(), no_wrap=True, overflow="ellipsis")

    def _lines(self, quantity: str) -> list[tuple[str, _Line, int]]:
        several = len(self.flows) > 1
        return [
            (name if several else "", getattr(flow, quantity), _LINES[number % len(_LINES)])
            for number, (name, flow) in enumerate(self.flows.items())
        ]

    def _status(self) -> str:
        lost, expired = (sum(getattr(flow, name) for flow in self.flows.values()) for name in ("lost", "expired"))
        goodputs = [flow.goodput.y[-1] * 1e6 for flow in self.flows.values() if flow.goodput.y]
        now = f"{self.now:.2f} of {self.length:g} s" if self.fixed else f"{self.now:.2f} s"
        got = f", {rate(sum(goodputs))} now" if goodputs and not self.over else ""
        return f"{self.name}: {now}, {lost} losses, {expired} timeouts{got}"

    def _panel(self, title: str, lines: list[tuple[str, _Line, int]], width: int, height: int, *, marks: bool) -> str:
        plotext.clear_figure()
        plotext.theme("clear")
        plotext.plotsize(width, height)
        plotext.title(title)
        end = self.length if self.fixed else max(1.0, self.now * 1.25)
        plotext.xlim(0, end)
        top = max((max(line.y) for _, line, _ in lines if line.y), default=1.0)
        plotext.ylim(0, max(top * 1.08, 1e-3))
        plotext.yfrequency(3 if height < 10 else 4)
        plotext.xfrequency(7)
        for label, line, tone in lines:
            if line.x:
                plotext.plot(line.x, line.y, marker="braille", color=tone, label=_plain(label) or None)
        if marks:
            self._marks(width, top * 1.08)
        drawn: str = plotext.build()
        return drawn.rstrip("\n")

    def _marks(self, width: int, top: float) -> None:
        """Losses on the window, or above it where they would cover it; timeouts as upright lines."""
        for flow in self.flows.values():
            for at in flow.timeouts.x:
                plotext.vline(at, color=_TIMEOUT)
        looks = (("corruption", "o", _CORRUPTION), ("congestion", "#", _CONGESTION))
        kinds = [
            (symbol, tone, [mark[:2] for flow in self.flows.values() for mark in flow.marks if mark[2] == true])
            for true, symbol, tone in looks
        ]
        crowded = sum(len(found) for _, _, found in kinds) > width * _CROWD
        for number, (symbol, tone, found) in enumerate(kinds):
            if found:
                row = top * (1 - 0.12 * number)
                heights = [row if crowded else cwnd for _, cwnd in found]
                plotext.scatter([at for at, _ in found], heights, marker=symbol, color=tone)

    def _legend(self) -> str:
        bar = f"{_tone('|', _TIMEOUT)} timeout"
        return f"{_tone('o', _CORRUPTION)} corruption loss   {_tone('#', _CONGESTION)} congestion loss   {bar}"


def _at(line: _Line, when: float) -> float:
    """The last value before a moment."""
    return line.y[max(bisect_right(line.x, when) - 1, 0)] if line.x else 0.0


def _tone(text: str, colour: int) -> str:
    return f"\x1b[38;5;{colour}m{text}\x1b[0m"


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)
