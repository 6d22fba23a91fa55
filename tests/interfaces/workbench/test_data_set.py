"""View 4: a file goes in, before and after are drawn, and the released file comes out."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv
import pytest

from interfaces.workbench.looking import until_drawn


def test_an_example_is_released(watch, shots, tmp_path):
    one = watch("view=data", width=390, scheme="light")
    page = one.page
    page.click("[data-test=example]")
    page.get_by_label("person").check()
    page.click("[data-test=release]")
    page.wait_for_selector("[data-test=save]")
    until_drawn(page, 2000)
    moved = page.inner_text("[data-test=outcome] .big")
    assert moved.startswith("6,000 rows, moved")
    assert "15 reports" in page.inner_text("[data-test=exposure]")
    assert page.locator("[data-test=outcome] rect").count() == 64
    page.screenshot(path=shots / "data-released-390-light.png", full_page=True)
    with page.expect_download() as saved:
        page.click("[data-test=save]")
    saved.value.save_as(tmp_path / "released.csv")
    table = pyarrow.csv.read_csv(tmp_path / "released.csv")
    assert table.column_names == ["lon", "lat", "person"]
    assert table.num_rows == 6000
    with page.expect_download() as stated:
        page.click("[data-test=save-guarantee]")
    stated.value.save_as(tmp_path / "guarantee.json")
    told = json.loads((tmp_path / "guarantee.json").read_text())
    assert told["guarantee"]["basis"] == "theorem"
    page.reload()
    page.wait_for_selector("[data-test=save]")


@pytest.mark.parametrize("suffix", [".geojson", ".gpx", ".parquet"])
def test_other_formats(watch, tmp_path, suffix):
    noise = np.random.default_rng(5)
    places = np.array([48.85, 2.35]) + noise.normal(0, 0.01, (50, 2))
    path = tmp_path / f"places{suffix}"
    if suffix == ".gpx":
        points = "".join(f'<wpt lat="{lat:.6f}" lon="{lon:.6f}"/>' for lat, lon in places)
        path.write_text(
            '<?xml version="1.0"?><gpx version="1.1" creator="t"'
            f' xmlns="http://www.topografix.com/GPX/1/1">{points}</gpx>'
        )
    elif suffix == ".geojson":
        script = "<script>alert(1)</script>"
        features = [
            {
                "type": "Feature",
                "properties": {script: script},
                "geometry": {"type": "Point", "coordinates": [lon, lat]},
            }
            for lat, lon in places
        ]
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    else:
        import pyarrow.parquet

        table = pyarrow.table({"longitude": places[:, 1], "latitude": places[:, 0]})
        pyarrow.parquet.write_table(table, path)
    one = watch("view=data")
    page = one.page
    page.wait_for_selector("[data-test=example]")
    page.set_input_files("input[type=file]", path)
    page.wait_for_selector("fieldset")
    page.click("[data-test=release]")
    page.wait_for_selector("[data-test=save]")
    until_drawn(page, 45)
    assert "50 rows" in page.inner_text("[data-test=outcome]")
    assert page.locator("script").count() == 1  # our own; a property's is text
    if suffix == ".geojson":
        assert "<script>alert(1)</script>" in page.inner_text("fieldset")


def test_a_damaged_file_is_refused(watch, tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    one = watch("view=data")
    one.refusals = True
    page = one.page
    page.wait_for_selector("[data-test=example]")
    page.set_input_files("input[type=file]", tmp_path / "broken.parquet")
    page.wait_for_selector("[role=alert]:not([hidden])")
    assert "broken.parquet" in page.inner_text("[role=alert]")
    assert page.locator("[data-test=release]").is_disabled()


def test_figures_of_steps_and_crowds():
    from whereish.interfaces.workbench.views.data_set import _crowds, _histogram, _steps

    places = np.array([[0.0, 0.0], [0.0, 0.01], [1.0, 0.0], [1.0, 0.01]])
    who = np.array([0, 1, 0, 1])
    steps = _steps(places, who)
    assert steps == pytest.approx([110_500, 110_500], rel=0.01)
    assert len(_steps(places, None)) == 3
    assert _crowds(np.array([[0.0, 0.0], [1e-5, 1e-5], [1.0, 1.0]]), 500.0).tolist() == [2, 2, 1]
    found = _histogram(steps, 2 * steps)
    assert sum(found["before"]) == pytest.approx(1)
    assert found["median_after"] == pytest.approx(2 * found["median_before"])
