"""The one coordinate system in which files bring locations: WGS84 degrees, longitude first.

The definition that an input carries may hold text of its owner (a name, remarks, a scope) and
the bounding box of an area.  It is looked at, and never passed on: outputs carry the
definition of PROJ's own database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.publish.formats.wkb import points_from_wkb, refuse_missing, wkb_from_points

__all__ = ["ToDegrees", "reprojected", "require_degrees", "to_degrees"]


def require_degrees(crs: Any, what: str) -> str:
    """The constant PROJJSON of EPSG:4326 or OGC:CRS84, whichever `crs` means; or an error.

    Nothing is reprojected in silence: a data set in another system says so itself, and
    its owner decides how to convert it (:func:`to_degrees`).
    """
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    if crs is None:
        raise InvalidInput(
            f"{what} does not say its coordinate system; declare WGS84 (EPSG:4326) if that is"
            " what it is"
        )
    try:
        given = CRS.from_user_input(crs)
    except CRSError:
        raise InvalidInput(
            f"{what} has a coordinate system that PROJ cannot read: declare WGS84 (EPSG:4326)"
        ) from None
    latitude_first, longitude_first = CRS.from_epsg(4326), CRS.from_string("OGC:CRS84")
    flat = given.to_2d() if len(given.axis_info) == 3 else given
    if flat == longitude_first:
        return str(longitude_first.to_json())
    if not flat.equals(latitude_first, ignore_axis_order=True):
        raise InvalidInput(
            f"{what} is in {_known(given)}, and must be in WGS84 degrees (EPSG:4326): ask to"
            " reproject it (reproject=True, or --reproject), or do so first, for instance with"
            " gdf.to_crs(4326)"
        )
    east = flat.axis_info[0].direction == "east"
    return str((longitude_first if east else latitude_first).to_json())


ToDegrees: TypeAlias = Callable[[FloatArray], FloatArray]
"""From (n, 2) coordinates of a file to (n, 2) WGS84 degrees, longitude first."""


def to_degrees(crs: Any, what: str) -> tuple[str, ToDegrees | None, str | None]:
    """Where geometries of `crs` leave, how they get there, and from where; None where they are.

    PROJ chooses the most accurate operation that needs no grid from elsewhere.  What it
    cannot transform comes out as infinite, and is refused by its row.
    """
    import numpy as np
    from pyproj import CRS, Transformer
    from pyproj.exceptions import CRSError

    try:
        return require_degrees(crs, what), None, None
    except InvalidInput:
        if crs is None:
            raise
    try:
        given = CRS.from_user_input(crs)
        flat = given.to_2d() if len(given.axis_info) == 3 else given
        transformer = Transformer.from_crs(flat, "OGC:CRS84", always_xy=True)
    except CRSError:
        raise InvalidInput(
            f"{what} has a coordinate system that PROJ cannot read or reach WGS84 from: reproject"
            " it first"
        ) from None

    def transformed(places: FloatArray) -> FloatArray:
        lon, lat = transformer.transform(places[:, 0], places[:, 1])
        return np.column_stack([lon, lat])

    return str(CRS.from_string("OGC:CRS84").to_json()), transformed, _known(given)


def reprojected(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, geometry: str, moved: ToDegrees
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The batches with the points of a column in degrees."""
    index = schema.get_field_index(geometry)
    new = schema.set(index, pa.field(geometry, pa.binary()))

    def move() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            refuse_missing(batch.column(geometry), geometry)
            places = moved(points_from_wkb(batch.column(geometry), geometry))
            columns = list(batch.columns)
            columns[index] = wkb_from_points(*places.T)
            yield pa.RecordBatch.from_arrays(columns, schema=new)

    return new, move()


def _known(crs: Any) -> str:
    """What PROJ's database calls a system; a name of the input's own is not repeated."""
    from pyproj import CRS

    code = crs.to_authority()
    return str(CRS.from_authority(*code).name) if code else "a system of its own"
