"""What happened in a single run, to look at: time series, the time-sequence diagram and the ladder diagram."""

from whyloss.traces.draw_ladder import draw_ladder
from whyloss.traces.draw_sequence import draw_sequence
from whyloss.traces.draw_series import draw_series
from whyloss.traces.ladder import Ladder, ladder
from whyloss.traces.page import figure, page
from whyloss.traces.rerun import PACKETS, rerun
from whyloss.traces.sequence import TimeSequence, time_sequence
from whyloss.traces.series import DEFAULT, QUANTITIES, Series, compared, series, tables_of
from whyloss.traces.tables import Run, Span, TraceError, open_run, printable

__all__ = [
    "DEFAULT",
    "PACKETS",
    "QUANTITIES",
    "Ladder",
    "Run",
    "Series",
    "Span",
    "TimeSequence",
    "TraceError",
    "compared",
    "draw_ladder",
    "draw_sequence",
    "draw_series",
    "figure",
    "ladder",
    "open_run",
    "page",
    "printable",
    "rerun",
    "series",
    "tables_of",
    "time_sequence",
]
