"""One coordinate operation from WGS84 degrees to a plane, the same for every place.

Left alone, PROJ chooses a datum operation from place to place, and the image jumps by
metres where the choice changes.  A plane must be one function, so one operation is
chosen for the declared region and built from its own pipeline, which has no alternatives.
"""

from __future__ import annotations

import itertools
import math
import shlex
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from whereish.errors import InvalidInput
from whereish.space.box import Box

if TYPE_CHECKING:
    from pyproj import CRS, Transformer

__all__ = ["Operation", "Step", "available_operations", "operation_for"]

Step = dict[str, str]
"""Parameters of one step of a pipeline; a flag has the value ""."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A coordinate operation: what PROJ calls it, how accurate it is, what it computes.

    Parameters
    ----------
    name
        PROJ's name, such as "Inverse of DHDN to WGS 84 (2) + 3-degree Gauss-Kruger zone 3".
    accuracy_m
        How far its results are from the true ones in metres, where that is known.
    pipeline
        The steps, as PROJ text.
    """

    name: str
    accuracy_m: float | None
    pipeline: str

    @property
    def description(self) -> str:
        """Name and accuracy in a few words."""
        if self.accuracy_m == 0:
            return self.name
        known = "of unknown accuracy" if self.accuracy_m is None else f"to {self.accuracy_m:g} m"
        return f"{self.name} ({known})"

    @property
    def names(self) -> tuple[str, ...]:
        """What it may be called: its datum operations alone, each of them, or all."""
        parts = [part.removeprefix("Inverse of ") for part in self.name.split(" + ")]
        return (" + ".join(parts[:-1]) or parts[-1], *parts[:-1], self.name)

    @property
    def steps(self) -> list[Step]:
        """The pipeline's steps; "inv" is a flag among their parameters."""
        return steps_of(self.pipeline)

    def transformer(self) -> Transformer:
        """Degrees to metres; its inverse is the same operation backwards."""
        return transformer_of(self.pipeline)


def steps_of(pipeline: str) -> list[Step]:
    """The steps of a pipeline in PROJ's text."""
    words = [word.lstrip("+") for word in shlex.split(pipeline)]
    if "step" not in words:
        return [_step(words)]
    starts = [i for i, word in enumerate(words) if word == "step"]
    if words[: starts[0]] != ["proj=pipeline"]:
        return [{"proj": "unknown"}]
    ends = [*starts[1:], len(words)]
    return [_step(words[low + 1 : high]) for low, high in zip(starts, ends, strict=True)]


def _step(words: list[str]) -> Step:
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def text_of(steps: list[Step]) -> str:
    """The text of a pipeline with these steps."""
    lines = (
        " ".join(f"+{key}={value}" if value else f"+{key}" for key, value in step.items())
        for step in steps
    )
    return "+proj=pipeline " + " ".join(f"+step {line}" for line in lines)


@lru_cache(maxsize=128)
def transformer_of(pipeline: str) -> Transformer:
    """The transformer of one pipeline."""
    from pyproj import Transformer

    return Transformer.from_pipeline(pipeline)


@lru_cache(maxsize=128)
def operation_for(crs: str, region: Box, name: str | None = None) -> Operation:
    """The operation of this name; without a name the best one, if it covers the region.

    Refused are guesses without a known datum relation, an operation whose grid is not
    installed (another one in its stead would be a silent detour), and regions that no
    single operation covers.  An operation that shifts nothing, where WGS84 and the
    datum are taken as one, is one function wherever it is used.
    """
    found = available_operations(crs, region)
    if name is not None:
        for one in found.operations:
            if name in one.names:
                return one
        raise InvalidInput(
            f"{name!r} is not an operation from WGS84 to {crs!r} that covers the declared region"
            f" and can be used here; there are: {_listed(found.operations)}"
        )
    if not found.best_installed:
        raise InvalidInput(
            f"the best operation from WGS84 to {crs!r} in the declared region needs a grid that is"
            " not installed: install PROJ's grids, choose another coordinate system (a UTM zone),"
            f" or name a lesser operation, shift=..., of {_listed(found.operations)}"
        )
    if not found.operations:
        raise InvalidInput(
            f"no single operation from WGS84 to {crs!r} covers the declared region: declare a"
            " smaller region, choose another coordinate system (a UTM zone), or name the datum"
            " shift yourself in a PROJ string with +towgs84"
        )
    return found.operations[0]


@dataclass(frozen=True, slots=True)
class Available:
    """Operations that cover a region and can be used, in PROJ's order.

    `areas` are the bounds (west, south, east, north) in degrees of all areas of use in question,
    between which PROJ would choose.
    """

    operations: tuple[Operation, ...]
    best_installed: bool
    areas: tuple[tuple[float, float, float, float], ...]


@lru_cache(maxsize=128)
def available_operations(crs: str, region: Box) -> Available:
    """What PROJ offers for a region; at least one operation, installed or not."""
    from pyproj.exceptions import ProjError

    target = _projected(crs)
    try:
        group = _candidates(target, region)
    except (ProjError, IndexError):
        group = None
    if group is None or not (group.transformers or group.unavailable_operations):
        raise InvalidInput(
            f"PROJ knows no operation from WGS84 to {crs!r} in the declared region: declare a"
            " region where this coordinate system is used, or choose another one, such as a"
            " UTM zone"
        )
    found = []
    for one in group.transformers:
        area = one.area_of_use
        covers = area is None or _covers(area.bounds, region)
        if covers or all(step["proj"] in _NO_SHIFT for step in steps_of(one.definition)[:-1]):
            accuracy = one.accuracy if one.accuracy >= 0 else None
            found.append(Operation(_name(one.description), accuracy, one.definition))
    every = itertools.chain(group.transformers, group.unavailable_operations)
    areas = tuple(one.area_of_use.bounds for one in every if one.area_of_use is not None)
    return Available(tuple(found), bool(group.best_available), areas)


_NO_SHIFT = ("unitconvert", "axisswap", "noop")


def _listed(operations: tuple[Operation, ...]) -> str:
    return "; ".join(repr(one.names[0]) for one in operations) or "none"


def _projected(crs: str) -> CRS:
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        target = CRS.from_user_input(crs)
    except CRSError:
        raise InvalidInput(
            "crs must be a projected coordinate system in metres that PROJ knows, such as"
            f" 'EPSG:2154'; got {crs!r}"
        ) from None
    units = {axis.unit_name for axis in target.axis_info}
    if not target.is_projected or not units <= {"metre", "meter"}:
        raise InvalidInput(
            f"crs must be projected, with axes in metres, such as 'EPSG:2154'; got {crs!r}"
        )
    return target


def _candidates(target: CRS, region: Box) -> Any:
    from pyproj.transformer import AreaOfInterest, TransformerGroup

    west, east = (math.remainder(lon, 360.0) for lon in (region.x_low, region.x_high))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a missing grid is refused
        return TransformerGroup(
            "OGC:CRS84",
            target,
            always_xy=True,
            allow_ballpark=False,
            area_of_interest=AreaOfInterest(west, region.y_low, east, region.y_high),
        )


def _covers(bounds: tuple[float, float, float, float], region: Box) -> bool:
    west, south, east, north = bounds
    width = 360.0 if (west, east) == (-180.0, 180.0) else (east - west) % 360.0
    inside = width == 360.0 or (region.x_low - west) % 360.0 + region.width <= width
    return inside and south <= region.y_low and region.y_high <= north


def _name(description: str) -> str:
    parts = [part for part in description.split(" + ") if not part.startswith("axis order change")]
    return " + ".join("its own conversion" if part == "unknown" else part for part in parts)
