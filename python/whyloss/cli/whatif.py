"""What ``whyloss explain --what-if`` adds: other senders on the path that the capture shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    listing = table(f"{rate(captured)} in the capture", "sender", ">goodput", ">against the first", "what it is")
    for outcome in found.outcomes:
        low, high = outcome.ratio.interval()
        against = f"{outcome.ratio.value:.2f} ({low:.2f} to {high:.2f})"
        row(listing, outcome.sender.name, rate(outcome.goodput_bps.value), against, outcome.sender.summary)
    screen.print(listing)


def document(found: WhatIf) -> dict[str, Any]:
    """The comparison for machines."""
    return {
        "verdict": found.verdict,
        "captured_goodput_bps": found.goodness.captured_goodput_bps,
        "doubts": found.goodness.doubts,
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
