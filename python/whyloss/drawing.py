"""Pictures of runs: what happened over time, of one run or of several over each other."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from whyloss import files, traces
from whyloss._native import InputError
from whyloss.report import render_plot
from whyloss.results import Results
from whyloss.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

__all__ = ["Drawable", "RunPicture", "plot"]

Drawable: TypeAlias = "Scenario | Results | str | PathLike[str]"
"""A scenario, which is run first; results of one run; a scenario file, or the folder of a finished run."""
_ENDINGS = (".svg", ".png", ".pdf", ".html")


class RunPicture:
    """Time series of one run, or of several over each other. A notebook shows it."""

    def __init__(self, series: traces.Series, width: float) -> None:
        """Takes what is shown, and the width in millimetres."""
        self.series = series
        self.width = width

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes it as its name ends: ``.svg``, ``.png``, ``.pdf``, or ``.html`` to zoom into.

        Raises:
            whyloss.InputError: the name ends in something else.
        """
        place = Path(path)
        if place.suffix not in _ENDINGS:
            raise InputError(f"found {place.name!r}; allowed: a name that ends in .svg, .png, .pdf or .html")
        if place.suffix == ".html":
            title = traces.printable(self.series.title)
            return files.write(place, render_plot({"name": title, "notes": [], **traces.figure(self.series)}))
        traces.draw_series(self.series, place, self.width)
        return place

    def _repr_png_(self) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            return self.save(Path(folder, "picture.png")).read_bytes()

    def __repr__(self) -> str:
        """What is in it."""
        return f"RunPicture({self.series.title!r}: {', '.join(panel.kind for panel in self.series.panels)})"


def plot(
    what_ran: Drawable | Mapping[str, Drawable],
    *,
    what: Sequence[str] | None = None,
    flows: Sequence[str] = (),
    start_s: float = 0.0,
    end_s: float | None = None,
    run: int = 0,
    width: float = 160.0,
) -> RunPicture:
    """Draws what happened in a run, or in several over each other: ``plot({"cubic": one, "bbr": other})``.

    The colour of a loss tells its true cause and the shape what the sender made of it; a bar is a retransmission timer
    that ran and expired.

    Args:
        what_ran: a scenario, results of one run, a scenario file or the folder of a finished run; or several of them
            by the names that the picture shows.
        what: some of ``cwnd``, ``ssthresh``, ``flight``, ``srtt``, ``queue``, ``goodput``, ``throughput``,
            ``delivered`` and ``sequence``.
        flows: flows by their names or positions; of several runs one, the first if nothing is said.
        start_s: where the picture begins, in seconds of simulated time.
        end_s: where it ends.
        run: number of the run, where a scenario is run.
        width: millimetres.

    Raises:
        whyloss.InputError: a run did not write down what is asked for, or it is more than can be told apart.
    """
    span = traces.Span(round(start_s * 1e9), None if end_s is None else round(end_s * 1e9))
    needed = traces.tables_of(what or traces.DEFAULT)
    if isinstance(what_ran, (Scenario, Results, str)) or hasattr(what_ran, "__fspath__"):
        return RunPicture(traces.series(_opened(None, what_ran, run, needed, span), flows, span, what), width)
    runs = [_opened(name, one, run, needed, span) for name, one in what_ran.items()]
    if len(flows) > 1:
        raise InputError(f"found {len(flows)} flows; allowed of several runs: one")
    return RunPicture(traces.compared(runs, flows[0] if flows else None, span, what), width)


def _opened(name: str | None, source: Drawable, number: int, needed: set[str], span: traces.Span) -> traces.Run:
    if isinstance(source, Results):
        return traces.Run(name or "run", source)
    if not isinstance(source, Scenario):
        folder = Path(source)
        if folder.is_dir():
            found = traces.open_run(folder)
            found.name = name or found.name
            return found
        source = Scenario.load(folder)
    return traces.rerun(source, number, needed=needed, span=span, name=name)
