"""What happened in a single run, to look at: time series, the time-sequence diagram and the ladder diagram."""

from whyloss.traces.draw_ladder import draw_ladder
from whyloss.traces.draw_sequence import draw_sequence
from whyloss.traces.draw_series import draw_series
from whyloss.traces.ladder import Ladder, ladder
from whyloss.traces.page import page
from whyloss.traces.rerun import PACKETS, rerun
from whyloss.traces.sequence import TimeSequence, time_sequence
from whyloss.traces.series import DEFAULT, QUANTITIES, Series, series, tables_of
from whyloss.traces.tables import Run, Span, TraceError, open_run

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
    "draw_ladder",
    "draw_sequence",
    "draw_series",
    "ladder",
    "open_run",
    "page",
    "rerun",
    "series",
    "tables_of",
    "time_sequence",
]
