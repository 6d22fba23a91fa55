"""Synthetic cities for the map suite, seeded.

A city is a function of places in the unit square, so that it is the same at every
resolution (noise at cell scale is not, by its nature).  Its levels are given in nats across the
whole square.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from whereish.arrays import FloatArray
from whereish.privacy.maps.privacy_map import PrivacyMap

__all__ = ["CITIES", "City", "DrawnCity", "as_map", "drawn", "levels", "of_tracts", "synthetic"]

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


@dataclass(frozen=True)
class DrawnCity:
    """A city that a seed draws: its shares, cells a side, range of nats, and where people are.

    `prior` is uniform for None.
    """

    name: str
    city: City
    size: int
    nats: tuple[float, float]
    prior: FloatArray | None


def drawn(seed: int, count: int) -> Iterator[DrawnCity]:
    """Tracts, half of them with a shore and a third with a river, that no suite has."""
    rng = np.random.default_rng([seed, 2026])
    for number in range(count):
        size = int(rng.integers(40, 101))
        low = float(np.exp(rng.uniform(np.log(3), np.log(30))))
        nats = (low, low * float(np.exp(rng.uniform(np.log(2), np.log(10)))))
        roughness, tracts = float(rng.random()), int(rng.integers(20, 300))
        shore = float(rng.uniform(0.35, 0.9)) if rng.random() < 0.5 else None
        river = float(rng.uniform(0.2, 0.8)) if rng.random() < 1 / 3 else None
        city = of_tracts(int(rng.integers(2**31)), tracts, roughness, shore, river)
        at = (np.arange(size) + 0.5) / size
        people = np.expm1(3 * city(*np.meshgrid(at, at), size)).ravel()
        kind = str(rng.choice(["uniform", "people", "visits"]))
        prior = {
            "uniform": None,
            "people": people + 1e-3,
            "visits": np.where(rng.random(size**2) < 0.1, rng.gamma(0.3, size=size**2), 0.0),
        }[kind]
        words = f"drawn {seed}.{number}: {tracts} tracts"
        words += "" if shore is None else ", shore"
        words += "" if river is None else ", river"
        yield DrawnCity(f"{words}, {kind}", city, size, nats, prior)


def of_tracts(
    seed: int, count: int, roughness: float, shore: float | None, river: float | None
) -> City:
    """Tracts, at the lowest level beyond a shore and in a river."""
    base = _tracts(seed, count, roughness)

    def share(x: FloatArray, y: FloatArray, n: int) -> FloatArray:
        out = base(x, y, n)
        if shore is not None:
            out = np.where(x + 0.1 * np.sin(6 * y + seed % 7) > shore, 0.0, out)
        if river is not None:
            out = np.where(np.abs(y - river - 0.1 * np.sin(4 * x)) < 1 / 60, 0.0, out)
        return np.asarray(out)

    return share


def levels(city: City, n: int, low: float, high: float) -> FloatArray:
    """Levels in nats per cell, from `low` to `high` nats across the whole side, n x n cells."""
    at = (np.arange(n) + 0.5) / n
    x, y = np.meshgrid(at, at)
    return np.asarray(low * (high / low) ** city(x, y, n) / n)


def as_map(city: City, size: int, nats: tuple[float, float]) -> PrivacyMap:
    """A city as a map of 10 km a side."""
    side = SIDE / size
    return PrivacyMap(levels(city, size, *nats) / side, (side, side))


def synthetic(city: str, size: int, nats: tuple[float, float]) -> PrivacyMap:
    """One of the cities by its name."""
    return as_map(CITIES[city], size, nats)
