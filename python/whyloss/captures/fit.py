"""A path fitted to captures: a scenario whose simulation looks like what was captured."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from whyloss import _native, files
from whyloss.captures import scenarios, series
from whyloss.captures.bottleneck import Bottleneck, bottleneck
from whyloss.captures.fates import Fates, Process, candidates
from whyloss.captures.goodness import Goodness, compare, describe, simulate
from whyloss.captures.variation import Jitter, Outage, Reordering, jitter, outages, reordering
from whyloss.captures.varying import varying
from whyloss.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from whyloss.captures.series import Series

__all__ = ["Fit", "fit"]

#: A queue that refuses a smaller share of what finds it full does not drop at its tail alone.
FULL = 0.9


@dataclass(frozen=True)
class Fit:
    """A path that was fitted to captures."""

    captures: tuple[str, ...]
    series: Series
    bottleneck: Bottleneck
    #: The best by Schwarz's criterion first.
    processes: tuple[Process, ...]
    outages: tuple[Outage, ...]
    jitter: Jitter | None
    reordering: Reordering | None
    #: What the channel took, without what the queue refused and outages took.
    fates: Fates
    remarks: tuple[str, ...]
    scheme: str
    profile: str

    @property
    def process(self) -> Process:
        """The loss process that was chosen."""
        return self.processes[0]

    @property
    def start_s(self) -> float:
        """When the first data was sent."""
        return float(self.series.time_s.min())

    @property
    def longest_s(self) -> float:
        """After which time a simulation may give up."""
        return float(math.ceil(20 * (self.series.time_s.max() - self.start_s) + 60))

    @property
    def _answer_s(self) -> float:
        """Transmission of an acknowledgement, if the way back is as fast as the way forth."""
        header = int(np.median(self.series.packet_octets - self.series.octets))
        return header * 8 / self.bottleneck.rate_bps

    def _one_way(self, base_s: float) -> float:
        """Half of what stays the same: an answer takes its time, and jitter delays all a little."""
        always = 0.0 if self.jitter is None else self.jitter.least_s
        return max((base_s - self._answer_s - always) / 2, 0.0)

    @property
    def delay_s(self) -> float:
        """Of one way."""
        return self._one_way(self.bottleneck.base_s)

    @property
    def delay_interval_s(self) -> tuple[float, float]:
        """Of one way."""
        low, high = self.bottleneck.base_interval_s
        return self._one_way(low), self._one_way(high)

    @property
    def queue_packets(self) -> int:
        """Packets that may wait; a guess if no overflow was seen."""
        if self.bottleneck.queue is not None:
            return self.bottleneck.queue.packets
        product = self.bottleneck.rate_bps * self.bottleneck.base_s / 8 / max(int(self.series.packet_octets.max()), 1)
        return max(math.ceil(product), 2 * (self.bottleneck.most_waiting + 1), 10)

    @property
    def window_limited(self) -> bool:
        """Whether the receiver's window was ever nearly full."""
        window = self.series.window_octets
        if window is None:
            return False
        share = 0.9
        ends = self.series.offset_octets + self.series.octets
        for connection in np.unique(self.series.connection):
            mine = np.flatnonzero(self.series.connection == connection)
            known = mine[np.isfinite(self.series.acked_s[mine])]
            order = known[np.argsort(self.series.acked_s[known], kind="stable")]
            reached = np.append(0, np.maximum.accumulate(ends[order]))
            flight = ends[mine] - reached[np.searchsorted(self.series.acked_s[order], self.series.time_s[mine])]
            if len(flight) and flight.max() >= share * window:
                return True
        return False

    @cached_property
    def text(self) -> str:
        """The scenario as TOML, with intervals as comments."""
        return scenarios.toml(self, scheme=self.scheme, profile=self.profile)

    def scenario(self, *, name: str = "fitted path") -> Scenario:
        """The scenario, checked."""
        if self.bottleneck.trace_s is None:
            return Scenario.parse(self.text, name)
        # Runs read the trace from a file.
        place = Path(_folder().name) / f"{id(self.series)}.trace"
        place.write_text(scenarios.trace(self.bottleneck), encoding="utf-8")
        return Scenario.parse(self.text.replace(f'"{scenarios.TRACE}"', f'"{place}"'), name)

    def save(self, path: str | PathLike[str], *, goodness: Goodness | None = None) -> Scenario:
        """Writes the scenario file, and loads it to see that it is one."""
        place = Path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        said = "" if goodness is None else "".join(f"# {line}\n" for line in describe(goodness))
        text = self.text
        if self.bottleneck.trace_s is not None:
            beside = place.with_suffix(".trace")
            files.write(beside, scenarios.trace(self.bottleneck))
            text = text.replace(f'"{scenarios.TRACE}"', f'"{beside.name}"')
        files.write(place, text + ("\n# Goodness of fit\n" + said if said else ""))
        return Scenario.load(place)

    def goodness(self, runs: int = 5, *, progress: Callable[[int], object] | None = None) -> Goodness:
        """Runs the fitted path and compares it with the capture, both seen at the sender."""
        return compare(self.series, simulate(self.scenario(), runs, progress=progress))


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where traces lie while this program runs."""
    return tempfile.TemporaryDirectory(prefix="whyloss-fit-")


def fit(
    *captures: str | PathLike[str],
    connection: int | None = None,
    scheme: str = "cubic",
    profile: str = "linux",
    rows: int = series.ROWS,
    progress: Callable[[int], bool] | None = None,
) -> Fit:
    """Fits a path to captures that were taken at the sender of the data.

    The path between the two hosts with most data is fitted, or that of ``connection``. ``scheme`` and ``profile`` say
    which TCP sends over it in the scenario: a path does not tell.

    Raises :class:`whyloss.InputError` if the captures have too little in them, or were taken elsewhere.
    """
    names = tuple(str(capture) for capture in captures)
    found = series.read(*captures, connection=connection, rows=rows, progress=progress)
    if found.place == "receiver":
        raise _native.InputError(
            f"{', '.join(names)}: captured at the receiver; "
            "when packets were sent and how long they took is seen at the sender"
        )
    remarks = []
    if found.left_out:
        remarks.append(f"{found.left_out} packets were left out to keep memory bounded")
    if found.place != "sender":
        remarks.append("not captured at the sender: what happened before the capture is not in the path")
    traced = varying(found)
    if traced is not None:
        path = traced
        remarks.append(
            "the rate varies, as that of a cellular link or of one that others use; one end cannot tell which"
        )
    else:
        try:
            path = bottleneck(found)
        except ValueError as error:
            raise _native.InputError(f"{', '.join(names)}: {error}") from None
    downs, down = outages(found, path)
    channel = np.flatnonzero(~path.refused & ~down & ~found.open)
    channel = channel[np.argsort(path.departed_s[channel], kind="stable")]
    fates = Fates(found.lost[channel], found.packet_octets[channel], path.departed_s[channel])
    if path.queue is not None and path.queue.share < FULL:
        remarks.append(
            f"of the packets that found {path.queue.packets} waiting {path.queue.share:.0%} were lost: "
            "an active queue management, or other traffic in the queue"
        )
    return Fit(
        captures=names,
        series=found,
        bottleneck=path,
        processes=tuple(candidates(fates)),
        outages=tuple(downs),
        jitter=jitter(found, path),
        reordering=reordering(found, path),
        fates=fates,
        remarks=tuple(remarks),
        scheme=scheme,
        profile=profile,
    )
