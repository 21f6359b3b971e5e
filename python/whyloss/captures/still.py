"""The diagram of a connection as it stands, for readers and printers without JavaScript: one small SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Columns = Mapping[str, NDArray[Any]]

__all__ = ["still"]

_WIDTH, _LEFT, _FOOT, _TITLE = 1000, 70, 24, 20
#: Top and height of the panels: positions in the stream, round trips, octets under way.
_PANELS = ((0, 380), (396, 110), (522, 110))
_HEIGHT = _PANELS[-1][0] + _PANELS[-1][1] + _FOOT
#: Losses that are marked; more would hide each other.
_MARKED = 400


@dataclass(frozen=True)
class _Panel:
    """One diagram over the time that all share."""

    span: tuple[float, float]
    top: int
    height: int
    low: float
    high: float

    def x(self, times: NDArray[Any]) -> NDArray[Any]:
        first, last = self.span
        return _LEFT + (times - first) / max(last - first, 1e-9) * (_WIDTH - _LEFT - 10)

    def y(self, values: NDArray[Any]) -> NDArray[Any]:
        share = (values - self.low) / max(self.high - self.low, 1e-9)
        return self.top + self.height - share * (self.height - _TITLE)

    def bars(self, times: NDArray[Any], lows: NDArray[Any], highs: NDArray[Any]) -> str:
        """One bar for what shares a column of pixels; times are in order."""
        at, begin = np.unique(self.x(times).astype(int), return_index=True)
        ends = self.y(np.minimum.reduceat(lows, begin)), self.y(np.maximum.reduceat(highs, begin))
        return "".join(
            f"M{place} {bottom:.0f}V{min(top, bottom - 1):.0f}" for place, bottom, top in zip(at, *ends, strict=True)
        )

    def line(self, times: NDArray[Any], values: NDArray[Any]) -> str:
        """The last value of each column of pixels."""
        at, newest = np.unique(self.x(times).astype(int)[::-1], return_index=True)
        heights = self.y(np.clip(values[::-1][newest], self.low, self.high))
        return "M" + "L".join(f"{place} {height:.0f}" for place, height in zip(at, heights, strict=True))

    def words(self, title: str, unit: float, labels: int) -> str:
        """Title, lines and numbers of the upright axis."""
        values = np.linspace(self.low, self.high, labels)
        rules = "".join(f"M{_LEFT} {height:.0f}H{_WIDTH - 10}" for height in self.y(values))
        numbers = "".join(
            f'<text x="{_LEFT - 6}" y="{height + 4:.0f}" text-anchor="end">{value / unit:.4g}</text>'
            for value, height in zip(values, self.y(values), strict=True)
        )
        return f'<path d="{rules}" stroke="var(--grid)"/><text x="{_LEFT}" y="{self.top + 12}">{title}</text>{numbers}'


def still(
    columns: Columns, losses: Sequence[Mapping[str, Any]], tones: Mapping[str, str], span: tuple[float, float]
) -> str:
    """Data, acknowledgements and losses, round trips, and octets under way over time."""
    if not len(columns["sent_t"]):
        return ""
    first, last = span
    panels = _sequence(columns, losses, tones, span) + _trips(columns, span) + _flight(columns, span)
    times = "".join(
        f'<text x="{place:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">{time:.3g} s</text>'
        for time, place in ((time, _Panel(span, 0, 0, 0, 1).x(time)) for time in np.linspace(first, last, 6)[1:-1])
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Time-sequence diagram, round trips, and octets '
        f'under way" font-size="12" fill="var(--soft)">{panels}{times}</svg>'
    )


def _sequence(
    columns: Columns, losses: Sequence[Mapping[str, Any]], tones: Mapping[str, str], span: tuple[float, float]
) -> str:
    sent, start, end, acks, ack = (
        columns[name].astype(float) for name in ("sent_t", "sent_start", "sent_end", "ack_t", "ack")
    )
    panel = _Panel(span, *_PANELS[0], float(start.min()), float(end.max()))
    unit, name = (1e6, "MB") if panel.high - panel.low > 5e6 else (1e3, "kB")
    line = panel.line(acks, ack) if len(acks) else ""
    marks = "".join(
        f'<circle cx="{panel.x(loss["time"]):.0f}" cy="{panel.y(loss["offset"] + loss["octets"] / 2):.0f}" r="4" '
        f'fill="{tones.get(loss["cause"], "#7a8492")}"/>'
        for loss in losses[:_MARKED]
    )
    return (
        panel.words(f"position in the stream ({name})", unit, 5)
        + f'<path d="{panel.bars(sent, start, end)}" stroke="var(--ink)" fill="none"/>'
        + f'<path d="{line}" stroke="#4a86b8" fill="none"/>{marks}'
    )


def _trips(columns: Columns, span: tuple[float, float]) -> str:
    times, trips = (columns[name].astype(float) for name in ("rtt_t", "rtt"))
    panel = _Panel(span, *_PANELS[1], 0.0, float(trips.max(initial=1e-3)))
    bars = panel.bars(times, trips, trips) if len(times) else ""
    return panel.words("round trip (ms)", 1e-3, 3) + f'<path d="{bars}" stroke="var(--ink)" fill="none"/>'


def _flight(columns: Columns, span: tuple[float, float]) -> str:
    times, flight = (columns[name].astype(float) for name in ("rtt_t", "flight"))
    panel = _Panel(span, *_PANELS[2], 0.0, float(flight.max(initial=1e3)))
    line = panel.line(times, flight) if len(times) else ""
    return panel.words("under way (kB)", 1e3, 3) + f'<path d="{line}" stroke="var(--ink)" fill="none"/>'
