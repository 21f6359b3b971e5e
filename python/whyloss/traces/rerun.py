"""Runs a scenario with what a figure needs switched on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whyloss.traces.tables import Run, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from whyloss import _native
    from whyloss.scenario import Scenario

__all__ = ["SAMPLES", "rerun"]

#: Samples that a figure gets over its stretch of time, at least, if the scenario does not say how many it wants.
SAMPLES = 1000
#: Packets kept one by one: of more than this no figure could be read.
PACKETS = 1_000_000
_FINEST_NS = 1_000_000
_STEPS = (5, 2, 1)


def rerun(
    scenario: Scenario,
    number: int = 0,
    *,
    needed: Collection[str] = ("samples", "segments"),
    span: Span | None = None,
    progress: Callable[[_native.Progress], object] | None = None,
    name: str | None = None,
) -> Run:
    """Runs ``scenario`` so that the tables ``needed`` are filled; figures call it ``name``, or as it is called.

    What is written down does not change a run, and the same scenario and number give the same run, so the figures are
    those of the very run that anybody else has seen of it.
    """
    span = span or Span()
    output = scenario.to_dict().get("output", {})
    settings: dict[str, object] = {}
    if "segments" in needed:
        until = {} if span.end_ns is None else {"until": f"{span.end_ns} ns"}
        settings["output.segments"] = {"from": f"{_before(span)} ns", "at_most": PACKETS, **until}
    if "samples" in needed and not output.get("sample"):
        # How long the run takes is known when it has run.
        ended = Run(scenario.name, scenario.run(number, progress=progress)).ended_at_ns
        end = ended if span.end_ns is None else min(span.end_ns, ended)
        settings["output.sample"] = f"{_interval(end - span.start_ns)} ns"
    chosen = scenario.replace(settings) if settings else scenario
    return Run(name or chosen.name, chosen.run(number, progress=progress))


def _before(span: Span) -> int:
    """Where the log of packets begins: early enough for those that were under way at the start of the stretch."""
    return max(0, span.start_ns - 5_000_000_000)


def _interval(length_ns: int) -> int:
    """A round interval that gives :data:`SAMPLES` samples or somewhat more, of a millisecond at least."""
    wanted = max(length_ns // SAMPLES, 1)
    power: int = 10 ** (len(str(wanted)) - 1)
    return max(_FINEST_NS, next(step * power for step in _STEPS if step * power <= wanted))
