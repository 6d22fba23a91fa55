"""Text that a spreadsheet would run: what a CSV file holds must not become a formula.

A cell that begins with one of = + - @, a tab or a line's end is taken for a formula by common
spreadsheets, and can then fetch an address with the cells beside it.  An apostrophe before it
makes it text.  Numbers stay as they are, with their sign: they compute nothing.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["NOTE", "as_text", "named_as_text"]

NOTE = "an apostrophe stands before text that a spreadsheet would take for a formula"

_LEADS = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
"""The last four are the full-width forms of = + - @."""
_NUMBER = r"(?i)^[+-]?([0-9.,]+(e[+-]?[0-9]+)?%?|inf(inity)?|nan)?\z"


def as_text(column: Any) -> Any:
    """A column of text with an apostrophe where it is needed; any other column as it is."""
    kind, types = column.type, pa.types
    if types.is_binary(kind) or types.is_large_binary(kind):
        # CSV holds bytes as they are, so they are looked at as text is.
        return as_text(column.cast(pa.large_string(), safe=False)).cast(kind)
    if not (types.is_string(kind) or types.is_large_string(kind)):
        return column
    leads = pc.match_substring_regex(column, _LEADS)
    if not pc.any(leads).as_py():
        return column
    runs = pc.and_(leads, pc.invert(pc.match_substring_regex(column, _NUMBER)))
    mark, nothing = pa.scalar("'", kind), pa.scalar("", kind)
    return pc.if_else(runs, pc.binary_join_element_wise(mark, column, nothing), column)


def named_as_text(schema: pa.Schema) -> pa.Schema:
    """The schema, with the names of its columns treated likewise."""
    names = as_text(pa.array(schema.names, pa.string())).to_pylist()
    return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
