"""``whereish sanitize``: blur the locations of a file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whereish.errors import InvalidInput
from whereish.interfaces.cli.parameters import (
    BBOX,
    LEDGER,
    SafeParamType,
    WholeType,
    file_option,
    level_options,
    output_option,
)
from whereish.interfaces.cli.terminal import StatusLine
from whereish.units import Epsilon

if TYPE_CHECKING:
    from whereish.publish.rows.plan import Plan
    from whereish.space.box import Box

__all__ = ["command"]


class Pair(SafeParamType):
    """Two names of columns."""

    name = "lon,lat"

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> tuple[str, str]:
        """Read "home_lon,home_lat"."""
        names = value.split(",")
        if len(names) != 2 or not all(names):
            self.fail("must be the names of two columns, LON,LAT, as home_lon,home_lat", param, ctx)
        lon, lat = names
        return lon, lat


class Step(SafeParamType):
    """A column of times and the step it is released by."""

    name = "column=step"

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> tuple[str, str]:
        """Read "time=1 h"."""
        column, equals, step = value.partition("=")
        if not equals or not column:
            self.fail("must be COLUMN=STEP, as 'time=1 h'", param, ctx)
        return column, step


@click.command("sanitize")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@output_option(
    "The new file, or for a folder or several files the new folder; '-' is standard output.", None
)
@click.option("--lon", help="Column of longitudes, in degrees.")
@click.option("--lat", help="Column of latitudes, in degrees.")
@click.option("--geometry", help="Or the column of points (files with a geometry need neither).")
@click.option(
    "--location",
    "locations",
    type=Pair(),
    multiple=True,
    metavar="LON,LAT",
    help="A further secret location: its two columns.",
)
@level_options("of each report")
@file_option("--mechanism", help="Or a saved mechanism, as a map's .npz, which has its own levels.")
@click.option(
    "--epsilon-column", help="Column with each row's own level per metre, at most --epsilon."
)
@click.option(
    "--keep", multiple=True, help="A further column to release as it is; all others are dropped."
)
@click.option(
    "--coarsen",
    type=Step(),
    multiple=True,
    metavar="COLUMN=STEP",
    help="A time column to release coarsely, as 'time=1 h'.",
)
@click.option("--bbox", type=BBOX, help="Where all locations must lie; catches swapped columns.")
@click.option(
    "--wrap",
    is_flag=True,
    help="Longitudes count from 0 to 360; else those beyond 180 are refused.",
)
@click.option("--region", type=BBOX, help="Where reports stay: those outside move to its border.")
@click.option(
    "--remap",
    metavar="FILE|h3:N",
    help="Reports move to the closest of public places: a table with columns lon and lat, a file of"
    " lines (roads), or the cells of H3 at a resolution.",
)
@click.option("--delimiter", help="What stands between columns of text, if not found right: ';'.")
@click.option("--decimal", help="The decimal mark of numbers in text, '.' or ','.")
@click.option("--encoding", help="The encoding of text, as latin-1.")
@click.option(
    "--as-text", is_flag=True, help="Keep columns of CSV as text, also in Parquet and JSON."
)
@click.option(
    "--reproject", is_flag=True, help="Take geometries of another coordinate system to WGS84."
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Read and check all rows, and say what would be released; nothing is written or charged.",
)
@click.option("--layer", help="The layer of a file that has several.")
@click.option("--sha256", help="Refuse the input unless this is its SHA-256, in hex.")
@LEDGER
@click.option("--subject", help="With --ledger: the column of whom to charge.")
@click.option("--overwrite", is_flag=True, help="Replace an output that exists.")
@click.option(
    "--keep-formulas",
    is_flag=True,
    help="Write kept text into CSV as it is, also where a spreadsheet would run it as a formula.",
)
@click.option(
    "--insecure-seed",
    type=WholeType(0, 2**63 - 1),
    help="For tests only: reproducible noise, which protects nobody; the output says so.",
)
def command(
    sources: tuple[str, ...],
    output: str,
    lon: str | None,
    lat: str | None,
    geometry: str | None,
    locations: tuple[tuple[str, str], ...],
    epsilon: Epsilon | None,
    mechanism: Path | None,
    epsilon_column: str | None,
    keep: tuple[str, ...],
    coarsen: tuple[tuple[str, str], ...],
    bbox: Box | None,
    wrap: bool,
    region: Box | None,
    remap: str | None,
    delimiter: str | None,
    decimal: str | None,
    encoding: str | None,
    as_text: bool,
    reproject: bool,
    dry_run: bool,
    layer: str | None,
    sha256: str | None,
    ledger: str | None,
    subject: str | None,
    overwrite: bool,
    keep_formulas: bool,
    insecure_seed: int | None,
) -> None:
    """Blur the locations of SOURCE, row by row.

    The endings of SOURCE and of the output name their formats, such as .csv, .csv.gz, .parquet
    or .gpkg (an unknown one is answered by the list); a folder, a pattern or several files go to
    a folder, and '-' reads CSV from standard input.  The output
    holds the locations and the columns that --keep and --coarsen name, nothing else.  Its
    guarantee is stored in it, or beside a text file in NAME.whereish.json.  Unless an error
    says otherwise, nothing was released and nobody charged; a job with a ledger that was
    interrupted is finished by running it again.
    """
    from whereish.interfaces.cli.files.public_places import public_places
    from whereish.interfaces.cli.files.streams import STREAM, release_file_to_stdout, release_stdin
    from whereish.publish.formats.text.dialect import Dialect
    from whereish.publish.ledger import open_ledger
    from whereish.publish.sanitize import sanitize

    if epsilon is None and mechanism is None:
        raise InvalidInput(
            "say how much noise: --mean-error '300 m', --within '500 m', --epsilon 'ln(4)/200 m' or"
            " --mechanism FILE"
        )
    if epsilon is not None and mechanism is not None:
        raise InvalidInput("--mechanism has its own levels: leave the other options of noise out")

    plan: Plan = {
        "lon": lon,
        "lat": lat,
        "geometry": geometry,
        "locations": list(locations),
        "epsilon": epsilon,
        "mechanism": mechanism,
        "epsilon_column": epsilon_column,
        "keep": keep,
        "coarsen": dict(coarsen),
        "bbox": bbox,
        "wrap": wrap,
        "region": region,
        "remap": None if remap is None else public_places(remap),
    }
    book: dict[str, Any] = {
        "ledger": None if ledger is None else open_ledger(ledger),
        "subject": subject,
        "insecure_seed": insecure_seed,
    }
    if STREAM in sources:
        if sources != (STREAM,) or output != STREAM:
            raise InvalidInput(
                "standard input goes to standard output: 'whereish sanitize - -o - > NAME'. A"
                " release to a file must find its input again after a crash"
            )
        release_stdin(plan, Dialect(delimiter, decimal, encoding), **book)
        return
    files: dict[str, Any] = {
        "layer": layer,
        "sha256": sha256,
        "keep_formulas": keep_formulas,
        "delimiter": delimiter,
        "decimal": decimal,
        "encoding": encoding,
        "as_text": as_text,
        "reproject": reproject,
    }
    source = sources[0] if len(sources) == 1 else list(sources)
    if output == STREAM and not dry_run:
        release_file_to_stdout(source, **book, **files, **plan)
        return
    if dry_run:
        target = "reports.csv" if output == STREAM else output
        click.echo(str(sanitize(source, target, dry_run=True, **book, **files, **plan)))
        return
    with StatusLine() as line:
        release = sanitize(
            source,
            output,
            overwrite=overwrite,
            progress=partial(line.count, "rows") if line.is_shown else None,
            **book,
            **files,
            **plan,
        )
    click.echo(str(release))
    if release.resumed:
        click.echo("an earlier run had drawn them; this one finished it, and charged nobody twice")
    if subject is None and not any("track" in note for note in release.notes):
        click.echo("rows that are one person's track are better reported by whereish trace")
    if release.reproducible:
        click.echo("WARNING: made with --insecure-seed; this noise protects nobody", err=True)
