"""`build map`, `report --mechanism`, `plot` and `audit` on privacy maps."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from whereish.errors import InvalidInput
from whereish.interfaces.cli.build_map import linear_formula
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.privacy.maps.privacy_map import PrivacyMap

GRID = "ncols 8\nnrows 8\nxllcorner 600000\nyllcorner 6800000\ncellsize 1000\n" + "\n".join(
    " ".join(str(500 * (i + j)) for j in range(8)) for i in range(8)
)
PLANE = ["--crs", "EPSG:2154", "--region", "1.5,48.2,1.9,48.5"]
AT = "48.3137,1.70132"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("map")
    grid, out = folder / "density.asc", folder / "map.npz"
    grid.write_text(GRID)
    done = run("build", "map", grid, *PLANE, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "8 x 8 cells, certified at 0.9" in done.stdout
    return out


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "whereish", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def refused(*arguments: object) -> bool:
    done = run(*arguments)
    return done.returncode == 2 and done.stderr.startswith("whereish: ")


def test_reports_of_a_saved_map(saved):
    done = run("report", "--mechanism", saved, "--at", AT, "-n", 5)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    for line in lines:
        lat, lon = map(float, line.split(","))
        assert abs(lat - 48.3) < 0.5
        assert abs(lon - 1.7) < 0.5
    assert "5 * min over paths" in done.stderr
    assert "48.3137" not in done.stdout + done.stderr
    told = json.loads(run("report", "--mechanism", saved, "--at", AT, "--json").stdout)
    assert told["guarantee"]["basis"] == "certified"


def test_epsilon_and_mechanism_exclude_each_other(saved):
    assert refused("report", "--at", AT)
    assert refused("report", "--at", AT, "--epsilon", "1/km", "--mechanism", saved)


def test_audit_of_a_saved_map(saved):
    done = run("audit", saved)
    assert done.returncode == 0
    assert "kept: 8 x 8 cells" in done.stdout
    told = json.loads(run("audit", saved, "--json").stdout)
    assert told["factor"] <= 1.0


def test_plot(saved, tmp_path):
    picture = tmp_path / "map.png"
    done = run("plot", saved, "-o", picture)
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert run("plot", saved, "-o", tmp_path / "map.pdf").returncode == 0
    assert (tmp_path / "map.pdf").read_bytes()[:5] == b"%PDF-"
    assert refused("plot", saved, "-o", tmp_path / "map.bmp")


def test_zones(tmp_path):
    ring = [[1.62, 48.3], [1.68, 48.3], [1.68, 48.34], [1.62, 48.34], [1.62, 48.3]]
    zone = {
        "type": "Feature",
        "properties": {"epsilon": "0.5/km"},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }
    path = tmp_path / "zones.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [zone]}))
    common = ["build", "map", path, *PLANE, "--cell", "3 km", "-o", tmp_path / "z.npz"]
    assert refused(*common)
    done = run(*common, "--default", "1/km")
    assert done.returncode == 0, done.stderr
    assert refused(*common, "--default", "1/km")  # it exists


def test_formulas():
    assert linear_formula("1e-4*d+0.4") == (1e-4, 0.4)
    assert linear_formula(" 2 * d - .5 ") == (2.0, -0.5)
    assert linear_formula("3*d") == (3.0, 0.0)
    for bad in ("d**2", "__import__('os')", "1e-4*d+0.4*d", ""):
        with pytest.raises(InvalidInput, match="linear"):
            linear_formula(bad)


def test_a_plane_needs_its_region(tmp_path):
    assert refused(
        "build", "map", tmp_path / "x.asc", "--crs", "EPSG:2154", "-o", tmp_path / "y.npz"
    )


def test_a_saved_query_is_audited_but_reports_no_places(tmp_path):
    path = tmp_path / "halves.npz"
    halves = np.repeat(["east", "west"], 4)[None].repeat(8, 0)
    EikonalMechanism.build(PrivacyMap(np.full((8, 8), 1e-3), "1 km"), query=halves).save(path)
    done = run("audit", path)
    assert done.returncode == 0, done.stderr
    assert "kept: 8 x 8 cells" in done.stdout
    told = json.loads(run("audit", path, "--json").stdout)
    assert (told["kind"], told["reports"]) == ("eikonal query", 2)
    assert 0.9 < told["factor"] <= 1.0
    done = run("report", "--mechanism", path, "--at", AT)
    assert done.returncode == 2
    assert "reports answers, not places" in done.stderr
