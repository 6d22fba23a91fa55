"""Public places that reports are moved to, as the command line names them.

"h3:9" are the cells of H3 at a resolution, a file of lines is roads, and a table with the
columns lon and lat is a list of places.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whereish.errors import InvalidInput, import_extra

if TYPE_CHECKING:
    from whereish.publish.rows.public_places import PlaceMap
    from whereish.space.sites import Sites

__all__ = ["public_places"]

_H3 = re.compile(r"h3:(\d{1,2})", re.IGNORECASE)
_SHAPES = (".gpkg", ".geojson", ".fgb", ".shp", ".kml")


def public_places(text: str) -> PlaceMap | Sites:
    """The places that reports move to."""
    from whereish.publish.formats.registry import ending_of
    from whereish.publish.rows.public_places import H3Cells

    match = _H3.fullmatch(text)
    if match:
        return H3Cells(int(match[1]))
    if text.lower().startswith("h3"):
        raise InvalidInput("--remap to H3 cells is written h3:RESOLUTION, such as h3:9")
    path = Path(text)
    return _roads(path) if ending_of(path) in _SHAPES and _has_lines(path) else _sites(path)


def _has_lines(path: Path) -> bool:
    if not path.is_file():
        raise InvalidInput(f"the places of --remap, {path.name}, are not a file")
    pyogrio = import_extra("pyogrio", "geo")
    try:
        return "LineString" in str(pyogrio.read_info(path)["geometry_type"])
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError):
        raise InvalidInput(
            f"the places of --remap, {path.name}, cannot be read: are they damaged?"
        ) from None


def _roads(path: Path) -> Any:
    """Lines of a file, which must be in WGS84 degrees; closeness is counted at their middle."""
    import numpy as np

    from whereish.publish.formats.crs import require_degrees
    from whereish.publish.rows.public_places import Roads

    pyogrio, shapely = import_extra("pyogrio", "geo"), import_extra("shapely", "geo")
    meta, _, geometries, _ = pyogrio.raw.read(path, columns=[])
    require_degrees(meta["crs"], f"the roads {path.name}")
    lines = shapely.from_wkb(geometries)
    latitudes = shapely.get_coordinates(lines)[:, 1]
    return Roads(lines, float(np.median(latitudes)))


def _sites(path: Path) -> Sites:
    """The public places of a table."""
    import numpy as np

    from whereish.publish.formats.registry import format_of
    from whereish.publish.formats.tables import Wanted, open_table
    from whereish.publish.rows.locations import GeometryColumn, LonLat
    from whereish.space.points import Points
    from whereish.space.sites import Sites
    from whereish.space.sphere import Sphere

    at: LonLat | GeometryColumn = LonLat("lon", "lat")
    wanted = Wanted(at.columns, at.columns)
    if format_of(path, f"the input {path.name}").geometry == "only":
        at = GeometryColumn()
        wanted = Wanted(at.columns, (), at.columns)
    with open_table(path, wanted) as table:
        places = [at.read(batch) for batch in table.batches]
    return Sites(Points(np.concatenate([np.empty((0, 2)), *places]), Sphere()))
