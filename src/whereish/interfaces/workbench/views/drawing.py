"""Rasters as pictures for the page's map: rows equally spaced in Web Mercator, south first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.space.points import Points
from whereish.space.raster import Raster

__all__ = ["Canvas", "canvas_of"]

_MOST_PIXELS = 480
_LEAST_PIXELS = 160


@dataclass(frozen=True, eq=False)
class Canvas:
    """Which cell of a raster each pixel shows, -1 beyond it."""

    bounds: tuple[float, float, float, float]
    cells: NDArray[np.intp]

    def paint(self, values: FloatArray) -> NDArray[np.float32]:
        """The values of cells as pixels; NaN beyond the raster."""
        flat = np.append(np.asarray(values, dtype=np.float64).ravel(), np.nan)
        return flat[self.cells].astype(np.float32)


@lru_cache(maxsize=16)
def canvas_of(raster: Raster) -> Canvas:
    """The pixels of a raster on a plane with a coordinate system."""
    plane = raster.plane
    if plane.crs is None:
        raise InvalidInput(
            "this map has no coordinate system, so it has no place on Earth: give a file that"
            " states one"
        )
    edge = np.linspace(0.0, 1.0, 33)
    box = raster.box
    sides = [(edge, 0 * edge), (edge, 0 * edge + 1), (0 * edge, edge), (0 * edge + 1, edge)]
    rim = np.concatenate([np.column_stack(side) for side in sides])
    corner = np.array([box.x_low, box.y_low])
    places = Points(corner + rim * np.array([box.width, box.height]), plane)
    lon, lat = plane.to_degrees(places)
    west, east, south, north = lon.min(), lon.max(), lat.min(), lat.max()
    pixels = int(np.clip(3 * max(raster.shape), _LEAST_PIXELS, _MOST_PIXELS))
    share = (np.arange(pixels) + 0.5) / pixels
    y = _mercator(south) + share * (_mercator(north) - _mercator(south))
    x = west + share * (east - west)
    degrees = np.column_stack(
        [np.tile(x, pixels), np.repeat(np.degrees(2 * np.arctan(np.exp(y)) - np.pi / 2), pixels)]
    )
    inside = np.ones(len(degrees), dtype=bool)
    if plane.region is not None:
        inside = plane.region.contains(degrees)
    cells = np.full(len(degrees), -1, dtype=np.intp)
    on_plane = plane.from_degrees(*degrees[inside].T).coordinates
    held = box.contains(on_plane)
    rows = np.flatnonzero(inside)[held]
    cells[rows] = raster.locate(on_plane[held])
    return Canvas(
        (float(west), float(south), float(east), float(north)), cells.reshape(pixels, pixels)
    )


def _mercator(lat: float) -> float:
    return float(np.log(np.tan(np.pi / 4 + np.radians(lat) / 2)))
