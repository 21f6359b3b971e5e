"""The copies of data segments that crossed one path, as arrays: when each was sent, whether and when it arrived."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from whyloss import _native
from whyloss.results import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from numpy.typing import NDArray

__all__ = ["ROWS", "Series", "Transfer", "read"]

#: Copies that are kept of captures, 96 octets each.
ROWS = 1 << 21


@dataclass(frozen=True)
class Transfer:
    """What one connection brought to the receiver."""

    connection: int
    #: When its first data was sent.
    start_s: float
    octets: int
    #: The largest segment that the receiver said it takes; None if the capture has no handshake.
    mss: int | None


@dataclass(frozen=True)
class Series:
    """Copies of data segments from one host to another, in the order in which they were captured.

    ``acked_s`` is not a number where nothing shows when the copy was acknowledged; ``ack`` is -1 there.
    """

    sender: str
    receiver: str
    #: Where the captures were taken, seen from the sender.
    place: str
    connections: int
    time_s: NDArray[np.float64]
    offset_octets: NDArray[np.int64]
    #: Octets of data, and of the IP packet around them.
    octets: NDArray[np.int64]
    packet_octets: NDArray[np.int64]
    connection: NDArray[np.int64]
    again: NDArray[np.bool_]
    damaged: NDArray[np.bool_]
    lost: NDArray[np.bool_]
    #: The capture does not tell what became of it.
    open: NDArray[np.bool_]
    #: Copies that were lost before they came to the capture.
    unseen: NDArray[np.bool_]
    ack: NDArray[np.int64]
    acked_s: NDArray[np.float64]
    #: The shortest time from an acknowledgement to what it let out.
    left_s: float | None
    acknowledged_octets: int
    #: Largest window that the receiver announced; None if the capture has no handshake.
    window_octets: int | None
    #: Both ends have agreed to SACK; None if the capture has no handshake.
    sack: bool | None
    transfers: tuple[Transfer, ...]
    left_out: int

    def __len__(self) -> int:
        """Copies."""
        return len(self.time_s)

    @property
    def goodput_bps(self) -> float:
        """Octets acknowledged over the time from the first data to the last acknowledgement, of all connections."""
        last = np.nanmax(self.acked_s) if np.isfinite(self.acked_s).any() else self.time_s.max()
        return float(self.acknowledged_octets * 8 / (last - self.time_s.min()))

    @property
    def timed(self) -> NDArray[np.bool_]:
        """Copies whose acknowledgement came at once and was theirs.

        Of those that one packet acknowledges this is the newest, if they are two or more, as what is acknowledged alone
        may have waited for a delayed acknowledgement, and if none of them was sent again: what lay behind a hole was
        acknowledged when that was filled.
        """
        repairs = np.unique(self.ack[self.again & (self.ack >= 0)])
        known = np.isfinite(self.acked_s) & ~np.isin(self.ack, repairs)
        timed = np.zeros(len(self), dtype=bool)
        of = np.flatnonzero(known)
        order = of[np.lexsort((self.time_s[of], self.ack[of]))]
        acks = self.ack[order]
        last = np.append(acks[1:] != acks[:-1], True)
        first = np.append(True, acks[1:] != acks[:-1])
        timed[order[last & ~first]] = True
        if timed.sum() < known.sum() / 8:
            # A receiver that acknowledges every segment.
            timed[order[last]] = True
        return timed & ~self.again

    @property
    def round_trips_s(self) -> NDArray[np.float64]:
        """From copy to acknowledgement, of those that were acknowledged at once."""
        timed = self.timed
        return self.acked_s[timed] - self.time_s[timed]


def read(
    *captures: str | PathLike[str],
    connection: int | None = None,
    rows: int = ROWS,
    progress: Callable[[int], bool] | None = None,
) -> Series:
    """Reads captures as if they were one; keeps the pair of hosts between which most was sent, and the direction.

    ``connection`` chooses one connection by its number in the tables of :func:`whyloss.captures.explain` instead.

    Raises :class:`whyloss.InputError` if there is no TCP data in them.
    """
    native = _native.capture_series([(Path(capture), None) for capture in captures], rows, progress)
    copies, ways = (Table(table, name).to_polars() for table, name in zip(native[:2], ("copies", "ways"), strict=True))
    ways = ways.filter(pl.col("acknowledged_octets") > 0)
    names = ", ".join(str(capture) for capture in captures)
    if connection is not None:
        ways = ways.filter(pl.col("connection") == connection)
    if len(ways) == 0:
        what = "no TCP data that was acknowledged" if connection is None else f"no data of connection {connection}"
        raise _native.InputError(f"{names}: found {what}; a path is fitted to data and its acknowledgements")
    ends = ["sender", "receiver"]
    most = ways.group_by(ends).agg(pl.col("acknowledged_octets").sum()).sort("acknowledged_octets", *ends).tail(1)
    ways = ways.join(most.select(ends), on=ends, how="semi").sort("connection")
    copies = copies.join(ways.select("connection", "side"), on=["connection", "side"], how="semi")
    return _series(copies.sort("time_s", maintain_order=True), ways, native[2])


def _series(copies: pl.DataFrame, ways: pl.DataFrame, left_out: int) -> Series:
    def column(name: str) -> NDArray[Any]:
        return copies[name].to_numpy()

    fate = column("fate")
    transfers = (
        copies.group_by("connection")
        .agg(pl.col("time_s").min())
        .join(ways.select("connection", "acknowledged_octets", "mss_octets"), on="connection")
        .sort("connection")
        .select("connection", "time_s", "acknowledged_octets", "mss_octets")
    )
    places = ways.group_by("place").agg(pl.col("acknowledged_octets").sum()).sort("acknowledged_octets")
    left, window = ways["left_s"].min(), copies["window_octets"].max()
    return Series(
        sender=ways["sender"][0],
        receiver=ways["receiver"][0],
        place=places["place"][-1],
        connections=len(ways),
        time_s=column("time_s"),
        offset_octets=column("offset_octets").astype(np.int64),
        octets=column("octets").astype(np.int64),
        packet_octets=column("packet_octets").astype(np.int64),
        connection=column("connection").astype(np.int64),
        again=column("again"),
        damaged=column("damaged"),
        lost=fate == "lost",
        open=fate == "open",
        unseen=copies["packet"].is_null().to_numpy(),
        ack=copies["ack"].cast(pl.Int64).fill_null(-1).to_numpy(),
        acked_s=copies["acked_s"].fill_null(float("nan")).to_numpy(),
        left_s=left if isinstance(left, float) else None,
        acknowledged_octets=int(ways["acknowledged_octets"].sum()),
        window_octets=window if isinstance(window, int) else None,
        sack=ways["sack"].all() if ways["sack"].is_not_null().all() else None,
        transfers=tuple(Transfer(*row) for row in transfers.iter_rows()),
        left_out=left_out,
    )
