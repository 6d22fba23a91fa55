"""Tables in files, streamed in batches: CSV and Parquet.

What goes wrong while reading is told without the library's own message, since that
may quote a value of the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from whereish.errors import InvalidInput

__all__ = ["BATCH_ROWS", "Table", "open_table", "writer"]

BATCH_ROWS = 131_072
_CSV_BLOCK_BYTES = 8 << 20


@dataclass(frozen=True)
class Table:
    """An open table: its schema, its batches, and how many rows if the file tells."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    rows: int | None


@contextlib.contextmanager
def open_table(path: Path, columns: Sequence[str], *, numbers: Sequence[str]) -> Iterator[Table]:
    """Open `columns` of a file; in text formats those in `numbers` are read as doubles."""
    if not path.is_file():
        raise InvalidInput(f"the input {path.name} is not a file")
    opener = {".csv": _open_csv, ".parquet": _open_parquet}.get(path.suffix)
    if opener is None:
        raise InvalidInput(f"the input must end in .csv or .parquet; got {path.name}")
    if path.stat().st_size == 0:
        raise InvalidInput(f"the input {path.name} is empty")
    try:
        with opener(path, columns, numbers) as table:
            yield table
    except (pa.ArrowException, UnicodeDecodeError, OSError):
        numbers_text = " and ".join(repr(name) for name in numbers)
        raise InvalidInput(
            f"the input {path.name} cannot be read as {path.suffix[1:]} with numbers in"
            f" {numbers_text}: is it damaged, or is a value there not a number?"
        ) from None


def _check_columns(path: Path, present: Sequence[str], wanted: Sequence[str]) -> None:
    twice = sorted({name for name in wanted if present.count(name) > 1})
    if twice:
        raise InvalidInput(f"the input {path.name} has two columns named {', '.join(twice)}")
    missing = [name for name in wanted if name not in present]
    if missing:
        raise InvalidInput(
            f"the input {path.name} has no column {', '.join(map(repr, missing))};"
            f" it has {', '.join(map(repr, present))}"
        )


@contextlib.contextmanager
def _open_csv(path: Path, columns: Sequence[str], numbers: Sequence[str]) -> Iterator[Table]:
    from pyarrow import csv

    with csv.open_csv(path, read_options=csv.ReadOptions(block_size=1 << 20)) as reader:
        _check_columns(path, reader.schema.names, columns)
    types = {name: pa.float64() if name in numbers else pa.string() for name in columns}
    with csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=_CSV_BLOCK_BYTES),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=types, include_columns=list(columns), strings_can_be_null=False
        ),
    ) as reader:
        yield Table(reader.schema, iter(reader), None)


@contextlib.contextmanager
def _open_parquet(path: Path, columns: Sequence[str], numbers: Sequence[str]) -> Iterator[Table]:
    from pyarrow import parquet

    # Buffering ahead would hold whole row groups in memory.
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        _check_columns(path, file.schema_arrow.names, columns)
        batches = file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns))
        yield Table(file.schema_arrow, batches, file.metadata.num_rows)


@contextlib.contextmanager
def writer(
    path: Path, suffix: str, schema: pa.Schema
) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """A function that appends batches to a new file of the kind that `suffix` names."""
    from pyarrow import csv, parquet

    if suffix == ".csv":
        with csv.CSVWriter(path, schema.remove_metadata()) as sink:
            yield lambda batch: sink.write_batch(batch.replace_schema_metadata(None))
    elif suffix == ".parquet":
        # Reports rarely repeat, so a dictionary of them only costs time.
        floats = [f.name for f in schema if pa.types.is_floating(f.type)]
        repeating = [f.name for f in schema if f.name not in floats]
        split = dict.fromkeys(floats, "BYTE_STREAM_SPLIT")
        with parquet.ParquetWriter(
            path,
            schema,
            use_dictionary=repeating,
            column_encoding=split or None,
        ) as sink:
            yield sink.write_batch
    else:
        raise InvalidInput(f"the output must end in .csv or .parquet; got {suffix or 'no ending'}")
