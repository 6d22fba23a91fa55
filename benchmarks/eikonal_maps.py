"""Maps for the eikonal benchmarks, over [0, 100]^2 km: smooth, hard, and real ones."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import DATA
from whereish.arrays import FloatArray
from whereish.data.grids import tract_values
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.space.box import Box
from whereish.space.plane import Plane
from whereish.space.raster import Raster

SIDE_KM = 100.0
BUMPS = (
    (45, 55, 14, 16, 1.0),
    (62, 42, 10, 12, 0.75),
    (30, 30, 12, 10, 0.45),
    (72, 75, 12, 14, 0.5),
    (15, 70, 9, 10, 0.25),
)


def centres(n: int) -> tuple[FloatArray, FloatArray]:
    x = (np.arange(n) + 0.5) * SIDE_KM / n
    grid_x, grid_y = np.meshgrid(x, x)
    return grid_x, grid_y


def city(n: int) -> FloatArray:
    """A smooth city: sums of bumps scaled to eps in [0.4, 2.0] per km."""
    x, y = centres(n)

    def density(x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(
            sum(
                a * np.exp(-((x - cx) ** 2) / 2 / sx**2 - (y - cy) ** 2 / 2 / sy**2)
                for cx, cy, sx, sy, a in BUMPS
            )
        )

    reference = density(*centres(400))
    share = (density(x, y) - reference.min()) / (reference.max() - reference.min())
    return 0.4 + 1.6 * np.clip(share, 0, 1)


def districts(n: int) -> FloatArray:
    """The city in 10 x 10 districts, each of one level: jumps everywhere."""
    return np.kron(city(10), np.ones((n // 10, n // 10)))


def hard_maps(n: int) -> dict[str, FloatArray]:
    """Levels per km that make plain weights negative."""
    x, y = centres(n)
    tight = np.full((n, n), 2.0)
    tight[n // 2, n // 2] = 0.2
    tiles = ((x // 20).astype(int) + (y // 20).astype(int)) % 2
    return {
        "step 10:1": np.where(x > 50, 2.0, 0.2),
        "narrow valley": 2.0 - 1.6 * np.exp(-((x - 50) ** 2) / 2 / 2.0**2),
        "single tight cell": tight,
        "checkerboard": 0.4 + 1.6 * tiles,
    }


def as_map(levels_per_km: FloatArray) -> PrivacyMap:
    side = SIDE_KM * 1000 / len(levels_per_km)
    return PrivacyMap(levels_per_km / 1000, (side, side))


def tract_map(
    name: str, n: int, *, box: Box | None = None, slope: float | None = None
) -> tuple[PrivacyMap, FloatArray] | None:
    """Real density on an n x n raster of its city, and the density; None where absent.

    By default the top tenth of the densities gets the loosest level.
    """
    regions = {
        "paris_iris_2014": (Box(2.22, 48.81, 2.47, 48.91), "EPSG:2154", "density_km2"),
        "phl_region_blockgroups_2000": (
            Box(-75.45, 39.80, -74.85, 40.20),
            "EPSG:32618",
            "density_sqmi",
        ),
    }
    usual, crs, _ = regions[name]
    box = usual if box is None else box
    path = DATA / f"{name}.parquet"
    if not path.exists():
        return None
    import geopandas as gpd

    frame = gpd.read_parquet(path)
    column = next(c for c in frame.columns if "dens" in c.lower())
    plane = Plane.projected(crs, box)
    corners = plane.from_degrees([box.x_low, box.x_high], [box.y_low, box.y_high]).coordinates
    (x0, y0), (x1, y1) = corners
    raster = Raster(n, n, ((x1 - x0) / n, (y1 - y0) / n), (x0, y0), plane)
    density = tract_values(frame, raster, column=column)
    slope = 1.6 / np.quantile(density[density > 0], 0.9) if slope is None else slope
    levels = PrivacyMap.from_density(
        density,
        slope=slope,
        offset=0.4,
        high=2.0,
        per="km",
        cell=raster.cell,
        origin=raster.origin,
        plane=plane,
    )
    return levels, density
