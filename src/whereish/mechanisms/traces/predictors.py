"""Predictors of traces: guesses of the next place from the public transcript alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from whereish.arrays import FloatArray
from whereish.mechanisms.traces.cadence import Cadence
from whereish.mechanisms.traces.transcript import Reported, Transcript

__all__ = ["Predictor", "by_motion", "last_report", "straight_on"]

Predictor: TypeAlias = Callable[[Transcript, float | None], FloatArray]
"""From the public transcript and the clock to a guess of the next place."""


def last_report(transcript: Transcript, time_s: float | None) -> FloatArray:
    """Predict that the person is where the last noisy report was (the paper's "parrot")."""
    assert transcript.last_hard is not None
    return transcript.last_hard.place


def by_motion(transcript: Transcript, time_s: float | None) -> FloatArray:
    """Predict by the motion filter that plans the trace; :func:`last_report` where none does."""
    cadence = transcript.derived.get("cadence")
    if not isinstance(cadence, Cadence):
        return last_report(transcript, time_s)
    return cadence.follow(transcript, time_s)


def straight_on(transcript: Transcript, time_s: float | None) -> FloatArray:
    """Predict a straight line through the last two noisy reports, at their speed.

    It goes at most as far beyond the last report as those two are apart in time;
    without times, or with one report only, it is :func:`last_report`.
    """
    hard = _last_two_hard(transcript.reports)
    here = last_report(transcript, time_s)
    if hard is None or time_s is None:
        return here
    before, after = hard
    if before.time_s is None or after.time_s is None or after.time_s <= before.time_s:
        return here
    ahead = min((time_s - after.time_s) / (after.time_s - before.time_s), 1.0)
    return np.asarray(here + ahead * (after.place - before.place))


def _last_two_hard(reports: Sequence[Reported]) -> tuple[Reported, Reported] | None:
    found: list[Reported] = []
    for report in reversed(reports):
        if report.hard:
            found.append(report)
            if len(found) == 2:
                return found[1], found[0]
    return None
