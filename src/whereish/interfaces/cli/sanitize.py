"""``whereish sanitize``: blur the locations of a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whereish.interfaces.cli.parameters import BBOX, EPSILON, describe
from whereish.units import Epsilon

if TYPE_CHECKING:
    from whereish.space.box import Box

__all__ = ["command"]


@click.command("sanitize")
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="The new file, .csv or .parquet.",
)
@click.option("--lon", required=True, help="Column of longitudes, in degrees.")
@click.option("--lat", required=True, help="Column of latitudes, in degrees.")
@click.option("--epsilon", type=EPSILON, required=True, help="Privacy level, as 'ln(4)/200 m'.")
@click.option(
    "--keep", multiple=True, help="A further column to release as it is; all others are dropped."
)
@click.option("--bbox", type=BBOX, help="Where all locations must lie; catches swapped columns.")
@click.option("--overwrite", is_flag=True, help="Replace an output that exists.")
@click.option(
    "--insecure-seed",
    type=int,
    help="For tests only: reproducible noise, which protects nobody; the output says so.",
)
def command(
    source: Path,
    output: Path,
    lon: str,
    lat: str,
    epsilon: Epsilon,
    keep: tuple[str, ...],
    bbox: Box | None,
    overwrite: bool,
    insecure_seed: int | None,
) -> None:
    """Blur the locations of SOURCE (.csv or .parquet), row by row.

    The output holds the two location columns and those that --keep names, nothing
    else.  Its guarantee is stored in the Parquet metadata, or beside a CSV file in
    NAME.csv.whereish.json.  On an error nothing is written.
    """
    from whereish.publish.sanitize import sanitize

    with _progress() as show:
        release = sanitize(
            source,
            output,
            lon=lon,
            lat=lat,
            epsilon=epsilon,
            keep=keep,
            bbox=bbox,
            overwrite=overwrite,
            insecure_seed=insecure_seed,
            progress=show,
        )
    click.echo(f"{release.rows} rows written to {output.name}")
    click.echo(describe(release.guarantee))
    click.echo("this holds for each row; a person in k rows is protected at k times epsilon")
    if release.reproducible:
        click.echo("WARNING: made with --insecure-seed; this noise protects nobody", err=True)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int, int | None], None] | None]:
    """A progress bar on a terminal; nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = ("rows", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("rows", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
