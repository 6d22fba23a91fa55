"""``whereish export``: the levels of a saved map as a GeoTIFF."""

from __future__ import annotations

from pathlib import Path

import click

from whereish.errors import InvalidInput
from whereish.interfaces.cli.outputs import check_output
from whereish.units import per_unit

__all__ = ["command"]


@click.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--per", default="km", show_default=True, help="Length unit of the levels.")
@click.option("--overwrite", is_flag=True, help="Replace an output that exists.")
def command(file: Path, output: Path, per: str, overwrite: bool) -> None:
    """Write the levels of the map saved in FILE to OUTPUT, a GeoTIFF (.tif).

    Band 1 has the level that was asked for in each cell, band 2 the level in use, both per
    --per; the file says its coordinate system, so that QGIS shows it in place.
    """
    from whereish.data.geotiff import write_geotiff
    from whereish.mechanisms.maps.eikonal import EikonalMechanism
    from whereish.mechanisms.maps.query import EikonalQuery
    from whereish.mechanisms.saved import load

    check_output(output, overwrite=overwrite, suffix=(".tif",))
    unit = per_unit(per)
    mechanism = load(file)
    if not isinstance(mechanism, EikonalMechanism | EikonalQuery):
        raise InvalidInput(f"{file.name} must hold a mechanism of a privacy map, which has levels")
    made = mechanism.map
    if made.one_dimensional:
        raise InvalidInput("a map along a line has no cells on the ground to export")
    levels = made.values * unit
    bands = {
        f"level asked for, per {per}": levels,
        f"level in use, per {per}": levels * mechanism.lowered,
    }
    write_geotiff(output, made.raster, bands, tags={"WHEREISH_MAP_SHA256": made.digest()})
    rows, columns = made.shape
    where = "no coordinate system" if made.plane.crs is None else made.plane.crs
    click.echo(f"{output.name}: {rows} x {columns} cells, 2 bands, {where}")
