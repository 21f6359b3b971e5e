"""The description of a paper: ``paper.toml``, read and checked."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from whyloss import _native
from whyloss.figures import Style

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "Change",
    "ClaimReading",
    "ClaimSpec",
    "FigureSpec",
    "Harm",
    "Pack",
    "PackError",
    "PaperInfo",
    "Patterns",
    "Reading",
    "Real",
    "Reason",
    "Reference",
    "Series",
    "Study",
]

T = TypeVar("T")

_READING = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class PackError(_native.InputError):
    """A paper's folder does not hold what it should: which file, which field, what was found, what is allowed."""


@dataclass(frozen=True, slots=True)
class PaperInfo:
    """Who wrote what where, and how often each point is repeated."""

    name: str
    short: str
    title: str
    authors: str
    venue: str
    year: int
    summary: str
    repetitions: int
    quick_repetitions: int
    doi: str = ""


@dataclass(frozen=True, slots=True)
class Patterns:
    """The bit-error patterns that all variants share: one file for each ratio and repetition."""

    ratios: tuple[float, ...]
    bits: int
    seed: int


@dataclass(frozen=True, slots=True)
class Study:
    """A sweep that is run as a whole; the pack's ``study.py`` says what is measured in it and draws it."""

    name: str
    title: str
    sweep: str
    """Name of the file in ``sweeps/``."""
    quick: dict[str, list[Any]]
    """For ``--quick``: the steps of an axis that are run; of an axis that is not named, all."""


@dataclass(frozen=True, slots=True)
class Series:
    """What one curve shows."""

    name: str
    label: str
    sweep: str
    """The sweep whose runs it takes."""
    where: dict[str, str]
    """Which of them: values of the sweep's axes."""
    flows: str
    """Whose throughput: a flow or group of flows; that of a group is summed up."""
    style: Style


@dataclass(frozen=True, slots=True)
class Harm:
    """The four series of a figure of gain and harm."""

    ours: str
    """The flow that is of another kind than those beside it."""
    instead: str
    """The flow of their kind in its place."""
    beside: str
    """Those beside it, with the flow of another kind."""
    among: str
    """Those beside it, with one of their kind."""

    @property
    def series(self) -> tuple[str, ...]:
        """All four."""
        return self.ours, self.instead, self.beside, self.among


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """One figure of the paper."""

    id: str
    title: str
    at: dict[str, str]
    """What it fixes: values of the sweeps' axes."""
    series: tuple[str, ...]
    labels: dict[str, str]
    studies: tuple[str, ...] = ()
    """The studies that it takes, if ``draw`` draws it."""
    draw: str = ""
    """The function of ``study.py`` that draws it."""
    harm: Harm | None = None
    """The series from which gain and harm are drawn, if that is what it shows."""
    caption: str = ""
    y_limit: float | None = None
    printed: bool = True

    @property
    def needed(self) -> tuple[str, ...]:
        """The series whose runs it takes."""
        return self.harm.series if self.harm else self.series


@dataclass(frozen=True, slots=True)
class Curves:
    """Series in one cell."""

    at: dict[str, str]
    series: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """One claim of the paper and the function of ``claims.py`` that tests it."""

    id: str
    text: str
    asserts: str
    where: str
    figures: tuple[str, ...]
    """The figures whose runs its test needs."""
    test: str
    studies: tuple[str, ...] = ()
    """The studies that its test needs beside those of its figures."""
    runs: Curves | None = None
    """What its test needs beside figures."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a reading takes the paper as it does."""

    words: str
    """The paper's words."""
    where: str
    """The section they stand in."""
    so: str
    """What follows from them, in ours."""
    measure: str = ""
    """The function of ``claims.py`` that measures what they speak of, in every reading."""
    figures: tuple[str, ...] = ()
    """The figures whose runs it needs."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a reading has otherwise in the scenarios."""

    sweeps: tuple[str, ...] = ()
    """Names of files in ``sweeps/``; all of them if nothing is said."""
    where: dict[str, list[str]] = field(default_factory=dict)
    """At which variants of an axis; at every point if nothing is said."""
    set: dict[str, Any] = field(default_factory=dict)
    """Field path = value."""
    unset: tuple[str, ...] = ()
    """Fields that are taken away."""


@dataclass(frozen=True, slots=True)
class ClaimReading:
    """What a reading measures otherwise for a claim."""

    test: str = ""
    """The function of ``claims.py``; the claim's own if nothing is said."""
    asserts: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to take what a paper leaves open. Its name is part of file names."""

    name: str
    title: str
    summary: str = ""
    headline: bool = False
    """Whether it is run if none is named."""
    reason: tuple[Reason, ...] = ()
    change: tuple[Change, ...] = ()
    claim: dict[str, ClaimReading] = field(default_factory=dict)

    def of(self, claim: ClaimSpec) -> ClaimSpec:
        """The claim as this reading tests it."""
        own = self.claim.get(claim.id)
        if own is None:
            return claim
        return replace(claim, test=own.test or claim.test, asserts=own.asserts or claim.asserts)


@dataclass(frozen=True, slots=True)
class Real:
    """How the experiments fit real time, when real stacks run them."""

    repetitions: int
    quick_repetitions: int
    sizes: dict[str, str]
    """How much each transfer moves, by the label of a step of an axis; as the scenario says where there is none."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Measurements made elsewhere, drawn to compare with."""

    label: str
    file: str


@dataclass(frozen=True, slots=True)
class Pack:
    """A paper's folder."""

    folder: Path
    paper: PaperInfo
    patterns: Patterns | None
    studies: dict[str, Study]
    x_label: str
    y_label: str
    series: dict[str, Series]
    figures: dict[str, FigureSpec]
    claims: dict[str, ClaimSpec]
    reference: Reference | None
    real: Real | None
    readings: dict[str, Reading]
    """At least one; that of a paper which names none is called ``""``."""

    @property
    def headline(self) -> list[str]:
        """The readings that are run if none is named."""
        return [name for name, reading in self.readings.items() if reading.headline] or [next(iter(self.readings))]

    def reading(self, name: str) -> Reading:
        """The reading called ``name``.

        Raises:
            PackError: there is none; says which there are.
        """
        if name not in self.readings:
            allowed = ", ".join(filter(None, self.readings)) or "none but the one that the file describes"
            raise PackError(f"{self.folder / 'paper.toml'}: there is no reading {name!r}; there are {allowed}")
        return self.readings[name]

    @classmethod
    def load(cls, folder: Path) -> Pack:
        """Reads ``paper.toml`` in ``folder``."""
        path = folder / "paper.toml"
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise PackError(f"{path}: there is no such file") from None
        except tomllib.TOMLDecodeError as mistake:
            raise PackError(f"{path}: {mistake}") from None
        return _Reader(path, document).pack(folder)


@dataclass(slots=True)
class _Reader:
    """Turns tables into dataclasses and says where something is wrong."""

    path: Path
    document: dict[str, Any]

    def pack(self, folder: Path) -> Pack:
        known = {"paper", "patterns", "study", "x", "y", "series", "figure", "claim", "reference", "real", "reading"}
        self._only("the file", self.document, known)
        studies = self._named("study", Study, "name", quick={})
        series = self._named("series", Series, "name")
        figures = self._named("figure", FigureSpec, "id", labels={}, at={}, series=[])
        claims = self._named("claim", ClaimSpec, "id")
        for figure in figures.values():
            self._exist(f"figure {figure.id}: series", [*figure.series, *figure.labels], series)
            self._exist(f"figure {figure.id}: harm", figure.harm.series if figure.harm else (), series)
            self._exist(f"figure {figure.id}: studies", figure.studies, studies)
            ways = [bool(figure.draw), bool(figure.series), figure.harm is not None]
            if bool(figure.draw) != bool(figure.studies) or ways.count(True) != 1:
                raise PackError(f"{self.path}: figure {figure.id}: give either series, or harm, or studies and draw")
        for claim in claims.values():
            self._exist(f"claim {claim.id}: figures", claim.figures, figures)
            self._exist(f"claim {claim.id}: runs", claim.runs.series if claim.runs else (), series)
            self._exist(f"claim {claim.id}: studies", claim.studies, studies)
        reference = self.document.get("reference")
        real = self.document.get("real")
        return Pack(
            folder=folder,
            paper=self._make("paper", PaperInfo, self._table("paper")),
            patterns=self._make("patterns", Patterns, self._table("patterns")) if series else None,
            studies=studies,
            x_label=str(self._table("x").get("label", "")) if series else "",
            y_label=str(self._table("y").get("label", "")) if series else "",
            series=series,
            figures=figures,
            claims=claims,
            reference=None if reference is None else self._make("reference", Reference, reference),
            real=None if real is None else self._make("real", Real, {"sizes": {}, **real}),
            readings=self._readings(folder, claims, figures),
        )

    def _readings(
        self, folder: Path, claims: dict[str, ClaimSpec], figures: dict[str, FigureSpec]
    ) -> dict[str, Reading]:
        tables = self.document.get("reading", {})
        if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
            raise PackError(f"{self.path}: reading: give each reading a table of its own, [reading.NAME]")
        sweeps = {path.stem: path for path in sorted((folder / "sweeps").glob("*.toml"))}
        readings = {}
        for name, table in tables.items():
            where = f"reading.{name}"
            if not _READING.fullmatch(name):
                raise PackError(f"{self.path}: {where}: a name is lower-case letters, digits and hyphens")
            own = dict(table)
            for key, kind in (("reason", Reason), ("change", Change)):
                own[key] = [self._make(f"{where}.{key}[{n}]", kind, row) for n, row in enumerate(own.get(key, []))]
            for change in own["change"]:
                self._exist(f"{where}.change: sweeps", change.sweeps, sweeps)
            for reason in own["reason"]:
                self._exist(f"{where}.reason: figures", reason.figures, figures)
            self._exist(f"{where}.claim", own.get("claim", {}), claims)
            own["claim"] = {
                claim: self._make(f"{where}.claim.{claim}", ClaimReading, row)
                for claim, row in own.get("claim", {}).items()
            }
            readings[name] = self._make(where, Reading, {**own, "name": name})
        return readings or {"": Reading("", "")}

    def _table(self, name: str) -> dict[str, Any]:
        table = self.document.get(name)
        if not isinstance(table, dict):
            raise PackError(f"{self.path}: there is no table [{name}]")
        return table

    def _named(self, name: str, kind: type[T], key: str, **default: Any) -> dict[str, T]:
        made: dict[str, T] = {}
        for index, row in enumerate(self.document.get(name, [])):
            one = self._make(f"{name}[{index}]", kind, {**default, **row})
            label = getattr(one, key)
            if label in made:
                raise PackError(f"{self.path}: {name}[{index}].{key}: there are two called {label!r}")
            made[label] = one
        return made

    def _make(self, where: str, kind: type[T], row: dict[str, Any]) -> T:
        names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
        self._only(where, row, names)
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
        for name, inner in (("style", Style), ("runs", Curves), ("harm", Harm)):
            if isinstance(row.get(name), dict):
                values[name] = self._make(f"{where}.{name}", inner, row[name])
        try:
            return kind(**values)
        except TypeError as mistake:
            raise PackError(f"{self.path}: {where}: {str(mistake).partition('__init__() ')[2]}") from None

    def _only(self, where: str, row: dict[str, Any], names: set[str]) -> None:
        for name in row.keys() - names:
            raise PackError(f"{self.path}: {where}: unknown field {name!r}; allowed are {', '.join(sorted(names))}")

    def _exist(self, where: str, names: Any, among: dict[str, Any]) -> None:
        for name in names:
            if name not in among:
                raise PackError(f"{self.path}: {where}: there is no {name!r}; there are {', '.join(among)}")
