"""What of an OwnTracks message may pass: few fields of known types, and a report for the place.

OwnTracks publishes JSON (https://owntracks.org/booklet/tech/json/).  Of a location the fields
``_type, tid, tst, batt, conn, topic`` are kept, where they have the types that the booklet gives
them; ``lon`` and ``lat`` are replaced, ``acc`` is the radius that holds the report with probability
0.95, and all else is dropped: altitude, course, speed, pressure, regions, WiFi names and addresses
would tell the place.  Messages of other types (transitions, waypoints, steps, cards) do not pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Protocol

import msgspec

__all__ = ["Location", "Reporter", "private_location", "read_location"]


class Reporter(Protocol):
    """Draws private reports of places in degrees."""

    @property
    def accuracy_m(self) -> float | None: ...

    def report(self, places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]: ...


class Location(msgspec.Struct, frozen=True):
    """The fields of a location that are read; others are not even looked at."""

    _type: Literal["location"]
    lon: Annotated[float, msgspec.Meta(ge=-360, le=360)]
    lat: Annotated[float, msgspec.Meta(ge=-90, le=90)]
    tst: Annotated[int, msgspec.Meta(ge=0, le=10**11)]
    tid: Annotated[str, msgspec.Meta(max_length=2)] | None = None
    batt: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    conn: Literal["w", "o", "m"] | None = None


_DECODER: Final = msgspec.json.Decoder(Location)


def read_location(payload: bytes) -> Location | None:
    """The location in a message; None for every other message, which must not pass."""
    try:
        return _DECODER.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def private_location(
    location: Location, report: tuple[float, float], accuracy_m: float | None, topic: str | None
) -> bytes:
    """The message that passes, with the report in place of the place."""
    made: dict[str, Any] = {"_type": "location"}
    kept = {"tid": location.tid, "tst": location.tst, "batt": location.batt, "conn": location.conn}
    made |= {name: value for name, value in kept.items() if value is not None}
    if topic is not None:
        made["topic"] = topic
    made["lon"], made["lat"] = report
    if accuracy_m is not None:
        made["acc"] = math.ceil(accuracy_m)
    return msgspec.json.encode(made)
