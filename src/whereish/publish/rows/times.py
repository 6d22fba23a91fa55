"""Coarse times: a moment released only to the hour, or to the week."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from whereish.errors import InvalidInput

__all__ = ["TimeStep"]

_UNITS = {"s": "second", "min": "minute", "h": "hour", "d": "day", "week": "week", "month": "month"}
_STEP = re.compile(r"\s*(\d+)?\s*(s|min|h|d|week|month)\s*")


@dataclass(frozen=True)
class TimeStep:
    """Moments are released as the start of the step that holds them."""

    count: int
    unit: str

    @classmethod
    def of(cls, value: TimeStep | str) -> TimeStep:
        """Read "15 min", "1 h", "1 d", "1 week" or "1 month"."""
        if isinstance(value, TimeStep):
            return value
        match = _STEP.fullmatch(value) if isinstance(value, str) else None
        if match is None or int(match[1] or 1) < 1:
            raise InvalidInput(
                f"a time step must be a number and one of {', '.join(_UNITS)}, such as '1 h';"
                f" got {value!r}"
            )
        return cls(int(match[1] or 1), _UNITS[match[2]])

    def type_of(self, given: Any) -> Any:
        """The type in which a column of type `given` leaves: a time that has a zone, in UTC."""
        if pa.types.is_date(given):
            return given
        if pa.types.is_timestamp(given):
            return given if given.tz is None else pa.timestamp(given.unit, "UTC")
        return pa.timestamp("us", "UTC")

    def floor(self, column: Any, name: str) -> Any:
        """The start of each moment's step; text is read as ISO 8601, without a zone as UTC.

        Steps start in UTC, since the start of a day elsewhere tells how far east that is.
        """
        given = column.type
        if pa.types.is_string(given) or pa.types.is_large_string(given):
            column = _parsed(column, name)
        elif not (pa.types.is_timestamp(given) or pa.types.is_date(given)):
            raise InvalidInput(f"column {name!r} must hold times to be coarsened; got {given}")
        else:
            column = column.cast(self.type_of(given))
        floored = pc.floor_temporal(column, multiple=self.count, unit=self.unit)
        return floored.cast(self.type_of(given))


def _parsed(column: Any, name: str) -> Any:
    for zone in ("UTC", None):
        try:
            return column.cast(pa.timestamp("us", zone)).cast(pa.timestamp("us", "UTC"))
        except pa.ArrowInvalid:
            continue
    raise InvalidInput(
        f"column {name!r} must hold times such as 2026-01-31T08:15:00Z to be coarsened, all with a"
        " zone or all without"
    )
