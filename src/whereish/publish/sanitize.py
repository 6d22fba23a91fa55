"""Sanitise a file of locations: one pass, flat memory, one door that states its guarantee.

Every row's location is replaced by one report of a mechanism.  Only the columns that
are named leave the house; file metadata of the input (which may hold the extent of
the true geometry) never does.  The output appears under its name only when it is
complete: written beside it, synced, renamed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

import whereish
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Mechanism
from whereish.mechanisms.globe_laplace import GlobeLaplace
from whereish.privacy.guarantee import Guarantee
from whereish.publish.tables import Table, open_table, writer
from whereish.randomness import Randomness, SeededRandomness, secure
from whereish.space.box import Box
from whereish.space.points import FloatArray, Points
from whereish.units import Epsilon

__all__ = ["METADATA_KEY", "BatchSanitizer", "Release", "sanitize"]

METADATA_KEY = b"whereish"


@runtime_checkable
class Geographic(Protocol):
    """A space that degrees can enter and leave."""

    def from_degrees(self, lon: ArrayLike, lat: ArrayLike) -> Points: ...

    def to_degrees(self, points: Points) -> tuple[FloatArray, FloatArray]: ...


@dataclass(frozen=True)
class Release:
    """What was released: how many rows, under which guarantee each."""

    path: Path
    rows: int
    guarantee: Guarantee
    reproducible: bool

    def to_json(self) -> dict[str, Any]:
        """What is stored with the file."""
        return _statement(self.guarantee, self.reproducible) | {"rows": self.rows}


@dataclass(frozen=True)
class BatchSanitizer:
    """The kernel: a record batch with true locations in, one with reports out.

    All logic about a row is here, and nothing about files.
    """

    mechanism: Mechanism
    lon: str
    lat: str
    keep: tuple[str, ...] = ()
    bbox: Box | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism.space, Geographic):
            raise InvalidInput(
                "the mechanism must live where degrees can enter: on the globe or on a projected"
                f" plane; got {self.mechanism.space.description}"
            )
        if self.lon == self.lat:
            raise InvalidInput(f"lon and lat must be two columns; got {self.lon!r} for both")
        kept = [name for name in self.keep if name in (self.lon, self.lat)]
        if kept:
            raise InvalidInput(
                f"keep must not name the location's own columns (they are released blurred);"
                f" got {', '.join(kept)}"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the output, in order."""
        return (self.lon, self.lat, *self.keep)

    def schema(self, source: pa.Schema, metadata: dict[bytes | str, bytes | str]) -> pa.Schema:
        """The output's schema: locations as doubles, kept columns as they came."""
        fields = [pa.field(self.lon, pa.float64()), pa.field(self.lat, pa.float64())]
        fields += [source.field(name).remove_metadata() for name in self.keep]
        return pa.schema(fields, metadata=metadata)

    def __call__(self, batch: pa.RecordBatch, schema: pa.Schema, rng: Randomness) -> pa.RecordBatch:
        """Replace the locations of one batch."""
        lon, lat = (self._degrees(batch, name) for name in (self.lon, self.lat))
        if self.bbox is not None:
            outside = int((~self.bbox.contains(np.column_stack([lon, lat]))).sum())
            if outside:
                raise InvalidInput(
                    f"{outside} rows lie outside the declared bbox: are latitude and longitude"
                    " swapped, or is the bbox too small?"
                )
        space = self.mechanism.space
        assert isinstance(space, Geographic)
        reports = self.mechanism.report(space.from_degrees(lon, lat), rng=rng)
        blurred = [pa.array(column) for column in space.to_degrees(reports)]
        return pa.RecordBatch.from_arrays(
            [*blurred, *(batch.column(name) for name in self.keep)], schema=schema
        )

    @staticmethod
    def _degrees(batch: pa.RecordBatch, name: str) -> FloatArray:
        column = batch.column(name)
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise InvalidInput(f"column {name!r} must hold numbers (degrees); got {column.type}")
        if column.null_count:
            raise InvalidInput(
                f"column {name!r} must have a number in every row; {column.null_count} are missing:"
                " drop those rows first"
            )
        values: FloatArray = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return values


def sanitize(
    source: str | Path,
    output: str | Path,
    *,
    lon: str,
    lat: str,
    epsilon: Epsilon | str | None = None,
    mechanism: Mechanism | None = None,
    keep: Sequence[str] = (),
    bbox: Box | None = None,
    overwrite: bool = False,
    insecure_seed: int | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Release:
    """Sanitise a CSV or Parquet file into another.

    Parameters
    ----------
    source, output
        Files, by their ending .csv or .parquet.
    lon, lat
        The columns of the location, in degrees.
    epsilon, mechanism
        The privacy level (for :class:`~whereish.GlobeLaplace`), or a mechanism.
    keep
        Further columns to release as they are; all others are dropped.
    bbox
        Where all locations must lie, in degrees; catches swapped columns.
    insecure_seed
        For tests only: reproducible noise, which the output says of itself.
    progress
        Called with rows done and rows in all (None where unknown).

    Notes
    -----
    The guarantee is per row: a person in k rows is protected at k times epsilon.
    """
    if (epsilon is None) == (mechanism is None):
        raise InvalidInput("give either epsilon or mechanism, and not both")
    if mechanism is None:
        assert epsilon is not None
        mechanism = GlobeLaplace(epsilon)
    kernel = BatchSanitizer(mechanism, lon, lat, tuple(keep), bbox)
    rng = secure(None if insecure_seed is None else SeededRandomness(insecure_seed))
    source, output = Path(source), Path(output)
    if output.exists() and not overwrite:
        raise InvalidInput(
            f"the output {output.name} exists already: remove it or ask to overwrite"
        )
    if output.exists() and source.exists() and output.samefile(source):
        raise InvalidInput("the output must be another file than the input")
    with open_table(source, kernel.columns, numbers=(lon, lat)) as table:
        statement = _statement(mechanism.guarantee, rng.reproducible)
        schema = kernel.schema(table.schema, {METADATA_KEY: json.dumps(statement).encode()})
        rows = 0
        with _appearing(output) as partial, writer(partial, output.suffix, schema) as write:
            for batch in _reported(table, progress):
                write(kernel(batch, schema, rng))
                rows += batch.num_rows
            if rows == 0:
                raise InvalidInput(f"the input {source.name} has no rows, so nothing is written")
    release = Release(output, rows, mechanism.guarantee, rng.reproducible)
    if output.suffix == ".csv":
        beside = output.with_name(output.name + ".whereish.json")
        beside.write_text(json.dumps(release.to_json(), indent=2) + "\n")
    return release


def _statement(guarantee: Guarantee, reproducible: bool) -> dict[str, Any]:
    return {
        "whereish": whereish.__version__,
        "guarantee": guarantee.to_json(),
        "scope": "each row alone; a person in k rows is protected at k times this",
        "reproducible": reproducible,
    }


def _reported(
    table: Table, progress: Callable[[int, int | None], None] | None
) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in table.batches:
        yield batch
        done += batch.num_rows
        if progress is not None:
            progress(done, table.rows)


@contextlib.contextmanager
def _appearing(output: Path) -> Iterator[Path]:
    """A name to write under; it becomes `output` only if all goes well."""
    if not output.parent.is_dir():
        raise InvalidInput(f"the folder of the output {output.name} does not exist")
    partial = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        yield partial
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(output)
    finally:
        partial.unlink(missing_ok=True)
