"""Sanitising files: from the true locations of a file, or a folder, to its released name.

Files are read and written in one pass with flat memory, and appear under their names only
when they are complete (:mod:`whereish.publish.release.staging`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from whereish.errors import InvalidInput, NotWritten
from whereish.publish.exposure import DryRun, Exposure, Notes, Release
from whereish.publish.formats.registry import TableFormat, ending_of, format_of
from whereish.publish.formats.tables import Wanted, Writing, open_table, write_table
from whereish.publish.formats.text import formulas
from whereish.publish.formats.text.dialect import Dialect
from whereish.publish.inputs import Inputs
from whereish.publish.ledger.ledger import PENDING, Ledger
from whereish.publish.release.content import content_digest
from whereish.publish.release.staging import Counts, Manifest, Staging, staging
from whereish.publish.rows.bad_rows import numbered_from
from whereish.publish.rows.locations import XY, GeometryColumn, Location, LonLat
from whereish.publish.rows.plan import Plan, build_sanitizer, locations_of
from whereish.publish.rows.sanitizer import BatchSanitizer
from whereish.publish.rows.subjects import Tally
from whereish.randomness import Randomness

__all__ = ["FileJob", "RowProgress"]

RowProgress = Callable[[int, int | None], None]
"""Called with rows done and rows in all (None where unknown)."""


@dataclass(frozen=True)
class FileJob:
    """Sanitising a file or a folder, from its true places to its released name."""

    inputs: Inputs
    output: Path
    plan: Plan
    subject: str | None
    layer: str | None
    sha256: str | None
    rng: Randomness
    progress: RowProgress | None
    keep_formulas: bool = False
    infer_types: bool = True
    dialect: Dialect = field(default_factory=Dialect)
    reproject: bool = False

    def run(self, ledger: Ledger | None, *, overwrite: bool) -> Release:
        """Do all of it, or what an earlier run left to do."""
        if self.output.exists() and any(self.output.samefile(path) for path in self.inputs.files):
            raise InvalidInput("the output must be another file than the input")
        self._check_digest()
        files = self.inputs.files
        first = self._kernel()
        request = self._request(first, files)
        try:
            with staging(self.output) as place:
                earlier = _resumed(place, request, ledger, overwrite=overwrite)
                if earlier is not None:
                    return self._release(first, earlier.rows, earlier.counts, resumed=True)
                place.refuse_foreign(overwrite)
                place.empty()
                notes = Notes()
                rows, counts = self._stage(first, files, place, notes)
                self._check_digest()  # it may have changed while it was read
                place.commit(request, rows, counts, ledger, overwrite=overwrite)
        except OSError as error:
            if isinstance(error, NotWritten):
                raise
            raise NotWritten(
                f"the output {self.output.name} cannot be written"
                f" ({error.strerror or type(error).__name__}); nothing was released"
            ) from None
        return self._release(first, rows, counts, resumed=False, notes=notes)

    def dry_run(self) -> DryRun:
        """What a run would do, from reading all rows; nothing is drawn, written or charged."""
        self._check_digest()
        first = self._kernel()
        counts: Counts = {}
        rows, notes = 0, Notes()
        present: tuple[str, ...] = ()
        for path in self.inputs.files:
            kernel = self._kernel_of(path, first)
            kind = format_of(self._target(path), "the output", written=True)
            kernel.leaving_as(leaving_as(kernel.locations, kind))
            with open_table(path, self._wanted(kernel, kind)) as table:
                notes.add(table.read_as)
                present = table.present or present
                kernel.schema(table.schema)
                tally = None if self.subject is None else Tally(kernel, self.subject, counts)
                before = rows
                for batch in table.batches:
                    with numbered_from(rows - before):
                        kernel.check(batch)
                        if tally is not None:
                            tally.add(batch)
                    rows += len(batch)
        release = self._release(first, rows, counts, resumed=False, notes=notes)
        read = first.columns if self.subject is None else (*first.columns, self.subject)
        dropped = tuple(name for name in present if name not in read)
        return DryRun(release, len(self.inputs.files), read, (*first.keep, *first.coarsen), dropped)

    def _kernel(self) -> BatchSanitizer:
        """The kernel of the first file, without columns that are in names of folders."""
        files = self.inputs.files
        kernel = build_sanitizer(self.plan, geometry=default_geometry(files[0]))
        used = [name for at in kernel.locations for name in at.columns]
        used += [*kernel.coarsen, kernel.level_column or "", self.subject or ""]
        keys = self.inputs.check_partitions(kernel.keep, used)
        return replace(kernel, keep=tuple(name for name in kernel.keep if name not in keys))

    def _kernel_of(self, path: Path, first: BatchSanitizer) -> BatchSanitizer:
        """The kernel of a file: the geometry of another file may have another name."""
        if path == self.inputs.files[0]:
            return first
        return first.located_at(locations_of(self.plan, geometry=default_geometry(path)))

    def _target(self, path: Path) -> Path:
        """The name under which a file of the input is released."""
        return self.output / self.inputs.relative(path) if self.inputs.many else self.output

    def _wanted(self, kernel: BatchSanitizer, kind: TableFormat) -> Wanted:
        extra = () if self.subject is None else (self.subject,)
        return Wanted(
            tuple(dict.fromkeys((*kernel.columns, *extra))),
            kernel.numbers,
            [at.name for at in kernel.locations if isinstance(at, GeometryColumn)],
            self.layer,
            extra,
            # Text to text stays as it is written.
            self.infer_types and not kind.runs_formulas,
            self.dialect,
            self.reproject,
        )

    def _check_digest(self) -> None:
        if self.sha256 is None:
            return
        if not re.fullmatch("[0-9a-fA-F]{64}", self.sha256) or self.inputs.many:
            raise InvalidInput("sha256 must be the 64 hexadecimal digits of one file")
        (source,) = self.inputs.files
        try:
            with source.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise InvalidInput(
                f"the input {self.inputs.name} cannot be read ({error.strerror})"
            ) from None
        if found != self.sha256.lower():
            raise InvalidInput(
                f"the input {self.inputs.name} is not the file of this SHA-256: was it changed or"
                " damaged? nothing was released"
            )

    def _release(
        self,
        kernel: BatchSanitizer,
        rows: int,
        counts: Counts,
        *,
        resumed: bool,
        notes: Notes | None = None,
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
            kernel.in_words,
            notes.said(exposure, rows, tracks=self._holds_tracks) if notes is not None else (),
        )

    @property
    def _holds_tracks(self) -> bool:
        return any(format_of(path).holds_tracks for path in self.inputs.files)

    def _request(self, kernel: BatchSanitizer, files: Sequence[Path]) -> str:
        """What was asked, so that a resumed job is known for the same."""
        stats = [(str(path.resolve()), path.stat()) for path in files]
        asked = [
            [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats],
            kernel.statement(reproducible=self.rng.reproducible),
            [kernel.columns, str(kernel.bbox), self.subject, self.layer, self.sha256],
            [
                self.keep_formulas,
                kernel.wrap,
                str(kernel.region),
                self.infer_types,
                repr(self.dialect),
            ],
            [self.reproject],
            [kernel.keep, list(kernel.coarsen), kernel.level_column, repr(kernel.locations)],
            [content_digest(kernel.mechanism), content_digest(kernel.remap)],
        ]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()

    def _stage(
        self, first: BatchSanitizer, files: Sequence[Path], place: Staging, notes: Notes
    ) -> tuple[int, Counts]:
        counts: Counts = {}
        if not self.inputs.many:
            rows = self._write(first, files[0], place.staged, place.beside, counts, notes)
            return rows, counts
        rows = 0
        place.staged.mkdir()
        for path in files:
            target = place.staged / self.inputs.relative(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            beside = target.with_name(target.name + ".whereish.json")
            kernel = self._kernel_of(path, first)
            rows += self._write(kernel, path, target, beside, counts, notes)
        return rows, counts

    def _write(
        self,
        kernel: BatchSanitizer,
        source: Path,
        target: Path,
        beside: Path,
        counts: Counts,
        notes: Notes,
    ) -> int:
        """Write one file under its staged name; returns its rows and adds to the counts."""
        kind = format_of(target, "the output", written=True)
        kernel = kernel.leaving_as(leaving_as(kernel.locations, kind))
        statement = kernel.statement(reproducible=self.rng.reproducible)
        if kind.runs_formulas and not self.keep_formulas:
            statement["formulas"] = formulas.NOTE
        with open_table(source, self._wanted(kernel, kind)) as table:
            notes.add(table.read_as)
            schema = kernel.schema(table.schema)
            tally = None if self.subject is None else Tally(kernel, self.subject, counts)
            stream = _Stream(kernel, schema, self.rng, tally, self.progress, table.rows)
            with _explain_writer_errors(target):
                writing = Writing(
                    schema, statement, kernel.geometries, table.crs, self.keep_formulas
                )
                write_table(target, writing, stream(table.batches))
            if stream.rows == 0:
                raise InvalidInput(f"the input {source.name} has no rows, so nothing is written")
        if not kind.carries_statement:
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
            with numbered_from(self.rows):
                if self.tally is not None:
                    self.tally.add(batch)
                reports = self.kernel(batch, self.schema, self.rng)
            yield reports
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
            "an earlier run for this output, with other arguments or another input, was charged and"
            " then interrupted: run it again to finish it, or give it up with"
            " whereish.publish.release.abandon(output, ledger)"
        )
    return None


@contextlib.contextmanager
def _explain_writer_errors(target: Path) -> Iterator[None]:
    """A writer's error that is not the disk's: a type that the output does not know."""
    try:
        yield
    except pa.ArrowException:
        raise InvalidInput(
            f"the output cannot be written as {ending_of(target)[1:]}: a kept column has a type"
            " that it does not know"
        ) from None


# What the formats hold: where locations stand in them, and leave


def default_geometry(path: Path) -> str | None:
    """The geometry that a file has by its format, where no location is named."""
    kind = format_of(path, f"the input {path.name}")
    if kind.geometry == "none":
        return None
    module = kind.load()
    if hasattr(module, "default_geometry"):
        name: str | None = module.default_geometry(path)
        return name
    return "geometry" if kind.geometry == "only" else None


def leaving_as(locations: Sequence[Location], kind: TableFormat) -> list[Location]:
    """The columns in which reports leave, by the format of the output."""
    leaving: list[Location] = []
    for index, at in enumerate(locations):
        first = index == 0
        if kind.geometry == "only" and isinstance(at, XY):
            raise InvalidInput(
                f"an output {kind.suffixes[0]} has WGS84 geometries, and the locations are a"
                " plane's metres: write .parquet or .csv"
            )
        has_room = kind.geometry != "none" and (first or kind.several_geometries)
        if isinstance(at, GeometryColumn) and not has_room:
            names = ("lon", "lat") if first else (f"{at.name}_lon", f"{at.name}_lat")
            leaving.append(LonLat(*names))
        elif kind.geometry == "only" and first and isinstance(at, LonLat):
            leaving.append(GeometryColumn())
        else:
            leaving.append(at)
    return leaving
