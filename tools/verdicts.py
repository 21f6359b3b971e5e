"""Writes the tables of verdicts in docs/verdicts.md and in the papers' errata, from those kept beside each paper.

``--measure`` runs the papers in full first, in all their readings, and keeps what they find.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyloss import files, papers, verdicts
from whyloss.claims import Verdict
from whyloss.report.html import interval, number

if TYPE_CHECKING:
    from whyloss.papers import Paper
    from whyloss.verdicts import Column

ROOT = Path(__file__).parent.parent
SUMMARY = ROOT / "docs" / "verdicts.md"
#: Where tables stand: between ``<!-- verdicts of NAME: generated -->`` and ``<!-- verdicts: end -->``, and between the
#: same with ``behaviour``, and with ``tally``, which is no more than how many claims have each verdict.
PAGES = [SUMMARY, *sorted(ROOT.glob("papers/*/errata.md"))]
BLOCK = re.compile(r"(<!-- (verdicts|behaviour|tally) of ([\w-]+): generated -->\n).*?(<!-- \2: end -->)", re.DOTALL)

TALLY = "reproduced · not reproduced · undecided"
NOTHING = "*Not measured yet: `make verdicts`.*\n"


def measure(paper: Paper) -> None:
    """Runs a paper in full, in all its readings, and keeps its verdicts."""
    done = paper.reproduce(out=Path("out") / paper.name, store=Path("out/store"), readings=list(paper.pack.readings))
    verdicts.keep(done.readings, paper.pack.paper.repetitions, paper.pack.folder / verdicts.FILE)
    print(f"{paper.name}: {done.report}")


def behaviour(columns: list[Column]) -> str:
    """What the reasons of readings speak of, one column a reading."""
    if not columns:
        return NOTHING
    lines = [
        "| | " + " | ".join(column.title for column in columns) + " |",
        "|---|" + "--:|" * len(columns),
        *(_measured(rows) for rows in zip(*(column.behaviour for column in columns), strict=True)),
    ]
    return "\n".join(lines) + "\n"


def _measured(rows: tuple[dict[str, Any], ...]) -> str:
    cells = [f"{number(row['measured'])}{row['unit'] and ' ' + row['unit']} ({interval(row)})" for row in rows]
    return f"| {rows[0]['what']} | " + " | ".join(cells) + " |"


def table(paper: Paper, columns: list[Column], numbers: bool) -> str:
    """One column of verdicts a reading, with the ``numbers`` that they hang on, and how many claims have each."""
    if not columns:
        return NOTHING
    lines = [
        "| | " + " | ".join(f"**{column.title}**" for column in columns) + " |",
        "|---|" + "---|" * len(columns),
        *(_row(paper, columns, claim, numbers) for claim in paper.claims),
        f"| {TALLY} | " + " | ".join(map(_tally, columns)) + " |",
    ]
    return "\n".join(lines) + "\n"


def _row(paper: Paper, columns: list[Column], claim: str, numbers: bool) -> str:
    cells = [_cell(column.claims[claim], numbers) for column in columns]
    return f"| **{claim}** {paper.pack.claims[claim].text} | " + " | ".join(cells) + " |"


def _cell(kept: dict[str, Any], numbers: bool) -> str:
    verdict = str(kept["verdict"])
    shown = f"**{verdict}**" if verdict == Verdict.REPRODUCED else verdict
    if not numbers:
        return shown
    unit = kept["unit"] and f" {kept['unit']}"
    measured = f"{kept['what']} {number(kept['measured'])}{unit}"
    return f"{shown}: {measured} ({interval(kept)}; n = {kept['n']}; expected {kept['expected']})"


def tally(columns: list[Column]) -> str:
    """How many claims have each verdict, one row a reading."""
    if not columns:
        return NOTHING
    rows = [f"| {column.title} | {_tally(column)} |" for column in columns]
    return "\n".join([f"| | {TALLY} |", "|---|---|", *rows]) + "\n"


def _tally(column: Column) -> str:
    return " · ".join(str(column.count(verdict)) for verdict in Verdict)


def pages() -> dict[Path, str]:
    """The pages as they should be: the summary with the readings that are headlines, errata with all."""
    known = {name: papers.load(name) for name in papers.list_papers()}

    def filled(page: Path) -> str:
        def fill(block: re.Match[str]) -> str:
            paper = known[block[3]]
            if block[2] == "behaviour":
                made = behaviour(paper.headline_verdicts)
            elif block[2] == "tally":
                made = tally(paper.verdicts)
            elif page == SUMMARY:
                made = table(paper, paper.headline_verdicts, numbers=False)
            else:
                made = table(paper, paper.verdicts, numbers=True)
            return f"{block[1]}\n{made}\n{block[4]}"

        return BLOCK.sub(fill, page.read_text(encoding="utf-8"))

    return {page: filled(page) for page in PAGES}


if __name__ == "__main__":
    if "--measure" in sys.argv[1:]:
        named = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
        for name in named or papers.list_papers():
            measure(papers.load(name))
    for page, text in pages().items():
        files.write(page, text)
