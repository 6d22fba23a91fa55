"""The columns of a file: their names, which of them look like places, and their rows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.publish.formats.registry import format_of
from whereish.publish.formats.tables import Wanted, hide_reader_errors, open_table
from whereish.publish.job import default_geometry
from whereish.publish.rows.locations import GeometryColumn

__all__ = ["Columns", "Found", "columns_of", "example_file", "read_rows"]

_LON = ("lon", "lng", "long", "longitude", "x", "start_lon", "pickup_longitude")
_LAT = ("lat", "latitude", "y", "start_lat", "pickup_latitude")
_SUBJECT = ("user", "user_id", "userid", "uid", "person", "person_id", "subject", "name", "id")


@dataclass(frozen=True)
class Columns:
    """Which columns are meant."""

    lon: str
    lat: str
    geometry: str
    subject: str


@dataclass(frozen=True)
class Found:
    """The columns of a file, and which look like a place or a person."""

    names: tuple[str, ...]
    geometry: str
    suffix: str

    def told(self) -> dict[str, Any]:
        """For the page."""
        small = {name.lower(): name for name in reversed(self.names)}
        guess = {
            what: next((small[name] for name in names if name in small), "")
            for what, names in (("lon", _LON), ("lat", _LAT), ("subject", _SUBJECT))
        }
        return {
            "columns": self.names,
            "geometry": self.geometry,
            "suffix": self.suffix,
            "guess": guess,
        }


def columns_of(path: Path) -> Found:
    """Names only: no value of the file is told."""
    kind = format_of(path, f"the input {path.name}")
    with hide_reader_errors(path.name, path.suffix, Wanted(())):
        names = _names(path, kind.module)
    geometry = default_geometry(path) or ""
    return Found(tuple(name for name in names if name != geometry), geometry, path.suffix)


def _names(path: Path, module: str) -> list[str]:
    if module == "delimited":
        from pyarrow import csv

        with csv.open_csv(path) as reader:
            return list(reader.schema.names)
    if module == "parquet":
        from pyarrow import parquet

        return list(parquet.read_schema(path).names)
    if module == "json_lines":
        from pyarrow import json

        with path.open("rb") as file:
            first = file.readline(1 << 20)
        return list(json.read_json(pa.BufferReader(first)).schema.names)
    try:
        import pyogrio

        layer = None
        if path.suffix == ".gpx":
            layer = next(
                (
                    name
                    for name in ("track_points", "waypoints", "route_points")
                    if pyogrio.read_info(path, layer=name, force_feature_count=True)["features"]
                ),
                None,
            )
        return [str(name) for name in pyogrio.read_info(path, layer=layer)["fields"]]
    except ImportError:
        raise InvalidInput(
            "files with geometries need pyogrio: pip install whereish[geo]"
        ) from None
    except pyogrio.errors.DataSourceError:
        raise InvalidInput(f"the input {path.name} cannot be read: is it damaged?") from None


def read_rows(path: Path, columns: Columns) -> tuple[FloatArray, IntArray | None]:
    """All places in degrees, and for each a number of its subject, if a column names them."""
    geometry = columns.geometry or ("" if columns.lon else default_geometry(path) or "")
    wanted = (geometry,) if geometry else (columns.lon, columns.lat)
    extra = (columns.subject,) if columns.subject else ()
    asked = Wanted(
        tuple(dict.fromkeys((*wanted, *extra))),
        () if geometry else (columns.lon, columns.lat),
        (geometry,) if geometry else (),
    )
    places: list[FloatArray] = []
    names: list[Any] = []
    with open_table(path, asked) as table:
        for batch in table.batches:
            if geometry:
                places.append(GeometryColumn(geometry).read(batch))
            else:
                pair = [batch.column(name).to_numpy(zero_copy_only=False) for name in wanted]
                places.append(np.column_stack(pair).astype(np.float64))
            if extra:
                names.append(batch.column(columns.subject).cast(pa.string()))
    if not places:
        raise InvalidInput("the file has no rows")
    who = None
    if names:
        codes = pa.chunked_array(names).combine_chunks().dictionary_encode()
        who = np.asarray(codes.indices.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    return np.concatenate(places), who


async def example_file() -> AsyncIterator[bytes]:
    """Commuters of a made-up city around Philadelphia's city hall: home, work, home, ..."""
    noise = np.random.default_rng(20)
    people, days = 400, 5
    homes = np.array([-75.1635, 39.9526]) + noise.normal(0, [0.09, 0.06], (people, 2))
    works = np.array([-75.1635, 39.9526]) + noise.normal(0, [0.02, 0.012], (people, 2))
    lines = ["person,day,hour,lon,lat"]
    for person in range(people):
        for day in range(1, days + 1):
            for hour, place in ((8, homes[person]), (9, works[person]), (18, homes[person])):
                lon, lat = place + noise.normal(0, 0.0004, 2)
                lines.append(f"p{person:03d},{day},{hour},{lon:.5f},{lat:.5f}")
    yield ("\n".join(lines) + "\n").encode()
