"""Tables in files, streamed in batches, by the ending of their name.

What goes wrong while reading is reported without the library's own message, since
that may quote a value of the file.  A table is written from an iterator of batches to a
file that does not exist yet; giving that file its public name is another's work
(:mod:`whereish.publish.release.staging`).
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from whereish.errors import InvalidInput, WhereishError
from whereish.publish.formats.registry import ending_of, format_of
from whereish.publish.formats.text.dialect import Dialect

__all__ = [
    "BATCH_ROWS",
    "Table",
    "Wanted",
    "Writing",
    "open_table",
    "write_table",
]

BATCH_ROWS = 131_072


@dataclass(frozen=True)
class Wanted:
    """Which columns to read, and how.

    Text formats read `numbers` as doubles and the rest as text; with `infer_types` as what they
    are written as, save `text_columns`.  `dialect` is what is declared of a text format, and
    `reproject` asks that geometries of another coordinate system be taken to WGS84 degrees.
    """

    columns: Sequence[str]
    numbers: Sequence[str] = ()
    geometries: Sequence[str] = ()
    layer: str | None = None
    text_columns: Sequence[str] = ()
    infer_types: bool = False
    dialect: Dialect | None = None
    reproject: bool = False


@dataclass(frozen=True)
class Table:
    """An open table.

    `rows` is None where the file does not state it; `crs` is the coordinate system (PROJJSON)
    of its geometries, None where there are none.  `present` has the names of all its columns,
    where the format knows them, and `read_as` what is to be said of how it was read.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    rows: int | None = None
    crs: str | None = None
    present: tuple[str, ...] = ()
    read_as: str | None = None


@dataclass(frozen=True)
class Writing:
    """What is written: its schema, the statement that it carries, its geometry columns.

    With `keep_formulas` text tables hold text as it is, also if a spreadsheet would run it.
    """

    schema: pa.Schema
    statement: Mapping[str, Any]
    geometries: tuple[str, ...] = ()
    crs: str | None = None
    keep_formulas: bool = False


@contextlib.contextmanager
def open_table(path: Path, wanted: Wanted) -> Iterator[Table]:
    """Open the wanted columns of a file."""
    if not path.is_file():
        raise InvalidInput(absent(path))
    kind = format_of(path, f"the input {path.name}")
    if wanted.geometries and kind.geometry == "none":
        raise InvalidInput(
            f"the input {path.name} has no geometry; name its columns of degrees as lon and lat"
        )
    if wanted.layer is not None and kind.geometry != "only":
        raise InvalidInput(
            f"the input {path.name} has no layers, since {ending_of(path)} files have none: leave"
            " layer out"
        )
    if path.stat().st_size == 0:
        raise InvalidInput(f"the input {path.name} is empty")
    with contextlib.ExitStack() as stack:
        with hide_reader_errors(path.name, ending_of(path), wanted):
            try:
                table = stack.enter_context(kind.load().open_table(path, wanted))
            except OSError:  # Arrow's word for many kinds of damage
                raise _Unreadable from None
        yield replace(table, batches=_guarded(table.batches, path, wanted))


def write_table(path: Path, writing: Writing, batches: Iterator[pa.RecordBatch]) -> None:
    """Write a new file of the kind that its ending names."""
    format_of(path, "the output", written=True).load().write_table(path, writing, batches)


def absent(path: Path) -> str:
    """For a path at which there is nothing."""
    return f"the input {path.name} is not a file: there is nothing of that name at its path"


def check_columns(name: str, present: Sequence[str], wanted: Sequence[str]) -> None:
    """All wanted columns are there, and no column name is there twice."""
    twice = sorted({column for column in present if present.count(column) > 1})
    if twice:
        raise InvalidInput(f"the input {name} has two columns named {naming(twice)}")
    missing = [column for column in wanted if column not in present]
    if missing:
        raise InvalidInput(missing_columns(f"the input {name}", missing, present))


def missing_columns(what: str, missing: Sequence[str], present: Sequence[str]) -> str:
    """For columns that `what` does not have."""
    return (
        f"{what} has no column {', '.join(map(repr, missing))};"
        f" it has {naming(present)}{_hint(missing[0], present)}"
    )


def _hint(missing: str, present: Sequence[str]) -> str:
    """What a name that is absent may stand for; names are public, where they are names."""
    if any(character.isdigit() for name in present for character in name):
        return ""
    alike = [name for name in present if name.lower() == missing.lower()]
    close = alike or difflib.get_close_matches(missing, present, 1)
    if close:
        return f"; did you mean {close[0]!r}?"
    if "," in missing and all(part.strip() in present for part in missing.split(",")):
        return ": name each column by an option of its own"
    return ""


def naming(columns: Sequence[str]) -> str:
    """The columns by name; by number where a name may be a value (a file without a header)."""
    if any(character.isdigit() for name in columns for character in name):
        return f"{len(columns)} columns, some with digits in their names: is there a header?"
    return ", ".join(map(repr, columns))


class _Unreadable(Exception):
    """A reader's own error, marked so that a writer's is not taken for it."""


@contextlib.contextmanager
def hide_reader_errors(name: str, suffix: str, wanted: Wanted) -> Iterator[None]:
    """Turn a reader's error into one sentence that quotes nothing of the file."""
    try:
        yield
    except WhereishError:
        raise
    except (_Unreadable, pa.ArrowException, UnicodeDecodeError):
        numbers = " and ".join(repr(column) for column in wanted.numbers)
        having = f" with numbers in {numbers}" if numbers else ""
        raise InvalidInput(
            f"the input {name} cannot be read as {suffix[1:]}{having}: is it damaged, or is a"
            " value not what its column holds?"
        ) from None


def _guarded(
    batches: Iterator[pa.RecordBatch], path: Path, wanted: Wanted
) -> Iterator[pa.RecordBatch]:
    """The batches; whatever their reader raises is the file's fault."""
    with hide_reader_errors(path.name, ending_of(path), wanted):
        while True:
            try:
                batch = next(batches, None)
                if batch is None:
                    return
                # Text that is no UTF-8 would come to light only where it is used.
                batch.validate(full=True)
            except WhereishError:
                raise
            except Exception as error:
                raise _Unreadable from error
            yield batch
