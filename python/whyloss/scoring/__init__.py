"""Scores of loss differentiators: their verdicts against what really happened.

>>> from whyloss import scoring
>>> judged = scoring.read("out/sweep")  # or a Results, or a data frame
>>> judged.confusion("veno").a_w  # share of the corruption losses that it found
>>> judged.tradeoff("veno").auc  # over all thresholds, not only the one that it ran with
>>> for score in scoring.scores(judged, by=["rate"]):
...     print(score.differentiator, score.group, score.confusion.a_t, score.interval("a_t"))

Shares are numbers from 0 to 1. What is undefined, such as the accuracy on congestion losses where there were none, is
``None``, never 0 or 1. ``docs/scoring.md`` has the definitions.
"""

from whyloss.scoring.bootstrap import Bootstrapped, Resampling
from whyloss.scoring.calibration import Bin, Calibration, calibration
from whyloss.scoring.confusion import METRICS, TRUTHS, VERDICTS, Confusion
from whyloss.scoring.judged import RULING, Events, Judged, Rules, ScoringError, read
from whyloss.scoring.score import Score, scores
from whyloss.scoring.tradeoff import Point, Tradeoff, tradeoff

__all__ = [
    "METRICS",
    "RULING",
    "TRUTHS",
    "VERDICTS",
    "Bin",
    "Bootstrapped",
    "Calibration",
    "Confusion",
    "Events",
    "Judged",
    "Point",
    "Resampling",
    "Rules",
    "Score",
    "ScoringError",
    "Tradeoff",
    "calibration",
    "read",
    "scores",
    "tradeoff",
]
