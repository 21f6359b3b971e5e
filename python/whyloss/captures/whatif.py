"""What other senders would have got on the path that a capture shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from whyloss.captures.fit import fit, simulate
from whyloss.captures.scenarios import channel_values
from whyloss.stats import Mean, function_of_means, mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from whyloss.captures.fit import Fit, Goodness
    from whyloss.scenario import Scenario

__all__ = ["SENDERS", "Outcome", "Sender", "WhatIf", "what_if"]

#: Runs of each sender. Run k meets the same channel with each of them.
RUNS = 8


@dataclass(frozen=True)
class Sender:
    """A way to send, in fields of a flow."""

    name: str
    summary: str
    flow: Mapping[str, Any]
    #: Packets that the channel takes have to reach the receiver with their damage, as links without checks of their own
    #: let them.
    needs_damage: bool = False


#: Who is tried; the first is what the others are compared with.
SENDERS = (
    Sender("today", "CUBIC as Linux has it", {"scheme": "cubic", "profile": "linux"}),
    Sender(
        "checksum",
        "the receiver reports damaged segments, as wl_checksum in the kernel",
        {"scheme": "checksum-ld", "profile": "linux"},
        needs_damage=True,
    ),
    Sender("bbr", "BBR version 1", {"scheme": "bbr", "profile": "linux"}),
    Sender(
        "learned",
        "CUBIC that keeps its window for losses which the learned differentiator takes for corruption",
        {"scheme": "cubic", "profile": "linux", "differentiator": "learned", "reaction": "keep"},
    ),
)


@dataclass(frozen=True)
class Outcome:
    """What a sender gets on the fitted path."""

    sender: Sender
    goodput_bps: Mean
    #: Its goodput over that of the first sender.
    ratio: Mean


@dataclass(frozen=True)
class WhatIf:
    """Senders compared on a fitted path."""

    fit: Fit
    goodness: Goodness
    outcomes: tuple[Outcome, ...]

    @property
    def verdict(self) -> str:
        """A sentence: what the best would have gained, or why nobody should believe it."""
        if self.goodness.doubts:
            return f"The fit is too poor to believe these numbers: {'; '.join(self.goodness.doubts)}."
        best = max(self.outcomes, key=lambda it: it.goodput_bps.value)
        first = self.outcomes[0].sender.name
        if best.sender.name == first or best.ratio.interval()[0] <= 1:
            return f"None of the others would surely have been faster than {first}."
        low, high = best.ratio.interval()
        gain = f"{best.ratio.value:.2f} times the goodput of {first} ({low:.2f} to {high:.2f})"
        return f"{best.sender.name} would have had {gain}."


def what_if(
    *captures: str | PathLike[str],
    connection: int | None = None,
    runs: int = RUNS,
    progress: Callable[[int, int], object] | None = None,
) -> WhatIf:
    """Sends what was captured over the fitted path with other senders, ``runs`` times each.

    Which TCP sent in the capture is not known: the fit is judged by the first of :data:`SENDERS`.
    """
    fitted = fit(*captures, connection=connection)
    scenario = fitted.scenario()
    goodness = fitted.goodness(runs)
    total = len(SENDERS) * runs
    found: list[tuple[Sender, np.ndarray[Any, Any]]] = []
    for sender in SENDERS:
        before = len(found) * runs

        def told(done: int, before: int = before) -> None:
            if progress is not None:
                progress(before + done, total)

        runs_of = simulate(with_sender(fitted, scenario, sender), runs, progress=told)
        found.append((sender, np.array([one.goodput_bps for one in runs_of])))
    first = found[0][1]
    outcomes = tuple(
        Outcome(sender, mean(goodput), function_of_means(_ratio, [goodput, first])) for sender, goodput in found
    )
    return WhatIf(fitted, goodness, outcomes)


def _ratio(ours: float, theirs: float) -> float:
    return ours / theirs


def with_sender(fitted: Fit, scenario: Scenario, sender: Sender) -> Scenario:
    """The fitted scenario with another sender in all its flows."""
    flows = len(scenario.to_dict()["flow"])
    fields: dict[str, object] = {
        f"flow[{position}].{name}": value for position in range(flows) for name, value in sender.flow.items()
    }
    channel = channel_values(fitted.process.kind, fitted.process.parameters)
    if sender.needs_damage and channel:
        fields["path.forward.channel"] = {**channel, "effect": "damage"}
    return scenario.replace(fields)
