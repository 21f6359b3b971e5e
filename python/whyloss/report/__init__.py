"""Reports: one HTML file that carries everything it shows and opens without a network."""

from whyloss.report.html import render

__all__ = ["render"]
