"""What ``whyloss explain --what-if`` adds: other senders on the path that the capture shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whyloss.captures import words
from whyloss.captures.whatif import WhatIf, what_if
from whyloss.cli.console import Watch, rate, row, screen, stopping, table

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["compare", "document", "show"]


def compare(files: tuple[Path, ...], connection: int | None) -> WhatIf:
    """Fits the path and sends over it."""
    with stopping(lambda: "what others would have got is not known"), Watch("trying other senders") as watch:
        return what_if(*files, connection=connection, progress=watch.count)


def show(found: WhatIf) -> None:
    """The comparison for people, the verdict first."""
    screen.print(f"\nWhat if? {found.verdict}", style="bold", markup=False)
    captured = found.goodness.captured_goodput_bps
    took = words.seconds(found.octets * 8 / captured)
    title = f"{words.amount(found.octets)} took {took} in the capture ({rate(captured)})"
    listing = table(title, "sender", ">would take", ">goodput", ">times as fast, 95 %", "what it is")
    for outcome in found.outcomes:
        low, high = outcome.ratio.interval()
        against = "1" if outcome is found.outcomes[0] else f"{outcome.ratio.value:.2f} ({low:.2f} to {high:.2f})"
        goodput = outcome.goodput_bps.value
        took = words.seconds(found.octets * 8 / goodput)
        row(listing, outcome.sender.name, took, rate(goodput), against, outcome.sender.summary)
    screen.print(listing)
    runs = found.outcomes[0].goodput_bps.n
    said = [
        f"{runs} runs of each on the fitted path, on the same channels.",
        f"What was captured was sent as by {found.like.name}.",
    ]
    if any(outcome.sender.needs_damage for outcome in found.outcomes):
        said.append("(*) both ends need it, and a link that lets damaged packets through")
    for line in said:
        screen.print(line, markup=False)


def document(found: WhatIf) -> dict[str, Any]:
    """The comparison for machines."""
    return {
        "verdict": found.verdict,
        "captured_goodput_bps": found.goodness.captured_goodput_bps,
        "doubts": found.goodness.doubts,
        "like": found.like.name,
        "certain": [outcome.sender.name for outcome in found.certain],
        "senders": [
            {
                "name": outcome.sender.name,
                "goodput_bps": outcome.goodput_bps.value,
                "goodput_interval_bps": outcome.goodput_bps.interval(),
                "ratio": outcome.ratio.value,
                "ratio_interval": outcome.ratio.interval(),
            }
            for outcome in found.outcomes
        ],
    }
