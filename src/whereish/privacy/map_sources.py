"""Privacy maps from what people have: zones, grids in files, census tracts.

Each function returns a raster of values over declared cells; :class:`PrivacyMap` turns
values into levels.  Rows run from south to north.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whereish.errors import InvalidInput, MissingExtra
from whereish.privacy.privacy_map import PrivacyMap
from whereish.space.plane import Plane
from whereish.space.points import FloatArray
from whereish.space.raster import Raster
from whereish.units import Epsilon

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

__all__ = ["Grid", "map_from_zones", "read_grid", "tract_values"]


@dataclass(frozen=True, eq=False)
class Grid:
    """Values on a raster, in the coordinates of a file: (rows, columns), south first."""

    values: FloatArray
    cell: tuple[float, float]
    origin: tuple[float, float]


def read_grid(path: str | Path) -> Grid:
    """Read an ESRI ASCII grid (.asc) or a single-band GeoTIFF (.tif, `plot` extra)."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"the grid {path.name} is not a file")
    reader = {".asc": _read_ascii, ".tif": _read_tiff, ".tiff": _read_tiff}.get(path.suffix.lower())
    if reader is None:
        raise InvalidInput(f"a grid must end in .asc, .tif or .tiff; got {path.name}")
    return reader(path)


def _read_ascii(path: Path) -> Grid:
    header: dict[str, float] = {}
    try:
        with path.open() as file:
            for line in file:
                name, *rest = line.split()
                if len(rest) != 1 or not name[0].isalpha():
                    break
                header[name.lower()] = float(rest[0])
        body = np.loadtxt(path, skiprows=len(header), ndmin=2)
        side = header["cellsize"]
        half = {"corner": 0.0, "center": side / 2}
        (x_at,) = [name for name in header if name.startswith("xll")]
        (y_at,) = [name for name in header if name.startswith("yll")]
        origin = (header[x_at] - half[x_at[3:]], header[y_at] - half[y_at[3:]])
        body = body.reshape(int(header["nrows"]), int(header["ncols"]))
    except (KeyError, ValueError, UnicodeDecodeError):
        raise InvalidInput(f"{path.name} is not an ESRI ASCII grid") from None
    values = np.where(body == header.get("nodata_value", np.nan), np.nan, body)
    return Grid(values[::-1].copy(), (side, side), origin)


def _read_tiff(path: Path) -> Grid:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("pillow", "plot") from None
    try:
        with Image.open(path) as image:
            values = np.asarray(image, np.float64)
            tags: Any = getattr(image, "tag_v2", {})
            scale, tie, nodata = tags.get(33550), tags.get(33922), tags.get(42113)
    except (OSError, ValueError):
        raise InvalidInput(f"{path.name} cannot be read as a GeoTIFF") from None
    if values.ndim != 2 or scale is None or tie is None:
        raise InvalidInput(
            f"{path.name} must be a GeoTIFF of one band with a pixel scale and a tie point"
        )
    width, height = float(scale[0]), float(scale[1])
    west = float(tie[3]) - float(tie[0]) * width
    north = float(tie[4]) + float(tie[1]) * height
    if nodata is not None:
        values = np.where(values == float(str(nodata).strip("\x00 ")), np.nan, values)
    return Grid(values[::-1].copy(), (width, height), (west, north - len(values) * height))


def map_from_zones(
    zones: str | Path | dict[str, Any],
    raster: Raster,
    *,
    default: Epsilon | str,
    property_name: str = "epsilon",
) -> PrivacyMap:
    """Levels per zone: "tight around home and the clinic", `default` elsewhere.

    `zones` is GeoJSON, each (multi)polygon with a property like ``"epsilon": "0.5/km"``.
    Coordinates are degrees if the raster's plane has a coordinate system, and metres of
    the plane otherwise.  Where zones overlap, the tightest level counts.
    """
    data = zones if isinstance(zones, dict) else json.loads(Path(zones).read_text())
    if data.get("type") != "FeatureCollection":
        raise InvalidInput("zones must be a GeoJSON FeatureCollection")
    levels = np.full(len(raster), np.inf)
    centres = raster.centres()
    for number, feature in enumerate(data["features"]):
        shape: dict[str, Any] = feature.get("geometry") or {}
        if shape.get("type") not in ("Polygon", "MultiPolygon"):
            raise InvalidInput(
                f"zone {number} must be a Polygon or MultiPolygon; got {shape.get('type')!r}"
            )
        text = (feature.get("properties") or {}).get(property_name)
        if not isinstance(text, str):
            raise InvalidInput(
                f"zone {number} must have a property {property_name!r} such as '0.5/km'"
            )
        level = Epsilon.of(text).per_m
        coordinates: list[Any] = shape["coordinates"]
        for rings in [coordinates] if shape["type"] == "Polygon" else coordinates:
            inside = np.zeros(len(raster), np.bool_)
            for ring in rings:
                # Even-odd rule: a hole is inside twice.
                inside ^= _inside(centres, _in_plane(np.asarray(ring, float)[:, :2], raster.plane))
            levels[inside] = np.minimum(levels[inside], level)
    levels[np.isinf(levels)] = Epsilon.of(default).per_m
    return PrivacyMap(levels.reshape(raster.shape), raster.cell, raster.origin, raster.plane)


def _in_plane(ring: FloatArray, plane: Plane) -> FloatArray:
    return ring if plane.crs is None else plane.from_degrees(ring[:, 0], ring[:, 1]).coordinates


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

    `tracts` is a GeoDataFrame or a GeoParquet file; places outside all tracts count 0.
    Needs the `geo` extra.
    """
    try:
        import geopandas as gpd
        import shapely
    except ImportError:
        raise MissingExtra("geopandas", "geo") from None
    frame = gpd.read_parquet(tracts) if isinstance(tracts, str | Path) else tracts
    if column not in frame.columns:
        raise InvalidInput(f"the tracts have no column {column!r}; got {', '.join(frame.columns)}")
    if raster.plane.crs is not None:
        frame = frame.to_crs(raster.plane.crs)
    fine = Raster(
        raster.rows * supersample,
        raster.columns * supersample,
        (raster.cell[0] / supersample, raster.cell[1] / supersample),
        raster.origin,
        raster.plane,
    )
    points = shapely.points(fine.centres())
    which, tract = shapely.STRtree(frame.geometry.values).query(points, predicate="intersects")
    values = np.zeros(len(fine))
    values[which] = np.nan_to_num(frame[column].to_numpy(float))[tract]
    blocks = values.reshape(raster.rows, supersample, raster.columns, supersample)
    return np.asarray(blocks.mean(axis=(1, 3)))
