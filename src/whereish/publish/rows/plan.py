"""What is asked of a release, and the kernel that does it.

Every entry point of publishing (frames, files, Spark, Dask, the command line) takes the same
keywords.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from whereish.errors import InvalidInput
from whereish.mechanisms.base import Mechanism
from whereish.mechanisms.registry import calibrated_family, mechanism_named
from whereish.mechanisms.saved import load_places
from whereish.mechanisms.wanted_level import wanted_level, ways_given
from whereish.publish.rows.locations import (
    GeometryColumn,
    Location,
    as_locations,
    warn_of_swapped_names,
)
from whereish.publish.rows.public_places import PlaceMap, as_place_map
from whereish.publish.rows.sanitizer import BatchSanitizer
from whereish.publish.rows.times import TimeStep
from whereish.space.box import Box
from whereish.space.sites import Sites
from whereish.units import Epsilon, Length

__all__ = ["Plan", "build_sanitizer", "locations_of", "spell_out_plan"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Plan(TypedDict, total=False):
    """What to release of each row: the keywords that every entry point takes.

    Their meaning is in the docstring of :func:`whereish.sanitize`.
    """

    lon: str | None
    lat: str | None
    geometry: str | None
    locations: Sequence[Location | tuple[str, str] | str] | None
    epsilon: Epsilon | str | None
    mean_error: Length | str | None
    within: Length | str | None
    confidence: float | None
    mechanism: Mechanism | str | Path | None
    options: Mapping[str, Any] | None
    epsilon_column: str | None
    keep: Sequence[str]
    coarsen: Mapping[str, str | TimeStep] | None
    bbox: Box | Sequence[float] | None
    wrap: bool
    region: Box | Sequence[float] | None
    remap: PlaceMap | Sites | None


def spell_out_plan(like: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """Show each keyword of ``**plan`` in the signature, as `like` declares it.

    Type checkers read them from :class:`Plan`; ``help`` and notebooks read the signature.
    """
    keywords = inspect.signature(like).parameters

    def spell_out(function: _Function) -> _Function:
        declared = inspect.signature(function)
        named = [p for p in declared.parameters.values() if p.kind is not p.VAR_KEYWORD]
        spelt = [keywords[name] for name in Plan.__annotations__]
        positional = [p for p in named if p.kind is not p.KEYWORD_ONLY]
        others = [p for p in named if p.kind is p.KEYWORD_ONLY]
        signature = declared.replace(parameters=[*positional, *spelt, *others])
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return spell_out


def build_sanitizer(plan: Plan, *, geometry: str | None = None) -> BatchSanitizer:
    """The kernel of a plan; `geometry` is used where the plan names no location."""
    _refuse_unknown(plan)
    locations = locations_of(plan, geometry=geometry)
    warn_of_swapped_names(locations)
    mechanism, rebuild, asked = _mechanism(plan)
    keep, level_column = plan.get("keep", ()), plan.get("epsilon_column")
    if isinstance(keep, str):
        raise InvalidInput(f"keep must be a list of column names; got the text {keep!r}")
    if level_column is not None and rebuild is None:
        raise InvalidInput(
            "epsilon_column needs epsilon (its largest value) and a named mechanism, which is"
            " built anew for each level"
        )
    return BatchSanitizer(
        mechanism,
        locations,
        keep=tuple(keep),
        coarsen={name: TimeStep.of(step) for name, step in (plan.get("coarsen") or {}).items()},
        bbox=Box.of(plan.get("bbox")),
        wrap=plan.get("wrap", False),
        region=Box.of(plan.get("region")),
        remap=as_place_map(plan.get("remap")),
        level_column=level_column,
        rebuild=rebuild if level_column is not None else None,
        asked=asked,
    )


def locations_of(plan: Plan, *, geometry: str | None = None) -> tuple[Location, ...]:
    """The locations that a plan names; the one of `geometry` if it names none."""
    named = as_locations(
        plan.get("lon"), plan.get("lat"), plan.get("geometry"), plan.get("locations")
    )
    if named or geometry is None:
        return named
    return (GeometryColumn(geometry),)


def _refuse_unknown(plan: Plan) -> None:
    """A plan may come from a dictionary, whose keys no signature has checked."""
    known = list(Plan.__annotations__)
    for name in plan:
        if name not in known:
            close = difflib.get_close_matches(name, [*known, "ledger", "subject"], 1)
            meant = f"; did you mean {close[0]!r}?" if close else f": it has {', '.join(known)}"
            raise TypeError(f"sanitize() got an unexpected argument {name!r}{meant}")


def _mechanism(
    plan: Plan,
) -> tuple[Mechanism, Callable[[Epsilon], Mechanism] | None, Epsilon | None]:
    """The mechanism; where a level builds it, how, and that level."""
    mechanism, options = plan.get("mechanism"), dict(plan.get("options") or {})
    level = (plan.get("epsilon"), plan.get("mean_error"), plan.get("within"))
    confidence = plan.get("confidence")
    ways = ways_given(*level, confidence)
    if isinstance(mechanism, Path) or (isinstance(mechanism, str) and mechanism.endswith(".npz")):
        mechanism = load_places(mechanism)
    if mechanism is None or isinstance(mechanism, str):
        if not ways:
            raise InvalidInput(
                "give either a level (epsilon, mean_error or within) or mechanism (a built one has"
                " its own level)"
            )
        name = mechanism or "globe-laplace"

        def build(level: Epsilon) -> Mechanism:
            return mechanism_named(name, level, **options)

        if ways == 1 and level[0] is not None:
            asked = Epsilon.of(level[0])
        else:
            asked = wanted_level(
                level[0],
                mean_error=level[1],
                within=level[2],
                confidence=confidence,
                family=calibrated_family(name),
                **options,
            )
        return build(asked), build, asked
    if ways or options:
        raise InvalidInput(
            "give either a level (epsilon, mean_error or within) or mechanism, and not both: a"
            " built one has its own level"
        )
    return mechanism, None, None
