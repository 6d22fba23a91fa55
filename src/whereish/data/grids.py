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

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput, MissingExtra
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.space.plane import Plane
from whereish.space.points import plain_numbers
from whereish.space.raster import Raster
from whereish.units import Epsilon, number, whole, whole_number

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

__all__ = ["Grid", "check_sampling", "map_from_zones", "read_grid", "tract_values"]

_MOST_PLACES = 2**24
"""Places looked up among tracts or zones: half a minute's work."""
_BLOCK = 2**18
"""Places looked up at once, which bounds the memory."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Values on a raster, in the coordinates of a file: (rows, columns), south first."""

    values: FloatArray
    cell: tuple[float, float]
    origin: tuple[float, float]


def read_grid(path: str | Path, *, most_cells: int | None = None) -> Grid:
    """Read an ESRI ASCII grid (.asc) or a single-band GeoTIFF (.tif, `plot` extra).

    Cells without data are NaN.  A grid of more than `most_cells` is refused before it is read.
    """
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"the grid {path.name} is not a file")
    reader = {".asc": _read_ascii, ".tif": _read_tiff, ".tiff": _read_tiff}.get(path.suffix.lower())
    if reader is None:
        raise InvalidInput(f"a grid must end in .asc, .tif or .tiff; got {path.name}")
    return reader(path, most_cells)


def _check_cells(path: Path, rows: int, columns: int, most: int | None) -> None:
    if most is not None and rows * columns > most:
        raise InvalidInput(
            f"the grid {path.name} must have at most {most:,} cells; it has {rows} x {columns}:"
            " cut it to the region that matters, or make its cells larger"
        )


def _read_ascii(path: Path, most: int | None) -> Grid:
    header: dict[str, str] = {}
    try:
        with path.open(encoding="ascii") as file:
            for line in file:
                name, *rest = line.split()
                if len(rest) != 1 or not name[0].isalpha() or name.lower() == "nan":
                    break
                header[name.lower()] = rest[0]
        rows, columns = whole_number(header["nrows"]), whole_number(header["ncols"])
        _check_cells(path, rows, columns, most)
        body = np.loadtxt(path, skiprows=len(header), ndmin=2).reshape(rows, columns)
        side = number(header["cellsize"])
        half = {"corner": 0.0, "center": side / 2}
        (x_at,) = [name for name in header if name.startswith("xll")]
        (y_at,) = [name for name in header if name.startswith("yll")]
        origin = (number(header[x_at]) - half[x_at[3:]], number(header[y_at]) - half[y_at[3:]])
        values = _without(body, header.get("nodata_value"))
    except InvalidInput:
        raise
    except (KeyError, ValueError):
        raise InvalidInput(f"{path.name} is not an ESRI ASCII grid") from None
    return Grid(values[::-1].copy(), (side, side), origin)


def _without(values: NDArray[Any], nodata: str | None) -> FloatArray:
    """Doubles, NaN where the file's mark of missing data stands.

    Writers print the mark of single-precision data with more or with fewer digits than it
    has, so a value that is the mark in single precision is one too.
    """
    out = np.asarray(values, np.float64)
    if nodata is None or nodata.lower() in ("nan", "-nan", "+nan"):
        return out
    mark = number(nodata)
    with np.errstate(over="ignore"):
        missing = (out == mark) | (out.astype(np.float32) == np.float32(mark))
    return np.where(missing, np.nan, out)


_GEO_KEYS, _MODEL_TYPE, _GEOGRAPHIC = 34735, 1024, 2


def _read_tiff(path: Path, most: int | None) -> Grid:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("pillow", "plot") from None
    try:
        with Image.open(path) as image:
            _check_cells(path, image.height, image.width, most)
            tags: Any = getattr(image, "tag_v2", {})
            scale, tie, nodata = tags.get(33550), tags.get(33922), tags.get(42113)
            keys = np.asarray(tags.get(_GEO_KEYS, ()), np.int64)
            values = np.asarray(image)
    except InvalidInput:
        raise
    except (OSError, ValueError, Image.DecompressionBombError):
        raise InvalidInput(f"{path.name} cannot be read as a GeoTIFF") from None
    if values.ndim != 2 or values.dtype.kind not in "iuf" or scale is None or tie is None:
        raise InvalidInput(
            f"{path.name} must be a GeoTIFF of one band with a pixel scale and a tie point"
        )
    # After a header of four, entries of four: key, where its value is, count, value.
    if any(key == _MODEL_TYPE and value == _GEOGRAPHIC for key, _, _, value in _fours(keys)):
        raise InvalidInput(
            f"{path.name} is a grid of degrees; its cells must be in metres: warp it to a"
            " projected coordinate system first, such as with gdalwarp -t_srs EPSG:..."
        )
    width, height = float(scale[0]), float(scale[1])
    west = float(tie[3]) - float(tie[0]) * width
    north = float(tie[4]) + float(tie[1]) * height
    try:
        marked = _without(values, None if nodata is None else str(nodata).strip("\x00 "))
    except ValueError:
        raise InvalidInput(f"{path.name} has a mark of missing data that is no number") from None
    return Grid(marked[::-1].copy(), (width, height), (west, north - len(marked) * height))


def _fours(keys: IntArray) -> list[list[int]]:
    return [keys[k : k + 4].tolist() for k in range(4, keys.size - 3, 4)]


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
    check_sampling(raster)
    default_level = Epsilon.of(default).per_m
    features = _features(zones)
    levels = np.full(len(raster), np.inf)
    centres = raster.centres()
    for index, feature in enumerate(features):
        inside, level = _zone(feature, index, centres, raster.plane, property_name)
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
    feature: dict[str, Any], index: int, centres: FloatArray, plane: Plane, property_name: str
) -> tuple[NDArray[np.bool_], float]:
    """Which centres a zone holds, and its level."""
    shape: dict[str, Any] = feature.get("geometry") or {}
    if shape.get("type") not in ("Polygon", "MultiPolygon"):
        raise InvalidInput(
            f"zone {index} must be a Polygon or MultiPolygon; got {shape.get('type')!r}"
        )
    text = (feature.get("properties") or {}).get(property_name)
    if not isinstance(text, str):
        raise InvalidInput(f"zone {index} must have a property {property_name!r} such as '0.5/km'")
    level = Epsilon.of(text).per_m
    coordinates: list[Any] = shape["coordinates"]
    inside = np.zeros(len(centres), np.bool_)
    for rings in [coordinates] if shape["type"] == "Polygon" else coordinates:
        polygon = np.zeros(len(centres), np.bool_)
        for ring in rings:
            # Even-odd rule: a hole is inside twice.
            polygon ^= _inside(centres, _in_plane(_ring(ring, index), plane))
        inside |= polygon
    return inside, level


def _ring(ring: Any, index: int) -> FloatArray:
    corners = plain_numbers(ring, f"the corners of zone {index}")
    if corners.ndim != 2 or corners.shape[1] < 2 or len(corners) < 4:
        raise InvalidInput(f"the rings of zone {index} must have at least four positions each")
    return corners[:, :2]


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
    factor = whole(supersample, "supersample")
    if factor < 1:
        raise InvalidInput(f"supersample must be at least 1; got {factor}")
    check_sampling(raster, factor)
    frame = _read_tracts(gpd, tracts)
    if column not in frame.columns:
        raise InvalidInput(f"the tracts have no column {column!r}; got {', '.join(frame.columns)}")
    numbers = _densities(frame[column])
    frame = _on_plane(frame, raster.plane)
    tree = shapely.STRtree(frame.geometry.values)
    values, met = np.zeros(raster.shape), False
    block = max(1, _BLOCK // (raster.columns * factor**2))
    for first in range(0, raster.rows, block):
        rows = min(block, raster.rows - first)
        fine = _fine(raster, first, rows, factor)
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


def check_sampling(raster: Raster, supersample: int = 1) -> None:
    """Refuse a raster of more places than can be looked up in reasonable time, before any is."""
    if len(raster) * supersample**2 > _MOST_PLACES:
        rows, columns = raster.shape
        raise InvalidInput(
            f"a map must need at most {_MOST_PLACES:,} places to look up; {rows} x {columns} cells"
            f" with {supersample} x {supersample} each need more: make the cells larger, or the"
            " region smaller"
        )


def _fine(raster: Raster, first: int, rows: int, factor: int) -> Raster:
    """Some rows of a raster, every cell cut into `factor` x `factor`."""
    (width, height), (x, y) = raster.cell, raster.origin
    return Raster(
        rows * factor,
        raster.columns * factor,
        (width / factor, height / factor),
        (x, y + first * height),
        raster.plane,
    )


def _read_tracts(gpd: Any, tracts: Any) -> Any:
    if not isinstance(tracts, str | Path):
        return tracts
    try:
        return gpd.read_parquet(tracts)
    except (OSError, ValueError):
        raise InvalidInput(
            f"the tracts {Path(tracts).name} cannot be read as a GeoParquet file"
        ) from None


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
