"""Synthetic cities for the map suite, seeded.

A city is a function of places in the unit square, so that it is the same at every
resolution (noise at cell scale is not, by its nature).  Its levels are given in nats across the
whole square.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree

from whereish.arrays import FloatArray
from whereish.privacy.maps.privacy_map import PrivacyMap

__all__ = ["CITIES", "City", "levels", "synthetic"]

SIDE = 10_000.0

City = Callable[[FloatArray, FloatArray, int], FloatArray]
"""Shares in [0, 1] between the lowest and the highest level (in logarithms), from places and
the number of cells along a side."""


def _tracts(seed: int, count: int, roughness: float) -> City:
    """Voronoi tracts around a centre; `roughness` 0 is the smooth trend, 1 nothing but noise."""

    def share(x: FloatArray, y: FloatArray, n: int) -> FloatArray:
        rng = np.random.default_rng(seed)
        middle = rng.uniform(0.35, 0.65, 2)
        # People live in small tracts: half of them in the centre.
        seeds = np.concatenate(
            [rng.random((count - count // 2, 2)), rng.normal(middle, 0.17, (count // 2, 2))]
        )
        trend = np.exp(-((seeds - middle) ** 2).sum(axis=1) / (2 * 0.22**2))
        value = (1 - roughness) * trend + roughness * rng.random(count)
        value = (value - value.min()) / (value.max() - value.min())
        return np.asarray(value[cKDTree(seeds).query(np.stack([x, y], axis=-1))[1]])

    return share


def _gradient(x: FloatArray, y: FloatArray, n: int) -> FloatArray:
    return np.asarray(np.clip(0.15 + 0.5 * x + 0.35 * y, 0, 1))


def _noise(x: FloatArray, y: FloatArray, n: int) -> FloatArray:
    """A smooth city with noise from cell to cell: a third of the range."""
    smooth = np.exp(-((x - 0.45) ** 2 + (y - 0.55) ** 2) / (2 * 0.2**2))
    rng = np.random.default_rng(77)
    return np.asarray(np.clip(smooth * 0.67 + 0.33 * rng.random(x.shape), 0, 1))


def _river(x: FloatArray, y: FloatArray, n: int) -> FloatArray:
    """A tight band through tracts, a fortieth of the city wide."""
    away = np.abs(y - 0.5 - 0.12 * np.sin(5 * x))
    return np.where(away < 1 / 80, 0.0, 0.3 + 0.7 * _tracts(5, 80, 0.3)(x, y, n))


def _coast(x: FloatArray, y: FloatArray, n: int) -> FloatArray:
    """Sea at the lowest level beyond a bent shore."""
    return np.where(x + 0.08 * np.sin(7 * y) > 0.6, 0.0, _tracts(6, 120, 0.4)(x, y, n))


CITIES: dict[str, City] = {
    **{
        f"tracts, roughness {r:g}": _tracts(40 + i, 120, r)
        for i, r in enumerate((0, 0.15, 0.3, 0.6, 1))
    },
    "gradient": _gradient,
    "noise at cell scale": _noise,
    "river": _river,
    "coast": _coast,
}


def levels(city: City, n: int, low: float, high: float) -> FloatArray:
    """Levels in nats per cell, from `low` to `high` nats across the whole side, n x n cells."""
    at = (np.arange(n) + 0.5) / n
    x, y = np.meshgrid(at, at)
    return np.asarray(low * (high / low) ** city(x, y, n) / n)


def synthetic(city: str, size: int, nats: tuple[float, float]) -> PrivacyMap:
    """One of the cities as a map of 10 km a side."""
    side = SIDE / size
    return PrivacyMap(levels(CITIES[city], size, *nats) / side, (side, side))
