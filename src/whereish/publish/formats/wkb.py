"""Points in well-known binary, whole columns at a time.

A point is: byte order, 32-bit type, then x, y and perhaps z, m as doubles.  The type
carries the dimension in two dialects (ISO: 1001, 2001, 3001; extended: high bits, one
of which announces a 32-bit SRID).  Heights and measures are read past, never kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.publish.rows.bad_rows import BadRows

__all__ = ["points_from_wkb", "refuse_missing", "wkb_from_points"]

_POINT = np.dtype([("order", "u1"), ("type", "<u4"), ("x", "<f8"), ("y", "<f8")])
_SRID_FLAG, _TYPE_BITS = 0x20000000, 0x0FFFFFFF


def points_from_wkb(column: pa.Array, name: str) -> FloatArray:
    """The (n, 2) coordinates of a column of WKB points without nulls."""
    column = column.cast(pa.large_binary())
    if len(column) == 0:
        return np.empty((0, 2))
    _, offsets_buffer, data_buffer = column.buffers()
    window = slice(column.offset, column.offset + len(column) + 1)
    offsets = np.frombuffer(offsets_buffer, np.int64)[window]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, "u1")
    lengths = np.diff(offsets)
    _refuse_other_shapes(data, offsets, lengths, name)
    out = np.empty((len(column), 2))
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        raw = data[offsets[rows][:, None] + np.arange(min(int(length), 25))]
        for order in (0, 1):
            mine = raw[:, 0] == order
            out[rows[mine]] = _decoded(raw[mine], "<" if order else ">", int(length), name)
        if (raw[:, 0] > 1).any():
            raise _not_points(name)
    return out


def _decoded(raw: NDArray[np.uint8], endian: str, length: int, name: str) -> FloatArray:
    if len(raw) == 0:
        return np.empty((0, 2))
    kind = raw[:, 1:5].copy().view(endian + "u4")[:, 0]
    if ((kind & _TYPE_BITS) % 1000 != 1).any():
        raise _not_points(name)
    out = np.empty((len(raw), 2))
    for with_srid in (False, True):
        mine = ((kind & _SRID_FLAG) != 0) == with_srid
        start = 9 if with_srid else 5
        if not mine.any():
            continue
        if length < start + 16:
            raise _not_points(name)
        out[mine] = np.ascontiguousarray(raw[mine, start : start + 16]).view(endian + "f8")
    return out


_SHAPES = {
    2: "lines",
    3: "polygons",
    4: "multipoints",
    5: "multilines",
    6: "multipolygons",
    7: "collections",
}
_CURES = {
    "lines": "release their points as rows, or whereish trace for a person's track",
    "multilines": "release their points as rows, or whereish trace for a person's track",
    "multipoints": "give each point a row of its own (gdf.explode())",
    "polygons": "release one point of each, such as gdf.representative_point()",
    "multipolygons": "release one point of each, such as gdf.representative_point()",
    "collections": "give each shape a row of its own (gdf.explode())",
}


def _refuse_other_shapes(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], lengths: NDArray[np.int64], name: str
) -> None:
    """Refuse what is no point, by the name of its shape and the numbers of its rows."""
    kinds = np.zeros(len(lengths), np.int64)
    for order, endian in ((0, ">"), (1, "<")):
        mine = np.flatnonzero(lengths >= 5)
        mine = mine[data[offsets[mine]] == order]
        codes = data[offsets[mine][:, None] + np.arange(1, 5)].copy().view(endian + "u4")[:, 0]
        kinds[mine] = (codes & _TYPE_BITS) % 1000
    kinds[(kinds == 1) & (lengths < _POINT.itemsize)] = 0
    wrong = kinds != 1
    if not wrong.any():
        return
    first = int(kinds[np.flatnonzero(wrong)[0]])
    if first not in _SHAPES:
        raise _not_points(name)
    shape, count = _SHAPES[first], int((kinds == first).sum())
    raise BadRows(
        f"column {name!r} must hold points; {count} are {shape}",
        kinds == first,
        f": {_CURES[shape]}",
    )


def refuse_missing(column: Any, name: str) -> None:
    """Refuse a column that has no place in some of its rows."""
    if column.null_count:
        raise BadRows(
            f"column {name!r} must have a place in every row; {column.null_count} are missing",
            column.is_null(),
            ": drop those rows first",
        )


def _not_points(name: str) -> InvalidInput:
    return InvalidInput(
        f"column {name!r} must hold points in well-known binary; got something else: is it damaged?"
    )


def wkb_from_points(lon: FloatArray, lat: FloatArray) -> Any:
    """A binary column of two-dimensional points."""
    packed = np.empty(len(lon), _POINT)
    packed["order"], packed["type"], packed["x"], packed["y"] = 1, 1, lon, lat
    offsets = np.arange(len(lon) + 1, dtype=np.int32) * np.int32(_POINT.itemsize)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(packed.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(lon), buffers)
