"""Noise whose reports share a hidden radius: its law, its promise from both sides, its price."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import kstest

import whereish as wh
from whereish.audit.statistical import level_lower
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.mechanisms.traces import shared_radius
from whereish.mechanisms.traces.predictive import TraceSession
from whereish.mechanisms.traces.shared_radius import (
    ALONE,
    RATIO,
    SIZES,
    Law,
    SharedRadius,
    _gamma_weights,
    block_size,
    law,
    level_over_laplace,
    sharing_pays,
)
from whereish.mechanisms.traces.transcript import Shared
from whereish.privacy import GreatCircle
from whereish.randomness import SeededRandomness

LEVEL = wh.Epsilon(0.01)


def block(reports: int, used: int = 0) -> Shared:
    return Shared(LEVEL, RATIO, reports, used)


def log_density(distances: np.ndarray, reports: int, nodes: int = 100_001) -> float:
    """ln p of the first reports of a block, in units of 1/e, but for a constant."""
    at = np.linspace(0, distances.max() + 80, nodes)
    log = (reports - len(distances)) * np.log(at * at + 2 * at + 2) - float(RATIO * reports) * at
    log -= np.maximum(distances[:, None] - at, 0).sum(axis=0)
    return float(log.max() + np.log(np.exp(log - log.max()).sum() * at[1]))


@pytest.mark.parametrize(
    ("noise", "reports"),
    [(PlanarLaplace(LEVEL), 4), (PlanarLaplace(LEVEL), 32), (GlobeLaplace(LEVEL), 8)],
)
def test_what_is_drawn_has_the_stated_law(noise, reports):
    """One report of each block: their distances are independent."""
    rng, place = SeededRandomness(3), np.array([2.35, 48.85])
    far = GreatCircle() if isinstance(noise, GlobeLaplace) else lambda x, y: np.hypot(*(x - y))
    found = np.array(
        [
            float(far(SharedRadius(block(reports), noise, rng).report(place, i % reports), place))
            for i in range(3000)
        ]
    )
    radii = np.linspace(0, 40, 2001) / LEVEL.per_m
    within = [1 - law(reports).beyond(LEVEL.per_m * radius) for radius in radii]

    def cdf(radius: np.ndarray) -> np.ndarray:
        return np.interp(radius, radii, within)

    assert kstest(found, cdf).pvalue > 1e-3
    assert kstest(1.06 * found, cdf).pvalue < 1e-3


def test_reports_of_a_block_share_their_radius():
    rng, noise = SeededRandomness(4), PlanarLaplace(LEVEL)
    blocks = [SharedRadius(block(4), noise, rng) for _ in range(1500)]
    sizes = np.array([[np.hypot(*one.report(np.zeros(2), i)) for i in (0, 1)] for one in blocks])
    assert np.corrcoef(sizes.T)[0, 1] > 0.05
    points = np.array([blocks[0].report(np.zeros(2), i) for i in range(4)])
    assert len(np.unique(points, axis=0)) == 4


def test_the_weights_are_those_of_the_hidden_radius():
    for reports in SIZES:
        weights = np.array([float(w) for w in _gamma_weights(reports, RATIO)])
        rate = float(RATIO * reports)
        mean = (weights / weights.sum()) @ (np.arange(len(weights)) + 1) / rate
        at, chance = law(reports)._at, law(reports)._chance
        assert mean == pytest.approx(float(at @ chance), rel=1e-6)


def test_moments_and_the_gain():
    """0.71 of the budget of planar Laplace noise of the same mean error; one place 1.78 times."""
    for reports, gain, one in ((4, 0.784, 1.960), (32, 0.713, 1.784)):
        assert float(RATIO) * law(reports).mean / 2 == pytest.approx(gain, abs=2e-3)
        assert law(reports).mean / 2 == pytest.approx(one, abs=2e-3)
    radii = np.linspace(0, 60, 6001)
    beyond = np.array([law(8).beyond(r) for r in radii])
    assert np.trapezoid(beyond, radii) == pytest.approx(law(8).mean, rel=1e-4)
    assert np.trapezoid(2 * radii * beyond, radii) == pytest.approx(law(8).square, rel=1e-4)
    assert law(8).beyond(law(8).quantile(0.9)) == pytest.approx(0.1)


@pytest.mark.parametrize("reports", SIZES)
def test_the_integral_over_the_hidden_radius_is_fine_enough(reports, monkeypatch):
    plain = Law(reports)
    monkeypatch.setattr(shared_radius, "_NODES", 64_001)
    finer = Law(reports)
    for name in ("mean", "square"):
        assert getattr(plain, name) == pytest.approx(getattr(finer, name), rel=1e-6)
    assert plain.beyond(6.0) == pytest.approx(finer.beyond(6.0), rel=1e-6)
    assert plain.quantile(0.9) == pytest.approx(finer.quantile(0.9), rel=1e-6)


@pytest.mark.parametrize("drawn", [1, 2, 3, 6, 8])
def test_no_move_is_told_by_more_than_was_paid_and_some_by_nearly_all(drawn):
    generator = np.random.default_rng(drawn)
    paid = min(drawn, float(RATIO * 8))
    for _ in range(40):
        x = generator.normal(0, generator.choice([1.0, 5.0, 20.0]), (drawn, 2))
        moves = generator.normal(0, generator.choice([0.1, 1.0, 5.0]), (drawn, 2))
        most = np.hypot(*moves.T).max()
        gap = log_density(np.hypot(*x.T), 8) - log_density(np.hypot(*(x + moves).T), 8)
        assert abs(gap) <= paid * most * (1 + 1e-4) + 1e-6
    far = np.full(drawn, 40.0)
    reached = log_density(far - 3.0, 8) - log_density(far, 8)
    assert 0.93 * paid * 3 < reached <= paid * 3 * (1 + 1e-4)


def test_one_place_alone_is_told_by_the_level_of_one_report():
    generator = np.random.default_rng(2)
    for _ in range(40):
        distances = generator.uniform(0, 30, 8)
        moved = distances.copy()
        moved[3] = max(moved[3] - generator.uniform(0, 9), 0.0)
        gap = log_density(moved, 8) - log_density(distances, 8)
        assert abs(gap) <= (distances[3] - moved[3]) * (1 + 1e-4) + 1e-6


def test_an_audit_of_real_blocks_accepts_the_level_and_refutes_half():
    """One bit of four real reports, of places that all move by 2.5/e."""
    rng, noise, count = SeededRandomness(6), PlanarLaplace(LEVEL), 4000
    apart, level = 2.5, float(RATIO * 4)

    def hits(place: float) -> int:
        found = 0
        for _ in range(count):
            one = SharedRadius(block(4), noise, rng)
            secret = np.array([place / LEVEL.per_m, 0.0])
            z = LEVEL.per_m * np.array([one.report(secret, i) for i in range(4)])
            near, far = np.hypot(*z.T), np.hypot(*(z - [apart, 0.0]).T)
            gap = log_density(near, 4, 2001) - log_density(far, 4, 2001)
            found += gap >= 0.8 * level * apart
        return found

    lower = level_lower(hits(0.0), hits(apart), 1e-4) / (level * apart)
    assert 0.4 < lower <= 1


def test_a_block_is_paid_by_its_beginning():
    costs = [block(8, used).cost() / Fraction(LEVEL.per_m) for used in range(8)]
    assert costs == [1, 1, 1, Fraction(1, 5), 0, 0, 0, 0]
    assert [block_size(number) for number in (0, 1, 3, 4, 90)] == [4, 8, 32, 32, 32]
    assert sharing_pays(0.9)
    assert level_over_laplace(32, 0.9) == pytest.approx(1.451, abs=2e-3)


def drive(count: int) -> tuple[np.ndarray, np.ndarray]:
    steps = np.random.default_rng(1).normal(0, 300, (count, 2))
    return steps.cumsum(axis=0), 60.0 * np.arange(count)


def test_a_session_pays_what_its_blocks_cost_and_stays_within_a_total():
    budget = wh.FixedUtility("500 m", total="0.5/m")
    session = wh.PredictiveMechanism(budget, PlanarLaplace).start(rng=SeededRandomness(2))
    for place, time_s in zip(*drive(60), strict=True):
        session.report(place, time_s)
    hard = [report for report in session.transcript.reports if report.hard]
    assert [report.plan.shared is None for report in hard[: ALONE + 1]] == [True] * 4 + [False]
    assert session.transcript.spent == budget.blocks_cost(len(hard))
    assert session.transcript.spent < Fraction(budget.level) * len(hard)
    assert float(session.transcript.spent) <= 0.5


def test_only_laplace_noise_shares_and_only_while_the_radius_is_known():
    class Other(PlanarLaplace):
        """A family of its own."""

    places, seconds = drive(40)
    budget = wh.FixedUtility("500 m")
    release = wh.PredictiveMechanism(budget, Other).report(places, seconds)
    assert release.spent == int(release.hard.sum()) * Fraction(budget.level)
    mechanism = wh.PredictiveMechanism(budget, PlanarLaplace)
    session = mechanism.start()
    for place, time_s in zip(places[:20], seconds[:20], strict=True):
        session.report(place, time_s)
    again = mechanism.resume(session.to_json())
    assert again.transcript.spent == session.transcript.spent
    for place, time_s in zip(places[20:], seconds[20:], strict=True):
        again.report(place, time_s)
    assert all(r.plan.shared is None for r in again.transcript.reports[20:] if r.hard)


def test_noise_of_each_report_alone_can_be_asked_for():
    """Every report then costs its level, and worst cases are those of independent noise."""
    places = np.array([2.0, 48.0]) + 0.02 * np.arange(40)[:, None]  # somewhere else each time
    alone = wh.FixedUtility("200 m", blocks=False)
    release = wh.PredictiveMechanism(alone).report(places, 60.0 * np.arange(40))
    drawn = int(release.hard.sum())
    assert drawn > ALONE + SIZES[0]
    assert release.spent == drawn * Fraction(alone.level)
    assert alone.blocks_cost(40) == 40 * Fraction(alone.level)
    assert wh.FixedUtility("200 m").blocks_cost(40) < alone.blocks_cost(40)
    with pytest.raises(InvalidInput, match="blocks must be True or False; got 'no'"):
        wh.FixedUtility("200 m", blocks="no")


def test_who_goes_on_with_a_transcript_draws_noise_of_its_own():
    """As the service does, which makes a session of what it has kept at every step."""
    mechanism = wh.PredictiveMechanism(wh.FixedUtility("500 m"), PlanarLaplace)
    session = mechanism.start(rng=SeededRandomness(7))
    for place, time_s in zip(*drive(20), strict=True):
        session.report(place, time_s)
    assert session.transcript.used > 0
    other = TraceSession(mechanism, session.rng, session.transcript)
    other.report([0.0, 0.0], 1e5)
    assert other.transcript.reports[-1].plan.shared is None


@pytest.mark.parametrize(("accuracy", "shares"), [("1 km", True), ("40000 km", False)])
def test_on_the_globe_noise_shares_where_it_is_local(accuracy, shares):
    places, seconds = drive(30)
    mechanism = wh.PredictiveMechanism(wh.FixedUtility(accuracy))
    session = mechanism.start(rng=SeededRandomness(5))
    for place, time_s in zip(places, seconds, strict=True):
        session.report([179.99, 60.0] if not shares else [2.35, 48.85] + place / 2000, time_s * 9)
    reports = [report for report in session.transcript.reports if report.hard]
    assert shares == any(report.plan.shared is not None for report in reports)
