from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from whereish.studies import registration_dates, smart_meters


def test_registration_dates_have_the_shape_of_the_thesis_s_figure():
    near, differential = registration_dates.notions(math.log(2))
    radii = np.array([0.0, 5, 10, 20, 30, 50, 100])
    useful, useless = (registration_dates.usefulness(n, radii) for n in (near, differential))
    at_30 = radii.tolist().index(30)
    assert useful[at_30] > 0.95
    assert useless[at_30] < 0.05
    assert (np.diff(useful) > 0).all()
    assert useless.max() < 0.05
    # Closed form with a = 2^(-1/5): 1 - 2 a^31 / (1 + a).
    a = 2 ** (-1 / 5)
    assert useful[at_30] == pytest.approx(1 - 2 * a**31 / (1 + a), rel=1e-12)


def test_more_level_is_more_use():
    radii = np.arange(0, 60.0)
    curves = [
        registration_dates.usefulness(registration_dates.notions(level)[0], radii)
        for level in (math.log(2), math.log(4), math.log(16))
    ]
    assert (curves[0] < curves[1]).all()
    assert (curves[1] < curves[2]).all()


@pytest.mark.parametrize("epsilon", smart_meters.LEVELS)
def test_noise_of_the_maximum_metric_beats_independent_noise(epsilon, rng):
    together, apart = smart_meters.errors(epsilon, days=200, rng=rng)
    assert together < 0.7 * apart


def test_the_error_of_a_trace_is_half_the_mean_radius(rng):
    """Unclamped, each reading is uniform in a cube of Gamma(49, 1/eps) radius, to first order."""
    mechanism = smart_meters.CubeGeometric(smart_meters.TRACE, 0.5)
    noise = mechanism.noise(4000, rng)
    assert np.abs(noise).mean() == pytest.approx(49 / 0.5 / 2, rel=0.02)


@pytest.mark.parametrize("epsilon", smart_meters.LEVELS)
def test_a_lamp_is_hidden_by_the_maximum_metric_and_not_by_noise_per_reading(epsilon, rng):
    """eps d_inf bounds every attack among candidates within 10 W; noise per reading keeps 30 eps.

    With a uniform prior over m candidates, P(right) = sum_z max_x P(z|x) / m, and each
    other candidate has at least e^{-10 eps} of the likeliest one's mass.
    """
    candidates = smart_meters.lamps(20, np.random.default_rng(6))
    assert np.abs(candidates[:, None] - candidates).max() == 10
    seen = smart_meters.recognised(epsilon, candidates, times=2000, rng=rng)
    ratio = math.exp(10 * epsilon)
    bound = ratio / (len(candidates) - 1 + ratio)
    spare = 5.5 * math.sqrt(bound * (1 - bound) / 2000)
    assert max(seen.identified[1:]) <= bound + spare
    if epsilon == 0.1:
        assert seen.identified[0] > bound + 0.3
    # Better than guessing, so that the attack is one; and the kettle is still there.
    assert seen.identified[2] > 1 / 20 + 0.002
    assert min(seen.correlation) > 0.9


def test_per_reading_noise_is_laplace_s(rng):
    """Five minutes at eps: mean absolute error 2a / (1 - a^2) on whole watts, near 1/eps."""
    truth = np.tile(smart_meters.five_minutes(), (3000, 1))
    noisy = smart_meters._each(truth, Fraction(1, 10), rng)
    a = math.exp(-0.1)
    assert np.abs(noisy - truth).mean() == pytest.approx(2 * a / (1 - a * a), rel=0.02)
    assert 2 * a / (1 - a * a) == pytest.approx(10, rel=0.01)
    assert smart_meters.MINUTES.size == 30


@pytest.mark.parametrize("study", [registration_dates, smart_meters])
def test_studies_run_and_draw(study, tmp_path, capsys, rng):
    path = tmp_path / "figure.png"
    study.main(str(path), rng=rng)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000
    assert "wrote" in capsys.readouterr().out
