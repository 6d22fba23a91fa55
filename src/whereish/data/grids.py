"""Privacy maps from polygons: zones with levels, census tracts with densities.

Rows run from south to north.  Grids in files are read by :mod:`whereish.data.rasters`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.data.rasters import Grid, read_grid
from whereish.data.warp import check_sampling, finer_rows
from whereish.errors import InvalidInput, MissingExtra
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.space.box import Box
from whereish.space.plane import Plane
from whereish.space.points import plain_numbers
from whereish.space.raster import Raster
from whereish.units import Epsilon, whole

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

__all__ = [
    "Grid",
    "check_sampling",
    "map_from_zones",
    "read_grid",
    "read_tracts",
    "tract_region",
    "tract_values",
]

_ERROR = "mean_error"
_BLOCK = 2**18
"""Places looked up at once, which bounds the memory."""


def map_from_zones(
    zones: str | Path | dict[str, Any],
    raster: Raster,
    *,
    default: Epsilon | str,
    property_name: str = "epsilon",
    of_error: Callable[[str], Epsilon] | None = None,
) -> PrivacyMap:
    """Levels per zone: "tight around home and the clinic", `default` elsewhere.

    `zones` is GeoJSON, each (multi)polygon with a property like ``"epsilon": "0.5/km"``; or
    ``"mean_error": "300 m"``, if `of_error` says which level has such an error.
    Coordinates are degrees if the raster's plane has a coordinate system, and metres of
    the plane otherwise.  Where zones overlap, the tightest level counts.
    """
    check_sampling(raster)
    default_level = Epsilon.of(default).per_m
    features = _features(zones)
    levels = np.full(len(raster), np.inf)
    centres = raster.centres()
    for index, feature in enumerate(features):
        level = _zone_level(feature, index, property_name, of_error)
        inside = _zone(feature, index, centres, raster.plane)
        if not inside.any():
            # It would be lost, and with it the protection that it asks for.
            raise InvalidInput(
                f"zone {index} must hold the centre of at least one cell of the map; it holds none:"
                " make the cells smaller, or is the region another one (longitude and latitude"
                " swapped)?"
            )
        levels[inside] = np.minimum(levels[inside], level)
    levels[np.isinf(levels)] = default_level
    return PrivacyMap(levels.reshape(raster.shape), raster.cell, raster.origin, raster.plane)


def _features(zones: str | Path | dict[str, Any]) -> list[dict[str, Any]]:
    try:
        data = zones if isinstance(zones, dict) else json.loads(Path(zones).read_text("utf-8"))
        features = data["features"] if data["type"] == "FeatureCollection" else None
    except (OSError, ValueError, LookupError, TypeError):
        features = None
    if not isinstance(features, list) or not features:
        raise InvalidInput("zones must be a GeoJSON FeatureCollection with at least one zone")
    return features


def _zone(
    feature: dict[str, Any], index: int, centres: FloatArray, plane: Plane
) -> NDArray[np.bool_]:
    """Which centres a zone holds."""
    shape: Any = feature.get("geometry")
    kind = shape.get("type") if isinstance(shape, dict) else None
    if kind not in ("Polygon", "MultiPolygon"):
        raise InvalidInput(f"zone {index} must be a Polygon or MultiPolygon; got {kind!r}")
    coordinates = shape.get("coordinates")
    inside = np.zeros(len(centres), np.bool_)
    for rings in [coordinates] if kind == "Polygon" else _list(coordinates, index):
        polygon = np.zeros(len(centres), np.bool_)
        for ring in _list(rings, index):
            # Even-odd rule: a hole is inside twice.
            polygon ^= _inside(centres, _in_plane(_ring(ring, index), plane, index))
        inside |= polygon
    return inside


def _zone_level(
    feature: Any, index: int, name: str, of_error: Callable[[str], Epsilon] | None
) -> float:
    """The level per metre that a zone states, itself or by its mean error."""
    if not isinstance(feature, dict):
        raise InvalidInput(f"zone {index} must be a GeoJSON Feature")
    own = feature.get("properties")
    readers = {name: Epsilon.of} if of_error is None else {name: Epsilon.of, _ERROR: of_error}
    said = {key: own[key] for key in readers if isinstance(own, dict) and own.get(key) is not None}
    if len(said) != 1 or not all(isinstance(text, str) for text in said.values()):
        other = "" if of_error is None else f", or {_ERROR!r} such as '300 m' (one of them)"
        raise InvalidInput(f"zone {index} must have a property {name!r} such as '0.5/km'{other}")
    ((key, text),) = said.items()
    try:
        return readers[key](text).per_m
    except InvalidInput as error:
        raise InvalidInput(f"zone {index}: {error}") from None


def _list(value: Any, index: int) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(f"zone {index} must have coordinates as GeoJSON has them")
    return value


def _ring(ring: Any, index: int) -> FloatArray:
    corners = plain_numbers(ring, f"the corners of zone {index}")
    if corners.ndim != 2 or corners.shape[1] < 2 or len(corners) < 4:
        raise InvalidInput(f"the rings of zone {index} must have at least four positions each")
    return corners[:, :2]


def _in_plane(ring: FloatArray, plane: Plane, index: int) -> FloatArray:
    if plane.crs is None:
        return ring
    try:
        return plane.from_degrees(ring[:, 0], ring[:, 1]).coordinates
    except InvalidInput as error:
        raise InvalidInput(f"zone {index}: {error}") from None


def _inside(points: FloatArray, ring: FloatArray) -> NDArray[np.bool_]:
    """Which points a ring winds around, by crossings of a ray to the east."""
    inside = np.zeros(len(points), np.bool_)
    x, y = points[:, 0], points[:, 1]
    for (x1, y1), (x2, y2) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        if y1 == y2:
            continue
        crosses = ((y1 > y) != (y2 > y)) & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
        inside ^= crosses
    return inside


def tract_values(
    tracts: GeoDataFrame | str | Path, raster: Raster, *, column: str, supersample: int = 3
) -> FloatArray:
    """Values of tract polygons on a raster, averaged over points inside each cell.

    `tracts` is a GeoDataFrame or a file (:func:`read_tracts`); places outside all tracts count 0.
    Needs the `geo` extra.
    """
    try:
        import shapely
    except ImportError:
        raise MissingExtra("shapely", "geo") from None
    factor = whole(supersample, "supersample")
    if factor < 1:
        raise InvalidInput(f"supersample must be at least 1; got {factor}")
    check_sampling(raster, factor)
    frame = read_tracts(tracts) if isinstance(tracts, str | Path) else tracts
    if column not in frame.columns:
        raise InvalidInput(f"the tracts have no column {column!r}; got {', '.join(frame.columns)}")
    numbers = _densities(frame[column])
    frame = _on_plane(frame, raster.plane)
    tree = shapely.STRtree(frame.geometry.values)
    values, met = np.zeros(raster.shape), False
    block = max(1, _BLOCK // (raster.columns * factor**2))
    for first in range(0, raster.rows, block):
        rows = min(block, raster.rows - first)
        fine = finer_rows(raster, first, rows, factor)
        which, tract = tree.query(shapely.points(fine.centres()), predicate="intersects")
        sampled = np.zeros(len(fine))
        sampled[which] = numbers[tract]
        cut = sampled.reshape(rows, factor, raster.columns, factor)
        values[first : first + rows] = cut.mean(axis=(1, 3))
        met |= which.size > 0
    if not met:
        raise InvalidInput(
            "no tract lies on the map: is the region another one (longitude and latitude swapped),"
            " or are the tracts in another coordinate system than they say?"
        )
    return values


def read_tracts(path: str | Path, *, layer: str | None = None) -> GeoDataFrame:
    """Tracts from GeoParquet, or from any file that GDAL reads (.gpkg, .shp, .geojson, .fgb)."""
    try:
        import geopandas as gpd
        from pyogrio.errors import DataLayerError, DataSourceError
    except ImportError:
        raise MissingExtra("geopandas", "geo") from None
    path = Path(path)
    try:
        if path.suffix.lower() in (".parquet", ".geoparquet"):
            return gpd.read_parquet(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of several layers the first is read
            read = gpd.read_file(path, engine="pyogrio", layer=layer)
    except (OSError, ValueError, DataLayerError, DataSourceError):
        raise InvalidInput(
            f"the tracts {path.name} cannot be read as GeoParquet or by GDAL: is there no such file"
            " or layer, or is it damaged?"
        ) from None
    if not isinstance(read, gpd.GeoDataFrame):
        raise InvalidInput(f"{path.name} has no shapes: tracts are polygons, with densities")
    return read


def tract_region(tracts: GeoDataFrame) -> Box:
    """The box of degrees around tracts that state their coordinate system: a public extent."""
    if tracts.crs is None:
        raise InvalidInput("the tracts must state their coordinate system; declare a region")
    west, south, east, north = tracts.to_crs("OGC:CRS84").total_bounds
    return Box(west, south, east, north)


def _densities(series: Any) -> FloatArray:
    """The numbers of a column, 0 where they are missing; text is no number, nor is a truth."""
    kind = getattr(series.dtype, "kind", "O")
    if kind not in "iuf":
        raise InvalidInput(
            f"the column {series.name!r} must hold numbers, the densities; got {series.dtype}: it"
            " may be one of identifiers"
        )
    values = series.to_numpy(dtype=float, na_value=np.nan)
    wrong = int((np.isinf(values) | (values < 0)).sum())
    if wrong:
        raise InvalidInput(
            f"the column {series.name!r} must hold finite densities >= 0; {wrong} of"
            f" {values.size} are not"
        )
    return np.asarray(np.nan_to_num(values))


def _on_plane(frame: Any, plane: Plane) -> Any:
    """Tracts in the plane's coordinates."""
    if plane.crs is not None:
        if frame.crs is None:
            raise InvalidInput(
                "the tracts must say their coordinate system; set it with frame.set_crs(...)"
            )
        return frame.to_crs(plane.crs)
    if frame.crs is not None and frame.crs.is_geographic:
        raise InvalidInput(
            "the tracts are in degrees, but the map is in metres without a coordinate system:"
            " declare one with Plane.projected('EPSG:...', region)"
        )
    return frame
