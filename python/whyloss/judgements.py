"""How often a sender was right about its losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Judgements", "judgements"]


@dataclass(frozen=True, slots=True)
class Judgements:
    """Losses by true class, and how many of each the ruling verdict got wrong; what had not been lost is not among."""

    corruption: int
    """Losses without congestion."""
    taken_for_congestion: int
    """Of those, the ones that the verdict called congestion."""
    congestion: int
    """Losses to congestion."""
    taken_for_corruption: int
    """Of those, the ones that the verdict called corruption."""

    @property
    def losses(self) -> int:
        """All of them."""
        return self.corruption + self.congestion

    @property
    def wrong(self) -> int:
        """Those that were misjudged."""
        return self.taken_for_congestion + self.taken_for_corruption

    def sentence(self) -> str:
        """What was misjudged, in words."""
        if not self.losses:
            return "no losses"
        parts = []
        if self.corruption:
            parts.append(f"{self.taken_for_congestion} of {self.corruption} corruption losses taken for congestion")
        if self.congestion:
            parts.append(f"{self.taken_for_corruption} of {self.congestion} congestion losses taken for corruption")
        return f"{self.wrong} of {self.losses} losses misjudged ({', '.join(parts)})"


def judgements(losses: pl.DataFrame, flows: Sequence[str] | None = None) -> Judgements:
    """What the verdicts of a table of losses were worth, of all flows or of some."""
    rows = losses if flows is None else losses.filter(pl.col("flow").is_in(list(flows)))

    def count(true: str, verdict: str | None = None) -> int:
        of_class = rows.filter(pl.col("true_class") == true)
        return len(of_class if verdict is None else of_class.filter(pl.col("verdict") == verdict))

    return Judgements(
        corruption=count("corruption"),
        taken_for_congestion=count("corruption", "congestion"),
        congestion=count("congestion"),
        taken_for_corruption=count("congestion", "corruption"),
    )
