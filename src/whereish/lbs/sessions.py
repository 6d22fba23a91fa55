"""How far the reports of a trace session are from the truth, for a location service.

A step of the predictive mechanism is hard (fresh noise) or easy (a prediction z that passed the
test d(x, z) <= l + N); which of them is public, so a radius may depend on it.  With delta = 1 -
confidence, let r_h hold the noise with probability 1 - delta/2, and r_e = l + ln(1/delta) / e_T.
For every x the report is farther than its radius with probability at most delta: if d(x, z) > r_e,
an easy step needs N > ln(1/delta) / e_T, of probability delta/2, and a hard one noise beyond r_h;
else only the latter fails.

A look of a sparse run that held has d(x, z) <= l + R, so r_e = l + ln(2/delta) / a there.

A step that looks at nothing, since nobody can have gone far, has the radius of the last look, the
way at top speed since, and the way that the prediction has gone, which is public.
"""

from __future__ import annotations

import math

from whereish.errors import InvalidInput
from whereish.lbs.report_errors import report_errors
from whereish.mechanisms.calibration import TrueRadii
from whereish.mechanisms.traces.predictive import TraceSession
from whereish.mechanisms.traces.shared_radius import law
from whereish.mechanisms.traces.transcript import Reported
from whereish.privacy.norms import Euclidean, Geodesic
from whereish.space.sphere import FARTHEST_M, Sphere, true_metres
from whereish.units import Length

__all__ = ["session_radius"]

_MARGIN = 1e-6  # of a quantile that was integrated numerically


def session_radius(session: TraceSession, confidence: float) -> Length:
    """True metres that hold the session's last report, in the sense above."""
    reports = session.transcript.reports
    looked = next((one for one in reversed(reports) if one.plan.test or one.plan.noise), None)
    if looked is None:
        raise InvalidInput("the session has not reported yet")
    radius = _of_step(session, looked, 1 - confidence)
    last = reports[-1]
    if last is not looked:
        speed = getattr(session.mechanism.budget, "top_speed", None)
        if speed is None or last.time_s is None or looked.time_s is None:
            raise InvalidInput(
                "this report is a prediction that nothing was asked about, so no radius is known:"
                " test at every step, as FixedUtility(..., tests='every'); where that has a"
                " top_speed, give the session times"
            )
        radius += speed * (last.time_s - looked.time_s) + _apart(session, last, looked)
    return Length(min(radius, FARTHEST_M))


def _of_step(session: TraceSession, step: Reported, delta: float) -> float:
    plan = step.plan
    if step.hard:
        assert plan.noise is not None
        if plan.shared is not None:
            # A sphere's caps are smaller than a plane's disks, so that radii are as well.
            reach = law(plan.shared.reports).quantile(1 - delta / 2) / plan.noise.per_m
            reach *= 1 + _MARGIN
            noise = session.mechanism.noise(plan.noise)
            assert isinstance(noise, TrueRadii)
            return min(noise.to_true(reach * _scale(session)), FARTHEST_M)
        return report_errors(session.mechanism.noise(plan.noise)).quantile(1 - delta / 2)
    if plan.guard is not None:
        threshold, far = plan.guard.threshold, math.log(2 / delta) / plan.guard.opening.per_m
    else:
        assert plan.test is not None
        assert plan.threshold is not None
        threshold, far = plan.threshold, math.log(1 / delta) / plan.test.per_m
    reach = threshold.m + far * _scale(session)
    if isinstance(session.space, Sphere):
        return reach * true_metres()
    return session.space.true_distance(reach)


def _apart(session: TraceSession, one: Reported, other: Reported) -> float:
    """True metres between two reports, at most."""
    if isinstance(session.space, Sphere):
        return float(Geodesic()(one.place, other.place))
    return session.space.true_distance(float(Euclidean()(one.place, other.place)))


def _scale(session: TraceSession) -> float:
    """A plane's tests have the level e_T / k."""
    return 1.0 if isinstance(session.space, Sphere) else session.space.scale
