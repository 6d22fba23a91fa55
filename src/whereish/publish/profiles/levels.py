"""Levels of a hierarchy of places: a city in districts, a district in blocks.

A level is a finite public list of places (cell centres, cities, addresses) over a
declared region.  Its *hierarchical sensitivity* HS is the largest distance between two
of its places (Zhu et al.): how far a location may move when it changes within the
level.  Distances are whole metres, so that sums of them are exact and no rounding can
exceed HS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput, shortened
from whereish.privacy.norms import Euclidean, GreatCircle
from whereish.space.box import Box
from whereish.space.points import Points, checked_coordinates
from whereish.space.raster import Raster
from whereish.space.sites import Sites
from whereish.space.sphere import RADIUS_M, Sphere

__all__ = ["PlaceLevel"]

_MOST_SITES = 8192
_BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"


@dataclass(frozen=True, eq=False)
class PlaceLevel:
    """The public places of one level, with their distances in whole metres.

    `grid_m` are the places on a flat map, also in whole metres.

    Use :meth:`of_sites`, :meth:`of_raster` or :meth:`of_geohash`.

    >>> import whereish as wh
    >>> level = wh.PlaceLevel.of_raster("city", wh.Raster(2, 2, (500, 500)))
    >>> len(level), level.sensitivity
    (4, 707)
    >>> level.labels[level.locate([[600, 100]])[0]]
    '0,1'
    """

    name: str
    sites: Sites
    region: Box
    labels: tuple[str, ...]
    distances: IntArray = field(init=False, repr=False)
    grid_m: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        count = len(self.sites)
        if count < 2 or count > _MOST_SITES:
            raise InvalidInput(
                f"a level must have between 2 and {_MOST_SITES} places; got {count}:"
                " choose another cell size"
            )
        metric = GreatCircle() if isinstance(self.sites.points.space, Sphere) else Euclidean()
        table = np.rint(metric.matrix(self.sites.coordinates)).astype(np.int64)
        table = np.maximum(table, table.T)
        table.setflags(write=False)
        object.__setattr__(self, "distances", table)
        grid = np.rint(self._flat()).astype(np.int64)
        grid.setflags(write=False)
        object.__setattr__(self, "grid_m", grid)
        if self.sensitivity == 0:
            raise InvalidInput("the places of a level must not all be one")

    @classmethod
    def of_sites(cls, name: str, sites: Sites, region: Box) -> PlaceLevel:
        """Named places; everything in `region` belongs to the nearest."""
        return cls(name, sites, region, tuple(str(i) for i in range(len(sites))))

    @classmethod
    def of_raster(cls, name: str, raster: Raster) -> PlaceLevel:
        """The cells of a raster."""
        labels = tuple(f"{i // raster.columns},{i % raster.columns}" for i in range(len(raster)))
        return cls(name, raster.sites(), raster.box, labels)

    @classmethod
    def of_geohash(cls, name: str, region: Box, length: int) -> PlaceLevel:
        """The geohash cells of this `length` that meet a box of degrees."""
        if not isinstance(length, int) or not 1 <= length <= 9:
            raise InvalidInput(f"length must be a whole number from 1 to 9; got {length!r}")
        across, up = (5 * length + 1) // 2, 5 * length // 2
        width, height = 360 / 2**across, 180 / 2**up
        columns = range(
            math.floor((region.x_low + 180) / width), math.ceil((region.x_high + 180) / width)
        )
        rows = range(
            math.floor((region.y_low + 90) / height), math.ceil((region.y_high + 90) / height)
        )
        if len(columns) * len(rows) > _MOST_SITES:
            raise InvalidInput(
                f"the region has {len(columns) * len(rows)} geohash cells of length {length}; at"
                f" most {_MOST_SITES} are allowed: take a shorter length"
            )
        cells = [(column, row) for row in rows for column in columns]
        centres = [((c + 0.5) * width - 180, (r + 0.5) * height - 90) for c, r in cells]
        labels = tuple(_geohash(c, r, length) for c, r in cells)
        return cls(name, Sites(Points(np.array(centres), Sphere())), region, labels)

    def __len__(self) -> int:
        return len(self.sites)

    def __repr__(self) -> str:
        return f"PlaceLevel({shortened(self.name, 60)!r}, {len(self)} places)"

    def _flat(self) -> FloatArray:
        """Places on a map in metres: for centres of clusters, not for distances."""
        places = self.sites.coordinates
        if not isinstance(self.sites.points.space, Sphere):
            return np.asarray(places)
        middle = math.radians((self.region.y_low + self.region.y_high) / 2)
        scale = RADIUS_M * np.array([math.cos(middle), 1.0])
        return np.asarray(np.radians(places) * scale)

    @property
    def diameter_d1_m(self) -> int:
        """B: no two places of the map are farther apart in d_1."""
        return int((self.grid_m.max(axis=0) - self.grid_m.min(axis=0)).sum())

    @property
    def sensitivity(self) -> int:
        """HS: the largest distance of two places, in metres."""
        return int(self.distances.max())

    def locate(self, places: Points | ArrayLike) -> NDArray[np.intp]:
        """The place of the level nearest to each of `places`, all within the region."""
        coordinates = checked_coordinates(places, self.sites.points.space)
        outside = int((~self.region.contains(coordinates)).sum())
        if outside:
            raise InvalidInput(
                f"{outside} of {len(coordinates)} places lie outside the declared region of level"
                f" {self.name!r}: leave them out or declare a larger region"
            )
        return self.sites.nearest(coordinates)


def _geohash(column: int, row: int, length: int) -> str:
    """The name of a cell: bits of column and row interleaved, column first, five a letter."""
    across, up = (5 * length + 1) // 2, 5 * length // 2
    bits = 0
    for i in range(5 * length):
        index, source = divmod(i, 2)
        value, size = (row, up) if source else (column, across)
        bits = (bits << 1) | ((value >> (size - 1 - index)) & 1)
    return "".join(_BASE32[(bits >> (5 * (length - 1 - i))) & 31] for i in range(length))
