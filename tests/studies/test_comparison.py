"""Comparisons of radials, and of symmetric with non-symmetric mechanisms."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.errors import InvalidInput
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.mechanisms.noise.grid_remap import nearest_grid_remap
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy.distinguishability import Distinguishability
from whereish.randomness import SeededRandomness
from whereish.space.plane import Plane
from whereish.space.raster import Raster
from whereish.studies.comparison import compare_radials, compare_symmetry, rectangle_distance


def test_the_gain_over_planar_laplace_grows_with_the_level():
    promises = [Distinguishability.location("1 km", level) for level in (0.5, 1.0, 2.0)]
    found = compare_radials(promises)
    gains = [one.gain for one in found]
    assert gains == sorted(gains)
    for one, level in zip(found, (0.5, 1.0, 2.0), strict=True):
        assert one.laplace == pytest.approx(2000 / level)
        assert one.lower_bound <= one.optimal < one.laplace
        assert one.gain > (one.optimal - one.lower_bound) / one.optimal  # beyond the gap


def test_linear_promises_gain_nothing():
    (one,) = compare_radials([Distinguishability.linear("1/km")])
    assert one.gain == pytest.approx(0, abs=1e-6)


def test_the_optimal_channel_beats_symmetric_noise_on_its_own_cells():
    raster = Raster(4, 5, (700.0, 700.0), (0.0, 0.0), Plane())
    prior = np.random.default_rng(1).dirichlet(np.ones(len(raster)))
    found = compare_symmetry(raster, prior, ["0.5/km", "1/km", "2/km"], positions="centres")
    for one in found:
        assert one.symmetric == pytest.approx(2 / one.epsilon.per_m)
        # The remapped Laplace is a channel on the same cells, so it cannot beat the bound.
        assert one.lower_bound <= min(one.non_symmetric, one.bayesian)
        assert one.non_symmetric <= one.lower_bound * (1 + 2e-3)
        assert one.bayesian < one.nearest < one.symmetric
        assert one.adapted == pytest.approx(one.non_symmetric, rel=1e-12)
    assert found[-1].non_symmetric < 0.99 * found[-1].bayesian
    assert [one.non_symmetric for one in found] == sorted(
        (one.non_symmetric for one in found), reverse=True
    )


def test_the_mean_distance_of_a_rectangle_is_its_integral():
    from scipy.integrate import dblquad

    for x, y in [(0.0, 0.0), (300.0, 0.0), (50.0, 40.0), (-700.0, 500.0), (150.0, 100.0)]:
        corner = (-150 - x, 150 - x, -100 - y, 100 - y)
        area = dblquad(lambda b, a: np.hypot(a, b), *corner, epsrel=1e-9)[0]
        found = float(rectangle_distance(np.array(x), np.array(y), 300.0, 200.0))
        assert found == pytest.approx(area / 60_000, rel=1e-7)


def test_on_coarse_cells_real_positions_turn_the_comparison_round():
    """A user near the corners of 5 km cells at 3/km: exact between centres, 3 km off in truth."""
    raster = Raster(3, 3, (5000.0, 5000.0), (0.0, 0.0), Plane())
    corners = raster.centres() + np.array([2100.0, -2200.0])
    (centres,) = compare_symmetry(raster, np.full(9, 1 / 9), ["3/km"], positions="centres")
    (real,) = compare_symmetry(raster, None, ["3/km"], positions=corners)
    assert centres.non_symmetric < 1 < centres.symmetric == pytest.approx(2000 / 3)
    assert real.non_symmetric == pytest.approx(np.hypot(2100, 2200), rel=1e-3)
    assert real.non_symmetric > 4 * real.symmetric
    assert (centres.positions, real.positions) == ("centres", "points")
    (uniform,) = compare_symmetry(raster, np.full(9, 1 / 9), ["3/km"])
    mean = float(rectangle_distance(np.zeros(1), np.zeros(1), 5000.0, 5000.0)[0])
    assert uniform.non_symmetric == pytest.approx(mean, rel=1e-3)
    assert uniform.positions == "uniform"


def test_losses_from_points_by_drawing_them():
    raster = Raster(3, 4, (800.0, 700.0), (0.0, 0.0), Plane())
    rng = np.random.default_rng(3)
    points = rng.uniform(0, 1, (150, 2)) ** 2 * [3200, 2100]
    (found,) = compare_symmetry(raster, None, ["1/km"], positions=points, gap=1e-6)
    counts = np.bincount(raster.locate(points), minlength=12) / len(points)
    channel = optimal_channel(raster, counts, "1/km", gap=1e-6)
    cells = channel.nearest_sites(points)
    losses = [
        np.hypot(*(points - channel.report(cells, rng=SeededRandomness(s)).coordinates).T).mean()
        for s in range(200)
    ]
    error = np.std(losses) / np.sqrt(200)
    assert abs(np.mean(losses) - found.non_symmetric) < 5.5 * error
    assert abs(np.mean(losses) - 0.95 * found.non_symmetric) > 5.5 * error
    assert found.lower_bound <= found.adapted <= found.non_symmetric * (1 + 1e-6)
    laplace = PlanarLaplace("1/km") >> nearest_grid_remap(raster)
    moved = [
        np.hypot(*(points - laplace.report(points, rng=SeededRandomness(s)).coordinates).T).mean()
        for s in range(200)
    ]
    assert abs(np.mean(moved) - found.nearest) < 5.5 * np.std(moved) / np.sqrt(200)


def test_positions_must_be_in_the_raster_and_in_every_cell_with_prior():
    raster = Raster(2, 2, (100.0, 100.0))
    for prior, positions, message in [
        (None, [[500.0, 0.0]], "lie in the raster"),
        ([0.25] * 4, [[10.0, 10.0]], "must have a point"),
        ([0.25] * 4, "somewhere", "uniform"),
        (None, [1.0, 2.0], r"\(n, 2\)"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            compare_symmetry(raster, prior, ["0.01/m"], positions=positions)
