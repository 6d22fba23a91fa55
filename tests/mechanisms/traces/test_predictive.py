"""Predictive traces: the promise, the accounts, the managers, and real traces."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whereish.errors import BudgetExceeded, InvalidInput, NotPrivate
from whereish.mechanisms.noise.axis_laplace import Laplace1D
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.mechanisms.traces.budget import BudgetManager, FixedRate, FixedUtility
from whereish.mechanisms.traces.noisy_test import NoisyTest
from whereish.mechanisms.traces.predictive import PredictiveMechanism, last_report, straight_on
from whereish.mechanisms.traces.transcript import Plan, Reported, Transcript
from whereish.privacy import Euclidean, GreatCircle, Guarantee, SpentBudget, TupleMax
from whereish.randomness import SeededRandomness
from whereish.space import Box, Plane
from whereish.units import Epsilon, Length


def walk(count: int, step: float, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, step, (count, 2)).cumsum(axis=0)


def planar(budget: BudgetManager, **options) -> PredictiveMechanism:
    return PredictiveMechanism(budget, noise=PlanarLaplace, **options)


# The promise


def test_the_transcript_keeps_what_it_spent_and_less_is_refuted():
    """Exact likelihoods of all answers of a three-step trace, noise by its density.

    ln P(r|x) - ln P(r|x') <= s(r) d_inf(x, x') for every r; and 0.99 s(r) is exceeded.
    """
    level, test_level, threshold = 0.01, 0.004, 400.0
    noise = PlanarLaplace(Epsilon(level))
    check = NoisyTest(Epsilon(test_level), Length(threshold), Plane.metres())

    def log_likelihood(hard: tuple[bool, ...], places: np.ndarray, trace: np.ndarray) -> float:
        total, guess = float(noise.log_density(places[:1], trace[:1])[0]), places[0]
        for i, is_hard in enumerate(hard, start=1):
            yes = check.chance(Length(float(np.hypot(*(trace[i] - guess)))))
            total += math.log(1 - yes if is_hard else yes)
            if is_hard:
                total += float(noise.log_density(places[i : i + 1], trace[i : i + 1])[0])
                guess = places[i]
        return total

    def reaching(hard: tuple[bool, ...]) -> tuple[np.ndarray, ...]:
        """Places on a line at which every step tells all that it may."""
        guess, trace, other, places = 0.0, [-1000.0], [-900.0], [0.0]
        for is_hard in hard:  # a test is failed the likelier the farther, passed the nearer
            trace.append(guess - (100 if is_hard else 1000))
            other.append(guess - (200 if is_hard else 900))
            guess = guess - 5000 if is_hard else guess
            places.append(guess)
        return tuple(np.column_stack([line, np.zeros(3)]) for line in (trace, other, places))

    generator = np.random.default_rng(11)
    for hard in product([False, True], repeat=2):
        spent = level + sum(test_level + level * h for h in hard)

        def share(trace, other, places, hard=hard, spent=spent) -> float:
            gap = log_likelihood(hard, places, other) - log_likelihood(hard, places, trace)
            return gap / (spent * float(TupleMax(Euclidean(), 3)(trace, other)))

        for size in generator.choice([1.0, 30.0, 200.0], 200):
            trace = generator.normal(0, 300, (3, 2))
            other = trace + generator.normal(0, size, (3, 2))
            assert abs(share(trace, other, generator.normal(0, 900, (3, 2)))) <= 1 + 1e-9
        assert 0.999 < share(*reaching(hard)) <= 1 + 1e-9


def test_the_guarantee_is_the_sum_actually_spent(rng):
    budget = FixedUtility("200 m", total="2/m", tests="every")
    release = planar(budget).report(walk(300, 60), rng=rng)
    step = budget._step(budget.noise_radius / 200)
    test, noise = Fraction(step.test.per_m), Fraction(step.noise.per_m)
    assert release.spent == release.tests * test + int(release.hard.sum()) * noise
    assert release.tests == 299
    assert release.hard[0]
    assert float(release.spent) == pytest.approx(release.costs.sum())
    metric = TupleMax(Euclidean(), 300)
    assert release.guarantee.metric.ratio_to(metric) >= float(release.spent)
    assert release.guarantee.metric.ratio_to(metric) == pytest.approx(float(release.spent))
    assert "ex post" in release.guarantee.source
    assert release.bound.metric.ratio_to(metric) == 2.0
    assert "bounded" in release.bound.source
    assert release.epsilon_spent.per_m >= float(release.spent)


def _log_likelihood(plan: Plan, places: np.ndarray, hard: np.ndarray, trace: np.ndarray) -> float:
    """ln P(these places, easy and hard | trace), up to cell areas that no trace changes.

    A cell's probability is its area times the density at its node, up to the factor
    exp(+-eps_N / sqrt 2) on a lattice of 1 m.
    """
    noise = PlanarLaplace(plan.noise)
    check = NoisyTest(plan.test, plan.threshold, Plane.metres())
    total = 0.0
    for i, is_hard in enumerate(hard):
        if i > 0:
            yes = check.chance(Length(float(np.hypot(*(trace[i] - places[i - 1])))))
            total += math.log(1 - yes if is_hard else yes)
        if is_hard:
            total += float(noise.log_density(places[i], trace[i])[0])
    return total


def test_what_a_trace_spent_bounds_no_event_and_says_so():
    """Issue 11, fault 5: an explicit event tells more than the transcript's budget "for all S"."""
    budget = FixedUtility("200 m", tests="every")
    mechanism, plan = planar(budget), budget._step(budget.noise_radius / 200)
    here, there = np.zeros((3, 2)), np.zeros((3, 2)) - [400.0, 0.0]
    runs = (mechanism.report(here, rng=SeededRandomness(seed)) for seed in range(100))
    release = next(run for run in runs if run.hard.tolist() == [True, False, False])
    d_inf = TupleMax(Euclidean(), 3)
    spent = release.guarantee.level("400 m", d_inf)
    slack = 6 * plan.noise.per_m / math.sqrt(2)

    # The event: three hard reports, each at the node (2000, 0).
    far, all_hard = np.full((3, 2), [2000.0, 0.0]), np.ones(3, bool)
    told = _log_likelihood(plan, far, all_hard, here) - _log_likelihood(plan, far, all_hard, there)
    told -= slack
    assert told > 2.4 * spent  # 23.2 nats, where "for all S" promised 9.3
    bound = mechanism.worst_case(3)
    assert 0.9 * bound.level("400 m", d_inf) < told <= bound.level("400 m", d_inf)

    # What is said now: of these very reports, which holds.
    generator, own = np.random.default_rng(5), (release.reports.coordinates, release.hard)
    for _ in range(200):
        x = generator.normal(0, 600, (3, 2))
        y = x + generator.normal(0, 300, (3, 2))
        gap = _log_likelihood(plan, *own, x) - _log_likelihood(plan, *own, y)
        assert gap <= release.guarantee.metric(x, y) + slack
    said = release.guarantee.to_json()
    assert "reports r of this release alone" in said["statement"]
    assert "in S" not in said["statement"]
    assert "in S" in bound.to_json()["statement"]


def test_a_spent_budget_is_no_guarantee(rng):
    release = planar(FixedUtility("200 m", total="1/m", tests="every")).report(walk(5, 10), rng=rng)
    spent, bound = release.guarantee, release.bound
    assert isinstance(spent, SpentBudget)
    assert SpentBudget.from_json(json.loads(json.dumps(spent.to_json()))) == spent
    with pytest.raises(InvalidInput, match="SpentBudget"):
        Guarantee.from_json(spent.to_json())
    with pytest.raises(InvalidInput, match="not the description"):
        SpentBudget.from_json(bound.to_json())
    with pytest.raises(InvalidInput, match="ex post"):
        spent.implies(spent.metric)
    for refused in (lambda: spent + bound, lambda: bound + spent):
        with pytest.raises(InvalidInput, match="add up"):
            refused()
    assert (spent + spent).level("1 m", TupleMax(Euclidean(), 5)) == pytest.approx(
        2 * float(release.spent)
    )
    assert "ex post" in str(spent)


def test_what_every_run_keeps_is_known_before_the_first_report(rng):
    five = TupleMax(Euclidean(), 5)
    open_end = planar(FixedUtility("200 m", tests="every"))
    worst = open_end.worst_case(5)
    step = open_end.budget._step(open_end.budget.noise_radius / 200)
    exact = 5 * Fraction(step.noise.per_m) + 4 * Fraction(step.test.per_m)
    assert Fraction(worst.metric.ratio_to(five)) >= exact
    assert worst.metric.ratio_to(five) == pytest.approx(float(exact))
    assert (
        planar(FixedUtility("200 m", total="0.05/m", tests="every"))
        .worst_case(5)
        .epsilon(five)
        .per_m
        == 0.05
    )
    assert planar(FixedRate("0.05/m", 9)).worst_case(5).epsilon(five).per_m == 0.05
    for _ in range(20):
        assert open_end.report(walk(5, 900), rng=rng).spent <= exact
    with pytest.raises(InvalidInput, match="whole number"):
        open_end.worst_case(2.5)  # type: ignore[arg-type]

    class Endless:
        total = None

        def plan(self, transcript, time_s):
            return Plan(noise=Epsilon(6e-4))

    with pytest.raises(InvalidInput, match="no total"):
        planar(Endless()).worst_case(5)


def test_the_bound_of_a_trace_that_ended_early_is_about_all_places_given(rng):
    """Where it ends depends on the reports, so the shorter trace is no secret of its own."""
    mechanism = planar(FixedUtility("200 m", total="0.05/m", tests="every"))
    release = mechanism.report(walk(50, 2000), rng=rng)
    assert len(release) < 50
    assert release.bound.metric.base == TupleMax(Euclidean(), 50)
    assert release.guarantee.metric.base == TupleMax(Euclidean(), len(release))
    session = mechanism.start(rng=rng)
    places = iter(walk(50, 2000))
    while session.transcript.spent < Fraction(0.02):
        session.report(next(places))
    with pytest.raises(BudgetExceeded):
        session.report(next(places))
    ended = session.release()
    assert ended.bound.metric.base == TupleMax(Euclidean(), len(ended) + 1)


def test_easy_steps_repeat_the_prediction_and_hard_ones_are_lattice_nodes(rng):
    release = planar(FixedUtility("200 m", tests="every")).report(walk(300, 60), rng=rng)
    places = release.reports.coordinates
    assert 0.05 < release.hard.mean() < 0.9
    for i in np.flatnonzero(~release.hard):
        assert np.array_equal(places[i], places[i - 1])
    assert (places == np.rint(places)).all()
    assert release.reports.reproducible


def test_without_a_total_there_is_no_bound(rng):
    release = planar(FixedUtility("200 m", tests="every")).report(walk(5, 10), rng=rng)
    with pytest.raises(InvalidInput, match="total"):
        _ = release.bound


def test_a_stretching_plane_is_charged_in_true_metres(rng):
    plane = Plane.projected("EPSG:2154", Box(1, 47, 4, 50))
    middle = plane.from_degrees([2.3], [48.8]).coordinates
    mechanism = PredictiveMechanism(
        FixedUtility("200 m", total="1/m", tests="every"),
        noise=lambda eps: PlanarLaplace(eps, plane=plane),
    )
    release = mechanism.report(middle + walk(50, 30), rng=rng)
    level = release.bound.metric.ratio_to(TupleMax(Euclidean(), 50))
    assert level == pytest.approx(1 / plane.scale, rel=1e-12)


def test_the_globe_keeps_great_circle_metres(rng):
    trace = np.array([179.9999, 89.9]) + walk(40, 1e-4) * [1, 0.1]
    release = PredictiveMechanism(FixedUtility("200 m", total="9/m", tests="every")).report(
        trace, rng=rng
    )
    assert release.guarantee.metric.ratio_to(TupleMax(GreatCircle(), 40)) > 0
    assert (np.abs(release.reports.coordinates[:, 1]) <= 90).all()


def test_the_share_of_failed_tests_is_that_of_the_model(rng):
    """A person who stays: the guess is a planar Laplace radius away, then the test's coin."""
    budget = FixedUtility("400 m", eta=0.5, gamma=0.8)
    step = budget._step(budget.noise_radius / 400)

    def failing(test: Epsilon) -> float:
        check = NoisyTest(test, step.threshold, Plane.metres())
        radius, eps = np.linspace(0, 40, 8001)[1:] / step.noise.per_m, step.noise.per_m
        density = eps**2 * radius * np.exp(-eps * radius)
        chances = np.array([1 - check.chance(Length(float(r))) for r in radius])
        return float((density * chances).sum() * (radius[1] - radius[0]))

    runs, still = 12_000, np.zeros((2, 2))
    mechanism = planar(budget)
    share = np.mean([mechanism.report(still, rng=rng).hard[1] for _ in range(runs)])
    expected = failing(step.test)
    sigma = math.sqrt(expected * (1 - expected) / runs)
    assert abs(share - expected) < 5 * sigma
    assert abs(share - failing(step.test * 1.15)) > 5 * sigma


# Budgets


@settings(max_examples=60)
@given(
    st.floats(1e-3, 1.0),
    st.integers(1, 30),
    st.floats(0.05, 1.0),
    st.floats(0.3, 3.0),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_no_budget_is_ever_exceeded(total, steps, eta, gamma, rate, seed):
    budget: BudgetManager = (
        FixedRate(Epsilon(total), steps, eta=eta, gamma=gamma)
        if rate
        else FixedUtility("300 m", total=Epsilon(total), eta=eta, gamma=gamma)
    )
    release = planar(budget).report(walk(40, 200, seed), rng=SeededRandomness(seed))
    assert release.spent <= Fraction(total)
    if rate:
        assert len(release) == min(steps, 40)


def test_when_the_budget_is_spent_the_trace_ends_or_is_predicted(rng):
    budget = FixedUtility("200 m", total="0.2/m", tests="every")
    ended = planar(budget).report(walk(400, 100), rng=rng)
    assert 5 < len(ended) < 400
    whole = planar(budget).report(walk(400, 100), rng=rng, when_spent="predict")
    assert len(whole) == 400
    assert whole.spent <= Fraction(0.2)
    assert (whole.costs[len(ended) + 50 :] == 0).all()
    session = planar(budget).start(rng=SeededRandomness(1))
    for place in walk(len(planar(budget).report(walk(400, 100), rng=SeededRandomness(1))), 100):
        session.report(place)
    before = session.transcript.spent
    with pytest.raises(BudgetExceeded, match="cannot pay"):
        session.report([0.0, 0.0])
    assert session.transcript.spent == before


def test_a_session_is_the_same_as_a_whole_trace():
    trace, times = walk(60, 80), np.arange(60) * 10.0
    mechanism = planar(FixedUtility("200 m", top_speed=3.0))
    whole = mechanism.report(trace, times, rng=SeededRandomness(9))
    session = mechanism.start(rng=SeededRandomness(9))
    places = [session.report(x, t).coordinates[0] for x, t in zip(trace, times, strict=True)]
    assert np.array_equal(places, whole.reports.coordinates)
    assert session.release().spent == whole.spent


def test_fixed_utility_keeps_its_accuracy_in_hard_steps(rng):
    budget = FixedUtility("200 m", confidence=0.9, eta=0.5, gamma=0.8)
    trace = walk(4000, 400)
    release = planar(budget).report(trace, rng=rng)
    error = np.hypot(*(release.reports.coordinates - trace).T)[release.hard]
    assert abs((error <= 200).mean() - 0.9) < 5 * math.sqrt(0.09 / len(error))
    assert budget.kappa == pytest.approx(0.5 * 2.302585 / 3.889720 * 2.25, rel=1e-6)


def test_fixed_rate_spends_its_budget_and_predictions_buy_accuracy(rng):
    still, wild = np.zeros((600, 2)), walk(600, 1e5)
    total = Epsilon(3.0)
    quiet, restless = (
        planar(FixedRate(total, 600)).report(trace, rng=rng) for trace in (still, wild)
    )
    for release in (quiet, restless):
        assert len(release) == 600
        assert 0.9 * 3 < float(release.spent) <= 3
    assert restless.hard.mean() > 0.99
    error = np.hypot(*quiet.reports.coordinates.T).mean()
    assert error < 0.5 * PlanarLaplace(Epsilon(3.0 / 600)).mean_error.m


def test_free_steps_need_times_and_a_top_speed(rng):
    trace, times = np.zeros((200, 2)), np.arange(200.0)
    for budget, given_times, free in (
        (FixedUtility("200 m", top_speed=20.0), times, True),
        (FixedUtility("200 m", top_speed=20.0), None, False),
        (FixedUtility("200 m", tests="every"), times, False),
    ):
        release = planar(budget).report(trace, given_times, rng=rng)
        assert bool((release.costs == 0).any()) == free
    # A look every threshold / (2 speed) seconds, and no rarer.
    release = planar(FixedUtility("200 m", top_speed=20.0)).report(trace, times, rng=rng)
    budget = FixedUtility("200 m", tests="every")
    threshold = budget._step(budget.noise_radius / 200).threshold.m
    looks = np.flatnonzero(release.costs)
    assert np.diff(looks).max() <= math.floor(threshold / 40) + 1


# Prediction


def test_straight_on_goes_straight_on():
    transcript = Transcript()
    for time_s, x in ((0.0, 0.0), (10.0, 100.0)):
        transcript.append(Reported(np.array([x, 0.0]), time_s, True, Plan(noise=Epsilon(1.0))))
    assert straight_on(transcript, 15.0).tolist() == [150.0, 0.0]
    assert straight_on(transcript, 500.0).tolist() == [200.0, 0.0]
    assert straight_on(transcript, None).tolist() == [100.0, 0.0]
    assert last_report(transcript, 15.0).tolist() == [100.0, 0.0]


def test_a_predictor_sees_the_transcript_only_and_may_be_ones_own(rng):
    seen = []

    def origin(transcript: Transcript, time_s: float | None) -> np.ndarray:
        seen.append(transcript)
        return np.zeros(2)

    release = planar(FixedUtility("200 m", tests="every"), predict=origin).report(
        np.zeros((200, 2)), rng=rng
    )
    assert (release.reports.coordinates[~release.hard] == 0).all()
    assert all(isinstance(t, Transcript) for t in seen)
    with pytest.raises(InvalidInput, match="predictor"):
        planar(
            FixedUtility("200 m", tests="every"), predict=lambda t, s: np.full(2, np.nan)
        ).report(np.zeros((3, 2)), rng=rng)


# Refusals


def test_bad_input(rng):
    mechanism = planar(FixedUtility("200 m", tests="every"))
    assert len(mechanism.report(np.empty((0, 2)), rng=rng)) == 0
    with pytest.raises(InvalidInput, match="go back"):
        mechanism.report(np.zeros((3, 2)), [0, 2, 1], rng=rng)
    with pytest.raises(InvalidInput, match="3 finite"):
        mechanism.report(np.zeros((3, 2)), [0, 2], rng=rng)
    with pytest.raises(InvalidInput, match="when_spent"):
        mechanism.report(np.zeros((3, 2)), when_spent="go on")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="budget manager"):
        PredictiveMechanism("200 m")  # type: ignore[arg-type]
    session = mechanism.start(rng=rng)
    session.report([0.0, 0.0], 1.0)
    with pytest.raises(InvalidInput, match="either all"):
        session.report([0.0, 0.0])
    with pytest.raises(InvalidInput, match="one place at a time"):
        session.report(np.zeros((2, 2)), 2.0)
    with pytest.raises(InvalidInput, match="globe or on a plane"):
        PredictiveMechanism(FixedUtility("1 m", tests="every"), noise=Laplace1D).start()
    for options in ({"eta": 0}, {"gamma": -1}, {"confidence": 1.0}, {"top_speed": math.inf}):
        with pytest.raises(InvalidInput):
            FixedUtility("200 m", **options)
    with pytest.raises(InvalidInput, match="steps"):
        FixedRate("1/m", 0)


def test_noise_that_keeps_less_than_it_is_charged_for_is_refused(rng):
    liar = PredictiveMechanism(
        FixedUtility("200 m", tests="every"), noise=lambda eps: PlanarLaplace(eps * 2)
    )
    with pytest.raises(NotPrivate):
        liar.report(np.zeros((2, 2)), rng=rng)


def test_a_manager_that_plans_beyond_its_total_is_stopped(rng):
    class Spendthrift:
        total = Epsilon(1e-3)

        def plan(self, transcript, time_s):
            return Plan(noise=Epsilon(6e-4))

    release = planar(Spendthrift()).report(np.zeros((5, 2)), rng=rng)
    assert len(release) == 1


# Real traces


def test_real_traces_spend_at_most_half_of_independent_noise(data_file):
    """A morning of each user; the benchmark runs the whole traces."""
    table = pq.read_table(data_file("geolife_beijing_skmob_2users.parquet"))
    table = table.sort_by([("user", "ascending"), ("time", "ascending")])
    users = table["user"].to_numpy()
    for user in np.unique(users):
        rows = np.flatnonzero(users == user)[:6000]
        places = np.column_stack([table[c].to_numpy()[rows] for c in ("lon", "lat")])
        release = PredictiveMechanism(FixedUtility("500 m", tests="every")).report(
            places, rng=SeededRandomness(int(user))
        )
        error = float(GreatCircle()(release.reports.coordinates, places).mean())
        alone = GlobeLaplace.with_mean_error(Length(error)).epsilon.per_m * len(places)
        assert float(release.spent) <= 0.5 * alone


def test_a_place_outside_the_region_is_refused_before_it_is_tested():
    """A refusal after the private test would tell its outcome, and nobody would pay."""
    plane = Plane.around(2.35, 48.85, "1 km")
    mechanism = PredictiveMechanism(
        FixedUtility("200 m", tests="every"), noise=lambda eps: PlanarLaplace(eps, plane=plane)
    )
    session = mechanism.start()
    session.report([[0.0, 0.0]])
    tests = session.transcript.tests
    with pytest.raises(InvalidInput, match="declared region"):
        session.report([[6_000.0, 0.0]])
    assert session.transcript.tests == tests
    with pytest.raises(InvalidInput, match="declared region"):
        mechanism.report([[0.0, 0.0], [6_000.0, 0.0]])


def test_places_that_the_noise_would_refuse_are_refused_before_they_are_tested():
    """The lattice ends at 2^46 steps: only a failed test would come to know."""
    fine = PredictiveMechanism(
        FixedUtility("1 m", tests="every"),
        noise=lambda eps: PlanarLaplace(eps, resolution="1e-9 m"),
    )
    session = fine.start()
    session.report([0.0, 0.0])
    with pytest.raises(InvalidInput, match="lattice steps"):
        session.report([1e6, 0.0])
    assert session.transcript.tests == 0


def test_a_refusal_after_the_private_test_is_paid_for(rng):
    """Noise of one's own that fails tells that the test has failed."""

    class Fails(PlanarLaplace):
        def report(self, secrets, *, rng=None):
            if np.abs(secrets).max() > 1e5:
                raise RuntimeError
            return super().report(secrets, rng=rng)

    session = PredictiveMechanism(FixedUtility("200 m", tests="every"), noise=Fails).start(rng=rng)
    session.report([0.0, 0.0])
    before = session.transcript.spent
    with pytest.raises(RuntimeError):
        session.report([2e5, 0.0])
    plan = session.mechanism.budget.plan(session.transcript, None)
    assert session.transcript.spent == before + plan.most
    assert session.release().spent == before + plan.most
