"""What pages of the documentation take for granted: names and files of the reader."""

from __future__ import annotations

SHELL_ELSEWHERE = {
    ("serve",): "tests/interfaces/service starts it",
    ("token",): "tests/interfaces/service has its folder",
    ("relay",): "tests/interfaces/owntracks has a broker",
    ("reproduce",): "tests/studies/test_reproduce.py runs it",
}

PYTHON_ELSEWHERE = {
    "docs/service.md": "it needs a service: tests/interfaces/service/test_client.py has one",
}

_PEOPLE = """
import io
import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet
draw = np.random.default_rng(1)
people = pa.table({
    "name": [f"p{i}" for i in range(50)], "person": np.arange(50), "hour": draw.integers(0, 24, 50),
    "lon": draw.normal(2.333, 0.005, 50), "lat": draw.normal(48.854, 0.003, 50),
})
for stem in ("trips", "people", "cafes"):
    csv.write_csv(people, f"{stem}.csv")
    parquet.write_table(people, f"{stem}.parquet")
standard_input = lambda: io.StringIO("48.85412,2.33316\\n")
"""
_ZONES = """
import json
from pathlib import Path
ring = [[2.34, 48.84], [2.36, 48.84], [2.36, 48.86], [2.34, 48.84]]
zone = {"type": "Feature", "properties": {"epsilon": "1/km"},
        "geometry": {"type": "Polygon", "coordinates": [ring]}}
Path("zones.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [zone]}))
"""
_PHILADELPHIA = """
import io
import numpy as np
import pyarrow as pa
import rasterio
from pyarrow import csv
rows, columns = np.mgrid[:6, :7]
levels_per_metre = 1e-3 * (1 + 0.1 * ((rows * columns) % 3))
density = 3000 * np.exp(-((rows - 3) ** 2 + (columns - 3) ** 2) / 8)
corner = rasterio.Affine(500, 0, 484_500, 0, -500, 4_423_700)
with rasterio.open("density.tif", "w", driver="GTiff", height=6, width=7, count=1,
                   dtype="float64", crs="EPSG:32618", transform=corner) as grid:
    grid.write(density, 1)
people = pa.table({"lon": [-75.16, -75.17], "lat": [39.95, 39.94]})
csv.write_csv(people, "people.csv")
xy = np.array([[486_300.0, 4_422_000.0], [486_900.0, 4_422_600.0]])
xy0, prior = xy[0], density / density.sum()
district_of_cell = (rows + columns) // 4
"""
_NOISE = """
import numpy as np
import whereish as wh
from whereish.privacy.distinguishability import Distinguishability
from whereish.solvers.radial.loss import Loss
l = Distinguishability.location("1 km", 2.0)
other_l = Distinguishability.linear("2/km")
my_function = np.sqrt
my_radial = lambda r: np.exp(-r / 1000)
radii = np.linspace(0, 20_000, 50)
values = np.exp(-radii / 1000)
xy = np.array([[0.0, 0.0], [500.0, 200.0]])
places = xy
steps = 100 * np.arange(-5, 6)
table = np.exp(-0.1 * np.hypot(*np.meshgrid(steps, steps)) / 100)
raster = wh.Raster(4, 3, (500, 500))
prior, land = np.ones(12) / 12, np.ones((4, 3), bool)
"""

_WALK = """
from pathlib import Path
points = "".join(
    f'<trkpt lat="48.85{i:02}" lon="2.33"><time>2026-05-01T12:{i:02}:00Z</time></trkpt>'
    for i in range(30)
)
Path("walk.gpx").write_text(
    '<gpx version="1.1" creator="me" xmlns="http://www.topografix.com/GPX/1/1">'
    f"<trk><trkseg>{points}</trkseg></trk></gpx>"
)
"""

PRELUDES = {
    "README.md": _PEOPLE,
    "docs/lbs.md": _PEOPLE + "__import__('pathlib').Path('cafes.db').unlink(missing_ok=True)",
    "docs/optimal-channels.md": """
import numpy as np
import whereish as wh
sites = np.array([[1000.0 * (i % 3), 1000.0 * (i // 3)] for i in range(9)])
prior = np.arange(1.0, 10.0) / 45
points = np.random.default_rng(5).uniform(0, 3000, (200, 2))
raster = wh.Raster(3, 3, (1000, 1000))
who = np.repeat(["ann", "bob"], 100)
when = np.tile(np.datetime64("2026-01-01") + np.arange(100) * np.timedelta64(1, "h"), 2)
""",
    "docs/l-privacy.md": _NOISE,
    "docs/maps.md": _PHILADELPHIA,
    "docs/service.md": _ZONES,
    "docs/numerics.md": """
from whereish import PlanarLaplace, audit
from whereish.privacy import Euclidean
sampler = PlanarLaplace("1/200 m").report
""",
    "docs/profiles.md": """
import numpy as np
draw = np.random.default_rng(6)
members = ["ann", "bob"]
users = draw.choice(members, 40)
lon_lat = np.column_stack([draw.uniform(-74.0, -73.95, 40), draw.uniform(40.7, 40.75, 40)])
""",
    "docs/howto/gpx.md": _WALK,
    "docs/traces.md": _WALK
    + """
import io
import numpy as np
lon_lat = np.column_stack([np.linspace(116.30, 116.34, 40), np.full(40, 39.98)])
seconds = 60.0 * np.arange(40)
lines = [f"{t:.0f},{lat},{lon}" for t, (lon, lat) in zip(seconds, lon_lat)]
standard_input = lambda: io.StringIO("\\n".join(lines))
""",
}
