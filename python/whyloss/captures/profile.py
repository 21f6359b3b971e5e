"""A profile for Wireshark that shows the verdicts of an annotated capture: a column, and a colour for each cause."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whyloss.captures.page import tones
from whyloss.captures.summary import ARRIVED

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["MARK", "profile"]

#: What the comments begin with.
MARK = "whyloss: "
_COLUMNS = (
    ("No.", "%m"),
    ("Time", "%t"),
    ("Source", "%s"),
    ("Destination", "%d"),
    ("Stream", "%Cus:tcp.stream:0:R"),
    ("Length", "%L"),
    ("Info", "%i"),
    ("Why", "%Cus:frame.comment:0:R"),
)
_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)


def profile(folder: str | PathLike[str]) -> Path:
    """Writes the profile into ``folder``, which Wireshark finds below its folder ``profiles``; returns it."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    columns = ", ".join(f'"{name}", "{what}"' for name, what in _COLUMNS)
    (place / "preferences").write_text(f"# Written by whyloss.\ngui.column.format: {columns}\n", encoding="utf-8")
    rules = ["# Written by whyloss.", *(_rule(*rule) for rule in _rules())]
    (place / "colorfilters").write_text("\n".join(rules) + "\n", encoding="utf-8")
    return place


def _rules() -> list[tuple[str, str, tuple[int, int, int], tuple[int, int, int]]]:
    """Name, what a comment holds, paper, ink; the first that fits counts."""
    found = []
    for cause, tone in tones().items():
        red, green, blue = (int(tone[at : at + 2], 16) for at in (1, 3, 5))
        ink = _BLACK if 0.3 * red + 0.59 * green + 0.11 * blue > 110 else _WHITE
        said = f"{MARK}not lost: {cause}" if cause in ARRIVED else f"{MARK}lost to {cause}"
        found.append((cause, said, (red, green, blue), ink))
    return [*found, ("sent again", f"{MARK}sent again", (255, 240, 190), _BLACK)]


def _rule(name: str, said: str, paper: tuple[int, int, int], ink: tuple[int, int, int]) -> str:
    shades = "".join("[" + ",".join(str(level * 257) for level in colour) + "]" for colour in (paper, ink))
    return f'@whyloss {name}@frame.comment contains "{said}"@{shades}'
