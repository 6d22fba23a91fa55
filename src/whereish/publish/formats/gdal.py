"""What GDAL reads and writes (the `geo` extra): one driver for each format of the registry.

GDAL may end a stream early without an error, so its rows are counted against what the file
is known to hold before the stream ends.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from whereish.errors import InvalidInput, import_extra
from whereish.publish.formats.crs import ToDegrees, reprojected, require_degrees, to_degrees
from whereish.publish.formats.geojson import count_features
from whereish.publish.formats.registry import STATEMENT, format_of
from whereish.publish.formats.tables import BATCH_ROWS, Table, Wanted, Writing, check_columns

__all__ = ["open_table", "write_table"]


def _pyogrio() -> Any:
    return import_extra("pyogrio", "geo")


@contextlib.contextmanager
def open_table(
    path: Path, wanted: Wanted, counts: Mapping[str, int] | None = None
) -> Iterator[Table]:
    """Open one layer of points.

    `counts` are the rows of each layer that may be read, where another than GDAL counted them.
    """
    pyogrio = _pyogrio()
    check = _CHECKS.get(format_of(path).options.get("driver", ""))
    features = None if check is None else check(path)
    geometry = wanted.geometries[0] if wanted.geometries else "geometry"
    fields = [name for name in wanted.columns if name != geometry]
    with contextlib.ExitStack() as stack:
        stack.enter_context(_no_side_files(pyogrio))
        # GDAL's warnings quote coordinates; what it cannot read is refused anyway.
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            layer = _layer(path, wanted.layer, counts, pyogrio)
            info = pyogrio.read_info(path, layer=layer, force_feature_count=True)
            check_columns(path.name, [geometry, *info["fields"]], wanted.columns)
            crs, moved, known = _system(info["crs"], f"the input {path.name}", wanted.reproject)
            meta, reader = stack.enter_context(
                pyogrio.open_arrow(
                    path, layer=layer, columns=fields, batch_size=BATCH_ROWS, use_pyarrow=True
                )
            )
        except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError):
            raise InvalidInput(
                f"the input {path.name} cannot be read as {path.suffix[1:]}: is it damaged, or is a"
                " file missing that belongs beside it?"
            ) from None
        names = [*fields, meta["geometry_name"] or "wkb_geometry"]
        stored = pa.schema([reader.schema.field(name).remove_metadata() for name in names])
        schema = pa.schema([*(stored.field(name) for name in fields), (geometry, stored.types[-1])])
        batches: Iterator[pa.RecordBatch] = (
            pa.RecordBatch.from_arrays([batch.column(name) for name in names], schema=schema)
            for batch in reader
        )
        if moved is not None:
            schema, batches = reprojected(batches, schema, geometry, moved)
        rows = info["features"] if features is None else features
        if counts is not None:
            rows = counts.get(layer, rows)
        said = None if known is None else f"reprojected from {known}"
        yield Table(schema, _all_of(batches, rows, path), None, crs, (*info["fields"],), said)


def _system(crs: Any, what: str, reproject: bool) -> tuple[str, ToDegrees | None, str | None]:
    return to_degrees(crs, what) if reproject else (require_degrees(crs, what), None, None)


@contextlib.contextmanager
def _no_side_files(pyogrio: Any) -> Iterator[None]:
    """Else GDAL may copy the input's metadata to a file NAME.aux.xml beside it."""
    before = pyogrio.get_gdal_config_option("GDAL_PAM_ENABLED")
    pyogrio.set_gdal_config_options({"GDAL_PAM_ENABLED": False})
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options({"GDAL_PAM_ENABLED": before})


def _all_of(batches: Iterator[pa.RecordBatch], rows: int, path: Path) -> Iterator[pa.RecordBatch]:
    """The batches, if they have so many rows in all."""
    seen = 0
    for batch in batches:
        seen += len(batch)
        yield batch
    if seen != rows:
        raise InvalidInput(
            f"the input {path.name} must have {rows} rows in the layer that is read, but GDAL reads"
            f" {seen}: is it damaged, or is a text in it very long?"
        )


def _check_alone(path: Path) -> None:
    """No rows wait in a journal beside the file, where neither we nor its digest see them."""
    for ending in ("-wal", "-journal"):
        beside = path.with_name(path.name + ending)
        if beside.exists() and beside.stat().st_size:
            raise InvalidInput(
                f"the input {path.name} has unmerged changes in {beside.name} beside it: close the"
                " program that writes it, or open and close it with one that merges them"
            )


_CHECKS: Mapping[str, Callable[[Path], int | None]] = {
    "GPKG": _check_alone,
    "GeoJSON": count_features,
}
"""By driver: what is asked of a file before GDAL reads it, and how many rows it then has."""


def _layer(path: Path, asked: str | None, counts: Mapping[str, int] | None, pyogrio: Any) -> str:
    """The layer asked for, or the only one that has rows."""
    layers = [str(name) for name, _ in pyogrio.list_layers(path)]
    if asked is not None:
        if asked not in layers:
            raise InvalidInput(
                f"layer must be one of {', '.join(map(repr, layers))}; got {asked!r}"
            )
        return asked
    if len(layers) == 1:
        return layers[0]
    if counts is None:
        counts = {
            name: pyogrio.read_info(path, layer=name, force_feature_count=True)["features"]
            for name in layers
        }
    layers = [name for name in layers if name in counts]
    filled = [name for name in layers if counts[name]]
    if len(filled) > 1:
        raise InvalidInput(
            f"the input {path.name} has rows in the layers {', '.join(map(repr, filled))}: choose"
            " one as layer"
        )
    if not layers:
        raise InvalidInput(f"the input {path.name} has no layer of points")
    return (filled or layers)[0]


def write_table(path: Path, writing: Writing, batches: Iterator[pa.RecordBatch]) -> None:
    """Write one layer of points with the statement in its metadata."""
    pyogrio = _pyogrio()
    (geometry,) = writing.geometries
    options = _stating(format_of(path).options, json.dumps(writing.statement))
    failure: list[BaseException] = []
    reader = pa.RecordBatchReader.from_batches(writing.schema, _remembering(batches, failure))
    try:
        pyogrio.write_arrow(
            reader,
            path,
            layer="reports",
            geometry_name=geometry,
            geometry_type="Point",
            crs=writing.crs or "EPSG:4326",
            **options,
        )
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, RuntimeError):
        if failure:
            raise failure[0] from None
        raise InvalidInput(
            f"the output cannot be written as {path.suffix[1:]}: a column has a type or a name"
            " that it does not know, or the disk is full"
        ) from None


def _stating(options: Mapping[str, Any], statement: str) -> dict[str, Any]:
    """The options of a format, with the statement in its place."""
    return {
        name: value.replace(STATEMENT, statement)
        if isinstance(value, str)
        else _stating(value, statement)
        for name, value in options.items()
    }


def _remembering(
    batches: Iterator[pa.RecordBatch], failure: list[BaseException]
) -> Iterator[pa.RecordBatch]:
    """The batches; GDAL would replace what their source raises by an error of its own."""
    try:
        yield from batches
    except BaseException as error:
        failure.append(error)
        raise
