"""Parquet, and GeoParquet where there is a geometry (version 1.1, WKB points).

Pages are written with checksums, and checksums that an input has are verified: a bit that
flipped in a page of such a file is an error, and not another location.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from whereish.errors import InvalidInput
from whereish.publish.formats.crs import reprojected, require_degrees, to_degrees
from whereish.publish.formats.tables import BATCH_ROWS, Table, Wanted, Writing, check_columns

__all__ = ["default_geometry", "geo_metadata", "open_table", "write_table"]

_DEFAULT_CRS = "OGC:CRS84"  # what GeoParquet means where it says nothing


@contextlib.contextmanager
def open_table(path: Path, wanted: Wanted) -> Iterator[Table]:
    """Open columns of a Parquet file, batch by batch."""
    from pyarrow import parquet

    # Buffering ahead would hold whole row groups in memory.
    with parquet.ParquetFile(path, pre_buffer=False, page_checksum_verification=True) as file:
        schema = file.schema_arrow
        check_columns(path.name, schema.names, wanted.columns)
        batches = file.iter_batches(batch_size=BATCH_ROWS, columns=list(wanted.columns))
        crs, said = None, None
        for geometry in wanted.geometries:
            found, what = _declared(path.name, schema.metadata or {}, geometry)
            if not wanted.reproject:
                here = require_degrees(found, what)
                crs = crs or here
                continue
            here, moved, known = to_degrees(found, what)
            crs = crs or here
            if moved is not None:
                said = f"reprojected from {known}"
                read = pa.schema([schema.field(name) for name in wanted.columns])
                read, batches = reprojected(batches, read, geometry, moved)
                schema = schema.set(schema.get_field_index(geometry), read.field(geometry))
        yield Table(schema, batches, file.metadata.num_rows, crs, tuple(schema.names), said)


def _declared(name: str, metadata: dict[bytes, bytes], column: str) -> tuple[Any, str]:
    """The coordinate system of a geometry as the file has it, and what messages call it."""
    what = f"geometry {column!r} of {name}"
    try:
        described = json.loads(metadata[b"geo"])["columns"][column]
    except (KeyError, ValueError, TypeError):
        raise InvalidInput(
            f"{what} is not described in GeoParquet metadata, so its coordinate system is"
            " unknown: write the file as GeoParquet, or give lon and lat columns"
        ) from None
    return described.get("crs", _DEFAULT_CRS), what


def default_geometry(path: Path) -> str | None:
    """The geometry that the file calls its primary one, if it has one."""
    from pyarrow import parquet

    with contextlib.suppress(OSError, pa.ArrowException, KeyError, ValueError, TypeError):
        metadata = parquet.read_schema(path).metadata or {}
        return str(json.loads(metadata[b"geo"])["primary_column"])
    return None


def geo_metadata(geometries: Sequence[str], crs: str | None) -> bytes:
    """GeoParquet's description of columns of WKB points, without an extent."""
    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Point"]}
    if crs is not None:
        column["crs"] = json.loads(crs)
    columns = dict.fromkeys(geometries, column)
    described = {"version": "1.1.0", "primary_column": geometries[0], "columns": columns}
    return json.dumps(described).encode()


def write_table(path: Path, writing: Writing, batches: Iterator[pa.RecordBatch]) -> None:
    """Write a Parquet file with the statement, and the geometry, in its metadata."""
    from pyarrow import parquet

    metadata: dict[bytes | str, bytes | str] = {b"whereish": json.dumps(writing.statement).encode()}
    if writing.geometries:
        metadata[b"geo"] = geo_metadata(writing.geometries, writing.crs)
    schema = writing.schema.with_metadata(metadata)
    # Reports rarely repeat, so a dictionary of them only costs time; nor do most times and
    # numbers of rows, whose differences are small.
    floats = [f.name for f in schema if pa.types.is_floating(f.type)]
    whole = [f.name for f in schema if pa.types.is_integer(f.type) or _is_time(f.type)]
    others = (*floats, *whole, *writing.geometries)
    encoding = dict.fromkeys(floats, "BYTE_STREAM_SPLIT")
    encoding |= dict.fromkeys(whole, "DELTA_BINARY_PACKED")
    with parquet.ParquetWriter(
        path,
        schema,
        use_dictionary=[f.name for f in schema if f.name not in others],
        column_encoding=encoding or None,
        write_page_checksum=True,
    ) as sink:
        for batch in batches:
            sink.write_batch(batch.replace_schema_metadata(metadata))


def _is_time(kind: pa.DataType) -> bool:
    """Whether Parquet keeps a type as a whole number of ticks."""
    types = pa.types
    return bool(types.is_timestamp(kind) or types.is_date(kind) or types.is_time(kind))
