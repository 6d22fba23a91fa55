"""What a source of places is, and the box of degrees around a report.

A source is asked with a report, never with a secret: whatever it is told may be kept by somebody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.space.sphere import RADIUS_M

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Bounds", "Places", "Source", "boxes_around", "checked_query", "within_sphere"]

Bounds: TypeAlias = tuple[float, float, float, float]
"""West, south, east, north in degrees, west <= east."""

_PAD_DEGREES = 1e-9


@dataclass(frozen=True, eq=False)
class Places:
    """What a source gave: a column of values for each name, `lon` and `lat` among them.

    `complete` is False where the source may have left out places that were asked for; `bytes`
    is what came over a network.
    """

    columns: Mapping[str, Sequence[Any] | FloatArray] = field(repr=False)
    complete: bool = True
    bytes: int = 0

    def __len__(self) -> int:
        return len(self.columns["lon"])

    @cached_property
    def coordinates(self) -> FloatArray:
        """(n, 2) longitudes and latitudes."""
        pair = [np.asarray(self.columns[name], dtype=np.float64) for name in ("lon", "lat")]
        return np.column_stack(pair)

    def row(self, index: int) -> dict[str, Any]:
        """One place."""
        row = {name: values[index] for name, values in self.columns.items()}
        return {**row, "lon": float(row["lon"]), "lat": float(row["lat"])}

    def to_arrow(self) -> pa.Table:
        """As an Arrow table."""
        import pyarrow as pa

        return pa.table({name: list(values) for name, values in self.columns.items()})


@runtime_checkable
class Source(Protocol):
    """Gives the places around a report."""

    def around(self, lon: float, lat: float, radius_m: float) -> Places:
        """Every place within `radius_m` true metres, and perhaps some beyond."""


def checked_query(lon: float, lat: float, radius_m: float) -> tuple[float, float, float]:
    """Longitude in [-180, 180), latitude and radius, if they are numbers that can be meant."""
    if not (math.isfinite(lon) and abs(lon) <= 360 and math.isfinite(lat) and abs(lat) <= 90):
        raise InvalidInput("a source must be asked with a longitude and a latitude in degrees")
    if not (math.isfinite(radius_m) and radius_m > 0):
        raise InvalidInput(f"a source's radius must be a finite number > 0; got {radius_m!r}")
    return (lon + 180.0) % 360.0 - 180.0, lat, radius_m


def boxes_around(lon: float, lat: float, radius_m: float) -> list[Bounds]:
    """Boxes that hold every place within `radius_m` true metres: two across the antimeridian.

    They are those of the sphere below WGS84, where no distance is longer.  A circle of angle t
    about latitude phi reaches the longitudes asin(sin t / cos phi) away; one around a pole all.
    """
    angle = math.degrees(radius_m / RADIUS_M) + _PAD_DEGREES
    south, north = max(lat - angle, -90.0), min(lat + angle, 90.0)
    if south <= -90.0 or north >= 90.0:
        return [(-180.0, south, 180.0, north)]
    share = math.sin(math.radians(angle)) / math.cos(math.radians(lat))
    wide = math.degrees(math.asin(min(share, 1.0))) + _PAD_DEGREES
    west, east = lon - wide, lon + wide
    if west < -180.0:
        return [(west + 360.0, south, 180.0, north), (-180.0, south, east, north)]
    if east > 180.0:
        return [(west, south, 180.0, north), (-180.0, south, east - 360.0, north)]
    return [(west, south, east, north)]


def within_sphere(
    coordinates: FloatArray, lon: float, lat: float, radius_m: float
) -> NDArray[np.bool_]:
    """Which places are within the radius on the sphere below WGS84: all that truly are."""
    phi, lam = np.radians(coordinates[:, 1]), np.radians(coordinates[:, 0] - lon)
    here = math.radians(lat)
    half = np.sin((phi - here) / 2) ** 2 + math.cos(here) * np.cos(phi) * np.sin(lam / 2) ** 2
    reach = math.sin(min(radius_m / RADIUS_M, math.pi) / 2) ** 2
    return np.asarray(half <= reach * (1 + 1e-9) + 1e-30)
