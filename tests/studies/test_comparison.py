"""Comparisons of radials, and of symmetric with non-symmetric mechanisms."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.privacy.distinguishability import Distinguishability
from whereish.space.plane import Plane
from whereish.space.raster import Raster
from whereish.studies.comparison import compare_radials, compare_symmetry


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
    found = compare_symmetry(raster, prior, ["0.5/km", "1/km", "2/km"])
    for one in found:
        assert one.symmetric == pytest.approx(2 / one.epsilon.per_m)
        # The remapped Laplace is a channel on the same cells, so it cannot beat the bound.
        assert one.lower_bound <= min(one.non_symmetric, one.bayesian)
        assert one.non_symmetric <= one.lower_bound * (1 + 2e-3)
        assert one.bayesian < one.nearest < one.symmetric
    assert found[-1].non_symmetric < 0.99 * found[-1].bayesian
    assert [one.non_symmetric for one in found] == sorted(
        (one.non_symmetric for one in found), reverse=True
    )
