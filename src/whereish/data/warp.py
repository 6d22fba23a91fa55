"""A grid of public numbers on the cells of a plane.

A grid that lies in a projected system in metres keeps its own cells, if that system's proven
scale over the region is close to 1.  Any other (degrees, feet, a map of the world, a turned grid)
is looked up at the centres of new cells: plane -> WGS84 degrees -> the grid's system -> its cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from whereish.arrays import FloatArray
from whereish.data.rasters import Grid, no_overlap
from whereish.data.systems import System, degrees_box, outline
from whereish.errors import InvalidInput
from whereish.space.box import Box
from whereish.space.interpolation import Kernel, interpolated
from whereish.space.plane import Plane
from whereish.space.points import Points
from whereish.space.raster import Raster
from whereish.units import Length

__all__ = [
    "MOST_PLACES",
    "RESAMPLINGS",
    "Resampling",
    "Warped",
    "cell_areas_km2",
    "check_sampling",
    "finer_rows",
    "on_plane",
]

Resampling = Literal["nearest", "average", "bilinear", "bicubic"]
RESAMPLINGS: tuple[Resampling, ...] = ("nearest", "average", "bilinear", "bicubic")

_KERNELS: dict[Resampling, Kernel] = {
    "nearest": "nearest",
    "average": "nearest",
    "bilinear": "bilinear",
    "bicubic": "bicubic",
}

MOST_PLACES = 2**24
"""Places looked up for one map: half a minute's work."""
_BLOCK = 2**18
"""Places looked up at once, which bounds the memory."""
_KEPT_SCALE = 1.01
"""A grid keeps its own projection where that costs at most 1% of every level."""
_EDGE_DEGREES = 1e-7
"""A centimetre: places on the border of a grid are in the region that is taken from it."""


@dataclass(frozen=True, eq=False)
class Warped:
    """Numbers on a raster of a declared plane, NaN where the grid has none, and what was done."""

    values: FloatArray
    raster: Raster
    said: str


def on_plane(
    grid: Grid,
    *,
    crs: str | None = None,
    region: Box | None = None,
    cell: Length | str | None = None,
    resample: Resampling | None = None,
    check_size: Callable[[int, int], None] = lambda rows, columns: None,
) -> Warped:
    """The grid on the plane of `crs`, or on one that suits it.

    Parameters
    ----------
    crs
        The plane's system; the grid's own where that is in metres and proven to stretch by at
        most 1%, and :meth:`Plane.over` its region otherwise.
    region
        Where secrets may be (degrees).  The grid must overlap it; only what both cover is kept.
        The grid's own extent by default.
    cell
        Side of the new cells; the grid's own by default.
    resample
        What a new cell takes: the grid's cell that its centre is in ("nearest"), the mean over
        points inside ("average", the default with `cell`), or what "bilinear" or "bicubic"
        interpolation has at its centre.
    check_size
        Raises for too many rows and columns, before they are made.

    Raises
    ------
    InvalidInput
        The grid states no system but one is needed, does not overlap the region, or cannot be
        on the plane.
    """
    if grid.system is None:
        if region is not None or crs is not None:
            raise InvalidInput(
                f"{grid.name} states no coordinate system: name the one its numbers are in"
            )
        plane = Plane()
    else:
        extent = _extent(grid, grid.system)
        part = extent if region is None else _common(grid, extent, region, crs)
        plane = _plane(grid.system, crs, part)
    if _same(grid, plane) and grid.upright and cell is None and resample in (None, "nearest"):
        return _kept(grid, plane, cropped=region is not None, check_size=check_size)
    return _looked_up(grid, plane, region is not None, cell, resample, check_size)


def _same(grid: Grid, plane: Plane) -> bool:
    """Whether the grid's numbers are the plane's metres."""
    if plane.crs is None or grid.system is None:
        return plane.crs is None
    return grid.system.same(System.of(plane.crs))


def _extent(grid: Grid, system: System) -> Box:
    rows, columns = grid.shape
    place = grid.places(*outline(Box(0, 0, columns, rows)))
    box = degrees_box(*system.to_degrees(*place), grid.said)
    low, high = max(box.y_low - _EDGE_DEGREES, -90.0), min(box.y_high + _EDGE_DEGREES, 90.0)
    return Box(box.x_low - _EDGE_DEGREES, low, box.x_high + _EDGE_DEGREES, high)


def _common(grid: Grid, extent: Box, region: Box, crs: str | None) -> Box:
    """The part of the region that the grid covers, on the region's turn."""
    turns = round((region.x_low + region.x_high - extent.x_low - extent.x_high) / 720.0) * 360.0
    west, east = max(region.x_low, extent.x_low + turns), min(region.x_high, extent.x_high + turns)
    south, north = max(region.y_low, extent.y_low), min(region.y_high, extent.y_high)
    if not (west < east and south < north):
        raise no_overlap(grid, crs)
    return Box(west, south, east, north)


def _plane(system: System, crs: str | None, region: Box) -> Plane:
    if crs is not None:
        return Plane.projected(crs, region)
    if system.in_metres:
        try:
            plane = Plane.projected(system.text, region)
        except InvalidInput:  # no single operation, or its grid of shifts is missing
            return Plane.over(region)
        if plane.proven and plane.scale <= _KEPT_SCALE:
            return plane
    return Plane.over(region)


def _kept(
    grid: Grid, plane: Plane, *, cropped: bool, check_size: Callable[[int, int], None]
) -> Warped:
    """The grid's own cells; of a declared region those that meet its image."""
    rows, columns = grid.shape
    if cropped and plane.region is not None:
        image = plane.from_degrees(*outline(plane.region)).coordinates
        across, down = grid.positions(image[:, 0], image[:, 1])
        low, high = max(math.floor(down.min()), 0), min(math.ceil(down.max()), rows)
        west, east = max(math.floor(across.min()), 0), min(math.ceil(across.max()), columns)
        if low >= high or west >= east:
            raise InvalidInput(f"no cell of {grid.said} lies in the declared region")
        grid = grid.cut(slice(low, high), slice(west, east))
    check_size(*grid.shape)
    raster = Raster(*grid.shape, grid.cell, grid.origin, plane)
    return Warped(grid.values, raster, f"{grid.said} keeps its cells")


def _looked_up(
    grid: Grid,
    plane: Plane,
    declared: bool,
    cell: Length | str | None,
    resample: Resampling | None,
    check_size: Callable[[int, int], None],
) -> Warped:
    method = resample or ("nearest" if cell is None else "average")
    if method not in RESAMPLINGS:
        raise InvalidInput(f"resample must be one of {', '.join(RESAMPLINGS)}; got {method!r}")
    rows, columns = grid.shape
    if declared and plane.region is not None:
        image = plane.from_degrees(*outline(plane.region)).coordinates
    else:
        image = _in_plane(grid, plane, *outline(Box(0, 0, columns, rows)))
    own = _own_side(grid, plane)
    side = own if cell is None else Length.positive(cell, name="cell").m
    box = Box(*image.min(axis=0), *image.max(axis=0))
    # A side that divides the box but for rounding must not add a row of cells beyond it.
    shape = [max(1, math.ceil(extent / side - 1e-6)) for extent in (box.height, box.width)]
    check_size(*shape)
    raster = Raster(shape[0], shape[1], (side, side), (box.x_low, box.y_low), plane)
    factor = min(math.ceil(side / own * 2 - 1e-6), 16) if method == "average" else 1
    check_sampling(raster, factor)
    values = np.empty(raster.shape)
    block = max(1, _BLOCK // (raster.columns * factor**2))
    for first in range(0, raster.rows, block):
        count = min(block, raster.rows - first)
        fine = finer_rows(raster, first, count, factor)
        found = _at(grid, plane, fine.centres(), method)
        values[first : first + count] = _means(found, count, raster.columns, factor)
    said = (
        f"{grid.said} was looked up ({method}) at the {len(raster):,} cells of {side:.6g} m of"
        f" {plane.description}"
    )
    return Warped(values, raster, said)


def _in_plane(grid: Grid, plane: Plane, columns: FloatArray, rows: FloatArray) -> FloatArray:
    """Positions on the grid in the plane's metres; those that are no place are left out."""
    x, y = grid.places(columns, rows)
    if grid.system is None or plane.region is None:
        return np.column_stack([x, y])
    lon, lat = grid.system.to_degrees(x, y)
    known = np.isfinite(lon) & np.isfinite(lat)
    places = np.column_stack([lon[known], lat[known]])
    inside = plane.region.contains_degrees(places)
    return plane.from_degrees(*places[inside].T).coordinates


def _own_side(grid: Grid, plane: Plane) -> float:
    """The root of the true area of the grid's cell in the middle of the region, in metres."""
    rows, columns = grid.shape
    row, column = rows // 2, columns // 2
    if grid.system is not None and plane.region is not None:
        r = plane.region
        lon, lat = np.array([(r.x_low + r.x_high) / 2]), np.array([(r.y_low + r.y_high) / 2])
        (x,), (y,) = grid.positions(*grid.system.from_degrees(lon, lat))
        if math.isfinite(x) and math.isfinite(y):
            row, column = (min(max(int(at), 0), most - 1) for at, most in ((y, rows), (x, columns)))
    one = grid.cut(slice(row, row + 1), slice(column, column + 1))
    if _same(grid, plane):
        one = replace(one, system=None)  # the plane's own metres
    return math.sqrt(float(cell_areas_km2(one)[0, 0])) * 1e3


def _at(grid: Grid, plane: Plane, places: FloatArray, method: Resampling) -> FloatArray:
    """The grid's numbers at places of the plane; beyond its border those of the border."""
    if grid.system is None:
        x, y = places[:, 0], places[:, 1]
    else:
        x, y = grid.system.from_degrees(*plane.to_degrees(Points(places, plane)))
    columns, rows = grid.positions(x, y)
    nowhere = ~(np.isfinite(columns) & np.isfinite(rows))
    columns, rows = np.where(nowhere, 0.0, columns), np.where(nowhere, 0.0, rows)
    found = interpolated(grid.values, columns, rows, _KERNELS[method])
    found[nowhere] = np.nan
    return found


def _means(found: FloatArray, rows: int, columns: int, factor: int) -> FloatArray:
    """Mean of the points of each cell that have a number; NaN where most have none."""
    if factor == 1:
        return found.reshape(rows, columns)
    cut = found.reshape(rows, factor, columns, factor)
    known = np.isfinite(cut)
    count = known.sum(axis=(1, 3))
    total = np.where(known, cut, 0.0).sum(axis=(1, 3))
    return np.where(2 * count >= factor**2, total / np.maximum(count, 1), np.nan)


def cell_areas_km2(grid: Grid) -> FloatArray:
    """The true area of each cell: of its corners on an equal-area plane about the grid's middle."""
    rows, columns = grid.shape
    (width, height), (down, across) = grid.cell, grid.skew
    if grid.system is None:
        return np.full(grid.shape, abs(width * height - down * across) / 1e6)
    system = grid.system
    at = np.meshgrid(np.arange(columns + 1.0), np.arange(rows + 1.0))
    lon, lat = system.to_degrees(*grid.places(*at))
    centre = system.to_degrees(*grid.places(np.array([columns / 2]), np.array([rows / 2])))
    lon0, lat0 = (float(axis[0]) for axis in centre)
    equal_area = System.of(f"+proj=laea +lat_0={lat0!r} +lon_0={lon0!r} +datum=WGS84 +units=m")
    x, y = equal_area.from_degrees(lon, lat)
    # Half the cross product of a quadrilateral's diagonals.
    ax, ay = x[1:, 1:] - x[:-1, :-1], y[1:, 1:] - y[:-1, :-1]
    bx, by = x[1:, :-1] - x[:-1, 1:], y[1:, :-1] - y[:-1, 1:]
    return np.asarray(np.abs(ax * by - ay * bx) / 2e6)


def check_sampling(raster: Raster, supersample: int = 1) -> None:
    """Refuse a raster of more places than can be looked up in reasonable time, before any is."""
    if len(raster) * supersample**2 > MOST_PLACES:
        rows, columns = raster.shape
        raise InvalidInput(
            f"a map must need at most {MOST_PLACES:,} places to look up; {rows} x {columns} cells"
            f" with {supersample} x {supersample} each need more: make the cells larger, or the"
            " region smaller"
        )


def finer_rows(raster: Raster, first: int, rows: int, factor: int) -> Raster:
    """Some rows of a raster, every cell cut into `factor` x `factor`."""
    (width, height), (x, y) = raster.cell, raster.origin
    return Raster(
        rows * factor,
        raster.columns * factor,
        (width / factor, height / factor),
        (x, y + first * height),
        raster.plane,
    )
