"""A link whose rate varies, as what it delivered while packets waited: a cellular link, or one that others use.

One end cannot tell the two apart: what others take is not there, as what a radio does not have.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from whyloss.captures.bottleneck import Bottleneck, overflow

if TYPE_CHECKING:
    from whyloss.captures.series import Series

__all__ = ["varying"]

#: Length of the bins that a rate is taken over, and full packets in each at least.
BIN_S, PACKETS = 0.1, 12
#: Packets wait if their round trips are so much longer than the shortest, in times of a packet's transmission.
WAITING = 3
#: Bins in which packets waited at least, and how much more the fast tenth of them delivered than the slow tenth.
BINS, VARIES = 12, 2.0


def varying(series: Series) -> Bottleneck | None:
    """The bottleneck as a delivery trace if its rate varies; None if it is one rate, or too little waited to tell."""
    came = np.flatnonzero(~series.lost & np.isfinite(series.acked_s))
    came = came[np.argsort(series.acked_s[came], kind="stable")]
    timed = np.flatnonzero(series.timed)
    if len(timed) < BINS:
        return None
    trips = (series.acked_s - series.time_s)[timed]
    # Long queues may stand all the time but at the beginning.
    shortest = float(trips.min())
    length = int(series.packet_octets.max())
    at, octets = series.acked_s[came], series.packet_octets[came]
    span = float(at[-1] - at[0])
    width = max(BIN_S, PACKETS * length * 8 * span / (8 * float(octets.sum())))
    count = int(span / width)
    if count < BINS:
        return None
    edges = at[0] + width * np.arange(count + 1)
    rates = np.histogram(at, edges, weights=octets * 8.0)[0] / width
    waits = trips - shortest > WAITING * length * 8 / max(float(np.median(rates)), 1.0)
    places = np.digitize(series.acked_s[timed], edges) - 1
    # All of the bin's packets waited, and those of the bin before: what lay behind a hole says nothing of the rate.
    idle = np.bincount(np.clip(places[~waits], 0, count - 1), minlength=count)
    seen = np.bincount(np.clip(places[waits], 0, count - 1), minlength=count)
    repaired = np.bincount(np.clip(np.digitize(series.time_s[series.again], edges) - 1, 0, count - 1), minlength=count)
    busy = (idle == 0) & (seen > 0) & (repaired == 0)
    if busy.sum() < BINS:
        return None
    slow, fast = np.percentile(rates[busy], [10, 90])
    if fast < VARIES * slow:
        return None
    # Where nothing waited the link could have delivered more: as in the nearest times at which something did.
    middle = (edges[:-1] + edges[1:]) / 2
    could = np.where(busy, rates, np.maximum(rates, np.interp(middle, middle[busy], rates[busy])))
    more = np.maximum((could - rates) * width / 8 / length, 0).astype(int)
    filled = [np.linspace(edges[k], edges[k + 1], n, endpoint=False) for k, n in enumerate(more) if n]
    # Acknowledgements come so much later than the link delivers.
    trace = np.sort(np.concatenate([at, *filled])) - shortest
    departed = np.where(np.isfinite(series.acked_s), series.acked_s - shortest, series.time_s)
    rate = float(octets.sum() * 8 / span)
    # By a clock that goes as fast as the link, the link has one rate.
    passed = np.searchsorted(trace, series.time_s) * length * 8 / rate
    queue, refused, waiting = overflow(replace(series, time_s=passed), rate)
    return Bottleneck(
        rate_bps=rate,
        line_bps=None,
        rate_interval_bps=(float(slow), float(fast)),
        base_s=shortest,
        base_interval_s=(-math.inf, math.inf),
        queue=queue,
        discipline=None,
        most_waiting=int(waiting[~refused].max()),
        longest_wait_s=float(trips.max() - shortest),
        residuals_s=np.zeros(len(timed)),
        departed_s=departed,
        waiting=waiting,
        refused=refused,
        trace_s=np.maximum(trace - series.time_s.min(), 0.0),
        trace_octets=length,
    )
