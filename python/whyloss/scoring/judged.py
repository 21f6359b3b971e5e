"""Losses with what really happened and all that was said about them, counted by one set of rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl

from whyloss import _native, files
from whyloss.results import Results
from whyloss.scoring.calibration import Calibration, calibration
from whyloss.scoring.confusion import CONGESTION, CORRUPTION, NOTHING, UNKNOWN, VERDICTS, Confusion
from whyloss.scoring.tradeoff import Tradeoff, tradeoff

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["RULING", "Events", "Judged", "Rules", "ScoringError", "Source", "read"]

#: What the ruling differentiator is called beside the names of the shadows.
RULING = "ruling"

#: The cause of a loss by contention for a radio channel: nobody's queue overflowed, and no noise did it either.
_COLLISION = "collision"
#: Truths of which there is no telling yet.
_IN_FLIGHT = "in-flight"
_ARRIVED = "arrived"
_EXCLUDED = 3

Source: TypeAlias = "Results | pl.DataFrame | str | PathLike[str]"
"""Results, a table of losses, a folder with ``losses.parquet``, or such a file."""


class ScoringError(_native.InputError):
    """What was given cannot be scored."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts, and as what."""

    unit: Literal["invocation", "segment"] = "invocation"
    """``invocation``: the first lost segment of a recovery episode, where a sender acts on a verdict; each expiry of
    the retransmission timer is one too. ``segment``: every lost segment.
    """
    timeouts: Literal["exclude", "include", "only"] = "exclude"
    """Whether losses that only the retransmission timer noticed count beside those that duplicate acknowledgements,
    RACK, probes or reports told of.
    """
    collisions: Literal["corruption", "congestion", "exclude"] = "corruption"
    """What losses are that a radio station gave up after colliding: the literature counts them as corruption."""


@dataclass(frozen=True, slots=True)
class Events:
    """How often senders acted on losses of each kind."""

    congestion: int
    corruption: int
    spurious: int
    """Nothing was lost: the segment had arrived."""
    reduced: int
    """Of all of these, how many reduced the window."""

    @property
    def total(self) -> int:
        """Of all kinds."""
        return self.congestion + self.corruption + self.spurious

    @property
    def without_congestion(self) -> int:
        """Not caused by congestion, which Park and Chung call spurious."""
        return self.corruption + self.spurious

    def as_dict(self) -> dict[str, int]:
        """Plain data."""
        return {
            "total": self.total,
            "congestion": self.congestion,
            "corruption": self.corruption,
            "spurious": self.spurious,
            "reduced": self.reduced,
        }


class Judged:
    """Judgements on losses; :func:`read` makes one."""

    def __init__(self, losses: pl.DataFrame, flows: pl.DataFrame | None, rules: Rules, origin: str) -> None:
        """Takes prepared tables, see :func:`read`."""
        self._losses = losses
        self._flows = flows
        self.rules = rules
        """By which rules they are counted."""
        self.origin = origin
        """Where they come from, for messages."""

    @property
    def differentiators(self) -> list[str]:
        """All that judged: :data:`RULING`, then the shadows by name."""
        prefix = "verdict_"
        shadows = (name.removeprefix(prefix) for name in self._losses.columns if name.startswith(prefix))
        return [RULING, *sorted(name for name in shadows if f"score_{name}" in self._losses.columns)]

    @property
    def shadows(self) -> list[str]:
        """All that listened in shadow, by name."""
        return self.differentiators[1:]

    @property
    def axes(self) -> list[str]:
        """What judgements can be grouped by."""
        return [name for name in self._losses.columns if not name.startswith(("_", "verdict", "score"))]

    @property
    def runs(self) -> int:
        """Number of runs that noticed losses."""
        return self._losses.select(pl.struct(_RUN).n_unique()).item() if len(self._losses) else 0

    def __len__(self) -> int:
        """Number of judgements that count."""
        return int(self._counting.sum())

    def with_rules(self, **changes: str) -> Judged:
        """The same losses counted by other rules: ``judged.with_rules(unit="segment", timeouts="only")``."""
        return Judged(self._losses, self._flows, replace(self.rules, **changes), self.origin)  # type: ignore[arg-type]

    def split(self, by: Sequence[str]) -> Iterator[tuple[dict[str, Any], Judged]]:
        """The judgements apart for each value of the columns ``by``, in the order in which the values come."""
        if not by:
            yield {}, self
            return
        missing = [name for name in by if name not in self.axes]
        if missing:
            raise ScoringError(f"{self.origin}: cannot group by {missing[0]!r}; allowed: {', '.join(self.axes)}")
        flows = self._flows
        if flows is not None and not set(by) <= set(flows.columns):
            flows = None
        parts = {} if flows is None else flows.partition_by(by, as_dict=True)
        for key, losses in self._losses.partition_by(by, as_dict=True, maintain_order=True).items():
            yield dict(zip(by, key, strict=True)), Judged(losses, parts.get(key), self.rules, self.origin)

    def truth(self) -> NDArray[np.int64]:
        """What really happened to each loss that counts, as positions in :data:`~whyloss.scoring.confusion.TRUTHS`."""
        return self._true

    def verdicts(self, differentiator: str) -> NDArray[np.int8]:
        """What it said of each loss that counts, as positions in VERDICTS; -1 where it did not listen."""
        column = "verdict" if differentiator == RULING else f"verdict_{differentiator}"
        verdicts: NDArray[np.int8] = self._column(column, differentiator).cast(pl.Int8).fill_null(-1).to_numpy()
        return verdicts[self._counting]

    def scores(self, differentiator: str) -> NDArray[np.float64]:
        """Its score of each loss that counts; NaN where it did not listen or had no opinion."""
        column = "score" if differentiator == RULING else f"score_{differentiator}"
        score: NDArray[np.float64] = self._column(column, differentiator).fill_null(np.nan).to_numpy()
        opinion = self.verdicts(differentiator)
        return np.where((opinion == UNKNOWN) | (opinion < 0), np.nan, score[self._counting])

    def clusters(self) -> tuple[NDArray[np.int64], int]:
        """For each loss that counts the position of its run's number among all numbers, and how many there are."""
        numbers = self._losses["run"].to_numpy()
        every, position = np.unique(numbers, return_inverse=True)
        return position.astype(np.int64)[self._counting], every.size

    def counts(self, differentiator: str, cluster: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Counts by truth and verdict, 3 × 3; with ``cluster`` one such matrix for each value up to its largest."""
        verdict, truth = self.verdicts(differentiator), self.truth()
        clusters = 1 if cluster is None else int(cluster.max(initial=-1)) + 1
        code = truth * 3 + verdict + (0 if cluster is None else cluster * 9)
        counts = np.bincount(code[verdict >= 0], minlength=9 * clusters).astype(np.int64)
        return counts.reshape(3, 3) if cluster is None else counts.reshape(clusters, 3, 3)

    def confusion(self, differentiator: str) -> Confusion:
        """Its verdicts against the truth."""
        return Confusion.of(self.counts(differentiator))

    def tradeoff(self, differentiator: str) -> Tradeoff:
        """What its scores give at every threshold."""
        return tradeoff(*self.lost(differentiator))

    def calibration(self, differentiator: str, bins: int = 10) -> Calibration | None:
        """Its scores as probabilities; ``None`` if they cannot be. See :func:`~whyloss.scoring.calibration`."""
        return calibration(*self.lost(differentiator), bins)

    def lost(self, differentiator: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Scores of what was really lost where it listened, and whether that was corruption."""
        real = self.judged_and_lost(differentiator)
        return self.scores(differentiator)[real], self.truth()[real] == CORRUPTION

    def judged_and_lost(self, differentiator: str) -> NDArray[np.bool_]:
        """For each loss that counts whether something was lost and the differentiator listened."""
        real: NDArray[np.bool_] = (self.truth() != NOTHING) & (self.verdicts(differentiator) >= 0)
        return real

    def coverage(self, differentiator: str) -> float | None:
        """Share of the packets that were lost on the way of data of which the differentiator gave a verdict in time.

        In time is before the retransmission timer expired. The remainder was repaired after a timeout, carried no
        data, or got the verdict ``unknown``. ``None`` without the table ``flows`` or if nothing was lost.
        """
        if self._flows is None:
            return None
        segments = self.with_rules(unit="segment", timeouts="exclude", collisions="corruption")
        verdict = segments.verdicts(differentiator)
        column = "verdict" if differentiator == RULING else f"verdict_{differentiator}"
        listening = self._losses.filter(pl.col(column).is_not_null()).select(_FLOW).unique()
        lost = self._flows.join(listening, on=_FLOW, how="semi")["_dropped"].to_numpy().sum()
        judged = np.count_nonzero((segments.truth() != NOTHING) & (verdict >= 0) & (verdict != UNKNOWN))
        return judged / int(lost) if lost else None

    def events(self, kind: Literal["fast", "timeout"]) -> Events:
        """Fast retransmits, or expiries of the retransmission timer, by what was behind them."""
        timeouts: Literal["exclude", "only"] = "exclude" if kind == "fast" else "only"
        counted = self.with_rules(unit="invocation", timeouts=timeouts)
        n = np.bincount(counted.truth(), minlength=3)
        reduced = int(self._losses["_reduced"].to_numpy()[counted._counting].sum())
        return Events(int(n[CONGESTION]), int(n[CORRUPTION]), int(n[NOTHING]), reduced)

    @cached_property
    def _true(self) -> NDArray[np.int64]:
        return self._truth[self._counting]

    @cached_property
    def _truth(self) -> NDArray[np.int64]:
        truth: NDArray[np.int64] = self._losses[f"_truth_{self.rules.collisions}"].cast(pl.Int64).to_numpy()
        return truth

    @cached_property
    def _counting(self) -> NDArray[np.bool_]:
        """Which rows count."""
        timeout: NDArray[np.bool_] = self._losses["_timeout"].to_numpy()
        counting: NDArray[np.bool_] = self._truth != _EXCLUDED
        if self.rules.unit == "invocation":
            counting &= self._losses["_first"].to_numpy() | timeout
        match self.rules.timeouts:
            case "exclude":
                counting &= ~timeout
            case "only":
                counting &= timeout
            case _:
                pass
        return counting

    def _column(self, name: str, differentiator: str) -> pl.Series:
        if name not in self._losses.columns:
            known = ", ".join(self.differentiators)
            raise ScoringError(f"{self.origin}: no differentiator is called {differentiator!r}; there are {known}")
        return self._losses[name]


_RUN = ["results", "point", "run"]
_FLOW = [*_RUN, "flow"]
_NEEDED = ["run", "flow", "trigger", "episode", "true_cause", "verdict", "score", "judgement"]
#: Columns of the table of flows that say something about a loss too.
_OF_FLOWS = ["scheme", "transfer", "entry"]


def read(*sources: Source, flows: pl.DataFrame | None = None, rules: Rules | None = None) -> Judged:
    """The losses of ``sources``, one after the other.

    Rows of an episode are taken to come in the order in which they were noticed, as runs write them.

    Args:
        sources: where the losses come from. Of a folder or a :class:`~whyloss.Results`, the table ``flows`` is taken
            too, for :meth:`Judged.coverage` and for grouping by ``scheme`` and ``transfer``.
        flows: the table of flows where ``sources`` is a single data frame.
        rules: what counts; without timeouts, one judgement an episode, if nothing is said.

    Raises:
        ScoringError: a file is missing or no table of losses, or a cause is unknown.
    """
    if not sources:
        raise ScoringError("no results were given")
    losses: list[pl.DataFrame] = []
    tables: list[pl.DataFrame | None] = []
    names: list[str] = []
    for source in sources:
        one, its_flows, name = _tables(source)
        if name in names:
            name = f"{name} ({len(names) + 1})"
        losses.append(_prepared(one, name))
        tables.append(flows if its_flows is None else its_flows)
        names.append(name)
    together = pl.concat(losses, how="diagonal") if len(losses) > 1 else losses[0]
    known = [_counted(table, name) for table, name in zip(tables, names, strict=True) if table is not None]
    every = pl.concat(known, how="diagonal") if len(known) == len(sources) else None
    if every is not None:
        extra = [name for name in _OF_FLOWS if name in every.columns and name not in together.columns]
        together = together.join(every.select(*_FLOW, *extra), on=_FLOW, how="left", maintain_order="left")
    return Judged(together, every, rules or Rules(), ", ".join(names))


def _tables(source: Source) -> tuple[pl.DataFrame, pl.DataFrame | None, str]:
    match source:
        case Results():
            return source.losses.to_polars(), source.flows.to_polars(), "results"
        case pl.DataFrame():
            return source, None, "table"
        case str() | PathLike():
            path = Path(source)
        case _:
            raise TypeError(f"losses are read from results, data frames and paths; found {type(source).__name__}")
    file = path / "losses.parquet" if path.is_dir() else path
    if not file.is_file():
        what = f"{path} holds no losses.parquet" if path.is_dir() else f"{path}: there is no such file or folder"
        raise ScoringError(f"{what}; `whyloss run --out {path}` and `whyloss sweep --out {path}` write one")
    beside = file.with_name("flows.parquet")
    return _parquet(file), _parquet(beside) if beside.is_file() else None, str(source)


def _parquet(file: Path) -> pl.DataFrame:
    files.check(file)
    try:
        return pl.read_parquet(file)
    except pl.exceptions.PolarsError as mistake:
        raise ScoringError(f"{file}: not a whole Parquet file: {mistake}") from None


def _keyed(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """With the columns that tell runs of several sources and points apart."""
    missing = {"results": pl.lit(name), "point": pl.lit(0, dtype=pl.UInt32)}
    return table.with_columns(value.alias(key) for key, value in missing.items() if key not in table.columns)


def _counted(flows: pl.DataFrame, name: str) -> pl.DataFrame:
    dropped = [column for column in flows.columns if column.startswith("forward_dropped_")]
    if not dropped or "flow" not in flows.columns:
        raise ScoringError(f"{name}: not a table of flows: it has no columns `flow` and `forward_dropped_…`")
    return _keyed(flows, name).with_columns(pl.sum_horizontal(dropped).alias("_dropped"))


def _prepared(losses: pl.DataFrame, name: str) -> pl.DataFrame:
    """With verdicts and truths as numbers, and with what the rules ask for."""
    absent = [column for column in _NEEDED if column not in losses.columns]
    if absent:
        raise ScoringError(f"{name}: not a table of losses: it has no column `{absent[0]}`")
    verdicts = [column for column in losses.columns if column == "verdict" or column.startswith("verdict_")]
    episode = [*_FLOW, "episode"]
    try:
        return (
            _keyed(losses, name)
            .with_columns(
                *(pl.col(column).cast(_VERDICT).to_physical() for column in verdicts),
                *(
                    pl.col("true_cause")
                    .replace_strict(_classes(collisions), return_dtype=pl.UInt8)
                    .alias(f"_truth_{collisions}")
                    for collisions in ("corruption", "congestion", "exclude")
                ),
                (pl.col("trigger") == "timeout").alias("_timeout"),
                pl.struct(episode).is_first_distinct().alias("_first"),
            )
            .with_columns(
                # Not always the first loss of an episode is the one that reduced the window.
                pl.when("_timeout")
                .then(pl.col("judgement") == "reduced")
                .otherwise(((pl.col("judgement") == "reduced") & ~pl.col("_timeout")).any().over(episode))
                .alias("_reduced"),
            )
        )
    except pl.exceptions.InvalidOperationError:
        raise ScoringError(f"{name}: {_stranger(losses, verdicts)}") from None


_VERDICT = pl.Enum(VERDICTS)


@cache
def _classes(collisions: str) -> Mapping[str, int]:
    """The class of each true cause, as the tables have it but for collisions."""
    number = {"congestion": CONGESTION, "corruption": CORRUPTION, "exclude": _EXCLUDED}
    classes = {cause: number[kind] for cause, kind in _native.causes()}
    return {**classes, _COLLISION: number[collisions], _ARRIVED: NOTHING, _IN_FLIGHT: _EXCLUDED}


def _stranger(losses: pl.DataFrame, verdicts: Iterable[str]) -> str:
    """The value that no rule is for."""
    allowed = {"true_cause": list(_classes("exclude")), **{name: list(VERDICTS) for name in verdicts}}
    for column, known in allowed.items():
        found = [value for value in losses[column].drop_nulls().unique().sort() if value not in known]
        if found:
            return f"column `{column}` has {found[0]!r}; allowed: {', '.join(known)}"
    return "a column of verdicts or causes is not text"
