"""Options and their types that the commands share; none of them ever repeats a location."""

from __future__ import annotations

import functools
import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from whereish.errors import InvalidInput, WhereishError
from whereish.privacy.guarantee import Guarantee
from whereish.units import UNITS, Epsilon, Length, number, whole_number

if TYPE_CHECKING:
    from whereish.space.box import Box

    # click's stubs made ParamType generic; at run time it may not be subscriptable.
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType

__all__ = [
    "BBOX",
    "BUDGET",
    "CONFIDENCE",
    "DECIMALS",
    "EPSILON",
    "LEDGER",
    "LENGTH",
    "LEVEL",
    "NUMBER",
    "PLACES",
    "POSITIVE",
    "SITES",
    "SafeParamType",
    "WholeType",
    "at_option",
    "describe",
    "file_option",
    "level_options",
    "output_option",
    "whole_option",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])


class SafeParamType(_ParamType):
    """An option type whose messages never quote what was given, where that may be a place."""


class SentenceType(SafeParamType, ABC):
    """An option type that says in one sentence what it takes, whatever was given."""

    wanted: str

    @abstractmethod
    def read(self, value: Any) -> Any:
        """The value; a ValueError or one of ours if it is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> Any:
        """Read it, or say what it must be."""
        try:
            return self.read(value)
        except (ValueError, WhereishError):
            self.fail(self.wanted, param, ctx)


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
                "must be a level per length, such as 'ln(4)/200 m' or '1.07/km' (with a point)"
                if "," in str(value)
                else error
            )
            self.fail(str(said), param, ctx)


class ErrorOrLevelType(EpsilonType):
    """A privacy level, or the mean error of the noise that has it; budgets also as a multiple.

    So a budget may be said as '10 x 300 m': what ten reports cost that are 300 m away on average.
    """

    _TIMES = re.compile(r"\s*(\d{1,9})\s*[x*×]\s*(.*)")

    def __init__(self, *, multiples: bool) -> None:
        self.multiples = multiples
        self.name = f"level/length|{'n x ' if multiples else ''}mean-error"

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> Epsilon:
        """Read "0.1/m", "300 m" or, where multiples are asked for, "10 x 300 m"."""
        if not isinstance(value, str) or "/" in value:
            return super().convert(value, param, ctx)
        found = self._TIMES.fullmatch(value) if self.multiples else None
        count, said = (int(found[1]), found[2]) if found else (1, value)
        from whereish.mechanisms.wanted_level import wanted_level

        try:
            return wanted_level(mean_error=Length.positive(said, name="a length")) * count
        except WhereishError:
            also = ", '10 x 300 m' for ten such reports" if self.multiples else ""
            self.fail(
                "must be a level per length, such as '0.1/m', or a mean error, such as"
                f" '300 m'{also}; the units are {UNITS}",
                param,
                ctx,
            )


class LengthType(SentenceType):
    """A length with its unit."""

    name = "length"
    wanted = f"must be a length > 0 with its unit, such as '300 m'; the units are {UNITS}"

    def read(self, value: Any) -> Length:
        """Read "300 m"."""
        return Length.positive(value, name="a length")


class ConfidenceType(SentenceType):
    """A probability below 1."""

    name = "probability"
    wanted = "must be a number between 0 and 1"

    def read(self, value: Any) -> float:
        """Read "0.95"."""
        found = number(value) if isinstance(value, str) else float(value)
        if not 0 < found < 1:
            raise ValueError
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


class WholeType(SentenceType):
    """A whole number between bounds."""

    name = "integer"

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most
        self.wanted = f"must be a whole number from {least} to {most}"

    def read(self, value: Any) -> int:
        """Read "200"."""
        found = whole_number(value) if isinstance(value, str) else int(value)
        if not self.least <= found <= self.most:
            raise ValueError
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
            self.fail(
                "must be two numbers in degrees, LAT,LON, as 51.5,-0.12 (got something else)",
                param,
                ctx,
            )
        if not (abs(lat) <= 90 and abs(lon) <= 180):
            self.fail(
                "must have a latitude within 90 and a longitude within 180 degrees, in the order"
                " LAT,LON; take 360 from a longitude beyond 180",
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
LEVEL, BUDGET = ErrorOrLevelType(multiples=False), ErrorOrLevelType(multiples=True)
LENGTH, CONFIDENCE = LengthType(), ConfidenceType()
NUMBER, POSITIVE = NumberType(), NumberType(0.0)

DECIMALS = click.option(
    "--decimals",
    type=WholeType(0, 9),
    default=5,
    show_default=True,
    help="Reports are multiples of 10^-decimals degrees.",
)
LEDGER = click.option("--ledger", help="Charge this ledger: a path, or postgresql://...")


_PATH = click.Path(path_type=Path)


def file_option(
    *names: str, help: str, required: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option that names a file; the command gets a Path."""
    return click.option(*names, type=_PATH, required=required, help=help)


def output_option(
    help: str, kind: click.Path | None = _PATH
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Where a command writes; it gets a Path, or text where `kind` is None."""
    return click.option("-o", "--output", type=kind, required=True, help=help)


def whole_option(
    name: str, within: tuple[int, int], *, default: int, help: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option that takes a whole number, and shows its default."""
    kind = WholeType(*within)
    return click.option(name, type=kind, default=default, show_default=True, help=help)


SITES = file_option(
    "--sites",
    "source",
    required=True,
    help="CSV of the places: lon, lat (degrees) or x, y (metres); a column prior if known.",
)


def at_option(reads: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The true place, which the command gets as `places`; `reads` is what '-' does."""
    return click.option(
        "--at",
        "places",
        type=PLACES,
        required=True,
        help=f"The true place in degrees, as maps show it: LAT,LON; '-' {reads} standard input,"
        " which keeps it out of the shell's history.",
    )


def level_options(
    meaning: str = "of the report",
    *,
    noise: str = "Noise",
    required: bool = False,
    confidence: bool = True,
) -> Callable[[_Command], _Command]:
    """The options in which a level is asked for; the command gets an `epsilon` of them all.

    `noise` is the noise that errors are of.  Without `confidence` the command has an option of
    that name itself, which then also goes with --within.
    """
    options = [
        click.option(
            "--mean-error", type=LENGTH, help=f"{noise} whose reports are so far away on average."
        ),
        click.option(
            "--within",
            type=LENGTH,
            help=f"Or {noise.lower()} whose reports are within this with probability --confidence.",
        ),
    ]
    if confidence:
        options.append(
            click.option("--confidence", type=CONFIDENCE, help="With --within; 0.95 by default.")
        )
    options.append(
        click.option(
            "--epsilon",
            type=EPSILON,
            help=f"Or the privacy level {meaning} itself, as 'ln(4)/200 m'.",
        )
    )

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def called(**given: Any) -> Any:
            epsilon, mean_error, within = (
                given.pop(name) for name in ("epsilon", "mean_error", "within")
            )
            chance = given.pop("confidence") if confidence else given["confidence"]
            given["epsilon"] = _level_asked(
                epsilon, mean_error, within, chance, required, strict=confidence
            )
            return command(**given)

        for option in reversed(options):
            called = option(called)
        return cast(_Command, called)

    return decorate


def _level_asked(
    epsilon: Epsilon | None,
    mean_error: Length | None,
    within: Length | None,
    confidence: float | None,
    required: bool,
    *,
    strict: bool,
) -> Epsilon | None:
    ways = sum(one is not None for one in (epsilon, mean_error, within))
    if within is None and confidence is not None and strict:
        raise InvalidInput("--confidence goes with --within, as --within '500 m' --confidence 0.9")
    if ways > 1 or (required and not ways):
        raise InvalidInput("give one of --mean-error '300 m', --within '500 m' and --epsilon")
    if mean_error is None and within is None:
        return epsilon
    from whereish.mechanisms.wanted_level import wanted_level

    chance = None if within is None else confidence
    return wanted_level(mean_error=mean_error, within=within, confidence=chance)


def describe(guarantee: Guarantee, mechanism: Any = None, *, reports: int = 1) -> str:
    """First the sentence that people understand, then the guarantee."""
    from whereish.mechanisms.in_words import how_likely, in_words

    if mechanism is not None:
        words = in_words(mechanism, reports=reports)
    else:
        words = f"{how_likely(guarantee.metric)}."
    return f"{words}\nguarantee: {guarantee}"
