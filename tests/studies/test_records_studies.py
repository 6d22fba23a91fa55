from __future__ import annotations

import math

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


@pytest.mark.parametrize("study", [registration_dates, smart_meters])
def test_studies_run_and_draw(study, tmp_path, capsys, rng):
    path = tmp_path / "figure.png"
    study.main(str(path), rng=rng)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000
    assert "wrote" in capsys.readouterr().out
