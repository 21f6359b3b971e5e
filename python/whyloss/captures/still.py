"""The diagram of a connection as it stands, for readers and printers without JavaScript: one small SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["still"]

_WIDTH, _HEIGHT, _LEFT, _FOOT = 1000, 420, 70, 24
#: Losses that are marked; more would hide each other.
_MARKED = 400


def still(
    columns: Mapping[str, NDArray[Any]],
    losses: Sequence[Mapping[str, Any]],
    tones: Mapping[str, str],
    span: tuple[float, float],
) -> str:
    """Data, acknowledgements and losses over time; one bar for what shares a column of pixels."""
    sent_t, start, end, ack_t, ack = (
        columns[name].astype(float) for name in ("sent_t", "sent_start", "sent_end", "ack_t", "ack")
    )
    if not len(sent_t):
        return ""
    first, last = span
    low, high = float(start.min()), float(end.max())

    def x(times: NDArray[Any]) -> NDArray[Any]:
        return _LEFT + (times - first) / max(last - first, 1e-9) * (_WIDTH - _LEFT - 10)

    def y(octets: NDArray[Any]) -> NDArray[Any]:
        return _HEIGHT - _FOOT - (octets - low) / max(high - low, 1.0) * (_HEIGHT - _FOOT - 20)

    column = x(sent_t).astype(int)
    at, begin = np.unique(column, return_index=True)
    # Segments are in the order of time, and so are columns.
    bars = zip(at, y(np.minimum.reduceat(start, begin)), y(np.maximum.reduceat(end, begin)), strict=True)
    data = "".join(f"M{place} {bottom:.0f}V{min(top, bottom - 1):.0f}" for place, bottom, top in bars)
    line = ""
    if len(ack_t):
        seen, newest = np.unique(x(ack_t).astype(int)[::-1], return_index=True)
        steps = zip(seen, y(np.clip(ack[::-1][newest], low, high)), strict=True)
        line = "M" + "L".join(f"{place} {height:.0f}" for place, height in steps)
    marks = []
    for loss in losses[:_MARKED]:
        place, height = float(x(np.array(loss["time"]))), float(y(np.array(loss["offset"] + loss["octets"] / 2)))
        marks.append(f'<circle cx="{place:.0f}" cy="{height:.0f}" r="4" fill="{tones.get(loss["cause"], "#7a8492")}"/>')
    unit, name = (1e6, "MB") if high - low > 5e6 else (1e3, "kB")
    words = [
        f'<text x="{_LEFT}" y="12">position in the stream ({name})</text>',
        *(
            f'<text x="{_LEFT - 6}" y="{float(y(np.array(value))) + 4:.0f}" text-anchor="end">{value / unit:.4g}</text>'
            for value in np.linspace(low, high, 5)
        ),
        *(
            f'<text x="{float(x(np.array(time))):.0f}" y="{_HEIGHT - 6}" text-anchor="middle">{time:.3g} s</text>'
            for time in np.linspace(first, last, 6)[1:-1]
        ),
    ]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Time-sequence diagram" '
        'font-size="12" fill="var(--soft)">'
        f'<path d="{data}" stroke="var(--ink)" fill="none"/><path d="{line}" stroke="#4a86b8" fill="none"/>'
        f"{''.join(marks)}{''.join(words)}</svg>"
    )
