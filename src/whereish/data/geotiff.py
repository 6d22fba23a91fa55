"""Numbers on a raster as a GeoTIFF, for QGIS and other readers of GDAL (extra `geo`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, MissingExtra, NotWritten
from whereish.space.raster import Raster

__all__ = ["write_geotiff"]


def write_geotiff(
    path: str | Path, raster: Raster, bands: Mapping[str, FloatArray], *, tags: Mapping[str, str]
) -> None:
    """Write bands of doubles, each (rows, columns) with its description, north up.

    The file is made in memory and written at once: none is left half-done.
    """
    try:
        from rasterio import Affine
        from rasterio.crs import CRS
        from rasterio.errors import CRSError
        from rasterio.io import MemoryFile
    except ImportError:
        raise MissingExtra("rasterio", "geo") from None
    crs = raster.plane.crs
    (x, _), (width, height), box = raster.origin, raster.cell, raster.box
    try:
        system = None if crs is None else CRS.from_user_input(crs)
    except CRSError:
        raise InvalidInput(f"GDAL does not know the plane's coordinate system {crs!r}") from None
    with MemoryFile() as memory:
        with memory.open(
            driver="GTiff",
            height=raster.rows,
            width=raster.columns,
            count=len(bands),
            dtype="float64",
            crs=system,
            transform=Affine(width, 0.0, x, 0.0, -height, box.y_high),
            compress="deflate",
            photometric="minisblack",
        ) as out:
            for band, (name, values) in enumerate(bands.items(), start=1):
                out.write(np.ascontiguousarray(values[::-1]), band)
                out.set_band_description(band, name)
            out.update_tags(**tags)
        content = bytes(memory.getbuffer())
    try:
        Path(path).write_bytes(content)
    except OSError:
        raise NotWritten(f"{Path(path).name} cannot be written") from None
