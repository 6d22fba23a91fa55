"""``whereish places``: a store of places, for ``whereish nearby``."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("places")
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path))
@click.option("--lon", default="lon", show_default=True, help="The column of longitudes.")
@click.option("--lat", default="lat", show_default=True, help="The column of latitudes.")
@click.option("--keep", multiple=True, help="A column that results shall have.")
def command(source: Path, store: Path, lon: str, lat: str, keep: tuple[str, ...]) -> None:
    """Make STORE, one file to ask for places nearby, from the public table SOURCE.

    SOURCE is CSV, JSON lines, Parquet, GeoJSON, GeoPackage or FlatGeobuf.
    """
    from whereish.errors import InvalidInput
    from whereish.lbs.sources.store import PlaceStore

    if store.suffix != ".db":
        raise InvalidInput("the store must end in .db, by which `whereish nearby` knows it")
    built = PlaceStore.build(store, source, lon=lon, lat=lat, keep=keep)
    click.echo(f"{len(built)} places in {store.name}")
