"""When a trace needs fresh noise: once its public estimate has become too uncertain.

The rival is a fresh report at every k-th point, held in between.  It knows no motion, it spends
on stays as on drives, and whoever moves far while nothing is recorded is lost for k points.
Here the estimate goes on as the person moved (:mod:`~whereish.mechanisms.traces.motion`), the next
noisy report comes when its root mean square error reaches :data:`REFRESH` / eps, or
:data:`WHOLE` / eps where the whole trace is going to be smoothed, and after a pause a guard
(:mod:`~whereish.mechanisms.traces.sparse_test`) looks whether the person is still anywhere near;
it pays once for all the pauses after which the person was.

Why 4.6: somebody goes straight at speed v and reports are held.  With a = eps v T the length of a
hold in units of the noise, the mean error is f(a) / eps and a point costs eps / T, so that at a
given mean error the budget is as f(a)^2 / a, least near a = 3.9; there the error at the end of a
hold is sqrt(6 + a^2) / eps = 4.6 / eps in the root mean square.

Why 8: somebody wanders, with variance q a second, and reports of variance s = 6 / eps^2 every T
seconds are joined by lines.  The mean square error is 2 s / 3 + q T / 6 and a second costs eps / T,
so that at a given error the budget is as 1 / (T^2 s), least at q T = 8 s.  Just before a report the
live estimate, of variance P after it with P^2 + P q T = q T s, is off by sqrt(P + q T) = 7.3 / eps;
who goes on in one direction is joined better still, and may wait longer.

What nobody can do live with independent noise: with reports held, the same person costs least at
q T = 4 s; with all earlier reports used (Kalman, 1960), 0.88 of that at the same mean square error.
So against the best cadence for a way without memory there is little to win by a filter; noise that
several reports share (:mod:`~whereish.mechanisms.traces.shared_radius`) costs less for everybody.
(``whereish.studies.trace_floor`` has what is proven about that, and an oracle on given traces.)
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from whereish.arrays import FloatArray
from whereish.mechanisms.traces.motion import Motion, Past, smoothed
from whereish.mechanisms.traces.shared_radius import (
    ALONE,
    RATIO,
    block_size,
    is_local,
    law,
    level_over_laplace,
    sharing_pays,
)
from whereish.mechanisms.traces.transcript import (
    Guard,
    Plan,
    Reported,
    Shared,
    Surface,
    Transcript,
)
from whereish.units import Epsilon, Length

__all__ = [
    "FAILING",
    "OPENING",
    "REFRESH",
    "THRESHOLD",
    "WHOLE",
    "Cadence",
    "guarded",
    "shared_noise",
]

REFRESH: Final = 4.6
"""Root mean square error, in units of 1/eps, at which fresh noise is drawn."""
WHOLE: Final = 8.0
"""The same where the trace is smoothed once all of it is drawn."""
OPENING: Final = 0.15
FAILING: Final = 0.5
THRESHOLD: Final = 25.0
"""Levels of the guard over that of the noise, and its threshold in units of 1/eps.

A guard only has to see that somebody is far off: it fails in error with a chance of about
e^{-(25 - 5) / 4}, under one in a hundred, and all of it costs less than the noise it saves.
"""
_VARIANCE: Final = 3.0  # of one coordinate of planar Laplace noise of level 1
TOP_SPEED: Final = 30.0
"""Metres a second: a pause is a time in which the guard's threshold could be left."""


class Cadence:
    """The planner and predictor of one trace."""

    def __init__(
        self, space: Surface, epsilon: float, confidence: float = 0.9, *, blocks: bool = True
    ) -> None:
        self.epsilon, self.confidence = epsilon, confidence
        self._blocks = blocks and sharing_pays(confidence)
        self.pause_s = THRESHOLD / epsilon / TOP_SPEED
        self._motion = Motion(space, self.pause_s)
        self._seen = 0
        self._at: float | None = None
        self._past: list[tuple[int, float, float, bool, float]] = []

    @classmethod
    def of(
        cls, transcript: Transcript, epsilon: float, confidence: float = 0.9, *, blocks: bool = True
    ) -> Cadence:
        """The one that follows this transcript, with noise of level `epsilon` per metre.

        Noise that is drawn in `blocks` is within the same radius, with the same `confidence`.
        """
        found = transcript.derived.get("cadence")
        if found is None:
            found = cls(transcript.space, epsilon, confidence, blocks=blocks)
            transcript.derived["cadence"] = found
        assert isinstance(found, cls)
        return found

    def plan(self, transcript: Transcript, time_s: float | None) -> Plan:
        """Noise where the estimate is too uncertain, a guard after a pause, else nothing."""
        fresh = self._fresh(transcript)
        if transcript.last_hard is None:
            return fresh
        self.follow(transcript, time_s)
        allowed = (WHOLE if transcript.whole else REFRESH) * _spread(fresh)
        if self._motion.error >= allowed:
            return fresh
        if not self._motion.paused:
            return Plan()
        return guarded(self.epsilon, opened=transcript.guarded, fresh=fresh)

    def _fresh(self, transcript: Transcript) -> Plan:
        """The noise of the next report, in a block where they share a hidden radius."""
        if self._blocks and transcript.shares and transcript.drawn >= ALONE:
            shared = shared_noise(self.epsilon, transcript.blocks, self.confidence, transcript.used)
            if is_local(transcript.space, shared.each.per_m):
                return Plan(noise=shared.each, shared=shared)
        return Plan(noise=Epsilon(self.epsilon))

    def follow(self, transcript: Transcript, time_s: float | None) -> FloatArray:
        """The place expected at the next point; what was reported is learnt first."""
        self._learn(transcript)
        if self._at is None:
            last = transcript.reports[-1].time_s
            self._motion.advance(None if time_s is None or last is None else time_s - last)
            self._at = -1.0 if time_s is None else time_s
        return self._motion.place

    def smoothed(self, transcript: Transcript) -> FloatArray:
        """The whole trace as it looks once all reports are known."""
        self._learn(transcript)
        places = np.array([report.place for report in transcript.reports]).reshape(-1, 2)
        found = np.array(self._past).reshape(-1, 5).T.copy()
        return smoothed(self._motion, Past(places, *found))

    def _learn(self, transcript: Transcript) -> None:
        for report in transcript.reports[self._seen :]:
            kind = self._kind(report)
            noise = _VARIANCE * _spread(report.plan) ** 2 if report.hard else 0.0
            if kind == 1:
                self._motion.learn(report.place, noise)
            elif kind == 2 and (report.first or report.plan.guard is not None):
                self._motion.forget(report.place, noise)
            elif kind == 2:
                self._motion.restart(report.place, noise)
            self._past.append((kind, *self._motion.found, self._motion.paused, noise))
            self._seen += 1
            self._at = None

    def _kind(self, report: Reported) -> int:
        """As in :class:`~whereish.mechanisms.traces.motion.Past`: what is far off starts anew."""
        if not report.hard:
            return 0
        if report.first or report.plan.guard is not None:
            return 2
        far = THRESHOLD / self.epsilon + THRESHOLD / REFRESH * self._motion.error
        return 2 if self._motion.distance(report.place) > far else 1


def shared_noise(epsilon: float, block: int, confidence: float, used: int = 0) -> Shared:
    """Noise of the block of this number, as accurate as planar Laplace noise of level `epsilon`."""
    reports = block_size(block)
    level = epsilon * level_over_laplace(reports, confidence)
    return Shared(Epsilon(level), RATIO, reports, used)


def _spread(plan: Plan) -> float:
    """1/eps of the planar Laplace noise that has the mean square of the planned noise."""
    assert plan.noise is not None
    if plan.shared is None:
        return 1.0 / plan.noise.per_m
    return math.sqrt(law(plan.shared.reports).square / 6) / plan.noise.per_m


def guarded(epsilon: float, *, opened: bool = False, fresh: Plan | None = None) -> Plan:
    """A look after a pause, and `fresh` noise, or noise of level `epsilon`, if it fails."""
    guard = Guard(
        Epsilon(OPENING * epsilon), Epsilon(FAILING * epsilon), Length(THRESHOLD / epsilon), opened
    )
    if fresh is None:
        return Plan(noise=Epsilon(epsilon), guard=guard)
    return Plan(noise=fresh.noise, guard=guard, shared=fresh.shared)
