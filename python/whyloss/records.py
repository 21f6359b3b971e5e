"""A reproduction as plain values and files: what the report shows and other programs read."""

from __future__ import annotations

import csv
import json
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyloss import _native, files, plots, report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whyloss.claims import Claim, Comparison
    from whyloss.figures import Figure
    from whyloss.pack import Pack, Reading

__all__ = ["Found", "plain_figure", "record", "write"]


@dataclass(frozen=True, slots=True)
class Found:
    """What was found under one reading of the paper."""

    reading: Reading
    claims: tuple[Claim, ...]
    skipped: tuple[str, ...]
    """Claims that were not judged because their figures were not run."""
    figures: tuple[Figure, ...]
    evidence: dict[str, tuple[Comparison, ...]]
    """What this reading has of the behaviour that the reasons of any reading speak of, by the measuring function."""


def record(pack: Pack, found: Iterable[Found], rerun: str, quick: bool, repetitions: int) -> dict[str, Any]:
    """The content of a ``reproduction.json``."""
    paper = pack.paper
    errata = pack.folder / "errata.md"
    return {
        "paper": {
            name: getattr(paper, name)
            for name in ("name", "short", "title", "authors", "venue", "year", "doi", "summary", "repetitions")
        },
        "quick": quick,
        "readings": [_plain_found(one) for one in found],
        "reference_label": pack.reference.label if pack.reference else "",
        "errata": errata.read_text(encoding="utf-8") if errata.is_file() else "",
        "rerun": [rerun],
        "stacks": [],
        "provenance": {
            "whyloss": _native.VERSION,
            **_commit(),
            "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "repetitions": repetitions,
            **({"seed": pack.patterns.seed} if pack.patterns else {}),
        },
    }


def _commit() -> dict[str, str]:
    """The commit of the checkout that this package runs from, if it runs from one."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return {}
    asked = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": told}


def _plain_found(found: Found) -> dict[str, Any]:
    return {
        **{name: getattr(found.reading, name) for name in ("name", "title", "summary")},
        "reasons": [asdict(reason) for reason in found.reading.reason],
        "evidence": {name: [row.as_dict() for row in rows] for name, rows in found.evidence.items()},
        "claims": [
            {**claim.as_dict(), **_region(claim), "comparisons": [row.as_dict() for row in claim.comparisons]}
            for claim in found.claims
        ],
        "skipped": list(found.skipped),
        "figures": [plain_figure(figure) for figure in found.figures],
    }


def _region(claim: Claim) -> dict[str, Any]:
    row = claim.decisive.as_dict()
    return {name: row[name] for name in ("region_low", "region_high", "counted")}


def plain_figure(figure: Figure) -> dict[str, Any]:
    """A figure as the record of a reproduction has it."""
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


def write(content: dict[str, Any], found: Iterable[Found], out: Path) -> Path:
    """Writes figures, points, ``reproduction.json`` and the report to ``out``; returns the report.

    The figures of a reading with a name lie in a folder of this name.
    """
    found = tuple(found)
    pictures: list[tuple[Figure, Path]] = []
    for one in found:
        place = out / "figures" / one.reading.name
        place.mkdir(parents=True, exist_ok=True)
        pictures += [(figure, place / f"figure-{figure.id}") for figure in one.figures]
    plots.save_all(pictures)
    _points(found, out / "points.csv")
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    files.write(out / "reproduction.json", text + "\n")
    return files.write(out / "report.html", report.render(content, out))


def _points(found: Iterable[Found], path: Path) -> None:
    """Every point of every figure as a table."""
    with files.aside(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["reading", "figure", "curve", "x", "mean", "low", "high", "n"])
        for one in found:
            for figure in one.figures:
                for curve in figure.measured():
                    writer.writerows(
                        [
                            one.reading.name,
                            figure.id,
                            row["curve"],
                            row["x"],
                            *(f"{row[name]:.6g}" for name in ("y", "low", "high")),
                            row["n"],
                        ]
                        for row in curve.rows()
                    )
