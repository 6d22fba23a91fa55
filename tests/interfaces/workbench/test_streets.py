"""`--basemap` with a real file: streets are fetched in ranges from this machine, and drawn.

streets.pmtiles has a grid of invented streets and a river at Paris, made by tippecanoe from GeoJSON
with Protomaps' names of layers (roads, water) and kinds.
"""

from __future__ import annotations

from pathlib import Path

from interfaces.workbench.conftest import Watched
from interfaces.workbench.looking import until_drawn

import workbench_process

STREETS = Path(__file__).with_name("streets.pmtiles")
INK = """() => {
  let lines = 0;
  for (const canvas of document.querySelectorAll('.leaflet-tile-pane canvas')) {
    if (!canvas.width || !canvas.height) continue;
    const copy = document.createElement('canvas');  // which may be read often
    copy.width = canvas.width;
    copy.height = canvas.height;
    const context = copy.getContext('2d', {willReadFrequently: true});
    context.drawImage(canvas, 0, 0);
    const {data} = context.getImageData(0, 0, copy.width, copy.height);
    for (let i = 0; i < data.length; i += 4)
      lines += data[i + 3] > 0 && data[i] > 250 && data[i + 1] > 250 && data[i + 2] > 250;
  }
  return lines;
}"""


def test_streets_of_a_file_are_drawn(browser, shots, tmp_path):
    with workbench_process.workbench(tmp_path, "--basemap", str(STREETS)) as bench:
        one = Watched(browser, bench.address)
        fetched = []
        one.page.on(
            "response",
            lambda got: fetched.append(got.status) if "city.pmtiles" in got.url else None,
        )
        until_drawn(one.page, 1000)
        before = one.page.evaluate(INK)
        one.page.get_by_label("Find a place").fill("48.8566, 2.3522")
        one.page.keyboard.press("Enter")
        one.page.wait_for_function(f"before => ({INK})() > before + 1000", arg=before, polling=500)
        one.page.wait_for_timeout(1000)
        one.page.screenshot(path=shots / "streets.png")
        assert set(fetched) == {206}
        assert one.page.evaluate(INK) > before + 1000
        one.check(bench.origin)
        one.context.close()
