"""Options and their types that the commands share; none of them ever repeats a location."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whereish.errors import WhereishError
from whereish.privacy.guarantee import Guarantee
from whereish.privacy.metric import Scaled
from whereish.units import Epsilon, Length, number, whole_number

if TYPE_CHECKING:
    from whereish.space.box import Box

    # click's stubs made ParamType generic; at run time it may not be subscriptable.
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType

__all__ = [
    "BBOX",
    "CONFIDENCE",
    "DECIMALS",
    "EPSILON",
    "LENGTH",
    "NUMBER",
    "PLACES",
    "POSITIVE",
    "SITES",
    "SafeParamType",
    "WholeType",
    "describe",
]


class SafeParamType(_ParamType):
    """An option type whose messages never quote what was given, where that may be a place."""


class EpsilonType(SafeParamType):
    """A privacy level with its unit."""

    name = "level/length"

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> Epsilon:
        """Read "ln(4)/200 m"."""
        try:
            return Epsilon.of(value)
        except WhereishError as error:
            # A comma is no part of a level: it may be a place in the wrong option.
            said = (
                "must be a level per length, such as 'ln(4)/200 m'" if "," in str(value) else error
            )
            self.fail(str(said), param, ctx)


class LengthType(SafeParamType):
    """A length with its unit."""

    name = "length"

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> Length:
        """Read "300 m"."""
        try:
            return Length.positive(value, name="a length")
        except WhereishError:
            self.fail("must be a length > 0 with its unit, such as '300 m'", param, ctx)


class ConfidenceType(SafeParamType):
    """A probability below 1."""

    name = "probability"

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> float:
        """Read "0.95"."""
        try:
            found = number(value) if isinstance(value, str) else float(value)
        except ValueError:
            found = -1.0
        if not 0 < found < 1:
            self.fail("must be a number between 0 and 1", param, ctx)
        return found


class NumberType(SafeParamType):
    """A decimal number; what Python's float() takes besides ("1_1", "nan", "inf") is refused."""

    name = "number"

    def __init__(self, above: float = -math.inf) -> None:
        self.above = above

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> float:
        """Read "1e-4"."""
        try:
            found = number(value) if isinstance(value, str) else float(value)
        except ValueError:
            self.fail("must be a decimal number, such as 0.001", param, ctx)
        if not found > self.above:
            self.fail(f"must be a number greater than {self.above:g}", param, ctx)
        return found


class WholeType(SafeParamType):
    """A whole number between bounds."""

    name = "integer"

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> int:
        """Read "200"."""
        try:
            found = whole_number(value) if isinstance(value, str) else int(value)
        except ValueError:
            found = self.least - 1
        if not self.least <= found <= self.most:
            self.fail(f"must be a whole number from {self.least} to {self.most}", param, ctx)
        return found


class PlacesType(SafeParamType):
    """Places as LAT,LON; "-" reads one per line from standard input."""

    name = "lat,lon"

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> list[list[float]]:
        """[[lon, lat], ...]."""
        if not isinstance(value, str):
            return list(value)
        lines = sys.stdin.read().splitlines() if value == "-" else [value]
        places = [self._place(line, param, ctx) for line in lines if line.strip()]
        if not places:
            self.fail("must be at least one place, as LAT,LON", param, ctx)
        return places

    def _place(self, text: str, param: click.Parameter | None, ctx: Any) -> list[float]:
        try:
            lat, lon = (number(part.strip()) for part in text.split(","))
        except ValueError:
            self.fail("must be two numbers, LAT,LON, in degrees (got something else)", param, ctx)
        if not (math.isfinite(lat) and math.isfinite(lon) and abs(lat) <= 90 and abs(lon) <= 360):
            self.fail(
                "must have a latitude within 90 and a longitude within 360 degrees, latitude first",
                param,
                ctx,
            )
        return [lon, lat]


class BoxType(SafeParamType):
    """A declared box of degrees."""

    name = "west,south,east,north"

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> Box:
        """Read "2.2,48.8,2.5,48.9"."""
        from whereish.space.box import Box

        if isinstance(value, Box):
            return value
        try:
            west, south, east, north = (number(part.strip()) for part in value.split(","))
            return Box(west, south, east, north)
        except WhereishError:
            self.fail("must have west < east and south < north, in degrees", param, ctx)
        except ValueError:
            self.fail("must be four numbers in degrees: west,south,east,north", param, ctx)


EPSILON, PLACES, BBOX = EpsilonType(), PlacesType(), BoxType()
LENGTH, CONFIDENCE = LengthType(), ConfidenceType()
NUMBER, POSITIVE = NumberType(), NumberType(0.0)

DECIMALS = click.option(
    "--decimals",
    type=WholeType(0, 9),
    default=5,
    show_default=True,
    help="Reports are multiples of 10^-decimals degrees.",
)
SITES = click.option(
    "--sites",
    "source",
    type=click.Path(path_type=Path),
    required=True,
    help="CSV of the places: lon, lat (degrees) or x, y (metres); a column prior if known.",
)


def describe(guarantee: Guarantee) -> str:
    """The guarantee as a line for people, and what it means for places a length apart."""
    from whereish.privacy.maps.geodesic import MapGeodesic

    metric = guarantee.metric
    base, factor = (metric.base, metric.factor) if isinstance(metric, Scaled) else (metric, 1.0)
    if isinstance(base, MapGeodesic):  # its levels change from place to place
        return f"guarantee: {guarantee}"
    apart = min((10.0**k for k in range(-3, 8)), key=lambda m: abs(math.log(m * factor)))
    return (
        f"guarantee: {guarantee}\n"
        f"places {Length(apart)} apart stay within a factor {math.exp(apart * factor):.3g} of each"
        " other in likelihood, whatever is reported"
    )
