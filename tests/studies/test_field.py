"""The field test's samplers and attacks, where a closed form knows the answer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from whereish.studies.field import samplers
from whereish.studies.field.known import (
    circle_centres,
    geometric_median,
    reports_needed,
    trace_ends,
)


@pytest.fixture
def random():
    return np.random.default_rng(3)


def test_the_centre_of_a_circle_is_found_from_three_points(random):
    ends = trace_ends(400.0, 0.0, random)(np.tile([30.0, -70.0], (15, 1))).reshape(5, 3, 2)
    np.testing.assert_allclose(circle_centres(ends), np.tile([30.0, -70.0], (5, 1)), atol=1e-6)


def test_the_geometric_median_of_a_cross_is_its_middle():
    cross = np.array([[[1.0, 0.0], [-1.0, 0.0], [0.0, 5.0], [0.0, -5.0], [3.0, 0.0], [-3.0, 0.0]]])
    np.testing.assert_allclose(geometric_median(cross + 7), [[7.0, 7.0]], atol=1e-6)


def test_radii_of_location_guard_are_multiples_of_its_step_and_others_are_not(random):
    origin = np.zeros((2000, 2))
    for make, share in ((samplers.location_guard, 1.0), (samplers.textbook, 0.002)):
        steps = np.hypot(*make(random)(origin).T) / samplers.GUARD_STEP_M
        assert np.mean(np.abs(steps - np.round(steps)) < 1e-3) == pytest.approx(share, abs=0.01)


def test_planar_laplace_has_its_mean_and_per_coordinate_its_own(random):
    origin = np.zeros((200_000, 2))
    mean = np.hypot(*samplers.textbook(random)(origin).T).mean()
    assert mean == pytest.approx(2 / samplers.EPSILON, rel=0.01)
    assert np.abs(samplers.per_coordinate(random)(origin)).mean() == pytest.approx(
        1 / samplers.EPSILON, rel=0.01
    )


def test_resampled_reports_stay_inside_and_grids_are_hit(random):
    corner = np.full((5000, 2), samplers.REGION_M)
    assert np.abs(samplers.resampled(random)(corner)).max() <= samplers.REGION_M
    coarse = samplers.coarse_location(random)(corner) / samplers.COARSE_M
    np.testing.assert_array_equal(coarse, np.round(coarse))
    cut = samplers.truncated(random)(corner)
    assert (cut <= corner).all()
    assert (corner - cut < samplers.TRUNCATED_M).all()


def test_offsets_stay_in_their_disk_and_fill_it_evenly(random):
    away = np.hypot(*samplers.keyed_offset(random)(np.zeros((100_000, 2))).T)
    assert away.max() <= samplers.OFFSET_M
    assert np.mean(away <= samplers.OFFSET_M / 2) == pytest.approx(0.25, abs=0.01)


def test_known_at_once_late_or_never(random):
    assert reports_needed(lambda places: places + 10.0, random, trials=20) == 1
    assert math.isinf(reports_needed(lambda places: 0 * places, random, trials=20, most=4))
    # sigma 100 m: 90% of means lie within 2.146 sigma / sqrt(n) of the place.
    fair = reports_needed(
        lambda places: places + random.normal(scale=100.0, size=places.shape),
        random,
        trials=2000,
        guess=lambda reports: reports.mean(axis=1),
    )
    assert fair == 20
