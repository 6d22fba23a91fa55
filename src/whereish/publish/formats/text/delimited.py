"""Text with a delimiter between columns (CSV, TSV), perhaps compressed.

Its guarantee stands beside it.  Columns of locations and levels are numbers; all others are
text, or of the types that they are written in where the output keeps types.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from whereish.errors import InvalidInput
from whereish.publish.formats.registry import format_of
from whereish.publish.formats.tables import Table, Wanted, Writing, check_columns
from whereish.publish.formats.text.dialect import PEEK_BYTES, Dialect, dialect_of, found_dialect
from whereish.publish.formats.text.formulas import as_text, named_as_text
from whereish.publish.formats.text.swallowed import no_swallowed_rows
from whereish.publish.formats.text.types import inferred_types

__all__ = ["open_table", "read_bytes", "write_bytes", "write_table"]

_BLOCK_BYTES = 8 << 20
_PEEK_BYTES = 1 << 20
_ROW = re.compile(r"[Rr]ow #(\d+)")


@contextlib.contextmanager
def open_table(path: Path, wanted: Wanted) -> Iterator[Table]:
    """Open a text table."""
    usual = format_of(path).options["delimiter"]
    dialect = found_dialect(path, wanted.dialect or Dialect(), usual, wanted.numbers)
    with _reader(path, dialect, {}, None, _PEEK_BYTES) as reader:
        present = reader.schema.names
    check_columns(path.name, present, wanted.columns)
    types: dict[str, Any] = {
        name: pa.float64() if name in wanted.numbers else pa.string() for name in wanted.columns
    }
    others = [
        name for name in wanted.columns if name not in (*wanted.numbers, *wanted.text_columns)
    ]
    if wanted.infer_types and others:
        with (
            _naming_rows(f"the input {path.name}"),
            _reader(path, dialect, types, others) as reader,
        ):
            types |= inferred_types(reader, others, dialect.decimal or ".")
    with _reader(path, dialect, types, list(wanted.columns)) as reader:
        said = None if dialect.usual else str(dialect)
        batches = no_swallowed_rows(
            _named(path, reader), f"the input {path.name}", dialect, len(present)
        )
        yield Table(reader.schema, batches, present=tuple(present), read_as=said)


def _reader(
    source: Any,
    dialect: Dialect,
    types: dict[str, Any],
    columns: list[str] | None,
    block: int = _BLOCK_BYTES,
) -> Any:
    from pyarrow import csv

    how = {} if columns is None else {"include_columns": columns}
    return csv.open_csv(
        source,
        read_options=csv.ReadOptions(
            block_size=block, encoding=dialect.encoding or "utf-8", use_threads=False
        ),
        parse_options=csv.ParseOptions(
            delimiter=dialect.delimiter, newlines_in_values=columns is not None
        ),
        convert_options=csv.ConvertOptions(
            column_types=types,
            strings_can_be_null=False,
            decimal_point=dialect.decimal or ".",
            **how,
        ),
    )


def _named(path: Path, reader: Any) -> Iterator[pa.RecordBatch]:
    with _naming_rows(f"the input {path.name}"):
        yield from reader


@contextlib.contextmanager
def _naming_rows(name: str) -> Iterator[None]:
    """A value that is no number is named by its row: Arrow counts the header as row 1."""
    try:
        yield
    except pa.ArrowInvalid as error:
        row = _ROW.search(str(error))
        if row is None or "conversion error" not in str(error):
            raise
        number = int(row[1]) - 1
    else:
        return
    raise InvalidInput(
        f"{name} cannot be read: row {number} has no number where one must be (the first"
        " row below the header is row 1; say decimal=',' or --decimal ',' if numbers are written"
        " so)"
    )


def write_table(path: Path, writing: Writing, batches: Iterator[pa.RecordBatch]) -> None:
    """Write a text table."""
    from pyarrow import csv

    schema = writing.schema.remove_metadata()
    if not writing.keep_formulas:
        schema = named_as_text(schema)
    how = csv.WriteOptions(delimiter=format_of(path).options["delimiter"])
    with contextlib.ExitStack() as stack:
        sink: Any = path
        if path.suffix == ".gz":
            sink = stack.enter_context(pa.CompressedOutputStream(str(path), "gzip"))
        writer = stack.enter_context(csv.CSVWriter(sink, schema, write_options=how))
        for batch in batches:
            columns = batch.columns
            if not writing.keep_formulas:
                columns = [as_text(column) for column in columns]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def read_bytes(data: bytes, plan: Any, dialect: Dialect, extra: Sequence[str] = ()) -> pa.Table:
    """A text table that is in memory: the columns of a plan, others than numbers as text."""
    from whereish.publish.rows.plan import build_sanitizer

    kernel = build_sanitizer(plan)
    columns = list(dict.fromkeys((*kernel.columns, *extra)))
    name = "standard input"
    if not data.strip():
        raise InvalidInput(f"{name} is empty")
    found = dialect_of(data[:PEEK_BYTES], name, dialect, ",", kernel.numbers)
    types = {c: pa.float64() if c in kernel.numbers else pa.string() for c in columns}
    try:
        with _reader(pa.BufferReader(data), found, {}, None) as reader:
            present = reader.schema.names
        check_columns(name, present, columns)
        with _naming_rows(name), _reader(pa.BufferReader(data), found, types, columns) as reader:
            batches = no_swallowed_rows(reader, name, found, len(present))
            return pa.Table.from_batches(batches, schema=reader.schema)
    except pa.ArrowException:
        raise InvalidInput(f"{name} cannot be read as CSV: is a row damaged?") from None


def write_bytes(table: pa.Table) -> pa.Buffer:
    """A released table as CSV, with an apostrophe before what a spreadsheet would run."""
    from pyarrow import csv

    schema = named_as_text(table.schema.remove_metadata())
    columns = [as_text(column.combine_chunks()) for column in table.columns]
    sink = pa.BufferOutputStream()
    csv.write_csv(pa.Table.from_arrays(columns, schema=schema), sink)
    return sink.getvalue()
