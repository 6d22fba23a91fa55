"""The plane: metres in a declared projection over a declared region.

A projection stretches.  If no direction at any place of the region is stretched
by more than k, then the distance of two images is at most k times the geodesic
distance, since the image of the geodesic is a path between them.  A planar
mechanism that is private at eps/k on the plane is private at eps in true metres.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.errors import InvalidInput
from whereish.space.box import Box
from whereish.space.points import FloatArray, Points, stacked_degrees
from whereish.space.sphere import WGS84_A, WGS84_E2
from whereish.units import Length

if TYPE_CHECKING:
    from pyproj import Transformer

__all__ = ["Plane"]

_WIDEST_REGION_DEGREES = 90.0
_GRID = 48
_WORST_SCALE = 20.0


@dataclass(frozen=True, slots=True)
class Plane:
    """Coordinates x, y in metres.

    Parameters
    ----------
    crs
        A projected coordinate system that PROJ knows ("EPSG:2154"), or None for
        coordinates that are true metres already.
    region
        With a `crs`: where secrets may be, as a box of longitudes and latitudes.
        Declared, never inferred from data.

    :meth:`metres`, :meth:`projected` and :meth:`around` say the same in words.
    """

    crs: str | None = None
    region: Box | None = None

    def __post_init__(self) -> None:
        if (self.crs is None) != (self.region is None):
            raise InvalidInput("a plane must have both a crs and a region, or neither")
        _ = self.scale  # refuses what cannot be projected

    @property
    def scale(self) -> float:
        """The largest factor by which the projection stretches over the region."""
        if self.crs is None or self.region is None:
            return 1.0
        return _largest_scale(self.crs, self.region)

    @classmethod
    def metres(cls) -> Plane:
        """The plane whose coordinates are true metres."""
        return cls()

    @classmethod
    def projected(cls, crs: str, region: Box) -> Plane:
        """A projected coordinate system over `region` (degrees)."""
        return cls(crs, region)

    @classmethod
    def around(cls, lon: float, lat: float, radius: Length | str) -> Plane:
        """An azimuthal equidistant plane on a public centre, out to `radius`.

        The centre is public knowledge (a city's centre), never a secret place.
        """
        if not (math.isfinite(lon) and math.isfinite(lat) and abs(lat) < 85):
            raise InvalidInput(
                "the centre must be a finite longitude and a latitude within 85 degrees;"
                " near the poles use GlobeLaplace"
            )
        reach = math.degrees(Length.positive(radius, name="radius").m / 6.33e6)
        if abs(lat) + reach >= 89:
            raise InvalidInput("the region must stay below 89 degrees of latitude")
        wide = math.degrees(math.asin(math.sin(math.radians(reach)) / math.cos(math.radians(lat))))
        box = Box(lon - wide, lat - reach, lon + wide, lat + reach)
        return cls.projected(f"+proj=aeqd +lat_0={lat!r} +lon_0={lon!r} +datum=WGS84 +units=m", box)

    @property
    def dimension(self) -> int:
        """Two coordinates."""
        return 2

    @property
    def description(self) -> str:
        """The space in a few words."""
        return "the plane in metres" if self.crs is None else f"the plane {self.crs}"

    def check(self, coordinates: FloatArray) -> None:
        """Every pair of finite numbers is a point; the region is checked in degrees."""

    def from_degrees(self, lon: ArrayLike, lat: ArrayLike) -> Points:
        """Project longitudes and latitudes; places outside the region are refused."""
        transformer = self._transformer()
        degrees = stacked_degrees(lon, lat)
        self._refuse_outside(degrees)
        x, y = transformer.transform(degrees[:, 0], degrees[:, 1], errcheck=True)
        return Points(np.column_stack([x, y]), self)

    def to_degrees(self, points: Points) -> tuple[FloatArray, FloatArray]:
        """Longitudes and latitudes of points of this plane."""
        x, y = points.coordinates[:, 0], points.coordinates[:, 1]
        lon, lat = self._transformer().transform(x, y, direction="INVERSE", errcheck=True)
        return np.asarray(lon), np.asarray(lat)

    def check_region(self, coordinates: FloatArray) -> None:
        """Raise `InvalidInput` unless all rows lie in the declared region.

        Beyond it the scale says nothing, so no secret may be there.
        """
        if self.crs is not None:
            x, y = coordinates[:, 0], coordinates[:, 1]
            degrees = _transformer(self.crs).transform(x, y, direction="INVERSE")
            self._refuse_outside(np.column_stack(degrees), slack=1e-9)

    def in_region(self, coordinates: FloatArray) -> NDArray[np.bool_]:
        """Which rows lie in the declared region; all of them where none is declared."""
        if self.crs is None or self.region is None:
            return np.ones(len(coordinates), np.bool_)
        x, y = coordinates[:, 0], coordinates[:, 1]
        degrees = _transformer(self.crs).transform(x, y, direction="INVERSE")
        return self.region.contains_degrees(np.column_stack(degrees))

    def _refuse_outside(self, degrees: FloatArray, slack: float = 0.0) -> None:
        assert self.region is not None
        r = self.region
        box = Box(r.x_low - slack, r.y_low - slack, r.x_high + slack, r.y_high + slack)
        outside = int((~box.contains_degrees(degrees)).sum())
        if outside:
            raise InvalidInput(
                f"places must lie in the declared region; {outside} of {len(degrees)} do not"
                " (or are not finite): declare a larger region, or are latitude and longitude"
                " swapped?"
            )

    def _transformer(self) -> Transformer:
        if self.crs is None:
            raise InvalidInput(
                "this plane has no coordinate system, so degrees have no place in it;"
                " declare one with Plane.projected('EPSG:...', region) or use GlobeLaplace"
            )
        return _transformer(self.crs)


@lru_cache(maxsize=32)
def _transformer(crs: str) -> Transformer:
    """Degrees to plane.  A missing datum grid is an error, not a silent detour."""
    from pyproj import CRS, Transformer
    from pyproj.exceptions import CRSError

    try:
        target = CRS.from_user_input(crs)
    except CRSError:
        raise InvalidInput(
            "crs must be a projected coordinate system in metres that PROJ knows, such as"
            f" 'EPSG:2154'; got {crs!r}"
        ) from None
    units = {axis.unit_name for axis in target.axis_info}
    if not target.is_projected or not units <= {"metre", "meter"}:
        raise InvalidInput(
            f"crs must be projected, with axes in metres, such as 'EPSG:2154'; got {crs!r}"
        )
    return Transformer.from_crs(
        "OGC:CRS84", target, always_xy=True, only_best=True, allow_ballpark=False
    )


@lru_cache(maxsize=32)
def _largest_scale(crs: str, region: Box) -> float:
    """Largest stretching over the region, with the discretisation's error added.

    The geodesic between two places of the box may bulge towards a pole, at most
    to atan(tan φ / cos(width/2)); the box is widened by that.  The maximum over a grid
    is then raised by four times what doubling the grid changed.  Derivatives do not see
    a tear (a projection's edge inside the box), so neighbouring nodes must also stay
    within the scale of each other.
    """
    if region.width > _WIDEST_REGION_DEGREES or max(-region.y_low, region.y_high) >= 89:
        raise InvalidInput(
            f"a plane's region must be at most {_WIDEST_REGION_DEGREES:g} degrees wide and within"
            " 89 degrees of latitude; for more of the Earth use GlobeLaplace"
        )
    half = math.radians(region.width / 2)
    south, north = (
        math.degrees(math.atan(math.tan(math.radians(lat)) / math.cos(half)))
        for lat in (region.y_low, region.y_high)
    )
    south, north = min(south, region.y_low) - 1e-3, max(north, region.y_high) + 1e-3

    def grid(count: int) -> tuple[FloatArray, FloatArray]:
        columns, rows = (
            np.linspace(region.x_low, region.x_high, count),
            np.linspace(south, north, count),
        )
        lon, lat = np.meshgrid(columns, rows)
        return lon, lat

    coarse, fine = (
        float(_stretch(crs, *(axis.ravel() for axis in grid(count))).max())
        for count in (_GRID + 1, 2 * _GRID + 1)
    )
    scale = fine + 4 * abs(fine - coarse) + 1e-7
    if not scale <= _WORST_SCALE or _is_torn(crs, *grid(2 * _GRID + 1), scale):
        raise InvalidInput(
            f"the projection {crs!r} does not cover the declared region in one piece (it has an"
            " edge there, or stretches it beyond use): declare a smaller region, choose another"
            " projection, or use GlobeLaplace"
        )
    return scale


def _is_torn(crs: str, lon: FloatArray, lat: FloatArray, scale: float) -> bool:
    """Whether two neighbours of a grid are farther apart on the plane than `scale` allows."""
    from pyproj import Geod

    x, y = (np.asarray(axis) for axis in _transformer(crs).transform(lon, lat))
    geod = Geod(ellps="WGS84")
    for a, b in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])):
        true = geod.inv(lon[a].ravel(), lat[a].ravel(), lon[b].ravel(), lat[b].ravel())[2]
        if not (np.hypot(x[a] - x[b], y[a] - y[b]).ravel() <= scale * true).all():
            return True
    return False


def _stretch(crs: str, lon: FloatArray, lat: FloatArray) -> FloatArray:
    """The largest factor by which the projection stretches any direction at each place.

    It is the larger singular value of the projection's derivative (by central
    differences) between WGS84 metres and the plane's.  PROJ's own factors will not do:
    for Web Mercator they are relative to a sphere, and up to 0.7% too small.
    """
    transform, step = _transformer(crs).transform, 1e-4
    sides = [
        transform(lon + dx, lat + dy)
        for dx, dy in np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]) * step
    ]
    (xe, ye), (xw, yw), (xn, yn), (xs, ys) = (np.asarray(side) for side in sides)
    sine = np.sin(np.radians(lat))
    flat = 1 - WGS84_E2 * sine**2
    metres_east = np.radians(2 * step) * np.cos(np.radians(lat)) * WGS84_A / np.sqrt(flat)
    metres_north = np.radians(2 * step) * WGS84_A * (1 - WGS84_E2) / flat**1.5
    a, c = (xe - xw) / metres_east, (ye - yw) / metres_east
    b, d = (xn - xs) / metres_north, (yn - ys) / metres_north
    # Singular values of [[a, b], [c, d]]: half of hypot(a + d, b - c) plus hypot(a - d, b + c).
    return np.asarray((np.hypot(a + d, b - c) + np.hypot(a - d, b + c)) / 2)
