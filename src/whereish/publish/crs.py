"""The one coordinate system in which files bring locations: WGS84 degrees, longitude first."""

from __future__ import annotations

from typing import Any

from whereish.errors import InvalidInput

__all__ = ["require_degrees"]


def require_degrees(crs: Any, what: str) -> str:
    """The coordinate system as PROJJSON, if it is WGS84 in degrees; otherwise an error.

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
    wgs84 = CRS.from_epsg(4326)
    flat = given.to_2d() if len(given.axis_info) == 3 else given
    if not flat.equals(wgs84, ignore_axis_order=True) and flat != CRS.from_string("OGC:CRS84"):
        raise InvalidInput(
            f"{what} is in {given.name}, and must be in WGS84 degrees (EPSG:4326): reproject it"
            " first, for instance with gdf.to_crs(4326)"
        )
    return str(flat.to_json())
