"""Data frames: the caller's type goes in as Arrow, and the same type comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from whereish.errors import InvalidInput
from whereish.publish.formats.crs import require_degrees
from whereish.publish.formats.tables import check_columns

__all__ = ["opened_frame"]

Back = Callable[[Any, dict[str, Any]], Any]


def opened_frame(frame: Any) -> tuple[Any, str | None, Back]:
    """A frame as (Arrow table, name of its geometry, the way back to the caller's type).

    The way back takes the released table and its statement.
    """
    kind = _kind(frame)
    if kind not in _DOORS:
        raise InvalidInput(
            "source must be a path, or a frame of pandas, GeoPandas, Polars, PyArrow or DuckDB;"
            f" got {type(frame).__module__}.{type(frame).__name__}{_HINTS.get(kind, '')}"
        )
    try:
        table, geometry, back = _DOORS[kind](frame)
    except (pa.ArrowException, TypeError, OverflowError):
        # Arrow's message quotes the value that did not fit.
        raise InvalidInput(
            "the frame has a column whose values are of mixed types: give each column one type"
        ) from None
    check_columns("frame", table.column_names, ())
    return table, geometry, back


def _kind(frame: Any) -> str:
    """Module and class by name, so that no frame library is imported for its sake."""
    for cls in type(frame).__mro__:
        name = f"{cls.__module__.split('.')[0].lstrip('_')}.{cls.__name__}"
        if name in _DOORS or name in _HINTS:
            return name
    return ""


def _from_pandas(frame: Any) -> tuple[Any, None, Back]:
    check_columns("frame", [str(name) for name in frame.columns], ())
    return pa.Table.from_pandas(frame, preserve_index=False), None, _to_pandas


def _to_pandas(table: Any, statement: dict[str, Any]) -> Any:
    frame = table.replace_schema_metadata(None).to_pandas()
    frame.attrs["whereish"] = statement
    return frame


def _from_geopandas(frame: Any) -> tuple[Any, str, Back]:
    check_columns("frame", [str(name) for name in frame.columns], ())
    crs = require_degrees(frame.crs, "the frame's geometry")
    geometry = str(frame.geometry.name)
    table = pa.table(frame.to_arrow(index=False, geometry_encoding="WKB"))

    def back(released: Any, statement: dict[str, Any]) -> Any:
        import geopandas

        released = released.replace_schema_metadata(None)
        if geometry not in released.column_names:
            return _to_pandas(released, statement)
        index = released.column_names.index(geometry)
        extension = {"ARROW:extension:name": "geoarrow.wkb"}
        marked = pa.field(geometry, pa.binary(), metadata=extension)
        released = released.set_column(index, marked, released.column(index))
        out = geopandas.GeoDataFrame.from_arrow(released, geometry=geometry).set_crs(crs)
        out.attrs["whereish"] = statement
        return out

    return table, geometry, back


def _from_polars(frame: Any) -> tuple[Any, None, Back]:
    def back(table: Any, statement: dict[str, Any]) -> Any:
        import narwhals

        released = table.replace_schema_metadata(None)
        return narwhals.from_arrow(released, backend="polars").to_native()

    import narwhals

    return narwhals.from_native(frame, eager_only=True).to_arrow(), None, back


def _from_arrow(table: Any) -> tuple[Any, None, Back]:
    return table, None, lambda released, statement: released


def _from_batch(batch: Any) -> tuple[Any, None, Back]:
    def back(table: Any, statement: dict[str, Any]) -> Any:
        return table.combine_chunks().to_batches()[0]

    return pa.Table.from_batches([batch]), None, back


_VIEW = "whereish_source"


def _from_duckdb(relation: Any) -> tuple[Any, None, Back]:
    def back(table_: Any, statement: dict[str, Any]) -> Any:
        # Made by the relation, so that it belongs to the caller's connection; DuckDB finds the
        # variable `table_` by its name.  The relation holds on to it: reading it again draws
        # nothing anew.  The view that the query makes of the true relation goes at once.
        try:
            return relation.query(_VIEW, "SELECT * FROM table_")
        finally:
            relation.query(_VIEW, f"DROP VIEW IF EXISTS {_VIEW}")

    return pa.table(relation), None, back


_DOORS: dict[str, Callable[[Any], tuple[Any, str | None, Back]]] = {
    "pandas.DataFrame": _from_pandas,
    "geopandas.GeoDataFrame": _from_geopandas,
    "polars.DataFrame": _from_polars,
    "pyarrow.Table": _from_arrow,
    "pyarrow.RecordBatch": _from_batch,
    "duckdb.DuckDBPyRelation": _from_duckdb,
}

_HINTS = {
    "polars.LazyFrame": ": collect it first, since a lazy frame would draw its noise twice",
    "pyspark.DataFrame": ": use whereish.spark.sanitize",
    "dask.DataFrame": ": use whereish.dask.sanitize",
    "dask_expr.DataFrame": ": use whereish.dask.sanitize",
}
