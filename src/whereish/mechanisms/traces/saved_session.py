"""A trace in progress as plain data: all that was made public, so that another process can go on.

Only the transcript is kept, which holds no secret.  The threshold that a sparse run hides is one,
and is not kept: a session that is resumed opens a new run where it next looks, and pays for that
(:mod:`~whereish.mechanisms.traces.sparse_test`), so that what is promised stands.  So are hidden
radii (:mod:`~whereish.mechanisms.traces.shared_radius`): the noise of a resumed session is of each
report alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from whereish.errors import InvalidInput
from whereish.mechanisms.traces.transcript import Guard, Plan, Reported, Shared, Transcript
from whereish.units import Epsilon, Length

if TYPE_CHECKING:
    from whereish.mechanisms.traces.budget import BudgetManager
    from whereish.mechanisms.traces.transcript import Surface

__all__ = ["read_transcript", "written_transcript"]

KIND = "whereish trace session"


def written_transcript(transcript: Transcript, given: int, *, reproducible: bool) -> dict[str, Any]:
    """The public state of a session."""
    return {
        "kind": KIND,
        "space": transcript.space.description,
        "given": given,
        "reproducible": reproducible,
        "spent": str(transcript.spent),
        "reports": [_report_to_json(report) for report in transcript.reports],
    }


def read_transcript(
    data: Any, space: Surface, budget: BudgetManager
) -> tuple[Transcript, int, bool]:
    """The transcript, how many places were given, and whether its noise was reproducible.

    Raises
    ------
    InvalidInput
        If the data is not what :func:`written_transcript` wrote, or of another space.
    """
    try:
        if data["kind"] != KIND:
            raise ValueError
        if data["space"] != space.description:
            raise InvalidInput(
                f"the session is of {data['space']}, and the mechanism works in"
                f" {space.description}: resume it with the mechanism that began it"
            )
        reports = [_report_from_json(one) for one in data["reports"]]
        given, spent = int(data["given"]), Fraction(data["spent"])
        reproducible = bool(data["reproducible"])
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
        raise InvalidInput("this is not the data of a trace session") from None
    transcript = Transcript(space=space)
    for report in reports:
        if transcript.reports:
            budget.plan(transcript, report.time_s)  # what it derives from the transcript
        transcript.append(report)
    if spent < transcript.spent or given < len(reports):
        raise InvalidInput("the data of this trace session states less than its reports spent")
    transcript.spent = spent  # a step that failed after its test was paid, and has no report
    transcript.guarded = False
    return transcript, given, reproducible


def _report_to_json(report: Reported) -> dict[str, Any]:
    plan = report.plan
    stated: dict[str, Any] = {
        "place": [float(x) for x in report.place],
        "time_s": report.time_s,
        "hard": bool(report.hard),
        "first": report.first,
        "test": None if plan.test is None else plan.test.per_m,
        "threshold": None if plan.threshold is None else plan.threshold.m,
        "noise": None if plan.noise is None else plan.noise.per_m,
    }
    if plan.guard is not None:
        guard = plan.guard
        stated["guard"] = [
            guard.opening.per_m,
            guard.failing.per_m,
            guard.threshold.m,
            guard.opened,
        ]
    if plan.shared is not None:
        shared = plan.shared
        stated["shared"] = [shared.each.per_m, str(shared.ratio), shared.reports, shared.used]
    return stated


def _report_from_json(data: Any) -> Reported:
    guard = None
    if "guard" in data:
        opening, failing, threshold, opened = data["guard"]
        guard = Guard(Epsilon(opening), Epsilon(failing), Length(threshold), bool(opened))
    shared = None
    if "shared" in data:
        each, ratio, reports, used = data["shared"]
        shared = Shared(Epsilon(each), Fraction(ratio), int(reports), int(used))
        if not (0 < shared.ratio <= 1 and 0 <= shared.used < shared.reports):
            raise ValueError
    plan = Plan(
        None if data["test"] is None else Epsilon(data["test"]),
        None if data["threshold"] is None else Length(data["threshold"]),
        None if data["noise"] is None else Epsilon(data["noise"]),
        guard,
        shared,
    )
    place = np.array(data["place"], float)
    if place.shape != (2,) or not np.isfinite(place).all():
        raise ValueError
    time_s = None if data["time_s"] is None else float(data["time_s"])
    return Reported(place, time_s, bool(data["hard"]), plan, bool(data["first"]))
