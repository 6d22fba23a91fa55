"""Text with a delimiter between columns (CSV).  Its guarantee stands beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from whereish.publish.formats.formulas import as_text, named_as_text
from whereish.publish.formats.registry import format_of
from whereish.publish.formats.tables import Table, Wanted, Writing, check_columns

__all__ = ["open_table", "write_table"]

_BLOCK_BYTES = 8 << 20
_PEEK_BYTES = 1 << 20


@contextlib.contextmanager
def open_table(path: Path, wanted: Wanted) -> Iterator[Table]:
    """Open a text table."""
    from pyarrow import csv

    delimiter = format_of(path).options["delimiter"]
    with csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=_PEEK_BYTES),
        parse_options=csv.ParseOptions(delimiter=delimiter),
    ) as reader:
        check_columns(path.name, reader.schema.names, wanted.columns)
    types = {
        name: pa.float64() if name in wanted.numbers else pa.string() for name in wanted.columns
    }
    with csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=_BLOCK_BYTES),
        parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=types, include_columns=list(wanted.columns), strings_can_be_null=False
        ),
    ) as reader:
        yield Table(reader.schema, iter(reader))


def write_table(path: Path, writing: Writing, batches: Iterator[pa.RecordBatch]) -> None:
    """Write a text table."""
    from pyarrow import csv

    schema = writing.schema.remove_metadata()
    if not writing.keep_formulas:
        schema = named_as_text(schema)
    how = csv.WriteOptions(delimiter=format_of(path).options["delimiter"])
    with csv.CSVWriter(path, schema, write_options=how) as sink:
        for batch in batches:
            columns = batch.columns
            if not writing.keep_formulas:
                columns = [as_text(column) for column in columns]
            sink.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
