"""Levels of noise are rounded down: to the last bit, none promises less noise than epsilon asks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.space import Box, Plane
from whereish.space.sphere import RADIUS_M, WGS84_A, WGS84_B
from whereish.units import Epsilon

LEVELS = np.random.default_rng(6).uniform(1e-3, 1e-1, 200).tolist()


def test_planar_noise_divides_by_the_scale_and_rounds_down():
    plane = Plane.projected("EPSG:3857", Box(2, 48.5, 2.6, 49.1))
    for eps in LEVELS:
        level = PlanarLaplace(Epsilon(eps), plane=plane).level
        assert Fraction(level) * Fraction(plane.scale) <= Fraction(eps)
        assert level > eps / plane.scale * (1 - 1e-15)


def test_globe_noise_multiplies_by_the_radius_and_rounds_down():
    for eps in LEVELS:
        rate = GlobeLaplace(Epsilon(eps))._rate
        assert Fraction(rate) <= Fraction(eps) * Fraction(RADIUS_M)
        assert rate > eps * RADIUS_M * (1 - 1e-15)


def test_the_sphere_lies_below_wgs84_to_the_last_bit():
    """R <= b²/a; as a double, b²/a itself is above."""
    bound = Fraction(WGS84_B) ** 2 / Fraction(WGS84_A)
    assert bound * (1 - Fraction(1, 2**51)) < Fraction(RADIUS_M) <= bound
