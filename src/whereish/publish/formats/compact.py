"""Columns copied to hold the values of their rows, and not one byte more.

An Arrow array is a window onto buffers that it may share: they also hold the rows before and
behind the window, whatever was written under a null, categories and list elements that no row
refers to.  Whoever gets the buffers (a pickle, a zero-copy export, `array.buffers()`) gets
those too.  So a released column is gathered anew, row by row and level by level, into buffers
of exactly its own size, with zeros under nulls.

Arrow's own kernels are used at the leaves only: they copy what lies under nulls, and some
do not know, or misread, unions and run-end encoded arrays with an offset.

Encodings that share values among rows leave as the values themselves: dictionary and run-end
encoded columns as their values, views as lists and large text.  So do extension types, save
those whose parameters are a few fixed words: a GeoArrow type carries the text of a CRS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from whereish.arrays import IntArray

__all__ = ["compacted", "plain_field", "plain_type"]

_Valid = NDArray[np.bool_]

_WORDS_ONLY = {"arrow.uuid", "arrow.json", "arrow.bool8", "pandas.period", "pandas.interval"}


def plain_field(field: Any, *, nullable: bool | None = None) -> Any:
    """The field in which a column leaves: its plain type, and no metadata at any depth."""
    kind = plain_type(field.type)
    return pa.field(field.name, kind, field.nullable if nullable is None else nullable)


def plain_type(kind: Any) -> Any:
    """The type of :func:`compacted` of an array of type `kind`."""
    types, leaves = pa.types, kind
    if isinstance(kind, pa.BaseExtensionType):
        storage = plain_type(kind.storage_type)
        known = kind.extension_name in _WORDS_ONLY and storage == kind.storage_type
        leaves = kind if known else storage
    elif types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        leaves = plain_type(kind.value_type)
    elif types.is_string_view(kind):
        leaves = pa.large_string()
    elif types.is_binary_view(kind):
        leaves = pa.large_binary()
    elif types.is_map(kind):
        pair = plain_field(kind.key_field), plain_field(kind.item_field)
        leaves = pa.map_(*pair, kind.keys_sorted)
    elif types.is_list(kind) or types.is_list_view(kind):
        leaves = pa.list_(plain_field(kind.value_field))
    elif types.is_large_list(kind) or types.is_large_list_view(kind):
        leaves = pa.large_list(plain_field(kind.value_field))
    # Below these a null stands in every field of a row that is null itself.
    elif types.is_fixed_size_list(kind):
        leaves = pa.list_(plain_field(kind.value_field, nullable=True), kind.list_size)
    elif types.is_struct(kind):
        leaves = pa.struct([plain_field(one, nullable=True) for one in kind])
    elif types.is_union(kind):
        fields = [plain_field(kind.field(i), nullable=True) for i in range(kind.num_fields)]
        leaves = pa.union(fields, mode=kind.mode, type_codes=kind.type_codes)
    return leaves


def compacted(array: Any) -> Any:
    """The same values in buffers of their own."""
    if _is_numbers(array.type) and not array.null_count and len(array):
        width = array.type.bit_width // 8
        window = array.buffers()[1].slice(array.offset * width, len(array) * width)
        return _built(array.type, len(array), [None, pa.py_buffer(window.to_pybytes())])
    return _gathered(array, np.arange(len(array), dtype=np.int64))


def _gathered(array: Any, rows: IntArray) -> Any:
    """The rows of an array, in that order; null where a row is -1."""
    kind, types = array.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        storage, leaves = _gathered(array.storage, rows), plain_type(kind)
        return storage if leaves == storage.type else leaves.wrap_array(storage)
    if types.is_null(kind):
        return pa.nulls(len(rows))
    for is_encoded, undone in _ENCODINGS:
        if is_encoded(kind):
            return undone(array, rows)
    valid = _valid(array, rows)
    for is_laid_out, gathered in _LAYOUTS:
        if is_laid_out(kind):
            return gathered(array, rows, valid)
    return _fixed_width(array, rows, valid)


# Encodings, which are undone


def _dictionary(array: Any, rows: IntArray) -> Any:
    return _gathered(array.dictionary, _numbers(array.indices, rows))


def _run_ends(array: Any, rows: IntArray) -> Any:
    ends = array.run_ends.to_numpy(zero_copy_only=False).astype(np.int64)
    runs = np.searchsorted(ends, rows + array.offset, side="right").astype(np.int64)
    return _gathered(array.values, np.where(rows < 0, -1, runs))


def _text_view(array: Any, rows: IntArray) -> Any:
    return _gathered(array.cast(plain_type(array.type)), rows)


def _union(array: Any, rows: IntArray) -> Any:
    """A row that is null in a struct above is a null of the union's first type."""
    kind, dense = array.type, array.type.mode == "dense"
    present, at = rows >= 0, rows + array.offset
    codes = np.full(len(rows), kind.type_codes[0], np.int8)
    codes[present] = _buffer(array, 1, np.int8)[at[present]]
    inner = np.where(present, rows, -1)
    if dense:
        inner[present] = _buffer(array, 2, np.int32)[at[present]]
    children, offsets = [], np.zeros(len(rows), np.int32)
    for index, code in enumerate(kind.type_codes):
        mine = codes == code
        offsets[mine] = np.arange(mine.sum())
        chosen = inner[mine] if dense else np.where(mine, inner, -1)
        children.append(_gathered(array.field(index), chosen))
    buffers = [None, pa.py_buffer(codes), *([pa.py_buffer(offsets)] if dense else [])]
    return _built(plain_type(kind), len(rows), buffers, children)


_ENCODINGS: tuple[tuple[Callable[[Any], bool], Callable[[Any, IntArray], Any]], ...] = (
    (pa.types.is_dictionary, _dictionary),
    (pa.types.is_run_end_encoded, _run_ends),
    (lambda kind: pa.types.is_string_view(kind) or pa.types.is_binary_view(kind), _text_view),
    (pa.types.is_union, _union),
)


# Layouts, which stay


def _struct(array: Any, rows: IntArray, valid: _Valid) -> Any:
    inner = np.where(valid, rows, -1)
    children = [_gathered(array.field(i), inner) for i in range(array.type.num_fields)]
    return _built(plain_type(array.type), len(rows), [_bits(valid)], children)


def _fixed_size_list(array: Any, rows: IntArray, valid: _Valid) -> Any:
    size = array.type.list_size
    inner = (rows + array.offset)[:, None] * size + np.arange(size)
    inner[~valid] = -1
    child = _gathered(array.values, inner.ravel())
    return _built(plain_type(array.type), len(rows), [_bits(valid)], [child])


def _list(array: Any, rows: IntArray, valid: _Valid) -> Any:
    kind, leaves = array.type, plain_type(array.type)
    large = pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind)
    width = np.dtype(np.int64 if large else np.int32)
    at = np.where(valid, rows, 0) + array.offset
    starts, lengths = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    if valid.any():
        first = _buffer(array, 1, width)
        starts[valid] = first[at[valid]]
        if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
            lengths[valid] = _buffer(array, 2, width)[at[valid]]
        else:
            lengths[valid] = first[at[valid] + 1] - starts[valid]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    inner = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
    values = array.values
    if pa.types.is_map(kind):
        pairs = [_gathered(values.field(i), inner) for i in range(2)]
        entries = pa.struct([leaves.key_field, leaves.item_field])
        child = _built(entries, len(inner), [None], pairs)
    else:
        child = _gathered(values, inner)
    buffers = [_bits(valid), pa.py_buffer(offsets.astype(width))]
    return _built(leaves, len(rows), buffers, [child])


def _text(array: Any, rows: IntArray, valid: _Valid) -> Any:
    """Text or bytes with offsets; a take leaves nothing between the values that it takes."""
    kind = array.type
    large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    width = np.dtype(np.int64 if large else np.int32)
    taken = array.take(pa.array(rows, mask=~valid))
    offsets = _buffer(taken, 1, width)[taken.offset : taken.offset + len(rows) + 1]
    data = _buffer(taken, 2, np.dtype(np.uint8))
    data = data[offsets[0] : offsets[-1]] if len(rows) else data[:0]
    starts = offsets - offsets[0] if len(rows) else np.zeros(1, width)
    buffers = [_bits(valid), pa.py_buffer(starts.tobytes()), pa.py_buffer(data.tobytes())]
    return _built(kind, len(rows), buffers)


def _boolean(array: Any, rows: IntArray, valid: _Valid) -> Any:
    values = np.zeros(len(rows), bool)
    if valid.any():
        values[valid] = _flags(array, 1)[rows[valid]]
    return _built(array.type, len(rows), [_bits(valid), _packed(values)])


def _fixed_width(array: Any, rows: IntArray, valid: _Valid) -> Any:
    width = array.type.bit_width // 8
    unit = np.dtype(f"u{width}" if width in (1, 2, 4, 8) else f"V{width}")
    values = np.zeros(len(rows), unit)
    if width and valid.any():
        stored = array.buffers()[1]
        known = np.frombuffer(stored, unit, stored.size // width)
        values[valid] = known[rows[valid] + array.offset]
    return _built(array.type, len(rows), [_bits(valid), pa.py_buffer(values.tobytes())])


def _is_numbers(kind: Any) -> bool:
    """The most frequent columns, of which a window is one piece."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_timestamp(kind))


def _is_list(kind: Any) -> bool:
    types = pa.types
    plain = types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind)
    return bool(plain or types.is_list_view(kind) or types.is_large_list_view(kind))


def _is_text(kind: Any) -> bool:
    types = pa.types
    large = types.is_large_string(kind) or types.is_large_binary(kind)
    return bool(large or types.is_string(kind) or types.is_binary(kind))


_LAYOUTS: tuple[tuple[Callable[[Any], bool], Callable[[Any, IntArray, _Valid], Any]], ...] = (
    (pa.types.is_struct, _struct),
    (pa.types.is_fixed_size_list, _fixed_size_list),
    (_is_list, _list),
    (_is_text, _text),
    (pa.types.is_boolean, _boolean),
)


# Buffers


def _built(kind: Any, length: int, buffers: list[Any], children: list[Any] | None = None) -> Any:
    return pa.Array.from_buffers(kind, length, buffers, children=children)


def _buffer(array: Any, index: int, dtype: Any) -> NDArray[Any]:
    """One of an array's own buffers, whole."""
    buffer = array.buffers()[index]
    return (
        np.frombuffer(buffer, dtype) if buffer is not None and buffer.size else np.empty(0, dtype)
    )


def _flags(array: Any, index: int) -> _Valid:
    """A buffer of bits, within the array's window."""
    window = slice(array.offset, array.offset + len(array))
    bits = np.unpackbits(_buffer(array, index, np.uint8), bitorder="little")[window]
    return bits.astype(bool)


def _valid(array: Any, rows: IntArray) -> _Valid:
    """Which of the rows have a value."""
    valid = rows >= 0
    if array.null_count:
        valid[valid] = _flags(array, 0)[rows[valid]]
    return valid


def _packed(flags: _Valid) -> Any:
    return pa.py_buffer(np.packbits(flags, bitorder="little").tobytes())


def _bits(valid: _Valid) -> Any:
    """The bitmap of validity; none where all are valid."""
    return None if valid.all() else _packed(valid)


def _numbers(indices: Any, rows: IntArray) -> IntArray:
    """The indices of rows; -1 where there is none."""
    valid = _valid(indices, rows)
    found = np.full(len(rows), -1, np.int64)
    found[valid] = _buffer(indices, 1, indices.type.to_pandas_dtype())[rows[valid] + indices.offset]
    return found
