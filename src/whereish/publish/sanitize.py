"""Sanitise locations: one entry point for frames and files, which states its guarantee.

Every row's location is replaced by one report of a mechanism.  Only the columns that
are named are released; metadata of the input (which may hold the extent of the true
geometry) never is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack, overload

import pyarrow as pa

from whereish.errors import InvalidInput, LedgerUnavailable
from whereish.mechanisms.base import Mechanism
from whereish.publish.exposure import Release
from whereish.publish.formats.frames import opened_frame
from whereish.publish.formats.tables import BATCH_ROWS, missing_columns
from whereish.publish.formats.text.dialect import Dialect
from whereish.publish.inputs import Inputs, refuse_address
from whereish.publish.job import FileJob, RowProgress
from whereish.publish.ledger.ledger import Ledger, charges_of
from whereish.publish.rows.bad_rows import numbered_from
from whereish.publish.rows.locations import Location
from whereish.publish.rows.plan import Plan, build_sanitizer
from whereish.publish.rows.public_places import PlaceMap
from whereish.publish.rows.sanitizer import METADATA_KEY, BatchSanitizer
from whereish.publish.rows.subjects import Tally
from whereish.publish.rows.times import TimeStep
from whereish.publish.rows.withheld import withholding_originals
from whereish.randomness import Randomness, SeededRandomness, secure
from whereish.space.box import Box
from whereish.space.sites import Sites
from whereish.units import Epsilon, Length

__all__ = ["METADATA_KEY", "BatchSanitizer", "Release", "sanitize"]


class _OfFrames(Plan, total=False):
    """The keywords of a release of a frame."""

    ledger: Ledger | None
    subject: str | None
    insecure_seed: int | None


class _OfFiles(_OfFrames, total=False):
    """The keywords of a release of a file, or a folder of files."""

    layer: str | None
    sha256: str | None
    overwrite: bool
    keep_formulas: bool
    delimiter: str | None
    decimal: str | None
    encoding: str | None
    as_text: bool
    reproject: bool
    dry_run: bool
    progress: RowProgress | None


@overload
def sanitize(
    source: str | Path | list[str] | list[Path],
    output: str | Path,
    **arguments: Unpack[_OfFiles],
) -> Release: ...


@overload
def sanitize(source: Any, output: None = None, **arguments: Unpack[_OfFrames]) -> Any: ...


@withholding_originals
def sanitize(
    source: Any,
    output: str | Path | None = None,
    *,
    lon: str | None = None,
    lat: str | None = None,
    geometry: str | None = None,
    locations: Sequence[Location | tuple[str, str] | str] | None = None,
    epsilon: Epsilon | str | None = None,
    mean_error: Length | str | None = None,
    within: Length | str | None = None,
    confidence: float | None = None,
    mechanism: Mechanism | str | Path | None = None,
    options: Mapping[str, Any] | None = None,
    epsilon_column: str | None = None,
    keep: Sequence[str] = (),
    coarsen: Mapping[str, str | TimeStep] | None = None,
    bbox: Box | Sequence[float] | None = None,
    wrap: bool = False,
    region: Box | Sequence[float] | None = None,
    remap: PlaceMap | Sites | None = None,
    ledger: Ledger | None = None,
    subject: str | None = None,
    layer: str | None = None,
    sha256: str | None = None,
    overwrite: bool = False,
    keep_formulas: bool = False,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    as_text: bool = False,
    reproject: bool = False,
    dry_run: bool = False,
    insecure_seed: int | None = None,
    progress: RowProgress | None = None,
) -> Any:
    """Blur the locations of a frame, a file, or a folder of files.

    A frame (pandas, GeoPandas, Polars, PyArrow, DuckDB) comes back as its own type.  A file
    (.csv, .parquet, .gpkg and others, see docs/publishing.md) is written to `output`, in the
    format of that name's ending; a folder to a new folder of files of the same names.

    Parameters
    ----------
    source, output
        A frame; or a path, and the path to be written.  A folder, a pattern ("trips-*.csv") or a
        list of paths is released to a folder of files of the same names.
    lon, lat
        The columns of the secret location, in degrees.
    geometry
        Or the column of its points (WKB or GeoArrow), in WGS84 degrees.  A file that has
        one geometry by its format needs no name of it.
    locations
        Several secret locations: pairs of columns, names of geometry columns, or
        XY("x", "y") for coordinates of the mechanism's own plane, in metres.  A location
        that is no secret is named in `keep` instead.
    epsilon
        The privacy level of each report, such as "ln(4)/200 m".
    mean_error, within, confidence
        Or the error of each report: its distance on average ("300 m"), or a radius that holds it
        with probability `confidence` (0.95).
    mechanism
        A name of the registry ("globe-laplace" by default), built from `epsilon` and
        `options`; or a built mechanism, such as one of a privacy map, or the file that one
        was saved to ("city.npz"), without `epsilon`.
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
        Where all locations must lie, in degrees: a Box, or (west, south, east, north).  It
        catches swapped columns.
    wrap
        Take longitudes counted from 0 to 360 for those less 360; they are refused otherwise.
    region
        The declared region in which reports stay, as `bbox` is given: those outside are moved to
        its closest place, which keeps the guarantee.
    remap
        Public places to move reports to: Sites, or a function of (n, 2) degrees.
    ledger, subject
        Charge each row's subject (a column) before anything is released.  A job that was
        interrupted is run again with the same arguments: it neither charges nor perturbs
        twice (:mod:`whereish.publish.release.staging`).
    layer
        The layer of a file that has several.
    sha256
        The input file's SHA-256 in hex.  A damaged file that still reads as a table (a CSV
        cut short, a digit changed) can be known by this alone.
    overwrite
        Replace an output file that exists.
    keep_formulas
        Write text into CSV as it is, also where a spreadsheet would take it for a formula;
        otherwise an apostrophe stands before it (:mod:`whereish.publish.formats.text.formulas`).
    delimiter, decimal, encoding
        How a text table is written, where what its first block shows is not right.
    as_text
        Leave kept columns of a text table as text in a typed output (Parquet, JSON, GeoPackage)
        too, and not as the numbers, dates, times and booleans that they are written as.
    reproject
        Take geometries of another coordinate system to WGS84 degrees; they are refused otherwise.
    dry_run
        Read and check all rows, draw, write and charge nothing, and return a `DryRun`: columns,
        guarantee, exposure of the worst subject.
    insecure_seed
        For tests only: reproducible noise, which the output states of itself.
    progress
        Called with rows done and rows in all (None where unknown).

    Returns
    -------
    The released frame, or a :class:`Release` that describes the file.

    Raises
    ------
    InvalidInput
        If the input or the arguments are not what they must be; then nothing is released.
    BudgetExceeded
        If a subject's budget does not cover its rows; then nothing is released or charged.
    NotWritten, LedgerUnavailable
        If the disk or the ledger fails before the release.
    NotFinished
        If they fail after it.

    Notes
    -----
    The guarantee is per location: a person in k rows of m secret locations is protected at
    k m times epsilon.

    Examples
    --------
    >>> import whereish as wh
    >>> import pyarrow as pa
    >>> table = pa.table({"lon": [2.35, 2.36], "lat": [48.85, 48.86], "shop": ["a", "b"]})
    >>> released = wh.sanitize(table, lon="lon", lat="lat", epsilon="ln(4)/200 m", keep=["shop"])
    >>> released.column_names, released.num_rows
    (['lon', 'lat', 'shop'], 2)
    """
    plan = Plan(
        lon=lon,
        lat=lat,
        geometry=geometry,
        locations=locations,
        epsilon=epsilon,
        mean_error=mean_error,
        within=within,
        confidence=confidence,
        mechanism=mechanism,
        options=options,
        epsilon_column=epsilon_column,
        keep=keep,
        coarsen=coarsen,
        bbox=bbox,
        wrap=wrap,
        region=region,
        remap=remap,
    )
    if (ledger is None) != (subject is None):
        raise InvalidInput(
            "ledger and subject belong together: the column of whom to charge, and where"
        )
    rng = secure(None if insecure_seed is None else SeededRandomness(insecure_seed))
    if not _names_files(source):
        if output is not None or sha256 is not None or dry_run:
            raise InvalidInput(
                "output, sha256 and dry_run are for files; a frame comes back as it was"
            )
        return _frame(source, plan, ledger, subject, rng)
    if output is None:
        raise InvalidInput("a file needs an output to be written to")
    job = FileJob(
        Inputs.of(source),
        Path(refuse_address(output, "output")),
        plan,
        subject,
        layer,
        sha256,
        rng,
        progress,
        keep_formulas,
        not as_text,
        Dialect(delimiter, decimal, encoding),
        reproject,
    )
    return job.dry_run() if dry_run else job.run(ledger, overwrite=overwrite)


def _names_files(source: Any) -> bool:
    if isinstance(source, list | tuple) and source:
        return all(isinstance(one, str | Path) for one in source)
    return isinstance(source, str | Path)


def _frame(
    frame: Any, plan: Plan, ledger: Ledger | None, subject: str | None, rng: Randomness
) -> Any:
    table, geometry, back = opened_frame(frame)
    kernel = build_sanitizer(plan, geometry=geometry)
    wanted = kernel.columns if subject is None else (*kernel.columns, subject)
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise InvalidInput(missing_columns("the frame", missing, table.column_names))
    if len(table) == 0:
        raise InvalidInput("the frame has no rows, so nothing is released")
    statement = kernel.statement(reproducible=rng.reproducible)
    schema = kernel.schema(table.schema, {METADATA_KEY: json.dumps(statement).encode()})
    tally = None if subject is None else Tally(kernel, subject)
    batches: list[Any] = []
    rows = 0
    for batch in table.to_batches(BATCH_ROWS):
        with numbered_from(rows):
            if tally is not None:
                tally.add(batch)
            batches.append(kernel(batch, schema, rng))
        rows += len(batch)
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
