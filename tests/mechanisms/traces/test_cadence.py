"""Fresh noise when the public estimate is uncertain: what it costs, and against whom it wins."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import whereish as wh
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.mechanisms.traces.cadence import FAILING, OPENING, REFRESH, WHOLE, guarded
from whereish.privacy import Euclidean, GreatCircle, TupleMax
from whereish.randomness import SeededRandomness


def planar(**options) -> wh.PredictiveMechanism:
    return wh.PredictiveMechanism(wh.FixedUtility("500 m", **options), PlanarLaplace)


def drive(count: int = 2000, speed: float = 8.0, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Straight legs of some minutes, a point every 5 s."""
    generator = np.random.default_rng(seed)
    heading = np.repeat(generator.uniform(0, 2 * np.pi, count // 60 + 1), 60)[:count]
    steps = 5 * speed * np.column_stack([np.cos(heading), np.sin(heading)])
    return steps.cumsum(axis=0), 5.0 * np.arange(count)


def held(places: np.ndarray, every: int, epsilon: float, seed: int) -> float:
    """Mean error of a fresh report at every k-th point, held in between."""
    noise = PlanarLaplace(wh.Epsilon(epsilon), resolution="1 m")
    told = np.asarray(noise.report(places[::every], rng=SeededRandomness(seed)))
    return float(np.hypot(*(np.repeat(told, every, axis=0)[: len(places)] - places).T).mean())


def cheapest_hold(places: np.ndarray, error: float) -> float:
    """The least budget with which holding reaches this mean error, over all cadences."""
    best = np.inf
    for every in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512):
        low, high = np.log(0.3 / error), np.log(50 / error)
        if held(places, every, float(np.exp(high)), 1) > error:
            continue
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (
                (middle, high)
                if held(places, every, float(np.exp(middle)), 1) > error
                else (low, middle)
            )
        best = min(best, float(np.exp(high)) * -(-len(places) // every))
    return best


def test_the_refresh_is_the_best_hold_of_a_straight_way():
    generator = np.random.default_rng(1)
    radii, angles = generator.gamma(2, 1, 40_000), generator.uniform(0, 2 * np.pi, 40_000)
    east, north = radii * np.cos(angles), radii * np.sin(angles)

    def budget(a: float) -> float:
        """f(a)^2 / a of the module's text."""
        return float(
            np.mean([np.hypot(east - s, north).mean() for s in np.linspace(0, a, 33)]) ** 2 / a
        )

    best = minimize_scalar(budget, bounds=(1, 12), method="bounded").x
    assert np.sqrt(6 + best**2) == pytest.approx(REFRESH, rel=0.06)


def test_the_refresh_of_a_whole_trace_is_about_that_of_joining_a_wanderer():
    """Its formulas by simulation, and the least budget at a given mean square error."""
    generator = np.random.default_rng(2)
    spread, growth, steps = 6.0, 40.0, 50  # variances of a report, and of the way between two
    way = generator.normal(0, np.sqrt(growth / steps / 2), (20_000, steps, 2)).cumsum(axis=1)
    ends = generator.normal(0, np.sqrt(spread / 2), (2, 20_000, 1, 2))
    along = (np.arange(1, steps + 1) / steps)[:, None]
    joined = (1 - along) * ends[0] + along * (way[:, -1:] + ends[1])
    measured = ((joined - way) ** 2).sum(axis=2).mean()
    assert measured == pytest.approx(2 * spread / 3 + growth / 6, rel=0.03)

    def budget(growth: float) -> float:
        """At mean square error 1, with s what is left for the noise of a report."""
        return 1 / (growth**2 * 1.5 * (1 - growth / 6))

    best = minimize_scalar(budget, bounds=(0.1, 5.9), method="bounded").x
    noise = 1.5 * (1 - best / 6)
    after = (np.sqrt(best**2 + 4 * best * noise) - best) / 2
    error = np.sqrt((after + best) * 6 / noise)
    assert error == pytest.approx(7.3, abs=0.05)
    assert error <= WHOLE <= 1.15 * error


def test_live_no_filter_is_much_better_than_the_best_hold_of_a_wanderer():
    """0.88 of it: mean square error 1, reports of variance s every q T of motion."""
    hold = minimize_scalar(
        lambda moved: 1 / (moved * np.sqrt(1 - moved / 2)), bounds=(0.1, 1.9), method="bounded"
    )
    filtered = minimize_scalar(
        lambda moved: 1 / np.sqrt(moved * (1 - moved / 2) * (1 + moved / 2)),
        bounds=(0.1, 1.9),
        method="bounded",
    )
    assert filtered.fun / hold.fun == pytest.approx(0.88, abs=0.005)


@pytest.mark.parametrize("accuracy", ["1 km", "2 km"])
def test_a_motorway_is_followed(accuracy):
    """At 25 m/s, faster than most of what is expected, the error stays that of the noise."""
    places, seconds = drive(4000, 25.0)
    budget = wh.FixedUtility(accuracy)
    release = wh.PredictiveMechanism(budget, PlanarLaplace).report(
        places, seconds, rng=SeededRandomness(5)
    )
    error = np.hypot(*(np.asarray(release.reports) - places).T).mean()
    assert error * budget.level < 4.5
    assert int(release.hard.sum()) < 400


def test_a_stay_costs_a_few_reports():
    stay = np.random.default_rng(1).normal(0, 15, (6000, 2))
    release = planar().report(stay, 5.0 * np.arange(6000), rng=SeededRandomness(4))
    assert int(release.hard.sum()) <= 30, "one report in a quarter of an hour"


def test_points_at_one_time_are_followed(rng):
    places = np.random.default_rng(3).normal(0, 400, (200, 2))
    release = planar().report(places, np.zeros(200), rng=rng)
    assert np.isfinite(np.asarray(release.reports)).all()


def test_every_step_is_accounted_for(rng):
    places, seconds = drive(400)
    seconds = seconds + 4000.0 * (np.arange(400) >= 150) + 4000.0 * (np.arange(400) >= 300)
    places[300:] += 60_000.0
    release = planar(total="2/m").report(places, seconds, rng=rng)
    budget, hard = wh.FixedUtility("500 m"), int(release.hard.sum())
    guard = guarded(budget.level).guard
    noise = budget.blocks_cost(hard)
    assert release.tests == 2
    first, jump = bool(release.hard[150]), bool(release.hard[300])
    assert jump, "a jump of 60 km after a pause must be seen"
    runs = 1 + first  # a failed look ends its run
    looks = runs * Fraction(guard.opening.per_m) + (first + jump) * Fraction(guard.failing.per_m)
    assert release.spent == noise + looks
    assert release.bound.metric.ratio_to(TupleMax(Euclidean(), 400)) == 2.0
    assert float(release.spent) <= 2.0
    assert "ex post" in release.guarantee.source


def test_the_worst_case_is_every_look_failing():
    budget = wh.FixedUtility("500 m")
    eps = budget.level
    most = Fraction(eps) * 10 + 9 * (Fraction(OPENING * eps) + Fraction(FAILING * eps))
    assert budget.most(1) == Fraction(eps)
    # Resumed after the beginning of a block was paid, and noise of its own from there on.
    begun = budget.blocks_cost(6) - 6 * Fraction(eps)
    assert begun > 0
    assert budget.most(10) == most + begun


def test_a_total_is_never_exceeded(rng):
    release = planar(total="0.05/m").report(*drive(), rng=rng)
    assert float(release.spent) <= 0.05
    assert len(release) < 2000
    gone_on = planar(total="0.05/m").report(*drive(), rng=rng, when_spent="predict")
    assert len(gone_on) == 2000
    assert float(gone_on.spent) <= 0.05


def test_reports_are_a_function_of_what_was_drawn(rng):
    """Two traces that led to the same transcript have the same smoothed reports."""
    mechanism, (places, seconds) = planar(), drive(300)
    one = mechanism.report(places, seconds, rng=SeededRandomness(9))
    again = mechanism.start(rng=SeededRandomness(9))
    again.transcript.whole = True
    for place, time_s in zip(places, seconds, strict=True):
        again.report(place, float(time_s))
    live = again.release()
    np.testing.assert_array_equal(one.drawn, live.reports)
    np.testing.assert_array_equal(one.reports, again.release(smooth=True).reports)
    assert not np.array_equal(one.reports, live.reports)
    np.testing.assert_array_equal(one.hard, live.hard)


@pytest.mark.parametrize("kind", ["drive", "walk", "day"])
def test_it_spends_less_than_holding_at_equal_error(kind):
    """At most 0.8 of the cheapest hold whose cadence is chosen with the trace in hand."""
    generator = np.random.default_rng(3)
    turning = generator.normal(0, 0.05, 3000).cumsum()
    stay = generator.normal(0, 15, (1500, 2))
    there = drive(800, 10)[0]
    places = {
        "drive": drive()[0],
        "walk": 6.5 * np.column_stack([np.cos(turning), np.sin(turning)]).cumsum(axis=0),
        "day": np.vstack([stay, there, stay + there[-1]]),
    }[kind]
    seconds = 5.0 * np.arange(len(places))
    ratios = []
    for seed in (1, 2, 3):
        release = planar().report(places, seconds, rng=SeededRandomness(seed))
        error = float(np.hypot(*(np.asarray(release.reports) - places).T).mean())
        ratios.append(float(release.spent) / cheapest_hold(places, error))
    assert max(ratios) <= 0.8, ratios


@pytest.mark.parametrize("place", [(179.99, 10.0), (30.0, 89.99), (0.0, -89.9999)])
def test_it_follows_across_the_antimeridian_and_near_poles(place, rng):
    steps = np.column_stack([np.linspace(0, 0.05, 200), np.zeros(200)])
    places = np.array(place) + steps
    places[:, 0] = (places[:, 0] + 180) % 360 - 180
    release = wh.PredictiveMechanism(wh.FixedUtility("500 m")).report(
        places, 5.0 * np.arange(200), rng=rng
    )
    for reports in (release.reports, release.drawn):
        coordinates = np.asarray(reports)
        assert np.isfinite(coordinates).all()
        assert (np.abs(coordinates) <= [180, 90]).all()
        assert GreatCircle()(coordinates, places).mean() < 2500


def test_without_times_and_with_one_place(rng):
    assert len(planar().report(drive(300)[0], rng=rng)) == 300
    one = planar().report([[0.0, 0.0]], rng=rng)
    assert len(one) == 1
    assert one.hard[0]


def test_what_shapes_the_papers_tests_asks_for_them():
    assert wh.FixedUtility("500 m").tests == "sparse"
    assert wh.FixedUtility("500 m", top_speed=30.0).tests == "every"
    assert wh.FixedUtility("500 m", eta=0.5).tests == "every"
    with pytest.raises(InvalidInput, match="tests='every'"):
        wh.FixedUtility("500 m", eta=0.5, tests="sparse")
    with pytest.raises(InvalidInput, match="'sparse' or 'every'"):
        wh.FixedUtility("500 m", tests="often")
