"""Fewer points for the same picture."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["thin"]


def thin(x: NDArray[np.float64], y: NDArray[np.float64], limit: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most ``limit`` points of a curve: of each of ``limit / 2`` stretches the lowest and the highest.

    So no peak and no trough is lost; what lies between them is.
    """
    if len(x) <= limit:
        return x, y
    edges = np.linspace(0, len(x), limit // 2 + 1).astype(int)
    kept: list[int] = []
    for start, end in pairwise(edges):
        piece = y[start:end]
        if np.isnan(piece).all():
            kept.append(int(start))
            continue
        kept.extend(sorted({int(start + np.nanargmin(piece)), int(start + np.nanargmax(piece))}))
    return x[kept], y[kept]
