"""The words in which a release is asked for, and the kernel that they describe.

Every door of publishing (frames, files, Spark, Dask, the command line) takes the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from whereish.errors import InvalidInput
from whereish.mechanisms.base import Mechanism
from whereish.mechanisms.registry import mechanism_named
from whereish.publish.rows.locations import GeometryColumn, Location, as_locations
from whereish.publish.rows.public_places import PlaceMap, as_place_map
from whereish.publish.rows.sanitizer import BatchSanitizer
from whereish.publish.rows.times import TimeStep
from whereish.space.box import Box
from whereish.space.sites import Sites
from whereish.units import Epsilon

__all__ = ["Plan", "planned"]


class Plan(TypedDict, total=False):
    """What to release of each row.

    Attributes
    ----------
    lon, lat
        The columns of the secret location, in degrees.
    geometry
        Or the column of its points (WKB or GeoArrow), in WGS84 degrees.
    locations
        Several secret locations: pairs of columns, names of geometry columns, or
        XY("x", "y") for coordinates of the mechanism's own plane, in metres.  A location
        that is no secret is named in `keep` instead.
    epsilon
        The privacy level of each report, such as "ln(4)/200 m".
    mechanism
        A name of the registry ("globe-laplace" unless said), built from `epsilon` and
        `options`; or a built mechanism, such as one of a privacy map, without `epsilon`.
    options
        What the named mechanism takes besides epsilon, such as `plane`.
    epsilon_column
        A column with each row's own level per metre, at most `epsilon`.  It must not
        depend on the location, or it tells of it.
    keep
        Further columns to release as they are; all others are dropped.
    coarsen
        Time columns to release coarsely: {"time": "1 h"}.
    bbox
        Where all locations must lie, in degrees; catches swapped columns.
    remap
        Public places to move reports to: Sites, or a function of (n, 2) degrees.
    """

    lon: str | None
    lat: str | None
    geometry: str | None
    locations: Sequence[Location | tuple[str, str] | str] | None
    epsilon: Epsilon | str | None
    mechanism: Mechanism | str | None
    options: Mapping[str, Any]
    epsilon_column: str | None
    keep: Sequence[str]
    coarsen: Mapping[str, str | TimeStep]
    bbox: Box | None
    remap: PlaceMap | Sites | None


def planned(plan: Plan, *, geometry: str | None = None) -> BatchSanitizer:
    """The kernel of a plan; `geometry` is used where the plan names no location."""
    unknown = sorted(set(plan) - set(Plan.__annotations__))
    if unknown:
        raise TypeError(f"unknown words in the plan: {', '.join(unknown)}")
    locations = as_locations(
        plan.get("lon"), plan.get("lat"), plan.get("geometry"), plan.get("locations")
    )
    if not locations and geometry is not None:
        locations = (GeometryColumn(geometry),)
    mechanism, rebuild = _mechanism(plan)
    keep, level_column = plan.get("keep", ()), plan.get("epsilon_column")
    if isinstance(keep, str):
        raise InvalidInput(f"keep must be a list of column names; got the text {keep!r}")
    asked = plan.get("epsilon")
    if level_column is not None and rebuild is None:
        raise InvalidInput(
            "epsilon_column needs epsilon (its largest value) and a named mechanism, which is"
            " built anew for each level"
        )
    return BatchSanitizer(
        mechanism,
        locations,
        keep=tuple(keep),
        coarsen={name: TimeStep.of(step) for name, step in plan.get("coarsen", {}).items()},
        bbox=plan.get("bbox"),
        remap=as_place_map(plan.get("remap")),
        level_column=level_column,
        rebuild=rebuild if level_column is not None else None,
        asked=Epsilon.of(asked) if asked is not None else None,
    )


def _mechanism(plan: Plan) -> tuple[Mechanism, Callable[[Epsilon], Mechanism] | None]:
    epsilon, mechanism = plan.get("epsilon"), plan.get("mechanism")
    options = dict(plan.get("options", {}))
    if mechanism is None or isinstance(mechanism, str):
        if epsilon is None:
            raise InvalidInput("give either epsilon or mechanism (a built one has its own level)")
        name = mechanism or "globe-laplace"

        def build(level: Epsilon) -> Mechanism:
            return mechanism_named(name, level, **options)

        return build(Epsilon.of(epsilon)), build
    if epsilon is not None or options:
        raise InvalidInput(
            "give either epsilon or mechanism, and not both: a built one has its own level"
        )
    return mechanism, None
