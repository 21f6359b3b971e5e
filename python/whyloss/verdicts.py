"""The verdicts of a paper's full run, kept beside its description: what ``whyloss papers`` and the docs show."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whyloss import files
from whyloss.claims import Verdict
from whyloss.pack import PackError

if TYPE_CHECKING:
    from pathlib import Path

    from whyloss.pack import Pack
    from whyloss.records import Found

__all__ = ["FILE", "Column", "columns", "keep", "load"]

#: The file in a paper's folder.
FILE = "verdicts.json"
_KEPT = ("verdict", "measured", "low", "high", "level", "n", "unit", "expected", "what")
_MEASURED = ("what", "measured", "low", "high", "unit")


@dataclass(frozen=True, slots=True)
class Column:
    """What the full run found under one reading."""

    reading: str
    title: str
    claims: dict[str, dict[str, Any]]
    """For each claim its ``verdict`` and the numbers that it rests on, as in :meth:`whyloss.claims.Claim.as_dict`."""
    behaviour: list[dict[str, Any]]
    """What the reasons of readings speak of: ``what``, and what was ``measured``, from ``low`` to ``high``."""

    def count(self, verdict: Verdict) -> int:
        """How many claims have this verdict."""
        return sum(claim["verdict"] == verdict for claim in self.claims.values())


def keep(found: tuple[Found, ...], repetitions: int, path: Path) -> None:
    """Writes what was found to ``path``, numbers with five digits.

    Raises:
        PackError: not all claims were judged.
    """
    skipped = found[0].skipped
    if skipped:
        raise PackError(f"{path}: only a run of all figures is kept; not judged are {', '.join(skipped)}")
    readings = {
        one.reading.name: {
            "claims": {claim.id: _plain(claim.as_dict(), _KEPT) for claim in one.claims},
            "behaviour": [_plain(row.as_dict(), _MEASURED) for rows in one.evidence.values() for row in rows],
        }
        for one in found
    }
    text = json.dumps({"repetitions": repetitions, "readings": readings}, indent=1, ensure_ascii=False)
    files.write(path, text + "\n")


def _plain(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    # A level is kept whole: five digits make certainty of one among 100,000 comparisons.
    values = ((name, row[name], isinstance(row[name], float) and name != "level") for name in names)
    return {name: float(f"{value:.5g}") if rounded else value for name, value, rounded in values}


def load(pack: Pack) -> dict[str, Any] | None:
    """The content of the paper's file of verdicts, or nothing if there is none.

    Raises:
        PackError: the file is not what :func:`keep` writes.
    """
    path = pack.folder / FILE
    if not path.is_file():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for reading in content["readings"].values():
            for claim in reading["claims"].values():
                Verdict(claim["verdict"])
            for row in reading["behaviour"]:
                row["what"], row["measured"]
    except (ValueError, KeyError, TypeError, AttributeError) as mistake:
        raise PackError(f"{path}: this is no record of verdicts ({mistake}); `make verdicts` writes one") from None
    return content


def columns(pack: Pack) -> list[Column]:
    """What the full run found, reading by reading, in the order of the paper's description; empty if none is kept."""
    kept = (load(pack) or {"readings": {}})["readings"]
    return [Column(name, reading.title, **kept[name]) for name, reading in pack.readings.items() if name in kept]
