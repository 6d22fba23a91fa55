"""What the kinds of files hold: which are tables, where locations stand in them and leave."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from whereish.errors import InvalidInput
from whereish.publish.formats.tables import GEOMETRY_ONLY, KINDS, TEXT
from whereish.publish.rows.locations import XY, GeometryColumn, Location, LonLat

__all__ = ["default_geometry", "leaving_as", "tables_in"]


def tables_in(source: Path) -> list[Path]:
    """The file itself, or the tables of a folder in the order of their names."""
    if not source.is_dir():
        return [source]
    files = [
        path
        for path in sorted(source.rglob("*"))
        if path.is_file()
        and not any(part.startswith(("_", ".")) for part in path.relative_to(source).parts)
    ]
    tables = [path for path in files if not path.name.endswith(".whereish.json")]
    strange = [path.name for path in tables if path.suffix not in KINDS]
    if strange:
        raise InvalidInput(
            f"the folder {source.name} has {len(strange)} files that are no tables, such as"
            f" {strange[0]}: they must end in one of {', '.join(KINDS)}"
        )
    if not tables:
        raise InvalidInput(f"the folder {source.name} has no tables in it")
    return tables


def default_geometry(path: Path) -> str | None:
    """The geometry that a file has by its kind, where the plan names no location."""
    if path.suffix in GEOMETRY_ONLY:
        return "geometry"
    if KINDS.get(path.suffix) != "parquet":
        return None
    from pyarrow import parquet

    with contextlib.suppress(OSError, pa.ArrowException, KeyError, ValueError, TypeError):
        metadata = parquet.read_schema(path).metadata or {}
        return str(json.loads(metadata[b"geo"])["primary_column"])
    return None


def leaving_as(locations: Sequence[Location], suffix: str) -> list[Location]:
    """The columns in which reports leave, by the kind of the output."""
    leaving: list[Location] = []
    for index, at in enumerate(locations):
        first = index == 0
        if suffix in (*GEOMETRY_ONLY, ".geoparquet") and isinstance(at, XY):
            raise InvalidInput(
                f"an output {suffix} has WGS84 geometries, and the locations are a plane's metres:"
                " write .parquet or .csv"
            )
        if suffix in TEXT and isinstance(at, GeometryColumn):
            names = ("lon", "lat") if first else (f"{at.name}_lon", f"{at.name}_lat")
            leaving.append(LonLat(*names))
        elif suffix in (*GEOMETRY_ONLY, ".geoparquet") and first and isinstance(at, LonLat):
            leaving.append(GeometryColumn())
        elif suffix in GEOMETRY_ONLY and not first and isinstance(at, GeometryColumn):
            leaving.append(LonLat(f"{at.name}_lon", f"{at.name}_lat"))
        else:
            leaving.append(at)
    return leaving
