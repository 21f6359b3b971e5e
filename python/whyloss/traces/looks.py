"""How causes and verdicts look: the colour tells what really happened, the shape what the sender made of it.

The colours are those of Okabe and Ito ("Color Universal Design", 2008), which people with any kind of colour vision
can tell apart, and a few darker ones.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ACKED",
    "CAUSES",
    "FLOWS",
    "GREY",
    "INK",
    "LINES",
    "NO_VERDICT",
    "SACKED",
    "SHAPES",
    "cause_label",
    "colour",
    "shape",
]

INK = "#1c2430"
GREY = "#7a8492"
#: Acknowledgements, and SACK blocks.
ACKED, SACKED = "#4a86b8", "#b9a3d6"
#: The flows, or queues, of a figure.
FLOWS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d3b", "#56b4e9")
#: Colour, dashes and width of each quantity; with several flows the colour is the flow's.
LINES: dict[str, tuple[str, Any, float]] = {
    "cwnd": ("#0072b2", "-", 1.2),
    "ssthresh": ("#d55e00", (0, (4, 2)), 1.0),
    "flight": ("#8f98a5", (0, (1, 1)), 0.8),
    "srtt": ("#8a5a9e", "-", 1.1),
    "delivered": ("#009e73", "-", 1.2),
    "goodput": ("#009e73", "-", 1.2),
    "throughput": ("#8f98a5", "-", 1.0),
    "sequence": (INK, "-", 1.1),
    "queue": ("#0072b2", "-", 1.0),
}

#: Colour and words for each true cause, in the order of legends.
CAUSES: dict[str, tuple[str, str]] = {
    "queue-full": ("#d55e00", "queue full"),
    "aqm": ("#e69f00", "dropped by AQM"),
    "policer": ("#a6761d", "dropped by a policer"),
    "collision": ("#cc79a7", "collision"),
    "erased": ("#0072b2", "erased"),
    "payload-damaged": ("#56b4e9", "payload damaged"),
    "transport-header-damaged": ("#009e73", "header damaged"),
    "ip-header-damaged": ("#009e73", "header damaged"),
    "no-flow": ("#8a6d3b", "misdirected by damage"),
    "no-route": ("#8a6d3b", "misdirected by damage"),
    "link-down": ("#5b3a8e", "link down"),
    "arrived": ("#000000", "none (arrived)"),
    "in-flight": (GREY, "under way at the end"),
    "unknown": (GREY, "not known"),
}

NO_VERDICT = "none"
#: Marker (of matplotlib, of plotly) and words for each verdict, in the order of legends.
SHAPES: dict[str, tuple[str, str, str]] = {
    "congestion": ("v", "triangle-down", "verdict congestion"),
    "corruption": ("^", "triangle-up", "verdict corruption"),
    "unknown": ("o", "circle", "verdict unknown"),
    NO_VERDICT: ("s", "square", "no verdict"),
}


def colour(cause: str) -> str:
    """The colour of a true cause; grey for one that has none."""
    return CAUSES.get(cause, CAUSES["unknown"])[0]


def cause_label(cause: str) -> str:
    """A true cause in words."""
    return CAUSES[cause][1] if cause in CAUSES else cause


def shape(verdict: str) -> tuple[str, str, str]:
    """Marker for matplotlib, marker for plotly and words of a verdict."""
    return SHAPES.get(verdict, SHAPES[NO_VERDICT])
