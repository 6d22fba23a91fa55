"""Where in a table a location is: two columns, or one of point geometries."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, WhereishWarning
from whereish.publish.formats.wkb import points_from_wkb, refuse_missing, wkb_from_points
from whereish.publish.rows.bad_rows import BadRows

__all__ = [
    "XY",
    "GeometryColumn",
    "Location",
    "LonLat",
    "as_locations",
    "refuse_no_places",
    "warn_of_swapped_names",
]


@dataclass(frozen=True)
class LonLat:
    """A location in a column of longitudes and one of latitudes, in degrees."""

    lon: str
    lat: str

    def __post_init__(self) -> None:
        if self.lon == self.lat:
            raise InvalidInput(f"lon and lat must be two columns; got {self.lon!r} for both")

    @property
    def columns(self) -> tuple[str, ...]:
        """Longitude first."""
        return self.lon, self.lat

    @property
    def fields(self) -> list[Any]:
        """The fields that :meth:`write` fills."""
        return [pa.field(name, pa.float64()) for name in self.columns]

    def read(self, batch: pa.RecordBatch) -> FloatArray:
        """The (n, 2) degrees of a batch."""
        return np.column_stack([_numbers(batch.column(name), name) for name in self.columns])

    def write(self, lon: FloatArray, lat: FloatArray) -> list[Any]:
        """The columns of reports."""
        return [pa.array(lon), pa.array(lat)]


@dataclass(frozen=True)
class XY(LonLat):
    """A location in two columns of a plane's own coordinates, in metres."""


@dataclass(frozen=True)
class GeometryColumn:
    """A location in a column of points: WKB, or GeoArrow's struct of x and y."""

    name: str = "geometry"

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.name,)

    @property
    def fields(self) -> list[Any]:
        """The field that :meth:`write` fills: well-known binary."""
        return [pa.field(self.name, pa.binary())]

    def read(self, batch: pa.RecordBatch) -> FloatArray:
        """The (n, 2) degrees of a batch."""
        column = batch.column(self.name)
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        refuse_missing(column, self.name)
        if pa.types.is_struct(column.type) and {"x", "y"} <= {f.name for f in column.type}:
            return np.column_stack([_numbers(column.field(axis), self.name) for axis in "xy"])
        if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
            raise InvalidInput(
                f"column {self.name!r} must hold point geometries (well-known binary or"
                f" GeoArrow points); got {column.type}"
            )
        return points_from_wkb(column, self.name)

    def write(self, lon: FloatArray, lat: FloatArray) -> list[Any]:
        """The column of reports."""
        return [wkb_from_points(lon, lat)]


Location: TypeAlias = LonLat | GeometryColumn


def as_locations(
    lon: str | None,
    lat: str | None,
    geometry: str | None,
    locations: Sequence[Location | tuple[str, str] | str] | None,
) -> tuple[Location, ...]:
    """The secret locations of a row from what a caller may say, at least one of them."""
    if (lon is None) != (lat is None):
        raise InvalidInput("lon and lat must be given together: the two columns of one location")
    for name, column in (("lon", lon), ("lat", lat), ("geometry", geometry)):
        if column is not None and not isinstance(column, str):
            raise InvalidInput(
                f"{name} must be the name of a column; got {type(column).__name__}: several secret"
                " locations are given as locations=[...]"
            )
    if isinstance(locations, str):
        raise InvalidInput(
            "locations must be a list of pairs of columns, such as [('lon', 'lat')], or of names of"
            " geometry columns; got text"
        )
    chosen: list[Location] = []
    if lon is not None and lat is not None:
        chosen.append(LonLat(lon, lat))
    if geometry is not None:
        chosen.append(GeometryColumn(geometry))
    for location in locations or ():
        if isinstance(location, LonLat | GeometryColumn):
            chosen.append(location)
        elif isinstance(location, str):
            chosen.append(GeometryColumn(location))
        elif isinstance(location, Sequence) and len(location) == 2:
            chosen.append(LonLat(*location))
        else:
            raise InvalidInput(
                "each of locations must be a pair of columns, ('lon', 'lat'), or the name of a"
                f" geometry column; got {type(location).__name__}"
            )
    names = [name for location in chosen for name in location.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"each column may belong to one location; {', '.join(twice)} has two")
    return tuple(chosen)


_LAT_NAMES = re.compile(r"lat(itude)?s?|y?lat")
_LON_NAMES = re.compile(r"lon(g|gitude)?s?|lng|x?lon")


def warn_of_swapped_names(locations: Sequence[Location]) -> None:
    """Warn where a longitude's column is named as a latitude, or the other way round.

    It looks at names alone: whether values would make sense swapped is a fact of the data.
    """
    for at in locations:
        if not isinstance(at, LonLat) or isinstance(at, XY):
            continue
        if _says(at.lon, _LAT_NAMES, _LON_NAMES) or _says(at.lat, _LON_NAMES, _LAT_NAMES):
            warnings.warn(
                f"the longitudes are read from the column {at.lon!r} and the latitudes from"
                f" {at.lat!r}: are they swapped? Declare where all places lie (bbox, or --bbox) to"
                " be sure",
                WhereishWarning,
                stacklevel=2,
            )


def _says(name: str, this: re.Pattern[str], not_this: re.Pattern[str]) -> bool:
    """Whether one of a name's words is of one kind, and none of the other."""
    words = [w.lower() for w in re.findall("[A-Z]?[a-z]+|[A-Z]+", name)]
    return any(map(this.fullmatch, words)) and not any(map(not_this.fullmatch, words))


def refuse_no_places(degrees: FloatArray, columns: Sequence[str]) -> None:
    """Refuse rows that are no place of the Earth, by their numbers; other rows stay unnamed."""
    lon, lat = degrees.T
    names = " and ".join(map(repr, columns))
    wrong = ~np.isfinite(degrees).all(axis=1)
    if wrong.any():
        raise BadRows(
            f"{names} must hold finite numbers; {int(wrong.sum())} are NaN or infinite",
            wrong,
            ": drop those rows first",
        )
    wrong = (np.abs(lat) > 90.0) | (np.abs(lon) > 360.0)
    if wrong.any():
        raise BadRows(
            f"{names} must hold degrees, latitudes within -90..90; {int(wrong.sum())} are beyond",
            wrong,
            ": are longitude and latitude swapped, or are these metres? declare where all places"
            " lie (bbox, or --bbox) to catch what is swapped within 90 degrees",
        )


def _numbers(column: Any, name: str) -> FloatArray:
    kind = column.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        raise InvalidInput(f"column {name!r} must hold numbers; got {kind}")
    refuse_missing(column, name)
    # Unsafe, since the message of a refused cast would quote the value.
    values: FloatArray = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values
