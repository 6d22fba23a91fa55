"""``whereish build map``: a mechanism for a privacy map, from what people have."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whereish.errors import InvalidInput
from whereish.interfaces.cli.outputs import check_output
from whereish.interfaces.cli.parameters import BBOX, EPSILON, NUMBER, WholeType
from whereish.units import NUMBER as NUMBER_TEXT
from whereish.units import Epsilon, Length, number, per_unit

if TYPE_CHECKING:
    from whereish.arrays import FloatArray
    from whereish.privacy.maps.privacy_map import PrivacyMap
    from whereish.space.box import Box
    from whereish.space.plane import Plane
    from whereish.space.raster import Raster

__all__ = ["build_map", "linear_formula"]

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
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The .npz.")
@click.option(
    "--formula", default="1e-4*d+0.4", show_default=True, help="Level from the density d, linear."
)
@click.option("--per", default="km", show_default=True, help="Length unit of the formula's level.")
@click.option("--low", type=NUMBER, help="Least level, in the formula's unit.")
@click.option("--high", type=NUMBER, default=2.0, show_default=True, help="Largest level.")
@click.option("--column", help="Tracts: the column of densities.")
@click.option("--default", "default", type=EPSILON, help="Zones: the level outside all of them.")
@click.option("--crs", help="Coordinate system of the map in metres, as EPSG:2154.")
@click.option("--region", type=BBOX, help="Declared region in degrees; needed with --crs.")
@click.option("--cell", help="Tracts and zones: side of a cell, as '500 m'.")
@click.option(
    "--cells",
    type=WholeType(1, 512),
    default=200,
    show_default=True,
    help="philadelphia: its side.",
)
@click.option("--smooth", help="Blur the map by so much first, as '1 km'.")
@click.option(
    "--places",
    type=click.Choice(["cells", "continuous"]),
    default="cells",
    show_default=True,
    help="What a secret is: a cell, or a place between cells (more noise).",
)
@click.option("--overwrite", is_flag=True, help="Replace an output that exists.")
def build_map(
    source: str,
    output: Path,
    formula: str,
    per: str,
    low: float | None,
    high: float | None,
    column: str | None,
    default: Epsilon | None,
    crs: str | None,
    region: Box | None,
    cell: str | None,
    cells: int,
    smooth: str | None,
    places: str,
    overwrite: bool,
) -> None:
    """Build the eikonal mechanism of a privacy map.

    SOURCE is a grid of densities (.tif, .asc), tracts with densities (.parquet, with
    --column), zones with levels (.geojson, with --default), or the word philadelphia for
    the built-in example.
    """
    from whereish.mechanisms.maps.eikonal import EikonalMechanism
    from whereish.privacy.maps.privacy_map import PrivacyMap

    check_output(output, overwrite=overwrite)
    slope, offset = linear_formula(formula)
    per_unit(per)
    blur = None if smooth is None else Length.positive(smooth, name="--smooth")
    plane = _plane(crs, region)
    suffix = Path(source).suffix.lower()
    if suffix in (".geojson", ".json"):
        privacy_map = _zones(Path(source), plane, region, cell, default)
    else:
        density, raster = _density(source, plane, region, cell, cells, column)
        privacy_map = PrivacyMap.from_density(
            density,
            slope=slope,
            offset=offset,
            per=per,
            low=low,
            high=high,
            cell=raster.cell,
            origin=raster.origin,
            plane=raster.plane,
        )
    if blur is not None:
        privacy_map = privacy_map.smoothed(blur)
    if plane.crs is None and suffix in (".asc", ".tif", ".tiff"):
        _refuse_degrees(privacy_map)
    mechanism = EikonalMechanism.build(
        privacy_map,
        places="continuous" if places == "continuous" else "cells",
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
    click.echo(f"guarantee: {mechanism.guarantee}", err=True)


def _show(count: int, factor: float) -> None:
    click.echo(f"round {count}: factor {factor:.6f}", err=True)


def _refuse_degrees(privacy_map: PrivacyMap) -> None:
    """A grid file that says no coordinate system may be in degrees, and is then no map."""
    from whereish.space.points import seem_degrees

    box = privacy_map.raster.box
    corners = [[box.x_low, box.y_low], [box.x_high, box.y_high]]
    nats = float(privacy_map.values.max()) * (box.width + box.height)
    if seem_degrees(corners, nats):
        raise InvalidInput(
            "this grid seems to be in degrees, but the cells of a map must be in metres: warp it to"
            " a projected coordinate system and name that with --crs and --region (a map of so"
            " small a place in metres can be built in Python, with PrivacyMap)"
        )


def _plane(crs: str | None, region: Box | None) -> Plane:
    from whereish.space.plane import Plane

    if (crs is None) != (region is None):
        raise InvalidInput("--crs and --region go together: a plane covers a declared region")
    return Plane() if crs is None or region is None else Plane.projected(crs, region)


def _raster(plane: Plane, region: Box | None, cell: str | None) -> Raster:
    from whereish.mechanisms.maps.options import check_map_size
    from whereish.space.box import Box
    from whereish.space.raster import Raster

    if region is None or cell is None:
        raise InvalidInput("tracts and zones need --crs, --region and --cell")
    corners = plane.from_degrees(
        [region.x_low, region.x_low, region.x_high, region.x_high],
        [region.y_low, region.y_high, region.y_low, region.y_high],
    ).coordinates
    (x_low, y_low), (x_high, y_high) = corners.min(axis=0), corners.max(axis=0)
    raster = Raster.over(Box(x_low, y_low, x_high, y_high), cell, plane)
    check_map_size(*raster.shape)
    return raster


def _zones(
    source: Path, plane: Plane, region: Box | None, cell: str | None, default: Epsilon | None
) -> PrivacyMap:
    from whereish.data.grids import map_from_zones

    if default is None:
        raise InvalidInput("zones need --default, the level outside all of them")
    if not source.is_file():
        raise InvalidInput(f"the zones {source.name} are not a file")
    return map_from_zones(source, _raster(plane, region, cell), default=default)


def _density(
    source: str,
    plane: Plane,
    region: Box | None,
    cell: str | None,
    cells: int,
    column: str | None,
) -> tuple[FloatArray, Raster]:
    import numpy as np

    from whereish.data.grids import read_grid, tract_values
    from whereish.data.philadelphia import philadelphia_density
    from whereish.solvers.geodesic.graph_metric import LARGEST_MAP
    from whereish.space.raster import Raster

    if source == "philadelphia":
        return philadelphia_density(cells)
    path = Path(source)
    if path.suffix.lower() == ".parquet":
        if column is None or not path.is_file():
            raise InvalidInput("tracts need a file that exists and --column, its densities")
        raster = _raster(plane, region, cell)
        return tract_values(path, raster, column=column), raster
    grid = read_grid(path, most_cells=LARGEST_MAP)
    rows, columns = grid.values.shape
    return np.asarray(grid.values), Raster(rows, columns, grid.cell, grid.origin, plane)
