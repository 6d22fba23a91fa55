"""The largest factor by which a plane stretches over its region, with proof where there is one.

The geodesic between two places of a box may leave it towards a pole.  On the auxiliary sphere of
reduced latitudes beta it is a great circle whose longitudes advance by at most a/b times the
ellipsoid's (Bessel), so tan beta rises at most by the factor 1 / cos(width/2 · a/b), and tan phi
with it; longitudes stay between those of the ends.  The box is widened by that.

Over the widened box the stretching is a product: of the datum operation
(:mod:`whereish.space.projection.datum`) and of the projection
(:mod:`whereish.space.projection.families`).  Both are
bounded on cells, which are cut until the largest bound is within 2e-7 of a value that is taken.
A projection without a closed form is sampled instead: an estimate, no proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.space.box import Box
from whereish.space.projection.datum import Datum, datum_of
from whereish.space.projection.ellipsoid import WGS84
from whereish.space.projection.families import Family, families_of
from whereish.space.projection.interval import Interval
from whereish.space.projection.operation import Operation, operation_for

__all__ = [
    "MARGIN",
    "NO_STRETCH",
    "SLACK_DEGREES",
    "UTM_SCALE",
    "WIDER_DEGREES",
    "Chain",
    "Stretch",
    "chain_of",
    "largest_bound",
    "stretch_at",
    "stretch_of",
    "stretches_at",
    "widened",
]

_WIDEST_REGION_DEGREES = 90.0
_WORST_SCALE = 20.0
SLACK_DEGREES = 2e-6
"""How far beyond its region a plane takes places, since they return from it to within this only:
PROJ turns Helmert's rotation back to theta² times the Earth's radius, 0.13 m for 30 seconds."""
WIDER_DEGREES = 2 * SLACK_DEGREES
"""By how much more than that the box is widened."""
UTM_SCALE = 1.001
"""What UTM keeps within its zone: 0.9996 on its meridian, 1.00098 three degrees off."""
_TIGHT = 2e-7
_MOST_CELLS = 8192
MARGIN = 1e-9
"""Relative; for the roundings of doubles, here (some hundred of 2^-53) and in PROJ (nanometres)."""


Bounds: TypeAlias = Callable[
    [FloatArray, FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]
]
"""Upper bounds on cells (middles and half sides in degrees), and values in their middles."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The largest factor, and whether it is proven or estimated from samples."""

    factor: float
    proven: bool


NO_STRETCH = Stretch(1.0, True)
"""That of a plane in true metres."""


@lru_cache(maxsize=128)
def stretch_of(crs: str, region: Box, shift: str | None = None) -> Stretch:
    """The largest stretching of the plane over the widened region."""
    wide = widened(region)
    operation = operation_for(crs, region, shift)
    bound = _proven(operation, wide)
    proven = bound is not None
    factor = _sampled(operation, wide) if bound is None else bound
    if not factor <= _WORST_SCALE:
        raise InvalidInput(
            f"the projection {crs!r} does not cover the declared region in one piece (it has an"
            " edge there, or stretches it beyond use): declare a smaller region, choose another"
            " projection, or use GlobeLaplace"
        )
    return Stretch(factor, proven)


def widened(region: Box) -> Box:
    """A box that holds the geodesic between any two places of the region."""
    if region.width > _WIDEST_REGION_DEGREES or max(-region.y_low, region.y_high) >= 89:
        raise InvalidInput(
            f"a plane's region must be at most {_WIDEST_REGION_DEGREES:g} degrees wide and within"
            " 89 degrees of latitude; for more of the Earth use GlobeLaplace"
        )
    half = math.radians(region.width / 2) * WGS84.a / WGS84.b
    south, north = (
        math.degrees(math.atan(math.tan(math.radians(lat)) / math.cos(half)))
        for lat in (region.y_low, region.y_high)
    )
    return Box(
        region.x_low - WIDER_DEGREES,
        min(south, region.y_low) - WIDER_DEGREES,
        region.x_high + WIDER_DEGREES,
        max(north, region.y_high) + WIDER_DEGREES,
    )


def stretch_at(operation: Operation, lon: FloatArray, lat: FloatArray) -> FloatArray:
    """The largest factor by which any direction is stretched at each place, by differences."""
    return stretches_at(operation, lon, lat)[0]


def stretches_at(
    operation: Operation, lon: FloatArray, lat: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The largest and the smallest factor at each place, by differences.

    They are the singular values of the derivative between WGS84 metres and the
    plane's.  PROJ's own factors will not do: for Web Mercator they are relative to a
    sphere, and up to 0.7% too small.
    """
    transform, step = operation.transformer().transform, 1e-4
    sides = [
        transform(lon + dx, lat + dy)
        for dx, dy in np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]) * step
    ]
    (xe, ye), (xw, yw), (xn, yn), (xs, ys) = (np.asarray(side) for side in sides)
    lat = np.radians(lat)
    metres_east = np.radians(2 * step) * WGS84.a * WGS84.parallel(lat)
    metres_north = np.radians(2 * step) * WGS84.a * WGS84.meridian(lat)
    with np.errstate(invalid="ignore"):
        a, c = (xe - xw) / metres_east, (ye - yw) / metres_east
        b, d = (xn - xs) / metres_north, (yn - ys) / metres_north
        # Singular values of [[a, b], [c, d]]: half of hypot(a + d, b - c) plus or minus
        # hypot(a - d, b + c).
        one, other = np.hypot(a + d, b - c), np.hypot(a - d, b + c)
        return np.asarray((one + other) / 2), np.asarray(np.abs(one - other) / 2)


@dataclass(frozen=True, slots=True)
class Chain:
    """A datum operation, then a projection, over a box."""

    datum: Datum
    family: Family
    centre: float

    def bounds(
        self, lon: FloatArray, lat: FloatArray, east: FloatArray, north: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds of the largest stretch on cells, and those in their middles."""
        with np.errstate(all="ignore"):
            image = self.datum.image(lon, lat, east, north)
            across = self._from_meridian(image.lon)
            last = self.datum.last.stretch_to(self.family.ellipsoid, image.lat)[0]
            upper, value = self.family.bounds(across, image.lat)
            upper = upper * image.stretch * last
            beyond = (across.magnitude > self.family.reach - 1e-9) | np.isnan(upper)
            beyond |= image.lat.magnitude >= np.pi / 2
        return np.where(beyond, np.inf, upper), value * image.stretch * last

    def inverse_bounds(
        self, lon: FloatArray, lat: FloatArray, east: FloatArray, north: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The same for 1 over the smallest stretch; infinite where the other bounds are."""
        nowhere = np.isinf(self.bounds(lon, lat, east, north)[0])
        with np.errstate(all="ignore"):
            image = self.datum.image(lon, lat, east, north)
            last = self.datum.last.stretch_to(self.family.ellipsoid, image.lat)[1]
            lower, value = self.family.least(self._from_meridian(image.lon), image.lat)
            upper = 1 / (lower * image.least * last)
            return np.where(nowhere | np.isnan(upper), np.inf, upper), 1 / (
                value * image.least * last
            )

    def _from_meridian(self, lon: Interval) -> Interval:
        """Longitudes from the central meridian, on the turn that is nearest the region's.

        They are cut nowhere inside it.
        """
        middle = (lon.lo + lon.hi) / 2 - self.family.meridian
        middle = self.centre + np.remainder(middle - self.centre + np.pi, 2 * np.pi) - np.pi
        return Interval.around(middle, (lon.hi - lon.lo) / 2)


def _proven(operation: Operation, box: Box) -> float | None:
    """A proven bound; None where no closed form is known, or PROJ does not follow it."""
    chain = chain_of(operation, box)
    return None if chain is None else largest_bound(chain.bounds, box) * (1 + MARGIN)


def chain_of(operation: Operation, box: Box) -> Chain | None:
    """The closed form of an operation over a box, if one is known that PROJ follows."""
    steps = operation.steps
    at = next((i for i, step in enumerate(steps) if families_of(step)), None)
    if at is None or any(step["proj"] != "axisswap" for step in steps[at + 1 :]):
        return None
    for family in families_of(steps[at]):
        datum = datum_of(steps[:at], family.ellipsoid)
        if datum is None or not datum.is_small(max(-box.y_low, box.y_high)):
            return None
        x, y = np.array([(box.x_low + box.x_high) / 2]), np.array([(box.y_low + box.y_high) / 2])
        image = datum.image(x, y, np.zeros(1), np.zeros(1))
        centre = math.remainder(float(image.lon.lo[0]) - family.meridian, 2 * math.pi)
        chain = Chain(datum, family, centre)
        if _follows(operation, chain, box):
            return chain
    return None


def _follows(operation: Operation, chain: Chain, box: Box) -> bool:
    """Whether PROJ stretches as the formulas say, at some places of the box.

    This guards against parameters that mean something else in another version of PROJ.
    Where the formula has no value (an edge), there is nothing to compare.
    """
    places = np.meshgrid(
        np.linspace(box.x_low, box.x_high, 6)[:-1] + box.width / 11,
        np.linspace(box.y_low, box.y_high, 6)[:-1] + box.height / 11,
    )
    lon, lat = (axis.ravel() for axis in places)
    zero = np.zeros_like(lon)
    upper, value = chain.bounds(lon, lat, zero, zero)
    known = np.isfinite(upper) & (upper < _WORST_SCALE)
    upper, value = upper[known], value[known]
    least = 1 / chain.inverse_bounds(lon, lat, zero, zero)[0][known]
    seen, seen_least = stretches_at(operation, lon[known], lat[known])
    # Differences over 22 m are good to about 1e-9; datum bounds are within 1e-4 of the truth,
    # those for a sphere in the ellipsoid's stead within 1%.
    fits = (seen <= upper * (1 + 1e-8)) & (seen >= value * 0.98)
    fits &= (seen_least >= least * (1 - 1e-8)) & (seen_least <= least / 0.98)
    return bool(fits.all())


def largest_bound(bounds: Bounds, box: Box) -> float:
    """The largest bound, after cutting the cells that matter in two, the better way each."""
    cells = np.array([[box.x_low, box.x_high, box.y_low, box.y_high]]).T
    upper, _ = _on_cells(bounds, cells)
    corners = np.array([[x, x, y, y] for x in cells[:2, 0] for y in cells[2:, 0]]).T
    values = _on_cells(bounds, corners)[1]  # the largest is often there
    best, settled = float(values[np.isfinite(values)].max(initial=0.0)), 0.0
    while upper.size:
        done = ~(upper > best * (1 + _TIGHT))
        settled = max(settled, float(upper[done].max(initial=0.0)))
        cells, upper = cells[:, ~done], upper[~done]
        worst = float(upper.max(initial=0.0))
        if upper.size > _MOST_CELLS or best > _WORST_SCALE or _too_small(cells):
            return max(settled, worst)
        if not upper.size:
            break
        options = np.stack([_halved(cells, axis) for axis in (0, 2)])  # (way, half, side, cell)
        tops, values = _on_cells(bounds, options.transpose(2, 0, 1, 3).reshape(4, -1))
        best = max(best, float(values[np.isfinite(values)].max(initial=0.0)))
        tops = tops.reshape(2, 2, -1)
        across, up = tops.max(axis=1)
        # Where neither way tells (both infinite), the longer side is cut.
        longer = cells[1] - cells[0] > cells[3] - cells[2]
        way = np.where(across == up, longer, across < up)
        cells = np.concatenate(np.where(way, options[0], options[1]), axis=1)
        upper = np.where(way, tops[0], tops[1]).ravel()
    return settled


def _too_small(cells: FloatArray) -> bool:
    """Whether cells are so small that cutting them further cannot help: an edge is inside."""
    return bool(cells.size and (cells[1] - cells[0] + cells[3] - cells[2]).min() < 1e-8)


def _halved(cells: FloatArray, axis: int) -> FloatArray:
    """Both halves of each cell, cut across x (axis 0) or y (axis 2)."""
    halves = np.stack([cells, cells])
    halves[0, axis + 1] = halves[1, axis] = (cells[axis] + cells[axis + 1]) / 2
    return halves


def _on_cells(bounds: Bounds, cells: FloatArray) -> tuple[FloatArray, FloatArray]:
    west, east, south, north = cells
    return bounds((west + east) / 2, (south + north) / 2, (east - west) / 2, (north - south) / 2)


def _sampled(operation: Operation, box: Box) -> float:
    """An estimate: the largest of two grids, with four times what the finer one changed.

    Infinite where neighbours are farther apart on the plane than that allows: a tear.
    """
    grids = [
        np.meshgrid(
            np.linspace(box.x_low, box.x_high, count), np.linspace(box.y_low, box.y_high, count)
        )
        for count in (49, 98)
    ]
    coarse, fine = (
        float(stretch_at(operation, lon.ravel(), lat.ravel()).max()) for lon, lat in grids
    )
    factor = fine + 4 * abs(fine - coarse) + 1e-7
    torn = not math.isfinite(factor) or _is_torn(operation, *grids[1], factor)
    return math.inf if torn else factor


def _is_torn(operation: Operation, lon: FloatArray, lat: FloatArray, scale: float) -> bool:
    """Whether two neighbours of a grid are farther apart on the plane than `scale` allows."""
    from pyproj import Geod

    x, y = (np.asarray(axis) for axis in operation.transformer().transform(lon, lat))
    geod = Geod(ellps="WGS84")
    for a, b in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])):
        true = geod.inv(lon[a].ravel(), lat[a].ravel(), lon[b].ravel(), lat[b].ravel())[2]
        if not (np.hypot(x[a] - x[b], y[a] - y[b]).ravel() <= scale * true).all():
            return True
    return False
