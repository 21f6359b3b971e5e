"""The tables of one run, from memory or from its folder, with what a figure needs of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from whyloss import _native, files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whyloss.results import Results

__all__ = ["SETTING_OF", "Needed", "Run", "Span", "TraceError", "need", "open_run", "printable"]

Needed = Literal["samples", "segments"]
#: What a scenario has to say so that a table fills.
SETTING_OF = {
    "samples": 'output.sample = "10 ms"',
    "queues": 'output.sample = "10 ms"',
    "segments": "output.segments = {}",
}
#: Packets of a flow that are looked at, at most.
MOST_PACKETS = 3_000_000
_SHOWN_NAMES = 12


class TraceError(_native.InputError):
    """What was asked for cannot be drawn."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of simulated time; ``start_ns`` belongs to it, ``end_ns`` does not."""

    start_ns: int = 0
    end_ns: int | None = None
    """``None``: to the end of the run."""

    def __contains__(self, at_ns: int) -> bool:
        """Whether a moment lies in it."""
        return self.start_ns <= at_ns and (self.end_ns is None or at_ns < self.end_ns)

    def holds(self, column: str) -> pl.Expr:
        """Whether the times of a column lie in it."""
        after = pl.col(column) >= self.start_ns
        return after if self.end_ns is None else after & (pl.col(column) < self.end_ns)


class Run:
    """One run: its tables, each read when it is asked for and only as far as it is wanted."""

    def __init__(self, name: str, source: Results | Path) -> None:
        """Takes results, or a folder with one Parquet file a table. ``name`` is what messages and titles call it."""
        self.name = printable(name)
        self._source = source
        self._checked: set[Path] = set()
        runs = self.rows("runs")
        if len(runs) != 1:
            raise TraceError(
                f"{self.name}: holds {len(runs)} runs, and a figure shows one; "
                "`whyloss run SCENARIO --run N --out FOLDER` keeps one by itself"
            )
        missing = {"run", "seed", "outcome", "ended_at_ns"} - set(runs.columns)
        if missing:
            raise TraceError(f"{self.name}: not a table of runs: it has no column `{min(missing)}`")
        self.ended_at_ns = int(runs["ended_at_ns"][0])
        self.seed, self.number = int(runs["seed"][0]), int(runs["run"][0])
        self.left_out = int(runs["segments_left_out"][0]) if "segments_left_out" in runs.columns else 0
        self.flows = self.rows("flows")
        self.names: list[str] = self.flows["flow"].to_list()

    def rows(self, table: str, *conditions: pl.Expr, first: int | None = None) -> pl.DataFrame:
        """The rows of a table that fulfil all conditions, or the ``first`` of them.

        A folder of an earlier version has no table of segments: then there are none.
        """
        if not isinstance(self._source, Path):
            frame = self._source[table].to_polars()
            kept = frame.filter(*conditions) if conditions else frame
            return kept if first is None else kept.head(first)
        file = self._source / f"{table}.parquet"
        if not file.is_file():
            if table == "segments":
                return pl.DataFrame()
            raise TraceError(f"{printable(str(self._source))} holds no {table}.parquet; `whyloss run --out` writes one")
        if file not in self._checked:
            files.check(file)
            self._checked.add(file)
        try:
            kept_rows = pl.scan_parquet(file).filter(*conditions)
            return (kept_rows if first is None else kept_rows.head(first)).collect()
        except (pl.exceptions.PolarsError, OSError) as mistake:
            raise TraceError(f"{printable(str(file))}: not a whole table of a run: {mistake}") from None

    def of_flow(self, table: str, flow: str, span: Span | None = None, time: str = "at_ns") -> pl.DataFrame:
        """The rows of a flow, within a stretch of time if one is given."""
        own = pl.col("flow") == flow
        return self.rows(table, own) if span is None else self.rows(table, own, span.holds(time))

    def packets(self, flow: str) -> pl.DataFrame:
        """All packets of a flow that were kept, in the order in which they left.

        Raises:
            TraceError: there are more than :data:`MOST_PACKETS`.
        """
        rows = self.of_flow("segments", flow)
        if len(rows) > MOST_PACKETS:
            raise TraceError(
                f"{self.name}: {len(rows)} packets of {printable(flow)} were kept, and a figure takes {MOST_PACKETS} "
                "at most; give output.segments a shorter stretch with `from` and `until`"
            )
        return rows

    def has(self, table: Needed) -> bool:
        """Whether the run wrote anything into a table."""
        return len(self.rows(table, first=1)) > 0

    def flow(self, wanted: str | None) -> str:
        """The flow called ``wanted``, or in that position; the only one if nothing is wanted.

        Raises:
            TraceError: there is none, or several and nothing says which.
        """
        if wanted is None:
            if len(self.names) == 1:
                return self.names[0]
            raise TraceError(f"{self.name}: has {len(self.names)} flows; choose one with --flow: {_listed(self.names)}")
        if wanted in self.names:
            return wanted
        if wanted.isascii() and wanted.isdigit() and len(wanted) <= len(str(len(self.names))):
            position = int(wanted)
            if position < len(self.names):
                return self.names[position]
        raise TraceError(
            f"{self.name}: --flow: found {printable(wanted)!r}; allowed: 0 to {len(self.names) - 1}, "
            f"or a name: {_listed(self.names)}"
        )

    def check(self, span: Span) -> None:
        """Refuses a stretch that the run has nothing of."""
        if span.start_ns >= self.ended_at_ns:
            raise TraceError(
                f"{self.name}: --from: found {span.start_ns / 1e9:g} s; the run ended at {self.ended_at_ns / 1e9:g} s"
            )

    def end_of(self, span: Span) -> int:
        """Where a stretch of it ends."""
        return self.ended_at_ns if span.end_ns is None else min(span.end_ns, self.ended_at_ns)


def open_run(folder: Path) -> Run:
    """The run that ``whyloss run --out FOLDER`` wrote.

    Raises:
        TraceError: the folder is not there, or holds something else.
    """
    shown = printable(str(folder))
    if not folder.is_dir():
        raise TraceError(f"{shown}: there is no such folder")
    if not (folder / "runs.parquet").is_file():
        raise TraceError(f"{shown} holds no runs.parquet; `whyloss run SCENARIO --out {shown}` writes one")
    return Run(folder.resolve().name, folder)


def need(run: Run, table: Needed, what: str) -> None:
    """Refuses a run that did not write down what a figure shows."""
    if not run.has(table):
        raise TraceError(
            f"{run.name}: {what} needs the table `{table}`, which is empty: the scenario has to say "
            f"{SETTING_OF[table]} (or give the scenario file instead of the folder: it is run anew with that)"
        )


def printable(text: str) -> str:
    """Text that cannot move the cursor, colour a terminal or break a picture: what is not printable is escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(printable(name) for name in names[:_SHOWN_NAMES])
    return shown + (f", … ({len(names)} in all)" if len(names) > _SHOWN_NAMES else "")
