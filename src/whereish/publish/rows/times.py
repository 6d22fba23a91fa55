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
        """The type in which a column of type `given` leaves: a time that has a zone, in UTC.

        A time without a zone, which may be any place's local time, leaves without one.
        """
        if pa.types.is_date(given):
            return given
        if pa.types.is_timestamp(given):
            return given if given.tz is None else pa.timestamp(given.unit, "UTC")
        return pa.string()  # as text: whether it has a zone is known row by row

    def floor(self, column: Any, name: str) -> Any:
        """The start of each moment's step; text is read, and leaves, as ISO 8601.

        Steps start in UTC, since the start of a day elsewhere tells how far east that is.
        """
        given = column.type
        if pa.types.is_string(given) or pa.types.is_large_string(given):
            return _as_text(self._floored(_parsed(column, name)))
        if not (pa.types.is_timestamp(given) or pa.types.is_date(given)):
            raise InvalidInput(f"column {name!r} must hold times to be coarsened; got {given}")
        column = column.cast(self.type_of(given))
        return self._floored(column).cast(self.type_of(given))

    def _floored(self, moments: Any) -> Any:
        return pc.floor_temporal(moments, multiple=self.count, unit=self.unit)


def _parsed(column: Any, name: str) -> Any:
    for zone in ("UTC", None):
        try:
            return column.cast(pa.timestamp("us", zone))
        except pa.ArrowInvalid:
            continue
    raise InvalidInput(
        f"column {name!r} must hold times such as 2026-01-31T08:15:00Z to be coarsened, all with a"
        " zone or all without"
    )


def _as_text(moments: Any) -> Any:
    """ISO 8601 to the second, which the start of a step is; with a Z where there was a zone."""
    ending = "" if moments.type.tz is None else "Z"
    seconds = moments.cast(pa.timestamp("s", moments.type.tz))
    return pc.strftime(seconds, format=f"%Y-%m-%dT%H:%M:%S{ending}")
