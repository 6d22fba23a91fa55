"""Values of a text table that hold rows of it, since a quotation mark is missing.

A quotation mark that nothing closes takes in all that follows: the next rows, with the places in
them, become part of one value, and a column that is kept would publish them.  A value may hold
line breaks and delimiters; but where rows of n columns were taken in, each line break comes with
the n - 1 delimiters of a row.  Such values are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from whereish.errors import InvalidInput
from whereish.publish.formats.text.dialect import Dialect

__all__ = ["no_swallowed_rows"]


def no_swallowed_rows(
    batches: Iterable[pa.RecordBatch], name: str, dialect: Dialect, columns: int
) -> Iterator[pa.RecordBatch]:
    """The batches of a table of that many columns, as long as no value holds rows."""
    from pyarrow import compute

    start = 0
    for batch in batches:
        for column, values in zip(batch.schema.names, batch.columns, strict=True):
            if not pa.types.is_string(values.type):
                continue
            broken = compute.match_substring_regex(values, r"[\r\n]")
            for index in compute.indices_nonzero(broken).to_pylist():
                if _holds_rows(values[index].as_py(), dialect.delimiter or ",", columns):
                    raise InvalidInput(
                        f"{name} has a value that holds rows of the table, in column {column!r} of"
                        f" row {start + index + 1}: is a quotation mark missing, or one too many?"
                        " Mend the file, or leave that column out"
                    )
        start += batch.num_rows
        yield batch


def _holds_rows(value: str, delimiter: str, columns: int) -> bool:
    lines = value.strip("\r\n").splitlines()
    breaks = len(lines) - 1 if lines else 0
    return breaks > 0 and value.count(delimiter) >= breaks * (columns - 1)
