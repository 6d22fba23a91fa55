"""Commute distances before and after the homes of made-up commuters are blurred.

The region is a made-up city of 120 x 120 km with two centres; only homes are perturbed,
as in the LODES study of Andrés et al. (CCS 2013, section 5).  No bar: the histograms are
printed, with the share of commutes that changed class.

Run: python -m benchmarks.bench_commuters
"""

from __future__ import annotations

import numpy as np

from whereish.data.commuters import synthetic_commuters
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.randomness import SeededRandomness
from whereish.space.box import Box
from whereish.space.raster import Raster


def main() -> list[str]:
    raster = Raster.over(Box(0, 0, 120e3, 120e3), "2 km")
    x, y = raster.centres().T
    one, two = np.hypot(x - 50e3, y - 55e3), np.hypot(x - 85e3, y - 80e3)
    density = (np.exp(-one / 9e3) + 0.4 * np.exp(-two / 6e3) + 0.002).reshape(raster.shape)
    commuters = synthetic_commuters(raster, density, 200_000, seed=2013, reach="12 km")
    before = commuters.histogram()
    print("level              mean error  " + "".join(f"{label:>9s}" for label in before.labels))
    print(f"{'true homes':30s} " + "".join(f"{share:9.4f}" for share in before.shares))
    for epsilon in ("ln(2)/200 m", "ln(4)/1 km", "ln(4)/2 km", "ln(4)/5 km"):
        mechanism = PlanarLaplace(epsilon)
        homes = mechanism.report(commuters.homes, rng=SeededRandomness(1))
        after = commuters.histogram(homes=homes)
        shares = "".join(f"{share:9.4f}" for share in after.shares)
        print(
            f"{epsilon:18s} {mechanism.mean_error.m:8.0f} m  {shares}"
            f"   {after.change(before):.4f} moved"
        )
    return []


if __name__ == "__main__":
    main()
