"""A session saved and resumed: the same budget, the same estimate, and a new run of looks."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

import whereish as wh
from whereish.errors import BudgetExceeded, InvalidInput

WALK = np.column_stack([2.35 + 0.002 * np.sin(np.arange(60) / 9), np.full(60, 48.85)])
TIMES = np.cumsum(np.where(np.arange(60) % 12 == 0, 3600.0, 60.0))  # pauses, so that it looks

BUDGETS = {
    "sparse": wh.FixedUtility("300 m", total="1/m"),
    "every": wh.FixedUtility("300 m", total="1/m", tests="every"),
    "rate": wh.FixedRate("0.5/m", steps=60),
}


def walked(session, start, stop):
    for place, time_s in zip(WALK[start:stop], TIMES[start:stop], strict=True):
        session.report(place, float(time_s))
    return session


@pytest.mark.parametrize("name", BUDGETS)
def test_a_resumed_session_knows_all_that_was_public(name):
    mechanism = wh.PredictiveMechanism(BUDGETS[name])
    session = walked(mechanism.start(rng=wh.SeededRandomness(1)), 0, 30)
    data = json.loads(json.dumps(session.to_json()))
    again = mechanism.resume(data, rng=wh.SeededRandomness(2))
    before, after = session.transcript, again.transcript
    assert (after.spent, after.tests, after.passed) == (before.spent, before.tests, before.passed)
    assert (session.release().reports.coordinates == again.release().reports.coordinates).all()
    assert after.guarded is False
    # Both plan the same next step, but for a run of looks that must be opened, and paid, anew,
    # and for noise that shares a radius which only the first of them knows.
    assert not after.shares
    before.shares = False
    ours, theirs = (mechanism.budget.plan(one, float(TIMES[30])) for one in (before, after))
    assert (ours.test, ours.noise, ours.threshold) == (theirs.test, theirs.noise, theirs.threshold)
    assert theirs.most >= ours.most
    if theirs.guard is not None:
        assert not theirs.guard.opened
    walked(again, 30, 60)
    assert again.transcript.spent <= Fraction(mechanism.budget.total.per_m)
    assert len(again.release()) == 60
    assert again.release().bound == mechanism.worst_case(60) or again.release().total is not None


def test_many_deaths_never_exceed_the_total():
    mechanism = wh.PredictiveMechanism(wh.FixedUtility("300 m", total="0.1/m"))
    data = mechanism.start().to_json()
    ended = False
    for place, time_s in zip(np.tile(WALK, (9, 1)), np.arange(540) * 3600.0, strict=True):
        session = mechanism.resume(data)
        try:
            session.report(place, float(time_s))
        except BudgetExceeded:
            ended = True
            break
        data = session.to_json()
    assert ended
    assert Fraction(data["spent"]) <= Fraction(0.1)
    assert len(data["reports"]) > 1


def test_damaged_and_foreign_data_is_refused():
    mechanism = wh.PredictiveMechanism(BUDGETS["sparse"])
    data = walked(mechanism.start(), 0, 5).to_json()
    for bad, sentence in [
        ({}, "not the data"),
        (data | {"kind": "map"}, "not the data"),
        (data | {"spent": "0"}, "less than its reports spent"),
        (data | {"given": 1}, "less than its reports spent"),
        (data | {"space": "the plane in metres"}, "resume it with the mechanism"),
        (data | {"reports": [{"place": [1]}]}, "not the data"),
        (data | {"reproducible": True}, "begun with a seed"),
    ]:
        with pytest.raises(InvalidInput, match=sentence):
            mechanism.resume(bad)
