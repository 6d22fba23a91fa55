"""The features of a GeoJSON file, counted as it streams, before GDAL reads it.

GDAL passes over an element of "features" that is no Feature, takes the last of two members
of one name, and reads a coordinate that is no number as it can.  Here each is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from whereish.errors import InvalidInput

__all__ = ["count_features"]

_READ = 1 << 20
_LARGEST = 200 << 20
"""Characters of one feature; GDAL's own limit is 200 MB."""


def count_features(path: Path) -> int:
    """How many features the file has; an error names the file, and quotes nothing."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _Document(file).features()
    except _Twice:
        raise InvalidInput(
            f"the input {path.name} has two members of one name in one object: remove the wrong one"
        ) from None
    except _Misfit as misfit:
        raise InvalidInput(f"the input {path.name} {misfit}: is it damaged?") from None
    except (ValueError, RecursionError):
        raise InvalidInput(
            f"the input {path.name} cannot be read as geojson: is it damaged?"
        ) from None


class _Twice(Exception):
    """A name stands twice in one object."""


class _Misfit(Exception):
    """JSON, but not GeoJSON."""


def _distinct(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise _Twice
    return found


def _no_constant(_: str) -> None:
    raise ValueError("JSON has no NaN and no Infinity")


class _Document:
    """A parser of the outermost object that holds one feature at a time."""

    def __init__(self, file: Any) -> None:
        self._file, self._text, self._at, self._ended = file, "", 0, False
        # Control characters in text are no JSON, but are harmless and met with.
        decoder = json.JSONDecoder(
            object_pairs_hook=_distinct, parse_constant=_no_constant, strict=False
        )
        self._decode = decoder.raw_decode

    def features(self) -> int:
        """Read it all."""
        members: dict[str, Any] = {}
        self._take("{")
        more = self._next() != "}"
        while more:
            name = self._value()
            if not isinstance(name, str):
                raise ValueError
            if name in members:
                raise _Twice
            self._take(":")
            streamed = name == "features" and self._next() == "["
            members[name] = self._elements() if streamed else self._value()
            more = self._next() == ","
            if more:
                self._take(",")
        self._take("}")
        if self._next():
            raise ValueError
        if members.get("type") in ("Feature", "Point"):
            return 1
        if members.get("type") != "FeatureCollection" or type(members.get("features")) is not int:
            raise _Misfit("must be a FeatureCollection, or one Feature")
        return int(members["features"])

    def _elements(self) -> int:
        """The number of elements of the array of features."""
        self._take("[")
        count = 0
        more = self._next() != "]"
        while more:
            _check_feature(self._value())
            count += 1
            more = self._next() == ","
            if more:
                self._take(",")
        self._take("]")
        return count

    def _next(self) -> str:
        """The next character that is no space; none at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read()

    def _take(self, character: str) -> None:
        if self._next() != character:
            raise ValueError
        self._at += 1

    def _value(self) -> Any:
        """The next value, whole: text that ends within it is read on."""
        self._next()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            except json.JSONDecodeError:
                if self._ended or len(self._text) - self._at > _LARGEST:
                    raise
            self._read()

    def _read(self) -> None:
        """Twice as much as is held, so that a long value is not tried too often."""
        held = self._text[self._at :]
        new = self._file.read(max(_READ, len(held)))
        self._ended = not new
        self._text, self._at = held + new, 0


def _check_feature(feature: Any) -> None:
    if not isinstance(feature, dict) or feature.get("type") != "Feature":
        raise _Misfit("must have nothing but Features among its features")
    geometry = feature.get("geometry")
    if isinstance(geometry, dict) and geometry.get("type") == "Point":
        place = geometry.get("coordinates")
        # true and false are int to Python
        if not isinstance(place, list) or {type(number) for number in place} - {int, float}:
            raise _Misfit("must have numbers as coordinates of each point")
