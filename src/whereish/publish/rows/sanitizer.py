"""The kernel of publishing: a record batch with true locations in, one with reports out.

All logic about rows is here, and nothing about files, frames or engines: they all run
this one function.  Only what is named leaves: the locations as reports, the columns of
`keep` as they came, those of `coarsen` as coarse times.  Everything else (altitude,
speed, heading, accuracy, free text, a data frame's index) is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

import whereish
from whereish.arrays import FloatArray
from whereish.errors import InsecureRandomness, InvalidInput
from whereish.mechanisms.base import Mechanism
from whereish.mechanisms.in_words import in_words
from whereish.privacy.guarantee import Guarantee
from whereish.privacy.norms import Geodesic
from whereish.publish.charging import charged_epsilon, level_in_true_metres, of_a_map
from whereish.publish.exposure import Exposure
from whereish.publish.formats.compact import compacted, plain_field, plain_type
from whereish.publish.rows.bad_rows import BadRows
from whereish.publish.rows.locations import (
    XY,
    GeometryColumn,
    Location,
    LonLat,
    refuse_no_places,
)
from whereish.publish.rows.public_places import PlaceMap
from whereish.publish.rows.region import clamped
from whereish.publish.rows.times import TimeStep
from whereish.publish.rows.withheld import call_hiding_errors
from whereish.randomness import Randomness
from whereish.space.box import Box
from whereish.space.plane import Plane
from whereish.space.points import Points
from whereish.space.sphere import within_180
from whereish.units import Epsilon

__all__ = ["METADATA_KEY", "BatchSanitizer"]

METADATA_KEY = b"whereish"


@runtime_checkable
class Geographic(Protocol):
    """A space that degrees can enter and leave."""

    def from_degrees(self, lon: ArrayLike, lat: ArrayLike) -> Points: ...

    def to_degrees(self, points: Points) -> tuple[FloatArray, FloatArray]: ...


@dataclass(frozen=True)
class BatchSanitizer:
    """The plan, checked: a function of record batches.

    Parameters
    ----------
    mechanism
        Draws the reports; with `level_column` it is the one of the largest epsilon.
    locations, outputs
        Where the secret locations are, and the columns in which their reports leave.
    rebuild, asked
        With `level_column`: the mechanism of another epsilon, and the largest one.
    """

    mechanism: Mechanism
    locations: tuple[Location, ...]
    outputs: tuple[Location, ...] = ()
    keep: tuple[str, ...] = ()
    coarsen: Mapping[str, TimeStep] = field(default_factory=dict)
    bbox: Box | None = None
    wrap: bool = False
    region: Box | None = None
    remap: PlaceMap | None = None
    level_column: str | None = None
    rebuild: Callable[[Epsilon], Mechanism] | None = None
    asked: Epsilon | None = None

    def __post_init__(self) -> None:
        if not self.locations:
            raise InvalidInput(
                "say where the locations are: lon and lat (or --lon and --lat), two columns of"
                " degrees; geometry; or locations"
            )
        self._check_space()
        if not self.outputs:
            object.__setattr__(self, "outputs", self.locations)
        places = {name for location in self.locations for name in location.columns}
        places |= {name for location in self.outputs for name in location.columns}
        if self.level_column in places:
            raise InvalidInput("epsilon_column must not be a column of the location")
        kept = [name for name in (*self.keep, *self.coarsen) if name in places]
        if kept:
            raise InvalidInput(
                "keep must not name the location's own columns (they are released blurred);"
                f" got {', '.join(kept)}"
            )
        twice = [n for n in self.keep if n in self.coarsen or self.keep.count(n) > 1]
        if twice:
            raise InvalidInput(f"a column may be kept once, or coarsened; got {twice[0]!r} twice")

    def _check_space(self) -> None:
        space, in_metres = self.mechanism.space, [isinstance(at, XY) for at in self.locations]
        if isinstance(space, Plane) and not space.proven:
            raise InvalidInput(
                f"the scale factor of {space.description} is only estimated, so nothing can be"
                " promised of a release: choose a projection with a known one (UTM, Lambert,"
                " Plane.around(...)) or GlobeLaplace"
            )
        if not any(in_metres):
            # A plane without a coordinate system refuses degrees when they come; say it now.
            nowhere = isinstance(space, Plane) and space.crs is None
            if nowhere or not isinstance(space, Geographic):
                raise InvalidInput(
                    "the mechanism must live where degrees can enter: on the globe or on a"
                    f" projected plane; got {space.description}"
                )
        elif not all(in_metres) or not isinstance(space, Plane) or self._in_degrees:
            raise InvalidInput(
                "coordinates in metres need a mechanism on a plane, for all locations, and no"
                " remap or region (which are in degrees); the mechanism lives in"
                f" {space.description}"
            )

    @property
    def _in_degrees(self) -> bool:
        """Whether something is asked of reports that has a meaning in degrees alone."""
        return self.remap is not None or self.region is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        names = [name for location in self.locations for name in location.columns]
        level = () if self.level_column is None else (self.level_column,)
        return tuple(dict.fromkeys((*names, *self.keep, *self.coarsen, *level)))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that must hold numbers, for text formats to read."""
        pairs = [at.columns for at in self.locations if isinstance(at, LonLat)]
        level = () if self.level_column is None else (self.level_column,)
        return (*(name for pair in pairs for name in pair), *level)

    @property
    def guarantee(self) -> Guarantee:
        """What each location's report keeps; with `level_column`, at most.

        Degrees are promised true metres, whatever plane the mechanism works on; a privacy map
        promises its own metric, whose levels are in true metres.
        """
        ours, space = self.mechanism.guarantee, self.mechanism.space
        in_degrees = not isinstance(self.locations[0], XY)
        if (
            in_degrees
            and isinstance(space, Plane)
            and not of_a_map(ours.metric)
            and math.isfinite(level_in_true_metres(self.mechanism))
        ):
            return replace(ours, metric=self.epsilon() * Geodesic())
        return ours

    @property
    def in_words(self) -> str:
        """What each report tells, and how far away it is, in a sentence for people."""
        return in_words(self.mechanism)

    def leaving_as(self, outputs: Sequence[Location]) -> BatchSanitizer:
        """The same plan, with reports in other columns."""
        return replace(self, outputs=tuple(outputs))

    def located_at(self, locations: Sequence[Location]) -> BatchSanitizer:
        """The same plan, for secret locations in other columns."""
        return replace(self, locations=tuple(locations), outputs=())

    @property
    def geometries(self) -> tuple[str, ...]:
        """The geometry columns among those that leave."""
        return tuple(at.name for at in self.outputs if isinstance(at, GeometryColumn))

    @property
    def scope(self) -> str:
        """What the guarantee is about, and what must hold for it."""
        many = len(self.locations)
        if many == 1:
            scope = "each row alone; a person in k rows is protected at k times this"
        else:
            scope = (
                f"each of the {many} locations of each row alone; a person in k rows is protected"
                f" at {many} k times this"
            )
        if self.level_column is not None:
            scope += (
                "; each row's own level must not depend on its location, or the level that shows"
                " in its noise tells of it"
            )
        return scope

    def exposure(self, rows: int) -> Exposure:
        """What so many rows expose if all are one person's."""
        reports = rows * len(self.locations)
        return Exposure(reports, reports * level_in_true_metres(self.mechanism), named=False)

    def statement(self, *, reproducible: bool) -> dict[str, Any]:
        """What is stated of the release, in it or beside it."""
        stated: dict[str, Any] = {
            "in_words": self.in_words,
            "whereish": whereish.__version__,
            "guarantee": self.guarantee.to_json(),
            "scope": self.scope,
            "reproducible": reproducible,
            "locations": [list(location.columns) for location in self.outputs],
        }
        if self.level_column is not None:
            stated["level"] = "each row has its own level, at most the one stated"
        if self.region is not None:
            stated["clamped"] = (
                "reports outside the declared region were moved to its closest place, which keeps"
                " the guarantee"
            )
        if self.remap is not None:
            stated["remapped"] = "reports were moved to public places, which keeps the guarantee"
        if self.coarsen:
            stated["coarsened"] = {
                n: f"{step.count} {step.unit}" for n, step in self.coarsen.items()
            }
        return stated

    def schema(
        self, source: pa.Schema, metadata: Mapping[bytes | str, bytes | str] | None = None
    ) -> pa.Schema:
        """The output's schema; nothing of the source's metadata is in it."""
        fields = [one for location in self.outputs for one in location.fields]
        fields += [plain_field(source.field(name)) for name in self.keep]
        boxes = [f.name for f in fields if pa.types.is_struct(f.type) and _is_extent(f.type)]
        if boxes:
            raise InvalidInput(
                f"column {boxes[0]!r} holds the extent of the true geometries: it cannot be kept"
            )
        fields += [
            pa.field(name, step.type_of(plain_type(source.field(name).type)))
            for name, step in self.coarsen.items()
        ]
        return pa.schema(fields, metadata=dict(metadata) if metadata else None)

    def __call__(self, batch: pa.RecordBatch, schema: pa.Schema, rng: Randomness) -> pa.RecordBatch:
        """Replace the locations of one batch."""
        levels = self.levels(batch)
        arrays: list[Any] = []
        for location, leaving in zip(self.locations, self.outputs, strict=True):
            degrees = self._within_180(location, location.read(batch))
            self._refuse_outside(degrees)
            arrays += leaving.write(*self._reports(degrees, levels, rng))
        arrays += [compacted(batch.column(name)) for name in self.keep]
        for name, step in self.coarsen.items():
            # Again afterwards: what Arrow computes, it also computes from what nulls cover.
            arrays.append(compacted(step.floor(compacted(batch.column(name)), name)))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def check(self, batch: pa.RecordBatch) -> None:
        """Refuse what a release would refuse of one batch; nothing is drawn."""
        self.levels(batch)
        for location in self.locations:
            self._refuse_outside(self._within_180(location, location.read(batch)))
        for name, step in self.coarsen.items():
            step.floor(batch.column(name), name)

    def levels(self, batch: pa.RecordBatch) -> FloatArray | None:
        """Each row's own level per metre, checked; None where all share one."""
        if self.level_column is None:
            return None
        column = batch.column(self.level_column)
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise InvalidInput(
                f"column {self.level_column!r} must hold levels per metre; got {column.type}"
            )
        levels: FloatArray = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        assert self.asked is not None
        most = self.asked.per_m
        wrong = ~((levels > 0) & (levels <= most))
        if wrong.any():
            raise BadRows(
                f"column {self.level_column!r} must hold levels per metre, greater than 0 and at"
                f" most epsilon = {most:g}; {int(wrong.sum())} do not",
                wrong,
            )
        return levels

    def charged_levels(self, batch: pa.RecordBatch) -> FloatArray | None:
        """Each row's level per true metre, for charging: that of its own mechanism."""
        levels = self.levels(batch)
        if levels is None or self.asked is None or self.epsilon() == self.asked:
            return levels
        # Levels in true metres are proportional to those asked for; a last bit to spare.
        return np.nextafter(levels * (self.epsilon().per_m / self.asked.per_m), np.inf)

    def epsilon(self) -> Epsilon:
        """The level per true metre that one report keeps, for charging."""
        return charged_epsilon(self.mechanism)

    def _reports(
        self, degrees: FloatArray, levels: FloatArray | None, rng: Randomness
    ) -> tuple[FloatArray, FloatArray]:
        in_metres = isinstance(self.locations[0], XY)
        if levels is None:
            lon, lat = _drawn(self.mechanism, degrees, rng, in_metres)
        else:
            assert self.rebuild is not None
            lon, lat = np.empty(len(degrees)), np.empty(len(degrees))
            order = np.argsort(levels, kind="stable")
            values, starts = np.unique(levels[order], return_index=True)
            for value, rows in zip(values, np.split(order, starts[1:]), strict=True):
                build = partial(self.rebuild, Epsilon.per_metre(value))
                mechanism = call_hiding_errors(
                    build, self.mechanism, "the mechanism of a row's level"
                )
                lon[rows], lat[rows] = _drawn(mechanism, degrees[rows], rng, in_metres)
        if self.region is not None:
            lon, lat = clamped(lon, lat, self.region)
        if self.remap is not None:
            remap, reports = self.remap, np.column_stack([lon, lat])
            moved = call_hiding_errors(lambda: np.array(remap(reports), float), remap, "the remap")
            if moved.shape != (len(lon), 2):
                raise InvalidInput(
                    f"remap must return (n, 2) degrees for (n, 2) degrees; got {moved.shape}"
                )
            return np.ascontiguousarray(moved[:, 0]), np.ascontiguousarray(moved[:, 1])
        return lon, lat

    def _within_180(self, location: Location, places: FloatArray) -> FloatArray:
        if isinstance(location, XY):
            return places
        refuse_no_places(places, location.columns)
        return within_180(places, wrap=self.wrap, how="wrap=True, or --wrap")

    def _refuse_outside(self, degrees: FloatArray) -> None:
        if self.bbox is None:
            return
        in_metres = isinstance(self.locations[0], XY)
        holds = self.bbox.contains if in_metres else self.bbox.contains_degrees
        outside = int((~holds(degrees)).sum())
        if outside:
            raise InvalidInput(
                f"{outside} rows lie outside the declared bbox: are latitude and longitude"
                " swapped, or is the bbox too small?"
            )


def _drawn(
    mechanism: Mechanism, places: FloatArray, rng: Randomness, in_metres: bool
) -> tuple[FloatArray, FloatArray]:
    """Reports of places, in degrees or in the coordinates of the mechanism's plane."""
    space = mechanism.space
    geographic = space if isinstance(space, Geographic) and not in_metres else None
    secrets: Points | FloatArray = places
    if geographic is not None:
        enter = partial(geographic.from_degrees, places[:, 0], places[:, 1])
        secrets = call_hiding_errors(enter, space, "the space of the mechanism")

    def reported() -> tuple[Points, FloatArray, FloatArray]:
        reports = mechanism.report(secrets, rng=rng)
        first, second = geographic.to_degrees(reports) if geographic else reports.coordinates.T
        # Copies: an array of another's making may be a view onto all that it was made from.
        return reports, np.array(first, float), np.array(second, float)

    reports, first, second = call_hiding_errors(reported, mechanism, "the mechanism")
    if reports.reproducible and not rng.reproducible:
        raise InsecureRandomness(
            "the mechanism drew reproducible noise, which protects nobody: release with a"
            " mechanism that uses the rng it is given, or ask for insecure_seed in a test"
        )
    return first, second


def _is_extent(kind: Any) -> bool:
    """Whether a struct is a bounding box, such as GeoParquet's covering column."""
    names = {kind.field(i).name for i in range(kind.num_fields)}
    return {"xmin", "ymin", "xmax", "ymax"} <= names
