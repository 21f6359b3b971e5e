"""What the protocol-pair test found, for people, tables and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from whyloss import files
from whyloss.figures import Curve, Figure, Style
from whyloss.friendliness.worlds import mixes
from whyloss.harm import gain, harm
from whyloss.stats import Mean, mean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path

    from whyloss.kinds import Kind
    from whyloss.results import Results
    from whyloss.stats import Estimate, Sample

__all__ = ["Effect", "Friendliness"]

#: What is left of nothing when many numbers are added up.
_ROUNDING = 1e-9
_COLOURS = ("#d5622a", "#2f72b8")


@dataclass(frozen=True, slots=True)
class Effect:
    """What flows of one kind have beside flows of the other, and what they do to those."""

    mix: str
    """``half``, ``one-first`` (one of the first kind against all others) or ``one-second``."""
    scheme: str
    flows: int
    other: str
    others: int
    share: Mean
    """Of all that is delivered; the fair one is ``flows / (flows + others)``."""
    goodput_bps: Mean
    """Of one flow, on average."""
    gain: Mean
    """What a flow has more than one of the other kind would in its place, as a share of that."""
    harm: Mean
    """The share of its goodput that a flow of the other kind loses: :func:`whyloss.harm.harm`."""

    @property
    def fair(self) -> float:
        """The share that would be fair."""
        return self.flows / (self.flows + self.others)

    @property
    def certain(self) -> bool:
        """Whether the 95 % interval of the harm leaves out 0. Runs that are all the same tell nothing of chance."""
        low, high = self.harm.interval()
        return high - low > _ROUNDING and (low > 0 or high < 0)

    def sentence(self) -> str:
        """What it comes to."""
        value, (low, high) = self.harm.value, self.harm.interval()
        beside = f"{self.flows} beside {self.others}"
        if self.harm.n < 2:
            return f"{self.scheme} takes {_percent(value)} from {self.other} ({beside}): one run, nothing is certain"
        if max(abs(low), abs(high)) <= _ROUNDING:
            return f"{self.scheme} takes nothing from {self.other} ({beside}): every run is the same with either"
        if high - low <= _ROUNDING:
            same = "every run is the same, nothing is certain (`scenario.send_overhead` lets runs differ)"
            return f"{self.scheme} takes {_percent(value)} from {self.other} ({beside}): {same}"
        give = f"{_percent(abs(value))} ± {_percent((high - low) / 2)}"
        if self.certain and value < 0:
            return f"{self.scheme} leaves {self.other} {give} more than its own kind does ({beside}): certain"
        if self.certain:
            return f"{self.scheme} takes {give} from {self.other} ({beside}): certain"
        sign = "−" if value < 0 else ""
        most = f"at most {_percent(min(high, 1.0))}"
        return f"{self.scheme} takes {sign}{give} from {self.other} ({beside}): not certain that it takes any, {most}"

    def row(self) -> dict[str, Any]:
        """One plain row: each estimate with the ends of its 95 % interval."""
        told: dict[str, Any] = {name: getattr(self, name) for name in ("mix", "scheme", "flows", "other", "others")}
        told["fair"] = self.fair
        for name in ("share", "goodput_bps", "gain", "harm"):
            estimate: Estimate = getattr(self, name)
            low, high = estimate.interval()
            told |= {name: estimate.value, f"{name}_low": low, f"{name}_high": high}
        return {**told, "runs": self.harm.n}


def _percent(value: float) -> str:
    """A share for people."""
    return f"{100 * value:.2g} %" if abs(value) < 0.1 else f"{100 * value:.0f} %"


@dataclass(frozen=True, slots=True)
class Friendliness:
    """What the protocol-pair test found."""

    kinds: tuple[Kind, Kind]
    flows: int
    runs: int
    world: str
    """In a line: what it was measured in."""
    goodputs: pl.DataFrame
    """What each flow delivered after the warm-up: one row a mix, run and flow."""
    results: Results
    """All tables of all runs; the column ``mix`` says who was there."""

    @property
    def first(self) -> str:
        """The first kind, as it was asked for."""
        return self.kinds[0].label

    @property
    def second(self) -> str:
        """The other kind."""
        return self.kinds[1].label

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What the first does to the second and the second to the first, for each mix in which both are."""
        return tuple(
            self._effect(name, mix, kind)
            for name, mix in mixes(self.flows).items()
            if len(set(mix)) > 1
            for kind in (0, 1)
        )

    def _effect(self, name: str, mix: Sequence[int], kind: int) -> Effect:
        own = [place for place, there in enumerate(mix) if there == kind]
        rest = [place for place, there in enumerate(mix) if there != kind]
        alike = ("all-first", "all-second")
        ours, theirs = self._goodput(name, own), self._goodput(name, rest)
        sums = ours * len(own), theirs * len(rest)
        return Effect(
            mix=name,
            scheme=self.kinds[kind].label,
            flows=len(own),
            other=self.kinds[1 - kind].label,
            others=len(rest),
            share=mean(sums[0] / np.maximum(sums[0] + sums[1], 1e-9)),
            goodput_bps=mean(ours),
            gain=gain(ours, self._goodput(alike[1 - kind], own)),
            harm=harm(theirs, self._goodput(alike[1 - kind], rest)),
        )

    def _goodput(self, mix: str, places: Sequence[int]) -> Sample:
        """Of the flows at these places on average, one value a run."""
        rows = self.goodputs.filter((pl.col("mix") == mix) & pl.col("entry").is_in(list(places)))
        return rows.group_by("run").agg(pl.col("goodput_bps").mean()).sort("run")["goodput_bps"].to_numpy()

    @property
    def table(self) -> pl.DataFrame:
        """One row an effect."""
        return pl.DataFrame([effect.row() for effect in self.effects])

    @property
    def verdict(self) -> str:
        """What the first does to the second, half against half, in a sentence."""
        return self.effects[0].sentence()

    @property
    def verdicts(self) -> tuple[str, str]:
        """The same in both directions."""
        return self.effects[0].sentence(), self.effects[1].sentence()

    @property
    def figure(self) -> Figure:
        """Gain and harm of both, mix by mix."""
        found = self.effects
        sides = (found[0::2], found[1::2])
        curves = []
        for number, (side, colour) in enumerate(zip(sides, _COLOURS, strict=True)):
            kind, other = self.kinds[number].label, self.kinds[1 - number].label
            # Side by side, else one hides the other.
            places = tuple(position + 0.16 * number - 0.08 for position in range(len(side)))
            for what, estimates, filled in (
                (f"{kind}: harm to {other}", [effect.harm for effect in side], True),
                (f"{kind}: its own gain", [effect.gain for effect in side], False),
            ):
                ys = tuple(Mean(100 * one.value, 100 * one.error, one.n) for one in estimates)
                curves.append(Curve(what, places, ys, Style(colour, ("circle", "square")[number], filled, line=False)))
        ticks = tuple(f"{effect.flows} {effect.scheme}, {effect.others} {effect.other}" for effect in sides[0])
        return Figure(
            id="friendly",
            title=f"{self.first} and {self.second}: gain and harm",
            caption=self.world,
            x_label="",
            y_label="Share of a flow's goodput (%)",
            curves=tuple(curves),
            x_ticks=ticks,
            y_from_zero=False,
        )

    def as_dict(self) -> dict[str, Any]:
        """The verdicts and all effects as plain values."""
        return {
            "verdicts": list(self.verdicts),
            "first": {"asked": self.first, **self.kinds[0].fields},
            "second": {"asked": self.second, **self.kinds[1].fields},
            "world": self.world,
            "flows": self.flows,
            "effects": [effect.row() for effect in self.effects],
        }

    def save(self, folder: str | PathLike[str]) -> Path:
        """Writes all tables as Parquet, the effects as ``friendly.parquet`` too, and the figure as SVG and PNG."""
        from whyloss import plots  # Late: matplotlib takes longer than the runs.

        place = self.results.save(folder)
        for name, table in (("goodputs", self.goodputs), ("friendly", self.table)):
            with files.aside(place / f"{name}.parquet") as part:
                table.write_parquet(part)
        plots.save(self.figure, place / "friendly")
        return place

    def __repr__(self) -> str:
        """Its verdicts."""
        return "\n".join([*self.verdicts, f"({self.world}, {self.runs} runs a mix)"])
