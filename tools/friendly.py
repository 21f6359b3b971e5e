"""Writes the table of docs/friendly.md: what the main schemes take from NewReno and CUBIC, in several worlds.

``--measure`` runs the protocol-pair test first (a quarter of an hour on two cores) for what docs/friendly.json does not
have yet, and writes it there; without it the table is made from what was measured before. ``--again SCHEME`` measures a
scheme anew. Schemes that the catalogue does not have are left out.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import whyloss as wl
from whyloss import files, friendliness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whyloss.scenario import Scenario

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "friendly.md"
RECORD = ROOT / "docs" / "friendly.json"
BEGIN, END = "<!-- measured: `python tools/friendly.py` -->", "<!-- measured: end -->"

RIVALS = ("newreno", "cubic")
ORACLE = "newreno,differentiator=oracle,reaction=keep"
LBE = "lbe,differentiator=oracle,reaction=keep"
SCHEMES = (
    "newreno",
    "sack",
    "cubic",
    "bbr",
    "bbr3",
    "westwood-plus",
    "veno",
    "vegas",
    "gaimd",
    "jtcp",
    "tcp-real",
    "tcp-real-2004",
    "tfrc",
    "dccp-ccid2",
    "checksum-ld",
    "checksum-lbe",
    ORACLE,
    LBE,
)
LABELS = {ORACLE: "newreno + oracle", LBE: "lbe + oracle"}


@dataclass(frozen=True, slots=True)
class World:
    """A column of the tables."""

    name: str
    runs: int
    options: dict[str, str]
    """Of :func:`whyloss.friendliness.dumbbell`."""
    fields: dict[str, str]
    """Of the scenario."""

    def scenario(self) -> Scenario:
        """The scenario that it is."""
        return friendliness.dumbbell(**self.options).replace(self.fields)  # type: ignore[arg-type]

    def options_told(self) -> str:
        """As on the command line."""
        options = [f"--{name} '{value}'" for name, value in self.options.items()]
        fields = [f"--set {name}={value}" for name, value in self.fields.items()]
        return " ".join([*options, *fields, f"--runs {self.runs}"])


CHANNEL = "dumbbell.bottleneck.forward.channel"
WORLDS = (
    World("as it is", 30, {}, {}),
    World("1 % damaged", 10, {"loss": "1 %"}, {f"{CHANNEL}.effect": "damage"}),
    World("1 Mbps, 50 ms", 12, {"rate": "1 Mbps", "delay": "50 ms"}, {}),
    World("queue of 1/4 BDP", 6, {"queue": "8 pkt"}, {}),
    World("queue of 4 BDP", 6, {"queue": "133 pkt"}, {}),
    World("40 Mbps", 4, {"rate": "40 Mbps"}, {}),
)


def measure(schemes: Sequence[str], again: Sequence[str]) -> None:
    """Runs what the record does not have of ``schemes`` against both rivals in all worlds, and all of ``again``."""
    from whyloss.cli.console import Watch

    before = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else []
    rows = [row for row in before if row["scheme"] not in again]
    there = {(row["world"], row["scheme"], row["rival"]) for row in rows}
    for world in WORLDS:
        for scheme in schemes:
            for rival in RIVALS:
                if scheme == rival or (world.name, scheme, rival) in there:
                    continue
                with Watch(f"{scheme}, {rival}, {world.name}") as watch:
                    found = wl.friendly(scheme, rival, world=world.scenario(), runs=world.runs, progress=watch.follow)
                effects = [_short(effect) for effect in found.effects]
                rows.append({"world": world.name, "scheme": scheme, "rival": rival, "effects": effects})
                rows.sort(key=_order)
                files.write(RECORD, json.dumps(rows, indent=1) + "\n")


def _order(row: dict[str, Any]) -> tuple[int, int, int]:
    names = [world.name for world in WORLDS]
    return RIVALS.index(row["rival"]), SCHEMES.index(row["scheme"]), names.index(row["world"])


def _short(effect: friendliness.Effect) -> dict[str, Any]:
    return {name: float(f"{v:.5g}") if isinstance(v, float) else v for name, v in effect.row().items()}


def tables(rows: list[dict[str, Any]]) -> list[str]:
    """One for each rival: harm to it and gain, half against half; worlds that are not measured whole are left out."""
    pairs = {(row["scheme"], row["rival"]) for row in rows}
    shown = [world for world in WORLDS if sum(row["world"] == world.name for row in rows) == len(pairs)]
    lines = [
        "",
        "| column | options |",
        "|---|---|",
        *(f"| {world.name} | `{world.options_told()}` |" for world in shown),
    ]
    for rival in RIVALS:
        mine = [row for row in rows if row["rival"] == rival]
        lines += [
            "",
            f"Two flows beside two of **`{rival}`**: harm to those, ± half of its interval, and their own gain, in %.",
            "",
        ]
        lines += ["| | " + " | ".join(world.name for world in shown) + " |", "|---|" + "---:|" * len(shown)]
        for scheme in dict.fromkeys(row["scheme"] for row in mine):
            cells = {row["world"]: row["effects"][0] for row in mine if row["scheme"] == scheme}
            texts = [_cell(cells[world.name]) if world.name in cells else "" for world in shown]
            lines.append(f"| `{LABELS.get(scheme, scheme)}` | " + " | ".join(texts) + " |")
    return lines


def _cell(effect: dict[str, Any]) -> str:
    """Harm in bold where it is certain and more than a twentieth."""
    half = 50 * (effect["harm_high"] - effect["harm_low"])
    text = f"{round(100 * effect['harm'])} ± {half:.0f}".replace("-", "−")
    loud = effect["harm_low"] > 0 and effect["harm"] > 0.05
    gain = f"{round(100 * effect['gain']):+}".replace("-", "−")
    return f"{'**' if loud else ''}{text}{'**' if loud else ''} · {gain}"


def main() -> None:
    """Measures if asked to, and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help="run the tests")
    parser.add_argument("--again", action="append", choices=SCHEMES, metavar="SCHEME", help="with --measure: anew")
    chosen = parser.parse_args()
    if chosen.measure:
        known = friendliness.names()
        measure([name for name in SCHEMES if name.split(",")[0] in known], chosen.again or [])
    rows = json.loads(RECORD.read_text(encoding="utf-8"))
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    files.write(PAGE, before + "\n".join([BEGIN, *tables(rows), "", END]) + rest.split(END)[1])


if __name__ == "__main__":
    main()
