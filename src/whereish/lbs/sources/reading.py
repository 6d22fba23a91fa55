"""Places from a file or a frame, through the readers that releases use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.publish.formats.crs import require_degrees
from whereish.publish.formats.frames import opened_frame
from whereish.publish.formats.registry import format_of
from whereish.publish.formats.tables import Wanted, check_columns, open_table
from whereish.publish.rows.locations import GeometryColumn, LonLat

__all__ = ["read_places"]


def read_places(
    source: Any, *, lon: str = "lon", lat: str = "lat", keep: Sequence[str] = ()
) -> tuple[FloatArray, dict[str, Any]]:
    """Degrees (n, 2) and the kept columns, as Arrow arrays, of a file or a frame.

    A file whose format has geometries only is read by its points.  Places must be finite degrees.
    """
    if {"lon", "lat", "distance_m"} & set(keep):
        raise InvalidInput("'lon', 'lat' and 'distance_m' are names of the results' own columns")
    if isinstance(source, str | Path):
        table, degrees = _from_file(Path(source), lon, lat, keep)
    else:
        table, geometry, _ = opened_frame(source)
        check_columns("frame", table.column_names, [*keep])
        where = LonLat(lon, lat) if geometry is None else GeometryColumn(geometry)
        check_columns("frame", table.column_names, where.columns)
        degrees = np.concatenate(
            [where.read(batch) for batch in table.to_batches()] or [np.empty((0, 2))]
        )
    bad = ~(np.isfinite(degrees).all(axis=1) & (np.abs(degrees[:, 1]) <= 90))
    bad |= np.abs(degrees[:, 0]) > 360
    if bad.any():
        raise InvalidInput(
            f"places must be longitudes and latitudes in degrees; {int(bad.sum())} of"
            f" {len(degrees)} are not"
        )
    degrees[:, 0] = (degrees[:, 0] + 180.0) % 360.0 - 180.0
    return degrees, {name: table.column(name) for name in keep}


def _from_file(path: Path, lon: str, lat: str, keep: Sequence[str]) -> tuple[pa.Table, FloatArray]:
    only = format_of(path, f"the input {path.name}").geometry == "only"
    where = GeometryColumn("geometry") if only else LonLat(lon, lat)
    wanted = Wanted(
        [*where.columns, *keep],
        numbers=() if only else where.columns,
        geometries=where.columns if only else (),
    )
    batches, degrees = [], [np.empty((0, 2))]
    with open_table(path, wanted) as opened:
        if only:
            require_degrees(opened.crs, f"the input {path.name}")
        for batch in opened.batches:
            degrees.append(where.read(batch))
            batches.append(batch.select([*keep]))
        schema = pa.schema([opened.schema.field(name) for name in keep])
    return pa.Table.from_batches(batches, schema), np.concatenate(degrees)
