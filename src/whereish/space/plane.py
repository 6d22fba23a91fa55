"""The plane: metres in a declared projection over a declared region.

A projection stretches.  If no direction at any place of the region is stretched
by more than k, then the distance of two images is at most k times the geodesic
distance, since the image of the geodesic is a path between them.  A planar
mechanism that is private at eps/k on the plane is private at eps in true metres.

That needs one continuous function for the whole region: one coordinate operation is pinned
(:mod:`whereish.space.projection.operation`), and k is proven for it where there is a closed form
(:mod:`whereish.space.projection.stretch`).  So is the smallest factor, which tells how far
reports are in true metres (:mod:`whereish.space.projection.contraction`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, shortened
from whereish.space.box import Box
from whereish.space.points import Points, stacked_degrees
from whereish.space.projection.operation import Operation, available_operations, operation_for
from whereish.space.sphere import FARTHEST_M
from whereish.units import Length

if TYPE_CHECKING:
    from pyproj import Transformer

    from whereish.space.projection.contraction import Contraction
    from whereish.space.projection.stretch import Stretch

__all__ = ["Plane"]


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
    shift
        The name of the datum operation, "OSGB36 to WGS 84 (6)", where PROJ's best one is
        not wanted or not installed.

    :meth:`metres`, :meth:`projected` and :meth:`around` say the same in words; :meth:`over`
    proposes a plane.

    Examples
    --------
    >>> import whereish as wh
    >>> plane = wh.Plane.projected("EPSG:2154", wh.Box(2.2, 48.8, 2.5, 48.9))
    >>> plane.from_degrees([2.35], [48.85]).coordinates.round(-3).tolist()
    [[652000.0, 6861000.0]]
    >>> round(plane.scale, 3)
    1.0
    """

    crs: str | None = None
    region: Box | None = None
    shift: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if (self.crs is None) != (self.region is None):
            raise InvalidInput("a plane must have both a crs and a region, or neither")
        if self.shift is not None:
            if self.crs is None or self.region is None:
                raise InvalidInput("a plane without a crs has no datum shift")
            # One name for one plane: none for the best operation.
            named = operation_for(self.crs, self.region, self.shift)
            best = available_operations(self.crs, self.region)
            usual = best.best_installed and named == best.operations[0]
            object.__setattr__(self, "shift", None if usual else named.name)
        _ = self.scale  # refuses what cannot be projected

    @property
    def scale(self) -> float:
        """The largest factor by which the projection stretches over the region."""
        return 1.0 if self.crs is None else self._stretch.factor

    @property
    def proven(self) -> bool:
        """Whether `scale` is proven; otherwise it is estimated from samples."""
        return self.crs is None or self._stretch.proven

    def contraction(self, reach: float, at: tuple[float, float] | None = None) -> Contraction:
        """The smallest factor within `reach` true metres of the region, or of the place `at`.

        `at` has the plane's coordinates.  The reach is rounded up to a quarter of an octave, so
        that the same few are proven again and again.  Like `scale` it is proven or estimated.
        """
        from whereish.space.projection.contraction import (
            Contraction,
            contraction_at,
            contraction_of,
        )
        from whereish.space.projection.stretch import SLACK_DEGREES

        if self.crs is None or self.region is None:
            return Contraction(1.0, math.inf, 0.0)
        further = 2.0 ** (math.ceil(4 * math.log2(max(reach, 1.0))) / 4)
        if at is None:
            return contraction_of(self.crs, self.region, self.shift, further)
        place = np.array([at], dtype=np.float64)
        self.check_region(place)
        lon, lat = (float(axis[0]) for axis in _inverse(self._transformer(), *place.T))
        tiny = SLACK_DEGREES
        part = Box(lon - tiny, lat - tiny, lon + tiny, lat + tiny)
        return contraction_at(self.crs, self.region, self.shift, part, further)

    def true_distance(self, metres: float, at: tuple[float, float] | None = None) -> float:
        """True metres from a place of the region to a report within `metres` on the plane, at most.

        Half a meridian where no factor is known so far around the region.
        """
        if self.crs is None:
            return metres
        found = self.contraction(metres, at)
        while found.factor > 0:
            if (true := metres / found.factor) <= found.reach_m:
                return min(true + found.return_m, FARTHEST_M)
            found = self.contraction(true, at)
        return FARTHEST_M

    def plane_distance(self, true: float, at: tuple[float, float] | None = None) -> float:
        """Metres on the plane such that reports within them are within `true` metres of it.

        The reverse of :meth:`true_distance`; infinite from half a meridian on.
        """
        if self.crs is None:
            return true
        if true >= FARTHEST_M:
            return math.inf
        known = self.contraction(true, at)
        return max((true - known.return_m) * known.factor, 0.0) if known.factor > 0 else 0.0

    @property
    def operation(self) -> Operation | None:
        """The one coordinate operation from WGS84 that all places take."""
        if self.crs is None or self.region is None:
            return None
        return operation_for(self.crs, self.region, self.shift)

    @property
    def _stretch(self) -> Stretch:
        from whereish.space.projection.stretch import NO_STRETCH, stretch_of

        if self.crs is None or self.region is None:
            return NO_STRETCH
        return stretch_of(self.crs, self.region, self.shift)

    @classmethod
    def metres(cls) -> Plane:
        """The plane whose coordinates are true metres."""
        return cls()

    @classmethod
    def projected(cls, crs: str, region: Box, *, shift: str | None = None) -> Plane:
        """A projected coordinate system over `region` (degrees)."""
        return cls(crs, region, shift=shift)

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

    @classmethod
    def over(cls, region: Box) -> Plane:
        """A plane that suits a public region (degrees): its UTM zone, or one made for it.

        UTM is taken where it stretches no place by more than 0.1%, as it does within its zone; a
        Lambert azimuthal equal-area projection about the middle of the region otherwise.  Both
        have proven factors.

        >>> import whereish as wh
        >>> wh.Plane.over(wh.Box(-75.5, 39.7, -74.8, 40.2)).crs
        'EPSG:32618'
        >>> wh.Plane.over(wh.Box(-10, 36, 3, 44)).crs
        '+proj=laea +lat_0=40.0 +lon_0=-3.5 +datum=WGS84 +units=m'
        """
        from whereish.space.projection.stretch import UTM_SCALE

        lon = math.remainder((region.x_low + region.x_high) / 2, 360.0)
        lat = (region.y_low + region.y_high) / 2
        if region.y_low >= -80 and region.y_high <= 84 and region.width <= 10:
            zone = min(int((lon + 180) // 6) + 1, 60)
            utm = cls.projected(f"EPSG:{(32600 if lat >= 0 else 32700) + zone}", region)
            if utm.scale <= UTM_SCALE:
                return utm
        return cls.projected(
            f"+proj=laea +lat_0={lat!r} +lon_0={lon!r} +datum=WGS84 +units=m", region
        )

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
        x, y = transformer.transform(degrees[:, 0], degrees[:, 1])
        return Points(np.column_stack([x, y]), self)

    def to_degrees(self, points: Points) -> tuple[FloatArray, FloatArray]:
        """Longitudes and latitudes of points of this plane.

        A report may lie where the projection has no place.  It is moved towards the
        middle of the region, to the last point found that is a place: a function of the
        report alone, so the promise stands, and nothing is ever drawn again.
        """
        transformer = self._transformer()
        x, y = points.coordinates[:, 0], points.coordinates[:, 1]
        lon, lat = _inverse(transformer, x, y)
        nowhere = np.isnan(lon)
        if nowhere.any():
            lon[nowhere], lat[nowhere] = self._moved_in(transformer, x[nowhere], y[nowhere])
        return lon, lat

    def _moved_in(
        self, transformer: Transformer, x: FloatArray, y: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bisection between the middle of the region, which is a place, and each point."""
        assert self.region is not None
        r = self.region
        middle_x, middle_y = transformer.transform(
            (r.x_low + r.x_high) / 2, (r.y_low + r.y_high) / 2
        )
        inside, outside = np.zeros_like(x), np.ones_like(x)
        best = _inverse(transformer, np.full_like(x, middle_x), np.full_like(y, middle_y))
        for _ in range(60):
            part = (inside + outside) / 2
            found = _inverse(
                transformer, middle_x + part * (x - middle_x), middle_y + part * (y - middle_y)
            )
            place = ~np.isnan(found[0])
            inside, outside = np.where(place, part, inside), np.where(place, outside, part)
            best = np.where(place, found[0], best[0]), np.where(place, found[1], best[1])
        return best

    def check_region(self, coordinates: FloatArray) -> None:
        """Raise `InvalidInput` unless all rows lie in the declared region.

        Beyond it the scale says nothing, so no secret may be there.
        """
        if self.crs is not None:
            from whereish.space.projection.stretch import SLACK_DEGREES

            degrees = _inverse(self._transformer(), coordinates[:, 0], coordinates[:, 1])
            self._refuse_outside(np.column_stack(degrees), slack=SLACK_DEGREES)

    def in_region(self, coordinates: FloatArray) -> NDArray[np.bool_]:
        """Which rows lie in the declared region; all of them where none is declared."""
        if self.crs is None or self.region is None:
            return np.ones(len(coordinates), np.bool_)
        degrees = _inverse(self._transformer(), coordinates[:, 0], coordinates[:, 1])
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
        operation = self.operation
        if operation is None:
            raise InvalidInput(
                "this plane has no coordinate system, so degrees have no place in it;"
                " declare one with Plane.projected('EPSG:...', region) or use GlobeLaplace"
            )
        return operation.transformer()

    def to_json(self) -> dict[str, Any]:
        """A plain description, with the operation that was used."""
        said: dict[str, Any] = {
            "crs": self.crs,
            "region": None if self.region is None else list(self.region.bounds),
        }
        if (used := self.operation) is not None:
            said["operation"] = {"name": used.name, "accuracy_m": used.accuracy_m}
        return said

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plane:
        """The plane that :meth:`to_json` described; refused where its operation is missing.

        Descriptions of earlier versions name no operation: theirs is the first that is
        installed.
        """
        region = None if data["region"] is None else Box(*data["region"])
        if data["crs"] is None or region is None:
            return cls(data["crs"], region)
        said = data.get("operation")
        if said is not None:
            return cls(data["crs"], region, shift=str(said["name"]))
        found = available_operations(data["crs"], region)
        lesser = not found.best_installed and found.operations
        return cls(data["crs"], region, shift=found.operations[0].name if lesser else None)

    def __repr__(self) -> str:
        shift = "" if self.shift is None else f", shift={self.shift!r}"
        crs = self.crs if self.crs is None else shortened(self.crs)
        return f"Plane(crs={crs!r}, region={self.region!r}{shift})"


def _inverse(
    transformer: Transformer, x: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Degrees of points of a plane; NaN where they are no place on Earth."""
    lon, lat = (np.array(axis) for axis in transformer.transform(x, y, direction="INVERSE"))
    nowhere = ~(np.isfinite(lon) & (np.abs(lat) <= 90.0))
    lon[nowhere] = lat[nowhere] = np.nan
    return lon, lat
