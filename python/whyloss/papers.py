"""Papers as packages: run their experiments, draw their figures, judge their claims."""

from __future__ import annotations

import csv
import difflib
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import whyloss
from whyloss import experiments, plots, report, studies
from whyloss.claims import Claim, judge
from whyloss.figures import Curve, Figure, Style
from whyloss.pack import ClaimSpec, FigureSpec, Pack, PackError
from whyloss.stats import Mean, mean

__all__ = ["Paper", "Reproduction", "list_papers", "load"]

Progress = Callable[[int, int], None]


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

    claims: tuple[Claim, ...]
    skipped: tuple[str, ...]
    """Claims that were not judged because their figures were not run."""
    figures: tuple[Figure, ...]
    report: Path
    """One HTML file that opens offline."""
    out: Path
    """The folder with the report, the figures, the measurements and the pattern files."""


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

    def reproduce(
        self,
        figures: list[str] | None = None,
        *,
        quick: bool = False,
        out: Path,
        store: Path | None = None,
        progress: Progress | None = None,
        repetitions: int | None = None,
        on: tuple[str, ...] = (),
        parallel: int = 8,
    ) -> Reproduction:
        """Runs the experiments behind ``figures``, all of them if nothing is said, and writes everything to ``out``.

        Finished runs are kept in the folder ``store`` and not computed again. A claim whose figures are not all among
        ``figures`` is not judged. ``quick`` takes the paper's small number of repetitions instead of its own;
        ``repetitions`` is any other. ``progress(done, total)`` counts runs.

        ``on`` names real stacks (:data:`whyloss.stacks.STACKS`): the experiments then run in real time over emulated
        links, ``parallel`` at a time, and the figures show them over the simulator's curves for the same scenarios.
        Claims are judged on the simulator alone.

        Raises:
            PackError: a figure does not exist.
        """
        began = time.monotonic()
        chosen = self._choose(figures)
        if on:
            return self._reproduce_real(chosen, on, quick, out, store, progress, repetitions, parallel)
        count = repetitions or (self.pack.paper.quick_repetitions if quick else self.pack.paper.repetitions)
        out.mkdir(parents=True, exist_ok=True)
        done = self._measure(chosen, count, quick, out, store, progress)
        claims, skipped = self._judge(done.measurements, chosen)
        drawn = tuple(self._draw(figure, done.measurements) for figure in chosen)
        record = self._record(claims, skipped, drawn, quick, count)
        record["provenance"] |= {
            "runs": f"{done.runs:,}",
            "transfers": f"{done.transfers:,}",
            "wall_time": f"{time.monotonic() - began:.0f} s on {os.cpu_count()} cores",
        }
        return self._write(claims, skipped, drawn, record, out)

    def _reproduce_real(
        self,
        chosen: list[FigureSpec],
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
        count = repetitions or (how.quick_repetitions if quick else how.repetitions)
        out.mkdir(parents=True, exist_ok=True)
        requests = [
            experiments.Request(name, tuple(sorted(spec.at.items()))) for spec in chosen for name in spec.series
        ]
        data = real.run(
            self.pack, requests, count, out, store or out / "store", on, parallel=parallel, progress=progress
        )
        drawn = tuple(self._figure(spec, real.curves(self.pack, spec, data)) for spec in chosen)
        drawn = (*drawn, real.agreement(chosen, data))
        record = self._record((), tuple(self.pack.claims), drawn, quick, count)
        record["rerun"] = [line + "".join(f" --on {stack}" for stack in on) for line in record["rerun"]]
        record["stacks"] = list(on)
        record["provenance"] |= {
            "kernel": platform.release(),
            "runs": f"{data.runs:,} in real time, {data.invalid} of them on links that did not keep their time",
            "transfers": f"{data.transfers:,}",
            "sizes": ", ".join(f"{size} at {label}" for label, size in how.sizes.items()),
            "wall_time": f"{time.monotonic() - began:.0f} s on {os.cpu_count()} cores",
        }
        return self._write((), tuple(self.pack.claims), drawn, record, out)

    def _measure(
        self,
        chosen: list[FigureSpec],
        count: int,
        quick: bool,
        out: Path,
        store: Path | None,
        progress: Progress | None,
    ) -> experiments.Done | studies.Done:
        if not self.pack.studies:
            return experiments.run(self.pack, self._requests(chosen), count, out, store, progress)
        wanted = {name for figure in chosen for name in figure.studies}
        wanted.update(name for claim in self._judged(chosen) for name in claim.studies)
        return studies.run(self.pack, self._study(), wanted, count, quick, store, progress)

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

    def _requests(self, chosen: list[FigureSpec]) -> list[experiments.Request]:
        curves = [(name, figure.at) for figure in chosen for name in figure.series]
        curves += [(name, claim.runs.at) for claim in self._judged(chosen) if claim.runs for name in claim.runs.series]
        return [experiments.Request(name, tuple(sorted(at.items()))) for name, at in curves]

    def _judge(self, data: Any, chosen: list[FigureSpec]) -> tuple[tuple[Claim, ...], tuple[str, ...]]:
        tests = _module(self.pack.folder / "claims.py")
        specs = self._judged(chosen)
        judged = [
            judge(spec.id, spec.text, spec.asserts, spec.where, getattr(tests, spec.test)(data)) for spec in specs
        ]
        skipped = self.pack.claims.keys() - {spec.id for spec in specs}
        return tuple(judged), tuple(name for name in self.pack.claims if name in skipped)

    def _draw(self, spec: FigureSpec, data: Any) -> Figure:
        if spec.draw:
            figure: Figure = getattr(self._study(), spec.draw)(spec, data)
            return figure
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

    def _record(
        self, claims: tuple[Claim, ...], skipped: tuple[str, ...], figures: tuple[Figure, ...], quick: bool, count: int
    ) -> dict[str, Any]:
        paper = self.pack.paper
        chosen = (
            ""
            if not skipped and len(figures) == len(self.pack.figures)
            else "".join(f" --figure {f.id}" for f in figures)
        )
        errata = self.pack.folder / "errata.md"
        return {
            "paper": {
                name: getattr(paper, name)
                for name in ("name", "short", "title", "authors", "venue", "year", "doi", "summary", "repetitions")
            },
            "quick": quick,
            "claims": [
                {**claim.as_dict(), **_region(claim), "comparisons": [row.as_dict() for row in claim.comparisons]}
                for claim in claims
            ],
            "skipped": list(skipped),
            "figures": [_plain_figure(figure) for figure in figures],
            "reference_label": self.pack.reference.label if self.pack.reference else "",
            "errata": errata.read_text(encoding="utf-8") if errata.is_file() else "",
            "rerun": [f"whyloss reproduce {paper.name}{chosen}{' --quick' if quick else ''}"],
            "provenance": {
                "whyloss": whyloss.__version__,
                "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
                "repetitions": count,
                **({"seed": self.pack.patterns.seed} if self.pack.patterns else {}),
            },
        }

    def _write(
        self,
        claims: tuple[Claim, ...],
        skipped: tuple[str, ...],
        figures: tuple[Figure, ...],
        record: dict[str, Any],
        out: Path,
    ) -> Reproduction:
        pictures = out / "figures"
        pictures.mkdir(exist_ok=True)
        for figure in figures:
            plots.save(figure, pictures / f"figure-{figure.id}")
        _points(figures, out / "points.csv")
        text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
        (out / "reproduction.json").write_text(text + "\n", encoding="utf-8")
        page = out / "report.html"
        page.write_text(report.render(record), encoding="utf-8")
        return Reproduction(claims, skipped, figures, page, out)


def _region(claim: Claim) -> dict[str, Any]:
    row = claim.decisive.as_dict()
    return {name: row[name] for name in ("region_low", "region_high", "counted")}


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


def _plain_figure(figure: Figure) -> dict[str, Any]:
    curves = []
    for curve in figure.curves:
        rows = curve.rows()
        curves.append(
            {
                "label": curve.label,
                "reference": curve.reference,
                "style": {
                    name: getattr(curve.style, name) for name in ("colour", "marker", "filled", "dashed", "line")
                },
                **{column: [_finite(row[column]) for row in rows] for column in ("x", "y", "low", "high", "n")},
            }
        )
    names = ("id", "title", "caption", "x_label", "y_label", "y_limit", "x_ticks", "y_from_zero", "printed")
    return {**{name: getattr(figure, name) for name in names}, "curves": curves}


def _finite(value: float) -> float | None:
    return value if value - value == 0 else None


def _points(figures: Iterable[Figure], path: Path) -> None:
    """Every point of every figure as a table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["figure", "curve", "x", "mean", "low", "high", "n"])
        for figure in figures:
            for curve in figure.measured():
                writer.writerows(
                    [
                        figure.id,
                        row["curve"],
                        row["x"],
                        *(f"{row[name]:.6g}" for name in ("y", "low", "high")),
                        row["n"],
                    ]
                    for row in curve.rows()
                )
