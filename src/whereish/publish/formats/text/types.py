"""Types of text columns: whole numbers, numbers, booleans, dates and times, or text.

A column has a type if every value that is not empty is written in it, over the whole file; so a
file is read once before it is released.  Text that only looks like a number stays text: what
begins with a zero (a postcode, a telephone number), or has more digits than a 64-bit integer.
An empty value of a column that is no text is missing.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["inferred_types"]

_DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_ZONE = r"(Z|[+-][0-9]{2}:?[0-9]{2})"


def _patterns(decimal: str) -> list[tuple[Any, str]]:
    mark = r"\." if decimal == "." else ","
    return [
        (pa.int64(), r"-?(0|[1-9][0-9]{0,17})"),
        (pa.float64(), rf"-?(0|[1-9][0-9]{{0,14}})({mark}[0-9]{{1,17}})?([eE][+-]?[0-9]{{1,2}})?"),
        (pa.bool_(), r"true|false|True|False|TRUE|FALSE"),
        (pa.date32(), _DATE),
        (pa.timestamp("us"), _DATE + _CLOCK),
        (pa.timestamp("us", "UTC"), _DATE + _CLOCK + _ZONE),
    ]


def inferred_types(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], decimal: str
) -> dict[str, Any]:
    """The type of each of these text columns; a column without a value is text."""
    left = {name: _patterns(decimal) for name in columns}
    seen = dict.fromkeys(columns, False)
    for batch in batches:
        for name in columns:
            if not left[name]:
                continue
            values = pc.unique(batch.column(name))
            values = values.filter(pc.not_equal(values, ""))
            if len(values):
                seen[name] = True
                left[name] = [entry for entry in left[name] if _all_are(values, *entry)]
    return {
        name: left[name][0][0] if seen[name] and left[name] else pa.string() for name in columns
    }


def _all_are(values: Any, kind: Any, pattern: str) -> bool:
    if not pc.all(pc.match_substring_regex(values, rf"^({pattern})$")).as_py():
        return False
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return all(
            _is_day(text[:10])
            for text in pc.unique(pc.utf8_slice_codeunits(values, 0, 10)).to_pylist()
        )
    return True


def _is_day(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True
