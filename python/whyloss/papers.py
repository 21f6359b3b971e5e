"""Papers as packages: run their experiments, draw their figures, judge their claims."""

from __future__ import annotations

import csv
import difflib
import importlib
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from whyloss import experiments, gains, planning, records, studies, verdicts
from whyloss.claims import Claim, Verdict, judge
from whyloss.figures import Curve, Figure, Style
from whyloss.measuring import Plan, measure
from whyloss.pack import ClaimSpec, FigureSpec, Pack, PackError, Reading, Reason
from whyloss.precision import GROWTH, equal_level, looks
from whyloss.records import Found
from whyloss.stats import Mean, mean

if TYPE_CHECKING:
    from distributed import Client

    from whyloss.planning import Forecast
    from whyloss.verdicts import Column

__all__ = ["Paper", "Reproduction", "list_papers", "load"]

Progress = Callable[[int, int], None]

#: Seconds that a sample of a paper's runs may take.
SAMPLE_S = 20.0


def list_papers() -> list[str]:
    """The names of the papers that can be reproduced."""
    return sorted(_folders())


def load(name: str) -> Paper:
    """The paper called ``name``, or the one in the folder ``name``.

    Raises:
        PackError: there is no such paper, or its folder does not hold what it should.
    """
    folders = _folders()
    folder = folders.get(name, Path(name))
    if not (folder / "paper.toml").is_file():
        near = difflib.get_close_matches(name, folders, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise PackError(f"no paper is called {name!r}.{hint} There are: {', '.join(sorted(folders)) or 'none'}.")
    return Paper(Pack.load(folder))


def _folders() -> dict[str, Path]:
    here = Path(__file__).resolve().parent
    # WHYLOSS_PAPERS, the papers that an installed package brings, and those of a working copy; the first one wins.
    roots = [Path(root) for root in os.environ.get("WHYLOSS_PAPERS", "").split(os.pathsep) if root]
    roots += [here / "_papers", here.parents[1] / "papers"]
    found: dict[str, Path] = {}
    for root in roots:
        for path in sorted(root.glob("*/paper.toml")):
            found.setdefault(path.parent.name, path.parent)
    return found


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What a reproduction found and where it lies."""

    readings: tuple[Found, ...]
    """What was found under each reading of the paper that was run."""
    report: Path
    """One HTML file that opens offline."""
    out: Path
    """The folder with the report, the figures, the measurements and the pattern files."""

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims as judged under the first reading."""
        return self.readings[0].claims

    @property
    def skipped(self) -> tuple[str, ...]:
        """Claims that were not judged because their figures were not run."""
        return self.readings[0].skipped

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The figures as the first reading has them."""
        return self.readings[0].figures


class Paper:
    """A paper that can be reproduced."""

    def __init__(self, pack: Pack) -> None:
        """Takes the paper's checked description."""
        self.pack = pack

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return self.pack.paper.name

    @property
    def title(self) -> str:
        """Its title."""
        return self.pack.paper.title

    @property
    def figures(self) -> list[str]:
        """Its figures: the printed ones by number, the others by a number with a letter."""
        return list(self.pack.figures)

    @property
    def claims(self) -> list[str]:
        """The ids of its claims."""
        return list(self.pack.claims)

    @property
    def readings(self) -> list[str]:
        """The names of its readings, if it has several."""
        return list(filter(None, self.pack.readings))

    @property
    def verdicts(self) -> list[Column]:
        """The verdicts of the full run that is kept with the paper, a column for each reading; empty if none is."""
        return verdicts.columns(self.pack)

    @property
    def headline_verdicts(self) -> list[Column]:
        """Those of the readings that are run if none is named."""
        return [column for column in self.verdicts if column.reading in self.pack.headline]

    def reproduce(
        self,
        figures: list[str] | None = None,
        *,
        quick: bool = False,
        out: Path,
        store: Path | None = None,
        progress: Progress | None = None,
        repetitions: int | None = None,
        readings: Sequence[str] | None = None,
        until_decided: bool = False,
        on: tuple[str, ...] = (),
        parallel: int = 8,
        client: Client | None = None,
    ) -> Reproduction:
        """Runs the experiments behind ``figures``, all of them if nothing is said, and writes everything to ``out``.

        Finished runs are kept in the folder ``store`` and not computed again. A claim whose figures are not all among
        ``figures`` is not judged. ``quick`` takes the paper's small number of repetitions instead of its own;
        ``repetitions`` is any other. ``progress(done, total)`` counts runs. ``readings`` names the readings of the
        paper that are run side by side; those that its description puts first if nothing is said.

        ``until_decided`` looks at the claims after ``quick``'s number of repetitions, half as many more, and so on up
        to the whole number. Only the experiments behind claims that are still undecided get more. Verdicts hold
        although they are looked at several times: each look has the same part of the error (Bonferroni).

        ``on`` names real stacks (:data:`whyloss.stacks.STACKS`): the experiments then run in real time over emulated
        links, ``parallel`` at a time, and the figures show them over the simulator's curves for the same scenarios,
        in the first of ``readings``. Claims are judged on the simulator alone.

        ``client`` is one of a Dask cluster, whose workers compute what is simulated. They have to see the folder
        ``out``, which holds pattern files.

        Raises:
            PackError: a figure or a reading does not exist.
        """
        chosen = self._choose(figures)
        names = list(dict.fromkeys(self.pack.headline if readings is None else readings))
        taken = [self.pack.reading(name) for name in names]
        if not taken:
            raise PackError(f"{self.name}: no reading was named; there are {', '.join(self.pack.readings)}")
        if on:
            return self._reproduce_real(chosen, taken[0], on, quick, out, store, progress, repetitions, parallel)
        began = time.monotonic()
        count = repetitions or (self.pack.paper.quick_repetitions if quick else self.pack.paper.repetitions)
        out.mkdir(parents=True, exist_ok=True)
        ends = looks(self.pack.paper.quick_repetitions, count, GROWTH) if until_decided else [count]
        level = equal_level(len(ends))
        reasons = [reason for reading in taken for reason in reading.reason]
        found = [Found(reading, (), tuple(self.pack.claims), (), {}) for reading in taken]
        costs: dict[tuple[str, str], tuple[int, int]] = {}
        repeated = 0
        claims = self._judged(chosen)
        asked = dict.fromkeys(range(len(taken)), (chosen, claims))
        for end in ends:
            repeated = end
            plans = {at: self._plan(taken[at], *what, end, quick, out) for at, what in asked.items()}
            for at, done in zip(plans, measure(list(plans.values()), store, progress, client), strict=True):
                now = self._judge(taken[at], done.measurements, *asked[at], reasons, level)
                found[at] = self._renewed(found[at], now)
                for part, transfers in zip(plans[at].parts, done.transfers, strict=True):
                    costs[taken[at].name, part.sweep.with_runs(1).native.to_recipe()] = len(part.sweep), transfers
            asked = {at: _undecided(chosen, claims, one) for at, one in enumerate(found)}
            asked = {at: what for at, what in asked.items() if what[1]}
            if not asked:
                break
        rerun = self._rerun(found, readings, quick) + (" --until-decided" if until_decided else "")
        record = records.record(self.pack, found, rerun, quick, repeated)
        record["provenance"] |= {
            "runs": f"{sum(runs for runs, _ in costs.values()):,}",
            "transfers": f"{sum(transfers for _, transfers in costs.values()):,}",
            "wall_time": _wall_time(began),
        }
        if until_decided:
            after = ", ".join(str(end) for end in ends if end <= repeated)
            record["provenance"]["looks"] = f"after {after} repetitions, of {len(ends)}; corrected for all of them"
        return Reproduction(tuple(found), records.write(record, found, out), out)

    def forecast(
        self,
        figures: list[str] | None = None,
        *,
        quick: bool = False,
        out: Path,
        store: Path,
        readings: Sequence[str] | None = None,
    ) -> Forecast:
        """What :meth:`reproduce` will cost, from a sample of its runs: see :func:`whyloss.planning.forecast`.

        Nothing is kept of the sample, but ``out`` gets the pattern files and sweeps. Drawing and judging take some
        seconds more.

        Raises:
            PackError: a figure or a reading does not exist.
        """
        chosen = self._choose(figures)
        claims = self._judged(chosen)
        count = self.pack.paper.quick_repetitions if quick else self.pack.paper.repetitions
        names = dict.fromkeys(self.pack.headline if readings is None else readings)
        plans = [self._plan(self.pack.reading(name), chosen, claims, count, quick, out) for name in names]
        # Readings share what does not differ between them.
        parts = {part.sweep.native.to_recipe(): part.sweep.native for plan in plans for part in plan.parts}
        return planning.total(planning.forecast(sweep, store, SAMPLE_S / len(parts)) for sweep in parts.values())

    def _reproduce_real(
        self,
        chosen: list[FigureSpec],
        reading: Reading,
        on: tuple[str, ...],
        quick: bool,
        out: Path,
        store: Path | None,
        progress: Progress | None,
        repetitions: int | None,
        parallel: int,
    ) -> Reproduction:
        from whyloss.stacks import reproduction as real

        began = time.monotonic()
        how = self.pack.real
        if how is None or self.pack.studies:
            raise PackError(
                f"{self.pack.folder / 'paper.toml'}: without [real] its experiments run on the simulator only"
            )
        chosen = [spec for spec in chosen if spec.series]
        if not chosen:
            raise PackError(f"{self.name}: figures of gain and harm are drawn from simulated runs only")
        count = repetitions or (how.quick_repetitions if quick else how.repetitions)
        out.mkdir(parents=True, exist_ok=True)
        requests = [
            experiments.Request(name, tuple(sorted(spec.at.items()))) for spec in chosen for name in spec.series
        ]
        data = real.run(
            self.pack, reading, requests, count, out, store or out / "store", on, parallel=parallel, progress=progress
        )
        drawn = tuple(self._figure(spec, real.curves(self.pack, spec, data)) for spec in chosen)
        found = [Found(reading, (), tuple(self.pack.claims), (*drawn, real.agreement(chosen, data)), {})]
        rerun = self._rerun(found, [reading.name] if reading.name else None, quick)
        record = records.record(self.pack, found, rerun + "".join(f" --on {stack}" for stack in on), quick, count)
        record["stacks"] = list(on)
        record["provenance"] |= {
            "kernel": platform.release(),
            "runs": f"{data.runs:,} in real time, {data.invalid} of them on links that did not keep their time",
            "transfers": f"{data.transfers:,}",
            "sizes": ", ".join(f"{size} at {label}" for label, size in how.sizes.items()),
            "wall_time": _wall_time(began),
        }
        return Reproduction(tuple(found), records.write(record, found, out), out)

    def _renewed(self, before: Found, now: Found) -> Found:
        """What was found before, with what was found now in its place where there is something."""
        claims = {claim.id: claim for claim in (*before.claims, *now.claims)}
        drawn = {figure.id: figure for figure in (*before.figures, *now.figures)}
        return Found(
            now.reading,
            tuple(claims[name] for name in self.pack.claims if name in claims),
            tuple(name for name in self.pack.claims if name not in claims),
            tuple(drawn.values()),
            before.evidence | now.evidence,
        )

    def _plan(
        self,
        reading: Reading,
        chosen: list[FigureSpec],
        claims: list[ClaimSpec],
        count: int,
        quick: bool,
        out: Path,
    ) -> Plan:
        if not self.pack.studies:
            return experiments.plan(self.pack, reading, _requests(chosen, claims), count, out)
        wanted = {name for figure in chosen for name in figure.studies}
        wanted.update(name for claim in claims for name in claim.studies)
        return studies.plan(self.pack, reading, self._study(), wanted, count, quick, out)

    def _study(self) -> ModuleType:
        return _module(self.pack.folder / "study.py")

    def _choose(self, figures: Iterable[str] | None) -> list[FigureSpec]:
        if figures is None:
            return list(self.pack.figures.values())
        wanted = list(dict.fromkeys(str(figure) for figure in figures))
        for figure in wanted:
            if figure not in self.pack.figures:
                raise PackError(f"{self.name} has no figure {figure!r}; there are {', '.join(self.pack.figures)}")
        return [spec for name, spec in self.pack.figures.items() if name in wanted]

    def _judged(self, chosen: Iterable[FigureSpec]) -> list[ClaimSpec]:
        drawn = {figure.id for figure in chosen}
        return [claim for claim in self.pack.claims.values() if drawn.issuperset(claim.figures)]

    def _judge(
        self,
        reading: Reading,
        data: Any,
        chosen: list[FigureSpec],
        claims: list[ClaimSpec],
        reasons: list[Reason],
        level: float,
    ) -> Found:
        tests = _module(self.pack.folder / "claims.py")
        specs = [reading.of(claim) for claim in claims]
        judged = tuple(
            judge(spec.id, spec.text, spec.asserts, spec.where, getattr(tests, spec.test)(data), level)
            for spec in specs
        )
        skipped = self.pack.claims.keys() - {spec.id for spec in specs}
        drawn = tuple(self._draw(figure, data) for figure in chosen)
        ids = {figure.id for figure in chosen}
        evidence = {
            reason.measure: tuple(getattr(tests, reason.measure)(data))
            for reason in reasons
            if reason.measure and ids.issuperset(reason.figures)
        }
        return Found(reading, judged, tuple(name for name in self.pack.claims if name in skipped), drawn, evidence)

    def _draw(self, spec: FigureSpec, data: Any) -> Figure:
        if spec.draw:
            figure: Figure = getattr(self._study(), spec.draw)(spec, data)
            return figure
        if spec.harm:
            cells = {
                x: gains.Pair(*(data.sample(name, x, **spec.at) for name in spec.harm.series))
                for x in data.xs(spec.harm.ours, **spec.at)
            }
            return gains.figure(spec, cells, self.pack.x_label)
        curves = []
        for name in spec.series:
            series = self.pack.series[name]
            xs = data.xs(name, **spec.at)
            estimates = tuple(mean(data.sample(name, x, **spec.at)) for x in xs)
            curves.append(Curve(spec.labels.get(name, series.label), tuple(xs), estimates, series.style))
        return self._figure(spec, (*curves, *_reference(self.pack, spec)))

    def _figure(self, spec: FigureSpec, curves: tuple[Curve, ...]) -> Figure:
        return Figure(
            id=spec.id,
            title=spec.title,
            caption=spec.caption,
            x_label=self.pack.x_label,
            y_label=self.pack.y_label,
            curves=curves,
            y_limit=spec.y_limit,
            printed=spec.printed,
        )

    def _rerun(self, found: list[Found], readings: Sequence[str] | None, quick: bool) -> str:
        """The command that does the same again."""
        drawn = found[0].figures
        whole = not found[0].skipped and len(drawn) == len(self.pack.figures)
        figures = "" if whole else "".join(f" --figure {figure.id}" for figure in drawn)
        named = "" if readings is None else "".join(f" --reading {one.reading.name}" for one in found)
        return f"whyloss reproduce {self.name}{named}{figures}{' --quick' if quick else ''}"


def _undecided(
    chosen: list[FigureSpec], claims: list[ClaimSpec], found: Found
) -> tuple[list[FigureSpec], list[ClaimSpec]]:
    """The claims without a verdict, and the figures that they look at."""
    names = {claim.id for claim in found.claims if claim.verdict == Verdict.UNDECIDED}
    left = [claim for claim in claims if claim.id in names]
    wanted = {figure for claim in left for figure in claim.figures}
    return [figure for figure in chosen if figure.id in wanted], left


def _requests(chosen: list[FigureSpec], claims: list[ClaimSpec]) -> list[experiments.Request]:
    """The curves that figures and claims need."""
    curves = [(name, figure.at) for figure in chosen for name in figure.needed]
    curves += [(name, claim.runs.at) for claim in claims if claim.runs for name in claim.runs.series]
    return [experiments.Request(name, tuple(sorted(at.items()))) for name, at in curves]


def _wall_time(began: float) -> str:
    return f"{time.monotonic() - began:.0f} s on {os.cpu_count()} cores"


def _module(path: Path) -> ModuleType:
    """The Python file of a paper, as a module of a package that is its folder: its files can import each other."""
    if not path.is_file():
        raise PackError(f"{path}: there is no such file")
    name = f"whyloss_paper_{path.parent.name}"
    package = sys.modules.get(name)
    if package is None or list(package.__path__) != [str(path.parent)]:
        for loaded in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
            del sys.modules[loaded]
        package = ModuleType(name)
        package.__path__ = [str(path.parent)]
        sys.modules[name] = package
    return importlib.import_module(f"{name}.{path.stem}")


def _reference(pack: Pack, spec: FigureSpec) -> list[Curve]:
    """The curves of the pack's comparison file that belong into a figure."""
    if pack.reference is None:
        return []
    with (pack.folder / pack.reference.file).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["figure"] == spec.id]
    curves = []
    for label in dict.fromkeys(row["curve"] for row in rows):
        points = [row for row in rows if row["curve"] == label]
        style = Style(points[0]["colour"], points[0]["marker"], filled=False, dashed=True)
        estimates = tuple(
            Mean(float(row["mean_kbps"]), float(row["standard_error_kbps"]), int(row["n"])) for row in points
        )
        curves.append(Curve(label, tuple(float(row["x"]) for row in points), estimates, style, reference=True))
    return curves
