"""Reports: one HTML file that carries everything it shows and opens without a network."""

from whyloss.report.html import render, render_plot, render_run

__all__ = ["render", "render_plot", "render_run"]
