"""Synthetic commuters follow their density and their seed; classes count what they say."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.data.commuters import commute_histogram, synthetic_commuters
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.space import Box, Plane, Points, Raster

RASTER = Raster.over(Box(0, 0, 60e3, 60e3), "3 km")
MILE = 1609.344


def density() -> np.ndarray:
    x, y = RASTER.centres().T
    values = np.exp(-np.hypot(x - 20e3, y - 30e3) / 8e3).reshape(RASTER.shape)
    values[:, -5:] = 0
    return values


def test_homes_follow_the_density_and_avoid_empty_cells():
    people = synthetic_commuters(RASTER, density(), 50_000, seed=1)
    homes = np.bincount(RASTER.locate(people.homes.coordinates), minlength=len(RASTER))
    share = density().ravel() / density().sum()
    sigma = np.sqrt(share * (1 - share) * len(people))
    assert (np.abs(homes - share * len(people)) <= 6 * sigma + 1e-9).all()
    works = np.bincount(RASTER.locate(people.works.coordinates), minlength=len(RASTER))
    assert (works[density().ravel() == 0] == 0).all()
    assert RASTER.box.contains(people.homes.coordinates).all()


def test_reach_and_concentration_do_what_they_say():
    mean = {}
    for reach in ("4 km", "20 km"):
        people = synthetic_commuters(RASTER, density(), 20_000, seed=1, reach=reach)
        mean[reach] = np.hypot(*(people.homes.coordinates - people.works.coordinates).T).mean()
    assert mean["4 km"] < 0.7 * mean["20 km"]
    top = density().ravel().argmax()
    crowded = [
        (RASTER.locate(people.works.coordinates) == top).mean()
        for people in (
            synthetic_commuters(RASTER, density(), 20_000, seed=1, concentration=c)
            for c in (1.0, 2.0)
        )
    ]
    assert crowded[1] > 1.3 * crowded[0]


def test_the_seed_decides():
    one, same, other = (
        synthetic_commuters(RASTER, density(), 100, seed=seed).homes.coordinates
        for seed in (5, 5, 6)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_classes_own_their_lower_border():
    works = Points(np.zeros((6, 2)), Plane.metres())
    miles = np.array([0.0, 9.99, 10.0, 25.0, 49.0, 50.5])
    homes = np.column_stack([miles * MILE, np.zeros(6)])
    histogram = commute_histogram(homes, works)
    assert histogram.counts.tolist() == [2, 1, 2, 1]
    assert histogram.labels == ("0-10", "10-25", "25-50", "50+")
    assert histogram.shares.sum() == pytest.approx(1)
    assert histogram.change(histogram) == 0
    moved = commute_histogram(homes + np.array([30 * MILE, 0]), works)
    assert moved.counts.tolist() == [0, 0, 3, 3]
    assert histogram.change(moved) == pytest.approx(3 / 6)


def test_blurred_homes_change_the_histogram_little_or_much(rng):
    people = synthetic_commuters(RASTER, density(), 20_000, seed=3)
    before = people.histogram()

    def change(epsilon: str) -> float:
        homes = PlanarLaplace(epsilon).report(people.homes, rng=rng)
        return people.histogram(homes=homes).change(before)

    assert change("ln(4)/200 m") < 0.01
    assert change("ln(4)/20 km") > 0.2


def test_bad_input_is_refused():
    good = density()
    for broken in (good[:-1], -good, good * np.nan, good * 0):
        with pytest.raises(InvalidInput, match="density"):
            synthetic_commuters(RASTER, broken, 10, seed=1)
    for options in ({"count": 0}, {"seed": True}, {"concentration": 0.0}, {"reach": "0 m"}):
        with pytest.raises(InvalidInput):
            synthetic_commuters(RASTER, good, **({"count": 10, "seed": 1} | options))
    works = Points(np.zeros((2, 2)), Plane.metres())
    with pytest.raises(InvalidInput, match="one work place"):
        commute_histogram(np.zeros((3, 2)), works)
    with pytest.raises(InvalidInput, match="rising"):
        commute_histogram(np.zeros((2, 2)), works, edges_mi=(0, 0))
