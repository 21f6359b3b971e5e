"""What other senders would have got on the path that a capture shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from whyloss.captures.fit import fit
from whyloss.captures.goodness import captured, compare
from whyloss.captures.scenarios import channel_values
from whyloss.stats import LEVEL, Mean, function_of_means, mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from whyloss.captures.fates import Process
    from whyloss.captures.fit import Fit
    from whyloss.captures.goodness import Goodness
    from whyloss.scenario import Scenario

__all__ = ["CAPTURED", "SENDERS", "Outcome", "Sender", "WhatIf", "what_if", "with_sender"]

#: Runs of each sender. Run k meets the same channel with each of them.
RUNS = 8
#: A gain that is smaller is not worth a change, however certain.
WORTH = 1.05


@dataclass(frozen=True)
class Sender:
    """A way to send, in fields of a flow."""

    name: str
    summary: str
    flow: Mapping[str, Any]
    #: Packets that the channel takes have to reach the receiver with their damage, as links without checks of their own
    #: let them.
    needs_damage: bool = False
    #: It agrees to SACK.
    sack: bool = True


#: Who is tried; the first is what the others are compared with.
SENDERS = (
    Sender("today's TCP", "CUBIC as in Linux", {"scheme": "cubic", "profile": "linux"}),
    Sender(
        "wl_checksum",
        "reports of damage (*)",
        {"scheme": "checksum-ld", "profile": "linux"},
        needs_damage=True,
    ),
    Sender("BBR", "version 1", {"scheme": "bbr", "profile": "linux"}),
    Sender(
        "CUBIC+model",
        "learned differentiator",
        {"scheme": "cubic", "profile": "linux", "differentiator": "learned", "reaction": "keep"},
    ),
)
#: Who may have sent what was captured.
CAPTURED = (
    SENDERS[0],
    Sender("NewReno without SACK", "RFC 6582", {"scheme": "newreno", "profile": "modern"}, sack=False),
    SENDERS[2],
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
    #: Of the path with the sender that is most like the captured one.
    goodness: Goodness
    like: Sender
    outcomes: tuple[Outcome, ...]

    @property
    def octets(self) -> int:
        """What was brought to the receiver."""
        return self.fit.series.acknowledged_octets

    @property
    def certain(self) -> tuple[Outcome, ...]:
        """Who would have been faster than the first beyond the luck of the runs, the fastest first."""
        # All comparisons hold together (Bonferroni).
        level = 1 - (1 - LEVEL) / max(len(self.outcomes) - 1, 1)
        sure = [it for it in self.outcomes[1:] if it.ratio.interval(level)[0] > 1 and it.ratio.value >= WORTH]
        return tuple(sorted(sure, key=lambda it: -it.goodput_bps.value))

    @property
    def verdict(self) -> str:
        """Who would have gained how much, and whether that is certain; or why nobody should believe it."""
        first = self.outcomes[0]
        if self.goodness.doubts:
            doubts = "; ".join(self.goodness.doubts)
            return f"Do not believe these numbers: the fitted path is not like the captured one ({doubts})."
        if not self.certain:
            best = max(self.outcomes[1:], key=lambda it: it.goodput_bps.value)
            low, high = best.ratio.interval()
            tried = (
                f"at best {best.sender.name} with {best.ratio.value:.2f} times its goodput ({low:.2f} to {high:.2f})"
            )
            return f"Nobody would surely have gained much over {first.sender.name}: {tried}."
        best, *others = self.certain
        low, high = best.ratio.interval()
        took, now = (self.octets * 8 / outcome.goodput_bps.value for outcome in (best, first))
        said = (
            f"{best.sender.name} would surely have been faster than {first.sender.name}: "
            f"{best.ratio.value:.2f} times the goodput ({low:.2f} to {high:.2f}), "
            f"{_seconds(took)} instead of {_seconds(now)}"
        )
        if best.sender.needs_damage:
            said += ", if what was lost was damaged and is let through"
        as_well = " and ".join(f"{it.sender.name} ({it.ratio.value:.2f})" for it in others)
        return f"{said}.{f' So would {as_well}.' if as_well else ''}"


def what_if(
    *captures: str | PathLike[str],
    connection: int | None = None,
    runs: int = RUNS,
    progress: Callable[[int, int], object] | None = None,
) -> WhatIf:
    """Sends what was captured over the fitted path with other senders, ``runs`` times each.

    Which TCP sent in the capture is not known: the fit is judged by that of :data:`CAPTURED` that is most like it, of
    those that agree to SACK as it did. In each run the parameters of the loss process are drawn from their intervals,
    the same for all senders.
    """
    fitted = fit(*captures, connection=connection)
    could = [sender for sender in CAPTURED if fitted.series.sack in (None, sender.sack)]
    total, done = (len(SENDERS) + len(could)) * runs, 0

    def told() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    judged = []
    for sender in could:
        scenario = with_sender(fitted, sender)
        found = []
        for run in range(runs):
            found.append(captured(scenario, run))
            told()
        judged.append((compare(fitted.series, found), sender))
        if not judged[-1][0].doubts:
            break
    goodness, like = min(judged, key=lambda it: (len(it[0].doubts), abs(np.log(it[0].goodput_ratio))))
    total = done + len(SENDERS) * runs
    drawn = list(islice(fitted.process.drawn(), runs))
    goodputs = []
    for sender in SENDERS:
        found_bps = []
        for run, process in enumerate(drawn):
            found_bps.append(captured(with_sender(fitted, sender, process), run).goodput_bps)
            told()
        goodputs.append((sender, np.array(found_bps)))
    first = goodputs[0][1]
    outcomes = tuple(
        Outcome(sender, mean(goodput), function_of_means(_ratio, [goodput, first])) for sender, goodput in goodputs
    )
    return WhatIf(fitted, goodness, like, outcomes)


def with_sender(fitted: Fit, sender: Sender, process: Process | None = None) -> Scenario:
    """The fitted scenario with another sender in all its flows, and with another loss process if one is named."""
    scenario = replace(fitted, processes=(process or fitted.process,)).scenario()
    flows = len(scenario.to_dict()["flow"])
    fields: dict[str, object] = {
        f"flow[{position}].{name}": value for position in range(flows) for name, value in sender.flow.items()
    }
    of = process or fitted.process
    channel = channel_values(of.kind, of.parameters)
    if sender.needs_damage and channel:
        fields["path.forward.channel"] = {**channel, "effect": "damage"}
    return scenario.replace(fields)


def _ratio(ours: float, theirs: float) -> float:
    return ours / theirs


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 100 else f"{value:,.0f} s"
