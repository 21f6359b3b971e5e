"""Flows under different congestion controls, side by side, on damaged links that are the same bit for bit."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from whyloss.figures import Curve, Figure, Style
from whyloss.scenario import Scenario
from whyloss.stacks import Glance, MeasuredRun, measure
from whyloss.stats import Exact

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["COLOURS", "DemoFlow", "Demonstration"]

SCENARIO = """
[scenario]
name = "demo"
description = "10 Mbit/s, 20 ms, some packets damaged"
seed = 1
duration = "20 s"

[path]
rate = "10 Mbps"
delay = "10 ms"
queue = "50 pkt"

[path.forward.channel]
effect = "damage"

[[flow]]
name = "demo"
profile = "linux"
scheme = "sack"
"""
COLOURS = ("#777777", "#2f72b8", "#d5622a", "#2b9a6c")
#: Goodput is shown over this long.
BIN_S = 0.5


@dataclass
class DemoFlow:
    """A flow under one congestion control, on a link of its own."""

    control: str
    arrived: list[tuple[float, int]] = field(default_factory=list)
    """Seconds since the beginning, and octets that had arrived by then."""
    outcome: MeasuredRun | None = None

    def goodput_mbps(self, until_s: float, span_s: float = BIN_S) -> float:
        """Goodput over the ``span_s`` before ``until_s``."""
        return (self._octets_at(until_s) - self._octets_at(until_s - span_s)) * 8 / span_s / 1e6

    def mean_mbps(self) -> float:
        """Goodput since the beginning."""
        if not self.arrived:
            return 0.0
        at, octets = self.arrived[-1]
        return octets * 8 / max(at, 1e-9) / 1e6

    def _octets_at(self, second: float) -> int:
        return max((octets for at, octets in self.arrived if at <= second), default=0)


class Demonstration:
    """All flows, run at the same time in real time."""

    def __init__(self, controls: tuple[str, ...], damaged_percent: float, seconds: float) -> None:
        """Compares ``controls`` for ``seconds`` on links that damage ``damaged_percent`` of the packets."""
        self.seconds = seconds
        self.damaged_percent = damaged_percent
        self.flows = [DemoFlow(control) for control in controls]
        self.scenario = Scenario.parse(SCENARIO, "demo").replace(
            {"path.forward.channel.loss": f"{damaged_percent:g} %", "scenario.duration": f"{seconds:g} s"}
        )
        self._stopped = threading.Event()

    def run(self, watch: Callable[[], object], period_s: float = 0.1) -> None:
        """Runs all flows and calls ``watch`` every ``period_s`` until they end.

        Raises:
            OSError: this machine does not allow it.
        """
        with ThreadPoolExecutor(max_workers=len(self.flows)) as pool:
            running = [pool.submit(self._drive, flow) for flow in self.flows]
            try:
                while not all(future.done() for future in running):
                    watch()
                    self._stopped.wait(period_s)
            finally:
                self._stopped.set()
            for future in running:
                future.result()
        watch()

    def _drive(self, flow: DemoFlow) -> None:
        def tick(glance: Glance) -> None:
            if self._stopped.is_set():
                raise KeyboardInterrupt
            flow.arrived.append((glance.elapsed_s, glance.delivered["demo"]))

        flow.outcome = measure(self.scenario, on="kernel", controls={"demo": flow.control}, tick=tick)

    def figure(self) -> Figure:
        """Goodput over time."""
        steps = [BIN_S * step for step in range(1, round(self.seconds / BIN_S) + 1)]
        curves = tuple(
            Curve(
                f"{flow.control}: {flow.mean_mbps():.1f} Mbit/s",
                tuple(steps),
                tuple(Exact(flow.goodput_mbps(at), 1) for at in steps),
                Style(colour),
            )
            for flow, colour in zip(self.flows, COLOURS, strict=False)
        )
        return Figure(
            id="demo",
            title=f"10 Mbit/s, 20 ms, {self.damaged_percent:g} % of the packets damaged",
            caption="",
            x_label="Time (s)",
            y_label="Goodput (Mbit/s)",
            curves=curves,
            y_limit=10,
        )
