"""JSON lines: one object a row.  Their guarantee stands beside them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from whereish.publish.formats.tables import Table, Wanted, Writing, check_columns

__all__ = ["open_table", "write_table"]

_BLOCK_BYTES = 8 << 20


@contextlib.contextmanager
def open_table(path: Path, wanted: Wanted) -> Iterator[Table]:
    """Open JSON lines: kept columns have the types of the first block; a change is an error."""
    from pyarrow import json as arrow_json

    read = arrow_json.ReadOptions(block_size=_BLOCK_BYTES)
    with arrow_json.open_json(path, read_options=read) as reader:
        inferred = reader.schema
    check_columns(path.name, inferred.names, wanted.columns)
    fields = [
        pa.field(name, pa.float64()) if name in wanted.numbers else _text(inferred.field(name))
        for name in wanted.columns
    ]
    schema = pa.schema(fields)
    parse = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    with arrow_json.open_json(path, read_options=read, parse_options=parse) as reader:
        batches = (batch.select(list(wanted.columns)) for batch in reader)
        yield Table(schema, batches, present=tuple(inferred.names))


def _text(field: pa.Field) -> pa.Field:
    # Times are guessed from text; the text itself is what was there.
    return pa.field(field.name, pa.string()) if pa.types.is_timestamp(field.type) else field


def write_table(path: Path, writing: Writing, batches: Iterator[pa.RecordBatch]) -> None:
    """Write JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        for batch in batches:
            for row in batch.to_pylist():
                file.write(json.dumps(row, default=_plain, ensure_ascii=False) + "\n")


def _plain(value: object) -> str:
    """Times as ISO 8601; other things that JSON lacks as their text."""
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat() if isoformat is not None else value)
