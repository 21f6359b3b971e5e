"""What a figure shows, before anybody draws it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whyloss.stats import Estimate

__all__ = ["Curve", "Figure", "Style"]


@dataclass(frozen=True, slots=True)
class Style:
    """How a curve looks: the same in the picture file and in the report."""

    colour: str
    """As ``#rrggbb``."""
    marker: str = "circle"
    """``circle``, ``square``, ``diamond`` or ``triangle``."""
    filled: bool = True
    dashed: bool = False
    line: bool = True
    """Whether the points are joined."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Estimates over one quantity."""

    label: str
    x: tuple[float, ...]
    y: tuple[Estimate, ...]
    style: Style
    reference: bool = False
    """Measured elsewhere and shown to compare with; left out of the picture files and hidden at first in the report."""

    def rows(self) -> list[dict[str, Any]]:
        """One plain row a point."""
        return [
            {"curve": self.label, "x": x, "y": y.value, "low": y.interval()[0], "high": y.interval()[1], "n": y.n}
            for x, y in zip(self.x, self.y, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a paper."""

    id: str
    title: str
    caption: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    y_limit: float | None = None
    x_ticks: tuple[str, ...] = ()
    """Names of the positions 0, 1, 2, … if the horizontal axis shows things instead of a quantity."""
    y_from_zero: bool = True
    printed: bool = True
    """Whether the paper prints it; the others it only mentions."""

    def measured(self) -> Sequence[Curve]:
        """The curves that are ours."""
        return [curve for curve in self.curves if not curve.reference]
