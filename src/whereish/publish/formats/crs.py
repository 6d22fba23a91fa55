"""The one coordinate system in which files bring locations: WGS84 degrees, longitude first.

The definition that an input carries may hold text of its owner (a name, remarks, a scope) and
the bounding box of an area.  It is looked at, and never passed on: outputs carry the
definition of PROJ's own database.
"""

from __future__ import annotations

from typing import Any

from whereish.errors import InvalidInput

__all__ = ["require_degrees"]


def require_degrees(crs: Any, what: str) -> str:
    """The constant PROJJSON of EPSG:4326 or OGC:CRS84, whichever `crs` means; or an error.

    Nothing is reprojected in silence: a data set in another system says so itself, and
    its owner decides how to convert it.
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
            f"{what} is in {_known(given)}, and must be in WGS84 degrees (EPSG:4326): reproject"
            " it first, for instance with gdf.to_crs(4326)"
        )
    east = flat.axis_info[0].direction == "east"
    return str((longitude_first if east else latitude_first).to_json())


def _known(crs: Any) -> str:
    """What PROJ's database calls a system; a name of the input's own is not repeated."""
    from pyproj import CRS

    code = crs.to_authority()
    return str(CRS.from_authority(*code).name) if code else "a system of its own"
