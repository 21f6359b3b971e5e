"""What a comparison of schemes found, for people, tables and figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import polars as pl

from whyloss import files
from whyloss.harm import gain, harm
from whyloss.judgements import Judgements
from whyloss.precision import equal_level
from whyloss.stats import mean

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from whyloss.stats import Mean

__all__ = ["Comparison", "Difference", "Measured"]

#: What is left of nothing when many numbers are added up.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Measured:
    """What one scheme got, over all runs."""

    scheme: str
    differentiates: bool
    """Whether it asks why a segment was lost."""
    goodput_bps: Mean
    queueing_s: Mean
    """How long a packet waited in front of the link with the longest queue, in the mean."""
    timeouts: Mean
    """Retransmission timeouts a run."""
    harm: Mean
    """The share of its goodput that a flow beside it loses, compared with the same among its own kind."""
    judgements: Judgements
    """The losses of all runs, and those that were misjudged."""

    def row(self, level: float) -> dict[str, Any]:
        """One plain row: each estimate with the ends of its interval."""
        told: dict[str, Any] = {"scheme": self.scheme, "differentiates": self.differentiates}
        for name in ("goodput_bps", "queueing_s", "timeouts", "harm"):
            estimate: Mean = getattr(self, name)
            low, high = estimate.interval(level)
            told |= {name: estimate.value, f"{name}_low": low, f"{name}_high": high}
        return {**told, **asdict(self.judgements), "misjudged": self.judgements.wrong, "runs": self.goodput_bps.n}


@dataclass(frozen=True, slots=True)
class Difference:
    """What one scheme has more than another in the same runs, as a share of what the other has."""

    scheme: str
    other: str
    more: Mean
    level: float
    """Of its interval, so that those of all pairs at all looks hold together in 95 % of all comparisons."""

    @property
    def interval(self) -> tuple[float, float]:
        """The interval at that level."""
        return self.more.interval(self.level)

    @property
    def certain(self) -> bool:
        """Whether the interval leaves out 0. Runs that are all the same tell nothing of chance."""
        low, high = self.interval
        return high - low > _ROUNDING and (low > 0 or high < 0)

    def words(self) -> str:
        """By how much, in words."""
        low, high = self.interval
        share = f"{_percent(abs(self.more.value))} ± {_percent((high - low) / 2)}"
        return f"{share} {'more' if self.more.value >= 0 else 'less'} than {self.other}"


@dataclass(frozen=True)
class Comparison:
    """What schemes got under the same errors. Runs are added until the precision is reached, or their bound."""

    world: str
    """In a line: where they were compared."""
    others: str
    """The kind of the flow beside which harm was measured."""
    precision: float
    """The wanted half of an interval of goodput, as a share of the mean."""
    max_runs: int
    looks: int
    """How often the intervals could be looked at before the runs are at their bound."""
    runs: int
    """Runs of each scheme so far."""
    table: pl.DataFrame
    """A row a scheme and run: ``scheme``, ``run``, ``goodput_bps``, ``queueing_s``, ``timeouts``, ``other_bps`` (what
    the flows beside it have), ``among_bps`` (the same among their own kind), and counts of losses and misjudged ones.
    """
    like: dict[str, str | None] = field(default_factory=dict)
    """The schemes that differentiate, each with one of those compared that does not and is else like it."""

    @property
    def level(self) -> float:
        """The level of each interval, so that those of all looks hold together in 95 % (Bonferroni)."""
        return equal_level(self.looks)

    @property
    def pair_level(self) -> float:
        """The same, so that those of all pairs of schemes do, too."""
        pairs = max(1, len(self.measured) * (len(self.measured) - 1) // 2)
        return equal_level(self.looks * pairs)

    @cached_property
    def measured(self) -> tuple[Measured, ...]:
        """What each scheme got, in the order in which they were asked for."""
        found = []
        for (scheme,), rows in self.table.group_by("scheme", maintain_order=True):
            ordered = rows.sort("run")
            counts = {name: int(ordered[name].sum()) for name in _JUDGED}
            found.append(
                Measured(
                    scheme=str(scheme),
                    differentiates=scheme in self.like,
                    goodput_bps=mean(ordered["goodput_bps"].to_numpy()),
                    queueing_s=mean(ordered["queueing_s"].to_numpy()),
                    timeouts=mean(ordered["timeouts"].to_numpy()),
                    harm=harm(ordered["other_bps"].to_numpy(), ordered["among_bps"].to_numpy()),
                    judgements=Judgements(**counts),
                )
            )
        return tuple(found)

    def difference(self, scheme: str, other: str) -> Difference:
        """What ``scheme`` has more than ``other``, from runs with the same random numbers."""
        ours, theirs = (
            self.table.filter(pl.col("scheme") == name).sort("run")["goodput_bps"].to_numpy()
            for name in (scheme, other)
        )
        return Difference(scheme, other, gain(ours, theirs), self.pair_level)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Of all pairs, the better one first."""
        return tuple(self.difference(one.scheme, other.scheme) for one, other in combinations(self.ranking, 2))

    @cached_property
    def ranking(self) -> tuple[Measured, ...]:
        """The schemes by goodput, the highest first."""
        return tuple(sorted(self.measured, key=lambda one: -one.goodput_bps.value))

    @property
    def reached(self) -> bool:
        """Whether the goodput of every scheme is known as precisely as was wanted."""
        return all(self._half(one) <= self.precision for one in self.measured)

    def _half(self, one: Measured) -> float:
        low, high = one.goodput_bps.interval(self.level)
        return (high - low) / 2 / one.goodput_bps.value if one.goodput_bps.value > 0 else 0.0

    @property
    def verdict(self) -> str:
        """Who wins, by how much, and whether that is certain."""
        best = self.ranking[0]
        has = f"{best.scheme} {{}} with {_rate(best.goodput_bps.value)}"
        if len(self.ranking) == 1:
            low, high = best.goodput_bps.interval(self.level)
            return f"{best.scheme} has {_rate(best.goodput_bps.value)} ± {_rate((high - low) / 2)}"
        to_next = self.difference(best.scheme, self.ranking[1].scheme)
        low, high = to_next.interval
        if self.runs < 2:
            return f"{has.format('leads')}; one run, nothing is certain"
        if high - low <= _ROUNDING:
            same = "every run is the same, so nothing is certain (random losses let runs differ)"
            return f"{has.format('leads')}, {_percent(to_next.more.value)} more than {to_next.other}: {same}"
        if to_next.certain:
            return f"{has.format('wins')}, {to_next.words()}, the next: certain"
        tied = f"{has.format('leads')}, {to_next.words()}, the next: not certain"
        beaten = [one.scheme for one in self.ranking[2:] if self.difference(best.scheme, one.scheme).certain]
        return f"{tied}; that it has more than {_listed(beaten)} is certain" if beaten else tied

    @property
    def worth(self) -> str | None:
        """Whether differentiation is worth it here; ``None`` unless schemes with and without it were compared."""
        with_it = [one for one in self.ranking if one.differentiates]
        without = [one for one in self.ranking if not one.differentiates]
        if not with_it or not without or self.runs < 2:
            return None
        best, other = with_it[0].scheme, without[0].scheme
        found = self.difference(best, other)
        if not found.certain:
            return f"Whether differentiation is worth it here is not certain: {best} has {found.words()}"
        if found.more.value > 0:
            return f"Differentiation is worth it here: {best} has {found.words()}, the best without it"
        lost = f"Differentiation is not what wins here: {best}, the best with it, has {found.words()}"
        like = self.like[best]
        if like is None or like == other:
            return lost
        own = self.difference(best, like)
        certain = "certain" if own.certain else "not certain"
        return f"{lost}; it has {own.words()}, its like without differentiation: {certain}"

    @property
    def rows(self) -> pl.DataFrame:
        """One row a scheme: each estimate with the ends of its interval, and the losses."""
        return pl.DataFrame([one.row(self.level) for one in self.measured])

    @property
    def basis(self) -> str:
        """What the intervals rest on, in a line."""
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        corrected = "" if self.looks == 1 else f", corrected for {self.looks} looks"
        return f"{runs} of each, the same errors for all; 95 % intervals{corrected}"

    @property
    def shortfall(self) -> str | None:
        """What is not as precise as was wanted; ``None`` if all is."""
        late = [one for one in self.measured if self._half(one) > self.precision]
        if not late:
            return None
        worst = max(late, key=self._half)
        return (
            f"after {self.runs} runs the goodput of {worst.scheme} is known to ± {_percent(self._half(worst))}, "
            f"not to {_percent(self.precision)}; --max-runs allows more"
        )

    def as_dict(self) -> dict[str, Any]:
        """Sentences and all rows as plain values."""
        return {
            "verdict": self.verdict,
            "worth": self.worth,
            "world": self.world,
            "beside": self.others,
            "runs": self.runs,
            "precision": self.precision,
            "reached": self.reached,
            "level": self.level,
            "schemes": self.rows.to_dicts(),
            "differences": [
                {
                    "scheme": one.scheme,
                    "other": one.other,
                    "more": one.more.value,
                    "low": one.interval[0],
                    "high": one.interval[1],
                    "level": one.level,
                    "certain": one.certain,
                }
                for one in self.differences
            ],
        }

    def plot(self, path: str | PathLike[str], width: float = 160.0) -> Path:
        """Draws goodput, queueing delay, timeouts and harm with their intervals into an SVG, PNG or PDF file."""
        from whyloss.comparison.draw import Panel, draw  # Late: matplotlib takes longer than the runs.

        unit, size = _unit(self.ranking[0].goodput_bps.value)

        def panel(name: str, label: str, factor: float, least: float | None) -> Panel:
            found = [getattr(one, name) for one in self.measured]
            values = [(one.value, *one.interval(self.level)) for one in found]
            return Panel(name, label, [(factor * a, factor * b, factor * c) for a, b, c in values], least)

        panels = (
            panel("goodput_bps", f"goodput ({unit})", 1 / size, 0.0),
            panel("queueing_s", "queueing delay (ms)", 1e3, 0.0),
            panel("timeouts", "timeouts a run", 1.0, 1.0),
            panel("harm", f"harm to {self.others} (%)", 100.0, None),
        )
        return draw(self.world, self.basis, [one.scheme for one in self.measured], panels, path, width)

    def save(self, folder: str | PathLike[str]) -> Path:
        """Writes ``schemes.parquet``, ``runs.parquet`` (a row a scheme and run) and ``compare.svg`` into a folder."""
        from pathlib import Path

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for name, table in (("schemes", self.rows), ("runs", self.table)):
            with files.aside(place / f"{name}.parquet") as part:
                table.write_parquet(part)
        self.plot(place / "compare.svg")
        return place

    def __repr__(self) -> str:
        """Its sentences."""
        return "\n".join(f"{line}." for line in (self.verdict, self.worth) if line) + f"\n({self.world}; {self.basis})"


#: Columns with counts of losses, as :class:`whyloss.judgements.Judgements` has them.
_JUDGED = ("corruption", "taken_for_congestion", "congestion", "taken_for_corruption")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _percent(value: float) -> str:
    """A share for people."""
    return f"{100 * value:.2g} %" if abs(value) < 0.1 else f"{100 * value:.0f} %"


def _rate(bps: float) -> str:
    """A bit rate for people."""
    unit, size = _unit(bps)
    return f"{bps / size:.3g} {unit}"


def _unit(bps: float) -> tuple[str, float]:
    """The unit in which a bit rate is a short number, and its size."""
    known = (("Gbps", 1e9), ("Mbps", 1e6), ("kbps", 1e3))
    return next(((unit, size) for unit, size in known if bps >= size), ("bps", 1.0))
