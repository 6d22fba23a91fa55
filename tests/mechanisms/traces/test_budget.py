"""Budget managers by themselves: no plan may cost more than is left, whatever the test says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from whereish.mechanisms.traces.budget import FixedRate, FixedUtility
from whereish.mechanisms.traces.transcript import Plan, Reported, Transcript
from whereish.units import Epsilon


def spent_on(*plans: Plan) -> Transcript:
    transcript = Transcript()
    for plan in plans:
        transcript.append(Reported(np.zeros(2), None, plan.noise is not None, plan))
    return transcript


def test_a_step_is_planned_only_if_its_noise_can_be_paid_for_too():
    free = FixedUtility("200 m", tests="every")
    step = free._step(free.noise_radius / 200)
    first = Plan(noise=step.noise)
    whole = float(first.most + step.most)
    for share, planned in ((1 + 1e-9, True), (1 - 1e-9, False)):
        budget = FixedUtility("200 m", total=Epsilon(whole * share), tests="every")
        assert (budget.plan(spent_on(first), None) is not None) == planned


def test_a_step_may_fit_exactly():
    noise = Epsilon(2.0**-8)
    budget = FixedUtility("200 m", total=Epsilon(2.0**-7))
    assert budget._affordable(Plan(noise=noise), spent_on(Plan(noise=noise)))
    assert not budget._affordable(
        Plan(noise=Epsilon(2.0**-8 + 2.0**-50)), spent_on(Plan(noise=noise))
    )


@pytest.mark.parametrize("ahead", [2, 3])
def test_a_step_at_a_fixed_rate_leaves_half_to_those_that_follow(ahead):
    budget = FixedRate(Epsilon(1.0), ahead + 1, predicted=0.999)
    first = budget.plan(Transcript(), None)
    assert first is not None
    transcript = spent_on(first)
    left = 1 - transcript.spent
    plan = budget.plan(transcript, None)
    assert plan is not None
    assert plan.test is not None
    assert plan.most <= left * Fraction(1 + 1e-12) / 2
    assert plan.most > left * Fraction(49, 100)
