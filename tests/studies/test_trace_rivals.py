"""The rivals of a trace: their costs by closed forms, and the figure of the page."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.randomness import SeededRandomness
from whereish.studies.trace_rivals import (
    CADENCES,
    HoldCosts,
    beforehand,
    independent,
    made_day,
    ours,
    svg,
)


def test_a_report_at_every_point_costs_as_much_as_independent_noise():
    still = np.zeros((20_000, 2))
    assert HoldCosts.of(still).least(100.0)[0] == pytest.approx(
        independent(20_000, 100.0), rel=0.02
    )


def test_who_stays_is_best_told_once_and_who_flees_cannot_be_held():
    still = HoldCosts.of(np.zeros((4000, 2)), seed=2)
    assert CADENCES[int(still.least(200.0).argmin())] >= 1500
    fast = HoldCosts.of(1000.0 * np.column_stack([np.arange(4000), np.zeros(4000)]))
    assert np.isfinite(fast.least(200.0)).sum() == 1, "only a report at every point is near enough"


def test_lines_join_who_goes_straight():
    straight = 10.0 * np.column_stack([np.arange(5000), np.zeros(5000)])
    held, joined = (HoldCosts.of(straight, joined=way).least(150.0).min() for way in (False, True))
    assert joined < held / 5


def test_a_cadence_chosen_elsewhere_is_never_cheaper_than_the_best():
    places, other = made_day(1)[0], made_day(2)[0]
    here = HoldCosts.of(places)
    for error in (60.0, 300.0, 900.0):
        best = here.least(error).min()
        assert beforehand(here, [HoldCosts.of(other)], error) >= best
        assert beforehand(here, [here], error) == pytest.approx(best)


def test_a_whole_day_costs_less_than_the_rivals():
    places, seconds = made_day(1)
    run = ours(places, seconds, 400.0, whole=True, rng=SeededRandomness(3))
    hold = beforehand(HoldCosts.of(places), [HoldCosts.of(made_day(2)[0])], run.error)
    assert run.spent < 0.8 * hold < 0.8 * independent(len(places), run.error)


def test_the_figure_has_all_four_ways(monkeypatch):
    monkeypatch.setattr("whereish.studies.trace_rivals.ACCURACIES", (800.0,))
    drawn = svg()
    assert drawn.startswith("<svg")
    for name in ("independent noise", "every k-th point, held", "ours, live", "ours, whole trace"):
        assert name in drawn
