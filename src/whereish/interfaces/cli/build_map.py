"""``whereish build map``: a mechanism for a privacy map, from what people have."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, cast

import click

from whereish.errors import InvalidInput
from whereish.interfaces.cli.outputs import MECHANISMS, check_output
from whereish.interfaces.cli.parameters import (
    BBOX,
    LEVEL,
    NUMBER,
    WholeType,
    describe,
    output_option,
    whole_option,
)
from whereish.units import NUMBER as NUMBER_TEXT
from whereish.units import Epsilon, Length, number

__all__ = ["build_map", "linear_formula"]

RESAMPLINGS = ("nearest", "average", "bilinear", "bicubic")
"""Those of whereish.data.warp, which is not loaded for --help; a test compares them."""

_NUMBER = NUMBER_TEXT.replace("[+-]?", r"[+-]?\s*", 1)
_LINEAR = re.compile(rf"\s*({_NUMBER})\s*\*\s*d\s*({_NUMBER})?\s*")


def linear_formula(text: str) -> tuple[float, float]:
    """Slope and offset of a formula such as ``1e-4*d+0.4``, d the density.

    >>> linear_formula("1e-4*d + 0.4")
    (0.0001, 0.4)
    """
    match = _LINEAR.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"a formula must be linear in the density d, such as '1e-4*d+0.4'; got {text!r}"
        )
    slope, offset = (number("".join((part or "0").split())) for part in match.groups())
    return slope, offset


@click.command("map")
@click.argument("source")
@output_option("The .npz.")
@click.option(
    "--formula", default="1e-4*d+0.4", show_default=True, help="Level from the density d, linear."
)
@click.option(
    "--per",
    help="Length unit of the formula's level: km by default, and a hundredth of the patch's side"
    " (120 m) for philadelphia.",
)
@click.option("--low", type=NUMBER, help="Least level, in the formula's unit.")
@click.option("--high", type=NUMBER, help="Largest level; nothing is clipped unless asked.")
@click.option(
    "--density-unit",
    default="people/km2",
    show_default=True,
    help="What the source's numbers are, or people/mi2, people/ha, people/m2, people/cell (grids).",
)
@click.option(
    "--formula-unit", help="What d is in the formula, if not --density-unit (counts: people/km2)."
)
@click.option("--column", help="Tracts: the column of densities.")
@click.option("--layer", help="Tracts: the layer of a file that has several.")
@click.option(
    "--default",
    "default",
    type=LEVEL,
    help="Zones: the level outside all of them, as '1/km', or its mean error, as '2 km'.",
)
@click.option(
    "--crs",
    help="Coordinate system of the map in metres, as EPSG:2154; one that suits by default.",
)
@click.option("--grid-crs", help="Coordinate system of a grid that states none, if not --crs.")
@click.option(
    "--region", type=BBOX, help="Where secrets may be, in degrees; a grid's or tracts' own extent."
)
@click.option("--cell", help="Side of a cell, as '500 m'; a grid's own by default.")
@click.option(
    "--resample",
    type=click.Choice(RESAMPLINGS),
    help="Grids: what a new cell takes; average with --cell, nearest otherwise.",
)
@click.option("--band", type=WholeType(1, 65535), help="Grids: which band; the first by default.")
@click.option(
    "--nodata",
    default="refuse",
    show_default=True,
    metavar="refuse|nearest|LEVEL",
    help="Grids: cells without data are refused, as their nearest, or have a level as '0.4/km'.",
)
@whole_option(
    "--supersample",
    (1, 64),
    default=1,
    help="Cut every cell into N x N, levels interpolated bicubically.",
)
@whole_option(
    "--coarsen",
    (1, 64),
    default=1,
    help="N times as large cells, levels nowhere above: about N^4 times as fast.",
)
@whole_option("--cells", (1, 512), default=200, help="philadelphia: its side.")
@click.option("--smooth", help="Blur the map by so much first, as '1 km'.")
@click.option(
    "--stricter",
    is_flag=True,
    help="With --smooth: raise no level; tight zones then leave no hole in the reports.",
)
@click.option(
    "--places",
    type=click.Choice(["continuous", "cells", "bilinear"]),
    default="continuous",
    show_default=True,
    help="What a secret is: a place, a cell, or a place rounded at random (more noise).",
)
@click.option("--overwrite", is_flag=True, help="Replace an output that exists.")
def build_map(
    source: str,
    output: Path,
    formula: str,
    nodata: str,
    smooth: str | None,
    stricter: bool,
    coarsen: int,
    places: str,
    overwrite: bool,
    **others: Any,
) -> None:
    """Build the eikonal mechanism of a privacy map.

    SOURCE is a grid of densities (.tif, .asc, .img, .bil), which says itself in which
    coordinate system it is; tracts with densities (.parquet, .gpkg, .shp or any file that
    GDAL reads, with --column); zones with levels (.geojson, with --default); or the word
    philadelphia for the built-in example.
    """
    from whereish.interfaces.cli.map_sources import Asked, sourced_map
    from whereish.mechanisms.maps.eikonal import EikonalMechanism

    check_output(output, overwrite=overwrite, suffix=MECHANISMS)
    slope, offset = linear_formula(formula)
    blur = None if smooth is None else Length.positive(smooth, name="--smooth")
    if stricter and blur is None:
        raise InvalidInput("--stricter is for --smooth: say by how much")
    rule = nodata if nodata in ("refuse", "nearest") else Epsilon.of(nodata)
    asked = Asked(slope=slope, offset=offset, nodata=rule, **others)
    privacy_map, said = sourced_map(source, asked)
    click.echo(said, err=True)
    if asked.supersample > 1:
        privacy_map = privacy_map.supersampled(asked.supersample, method="bicubic")
    if blur is not None:
        privacy_map = privacy_map.smoothed(blur, below=stricter)
    if coarsen > 1:
        if places != "continuous":
            raise InvalidInput("--coarsen is for continuous places: give --cell for larger cells")
        privacy_map = privacy_map.coarsened(coarsen)
    mechanism = EikonalMechanism.build(
        privacy_map,
        places=cast(Any, places),
        progress=_show if sys.stderr.isatty() else None,
    )
    mechanism.save(output)
    rows, columns = privacy_map.shape
    curved = int(privacy_map.too_curved().sum())
    click.echo(
        f"{output.name}: {rows} x {columns} cells, certified at {mechanism.factor:.6f} of the"
        f" promise; the map in use is on average {mechanism.lowered.mean():.4f} of the asked"
        f" ({curved} cells of curvature below -1), root mean squared error"
        f" {mechanism.mse() ** 0.5:.4g} m"
    )
    click.echo(describe(mechanism.guarantee, mechanism), err=True)


def _show(count: int, factor: float) -> None:
    click.echo(f"round {count}: factor {factor:.6f}", err=True)
