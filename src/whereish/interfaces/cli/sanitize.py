"""``whereish sanitize``: blur the locations of a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whereish.errors import InvalidInput
from whereish.interfaces.cli.parameters import BBOX, SafeParamType, WholeType, level_options
from whereish.units import Epsilon

if TYPE_CHECKING:
    from whereish.publish.rows.plan import Plan
    from whereish.space.box import Box
    from whereish.space.sites import Sites

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
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="The new file, or for a folder the new folder.",
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
@click.option(
    "--mechanism",
    type=click.Path(path_type=Path),
    help="Or a saved mechanism, as a map's .npz, which has its own levels.",
)
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
@click.option(
    "--remap",
    type=click.Path(path_type=Path),
    help="A public table with columns lon and lat: reports move to the closest of its places.",
)
@click.option("--layer", help="The layer of a file that has several.")
@click.option("--sha256", help="Refuse the input unless this is its SHA-256, in hex.")
@click.option("--ledger", help="Charge this ledger: a path, or postgresql://...")
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
    source: Path,
    output: Path,
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
    remap: Path | None,
    layer: str | None,
    sha256: str | None,
    ledger: str | None,
    subject: str | None,
    overwrite: bool,
    keep_formulas: bool,
    insecure_seed: int | None,
) -> None:
    """Blur the locations of SOURCE, row by row.

    The endings of SOURCE and of the output name their formats, such as .csv, .parquet or
    .gpkg (an unknown one is answered by the list); a folder may hold many.  The output
    holds the locations and the columns that --keep and --coarsen name, nothing else.  Its
    guarantee is stored in it, or beside a text file in NAME.whereish.json.  Unless an error
    says otherwise, nothing was released and nobody charged; a job with a ledger that was
    interrupted is finished by running it again.
    """
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
        "remap": None if remap is None else _sites(remap),
    }
    with _progress() as show:
        release = sanitize(
            source,
            output,
            ledger=None if ledger is None else open_ledger(ledger),
            subject=subject,
            layer=layer,
            sha256=sha256,
            overwrite=overwrite,
            keep_formulas=keep_formulas,
            insecure_seed=insecure_seed,
            progress=show,
            **plan,
        )
    click.echo(str(release))
    if release.resumed:
        click.echo("an earlier run had drawn them; this one finished it, and charged nobody twice")
    if _has_tracks(source):
        click.echo(
            "a GPX file is mostly one person's track: whereish trace reports a track within one"
            " budget for all of it"
        )
    elif subject is None:
        click.echo("rows that are one person's track are better reported by whereish trace")
    if release.reproducible:
        click.echo("WARNING: made with --insecure-seed; this noise protects nobody", err=True)


def _has_tracks(source: Path) -> bool:
    """Whether a file, or one of a folder, is of the kind that devices record tracks in."""
    from whereish.publish.formats.registry import FORMATS

    endings = [suffix for one in FORMATS if one.holds_tracks for suffix in one.suffixes]
    files = source.rglob("*") if source.is_dir() else [source]
    return any(path.suffix in endings for path in files)


def _sites(path: Path) -> Sites:
    """The public places of a table."""
    import numpy as np

    from whereish.publish.formats.tables import Wanted, open_table
    from whereish.publish.rows.locations import LonLat
    from whereish.space.points import Points
    from whereish.space.sites import Sites
    from whereish.space.sphere import Sphere

    names = ("lon", "lat")
    with open_table(path, Wanted(names, names)) as table:
        places = [LonLat(*names).read(batch) for batch in table.batches]
    return Sites(Points(np.concatenate([np.empty((0, 2)), *places]), Sphere()))


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int, int | None], None] | None]:
    """A progress bar on a terminal; nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns: tuple[Any, ...] = (
        "rows",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("rows", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
