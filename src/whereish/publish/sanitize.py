"""Sanitise locations: one door for frames and files, which states its guarantee.

Every row's location is replaced by one report of a mechanism.  Only the columns that
are named leave the house; metadata of the input (which may hold the extent of the true
geometry) never does.  Files are read and written in one pass with flat memory, and
appear under their names only when they are complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, overload

import pyarrow as pa

from whereish.errors import InvalidInput, LedgerUnavailable, NotWritten
from whereish.publish.exposure import Exposure, Release
from whereish.publish.formats import formulas
from whereish.publish.formats.content import content_digest
from whereish.publish.formats.file_kinds import default_geometry, leaving_as, tables_in
from whereish.publish.formats.frames import opened_frame
from whereish.publish.formats.tables import (
    BATCH_ROWS,
    Wanted,
    Writing,
    carries_statement,
    naming,
    open_table,
    write_table,
)
from whereish.publish.ledger.ledger import PENDING, Ledger, charges_of
from whereish.publish.release.staging import Counts, Manifest, Staging, staging
from whereish.publish.rows.locations import GeometryColumn
from whereish.publish.rows.plan import Plan, planned
from whereish.publish.rows.sanitizer import METADATA_KEY, BatchSanitizer
from whereish.publish.rows.subjects import Tally
from whereish.randomness import Randomness, SeededRandomness, secure

__all__ = ["METADATA_KEY", "BatchSanitizer", "Release", "sanitize"]

RowProgress = Callable[[int, int | None], None]


@overload
def sanitize(
    source: str | Path,
    output: str | Path,
    *,
    ledger: Ledger | None = ...,
    subject: str | None = ...,
    layer: str | None = ...,
    sha256: str | None = ...,
    overwrite: bool = ...,
    keep_formulas: bool = ...,
    insecure_seed: int | None = ...,
    progress: RowProgress | None = ...,
    **plan: Unpack[Plan],
) -> Release: ...


@overload
def sanitize(
    source: Any,
    output: None = ...,
    *,
    ledger: Ledger | None = ...,
    subject: str | None = ...,
    insecure_seed: int | None = ...,
    **plan: Unpack[Plan],
) -> Any: ...


def sanitize(
    source: Any,
    output: str | Path | None = None,
    *,
    ledger: Ledger | None = None,
    subject: str | None = None,
    layer: str | None = None,
    sha256: str | None = None,
    overwrite: bool = False,
    keep_formulas: bool = False,
    insecure_seed: int | None = None,
    progress: RowProgress | None = None,
    **plan: Unpack[Plan],
) -> Any:
    """Blur the locations of a frame, a file, or a folder of files.

    A frame (pandas, GeoPandas, Polars, PyArrow, DuckDB) comes back as its own type.  A
    file (.csv, .jsonl, .ndjson, .parquet, .geoparquet, .gpkg, .geojson, .gpx) is written
    to `output`, by its ending; a folder to a new folder of files of the same names.

    Parameters
    ----------
    source, output
        A frame; or a path, and the path to be written.
    ledger, subject
        Charge each row's subject (a column) before anything is released.  A job that was
        interrupted is run again with the same words: it neither charges nor perturbs
        twice (:mod:`whereish.publish.release.staging`).
    layer
        The layer of a file that has several.
    sha256
        The input file's SHA-256 in hex.  A damaged file that still reads as a table (a CSV
        cut short, a digit changed) can be told from others by this alone.
    keep_formulas
        Write text into CSV as it is, also where a spreadsheet would take it for a formula;
        otherwise an apostrophe stands before it (:mod:`whereish.publish.formats.formulas`).
    insecure_seed
        For tests only: reproducible noise, which the output says of itself.
    progress
        Called with rows done and rows in all (None where unknown).
    **plan
        Which columns, which privacy level, which mechanism: see
        :class:`~whereish.publish.rows.plan.Plan`.

    Returns
    -------
    The released frame, or a :class:`Release` that describes the file.

    Notes
    -----
    The guarantee is per location: a person in k rows of m secret locations is protected at
    k m times epsilon.

    Raises
    ------
    InvalidInput
        If a column, a file or a parameter is not what it must be.
    BudgetExceeded
        If a subject has too little left; then nothing is released.
    NotWritten
        If the output could not be written; then nothing is released.

    Examples
    --------
    >>> import whereish as wh
    >>> import pyarrow as pa
    >>> table = pa.table({"lon": [2.35, 2.36], "lat": [48.85, 48.86], "shop": ["a", "b"]})
    >>> released = wh.sanitize(table, lon="lon", lat="lat", epsilon="ln(4)/200 m", keep=["shop"])
    >>> released.column_names, released.num_rows
    (['lon', 'lat', 'shop'], 2)
    """
    if (ledger is None) != (subject is None):
        raise InvalidInput(
            "ledger and subject belong together: the column of whom to charge, and where"
        )
    rng = secure(None if insecure_seed is None else SeededRandomness(insecure_seed))
    if not isinstance(source, str | Path):
        if output is not None or sha256 is not None:
            raise InvalidInput("output and sha256 are for files; a frame comes back as it was")
        return _frame(source, plan, ledger, subject, rng)
    if output is None:
        raise InvalidInput("a file needs an output to be written to")
    job = FileJob(
        Path(source), Path(output), plan, subject, layer, sha256, rng, progress, keep_formulas
    )
    return job.run(ledger, overwrite=overwrite)


def _frame(
    frame: Any, plan: Plan, ledger: Ledger | None, subject: str | None, rng: Randomness
) -> Any:
    table, geometry, back = opened_frame(frame)
    kernel = planned(plan, geometry=geometry)
    wanted = kernel.columns if subject is None else (*kernel.columns, subject)
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise InvalidInput(
            f"the frame has no column {', '.join(map(repr, missing))};"
            f" it has {naming(table.column_names)}"
        )
    if len(table) == 0:
        raise InvalidInput("the frame has no rows, so nothing is released")
    statement = kernel.statement(reproducible=rng.reproducible)
    schema = kernel.schema(table.schema, {METADATA_KEY: json.dumps(statement).encode()})
    tally = None if subject is None else Tally(kernel, subject)
    batches = []
    for batch in table.to_batches(BATCH_ROWS):
        if tally is not None:
            tally.add(batch)
        batches.append(kernel(batch, schema, rng))
    released = back(pa.Table.from_batches(batches, schema=schema), statement)
    if tally is not None and ledger is not None:
        try:
            ledger.charge(charges_of(tally.counts))
        except LedgerUnavailable as error:
            raise LedgerUnavailable(
                f"{error}; nothing was released, and whether the charge had arrived is in the"
                " subjects' statements"
            ) from None
    return released


@dataclass(frozen=True)
class FileJob:
    """Sanitising a file or a folder, from its true places to its released name."""

    source: Path
    output: Path
    plan: Plan
    subject: str | None
    layer: str | None
    sha256: str | None
    rng: Randomness
    progress: RowProgress | None
    keep_formulas: bool = False

    def run(self, ledger: Ledger | None, *, overwrite: bool) -> Release:
        """Do all of it, or what an earlier run left to do."""
        if not self.source.exists():
            raise InvalidInput(f"the input {self.source.name} is not a file")
        if self.output.exists() and self.output.samefile(self.source):
            raise InvalidInput("the output must be another file than the input")
        self._check_digest()
        files = tables_in(self.source)
        first = planned(self.plan, geometry=default_geometry(files[0]))
        request = self._request(first, files)
        try:
            with staging(self.output) as place:
                earlier = _resumed(place, request, ledger, overwrite=overwrite)
                if earlier is not None:
                    return self._release(first, earlier.rows, earlier.counts, resumed=True)
                place.refuse_foreign(overwrite)
                place.empty()
                rows, counts = self._stage(files, place)
                self._check_digest()  # it may have changed while it was read
                place.commit(request, rows, counts, ledger, overwrite=overwrite)
        except OSError as error:
            if isinstance(error, NotWritten):
                raise
            raise NotWritten(
                f"the output {self.output.name} cannot be written"
                f" ({error.strerror or type(error).__name__}); nothing was released"
            ) from None
        return self._release(first, rows, counts, resumed=False)

    def _check_digest(self) -> None:
        if self.sha256 is None:
            return
        if not re.fullmatch("[0-9a-fA-F]{64}", self.sha256) or self.source.is_dir():
            raise InvalidInput("sha256 must be the 64 hexadecimal digits of one file")
        try:
            with self.source.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise InvalidInput(
                f"the input {self.source.name} cannot be read ({error.strerror})"
            ) from None
        if found != self.sha256.lower():
            raise InvalidInput(
                f"the input {self.source.name} is not the file of this SHA-256: was it changed or"
                " damaged? nothing was released"
            )

    def _release(
        self, kernel: BatchSanitizer, rows: int, counts: Counts, *, resumed: bool
    ) -> Release:
        exposure = Exposure.of_subjects(counts) if counts else kernel.exposure(rows)
        return Release(
            self.output,
            rows,
            kernel.guarantee,
            self.rng.reproducible,
            resumed,
            kernel.scope,
            exposure,
        )

    def _request(self, kernel: BatchSanitizer, files: Sequence[Path]) -> str:
        """What was asked, so that a resumed job is known for the same."""
        stats = [(str(path.resolve()), path.stat()) for path in files]
        said = [
            [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats],
            kernel.statement(reproducible=self.rng.reproducible),
            [kernel.columns, str(kernel.bbox), self.subject, self.layer, self.sha256],
            [self.keep_formulas],
            [kernel.keep, list(kernel.coarsen), kernel.level_column, repr(kernel.locations)],
            [content_digest(kernel.mechanism), content_digest(kernel.remap)],
        ]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def _stage(self, files: Sequence[Path], place: Staging) -> tuple[int, Counts]:
        counts: Counts = {}
        if not self.source.is_dir():
            rows = self._write(self.source, place.staged, place.beside, counts)
            return rows, counts
        rows = 0
        place.staged.mkdir()
        for path in files:
            target = place.staged / path.relative_to(self.source)
            target.parent.mkdir(parents=True, exist_ok=True)
            beside = target.with_name(target.name + ".whereish.json")
            rows += self._write(path, target, beside, counts)
        return rows, counts

    def _write(self, source: Path, target: Path, beside: Path, counts: Counts) -> int:
        """Write one file under its staged name; returns its rows and adds to the counts."""
        kernel = planned(self.plan, geometry=default_geometry(source))
        kernel = kernel.leaving_as(leaving_as(kernel.locations, target.suffix))
        extra = () if self.subject is None else (self.subject,)
        geometries = [at.name for at in kernel.locations if isinstance(at, GeometryColumn)]
        columns = tuple(dict.fromkeys((*kernel.columns, *extra)))
        statement = kernel.statement(reproducible=self.rng.reproducible)
        if target.suffix == ".csv" and not self.keep_formulas:
            statement["formulas"] = formulas.NOTE
        with open_table(source, Wanted(columns, kernel.numbers, geometries, self.layer)) as table:
            schema = kernel.schema(table.schema)
            tally = None if self.subject is None else Tally(kernel, self.subject, counts)
            stream = _Stream(kernel, schema, self.rng, tally, self.progress, table.rows)
            with _told_of_output(target):
                writing = Writing(
                    schema, statement, kernel.geometries, table.crs, self.keep_formulas
                )
                write_table(target, writing, stream(table.batches))
            if stream.rows == 0:
                raise InvalidInput(f"the input {source.name} has no rows, so nothing is written")
        if not carries_statement(target.suffix):
            beside.write_text(json.dumps(statement | {"rows": stream.rows}, indent=2) + "\n")
        return stream.rows


@dataclass
class _Stream:
    """The kernel over a stream of batches, counting as it goes."""

    kernel: BatchSanitizer
    schema: pa.Schema
    rng: Randomness
    tally: Tally | None
    progress: RowProgress | None
    total: int | None
    rows: int = 0

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if self.tally is not None:
                self.tally.add(batch)
            yield self.kernel(batch, self.schema, self.rng)
            self.rows += batch.num_rows
            if self.progress is not None:
                self.progress(self.rows, self.total)


def _resumed(
    place: Staging, request: str, ledger: Ledger | None, *, overwrite: bool
) -> Manifest | None:
    """Finish what an earlier run of the same request had staged; its note, or None."""
    manifest = place.unfinished()
    if manifest is None:
        return None
    if ledger is None:
        raise InvalidInput(
            "an earlier run with a ledger was interrupted on this output: run it again, with its"
            " ledger, to finish it"
        )
    manifest.check_ledger(ledger)
    if manifest.request == request:
        place.finish(manifest, ledger, overwrite=overwrite)
        return manifest
    if ledger.state(manifest.release) == PENDING:
        raise InvalidInput(
            "an earlier run for this output, with other words or another input, was charged and"
            " then interrupted: run it again to finish it, or give it up with"
            " whereish.publish.release.abandon(output, ledger)"
        )
    return None


@contextlib.contextmanager
def _told_of_output(target: Path) -> Iterator[None]:
    """A writer's error that is not the disk's: a type that the output does not know."""
    try:
        yield
    except pa.ArrowException:
        raise InvalidInput(
            f"the output cannot be written as {target.suffix[1:]}: a kept column has a type that"
            " it does not know"
        ) from None
