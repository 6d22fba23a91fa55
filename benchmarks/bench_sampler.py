"""Exact reports against the usual float samplers."""

from __future__ import annotations

import numpy as np
import qif
from pyproj import Geod

from benchmarks.measure import Bars, cpu_ratio, cpu_seconds
from whereish.audit import TextbookPlanarLaplace
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace, undecided_shares
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.units import Epsilon

N = 2_000_000
N_QIF = 200_000  # one Python call per point; scaled
EPS = Epsilon(1 / 200)
LATITUDES = (0.0, 48.85, 80.0, 89.0, 90.0)


def main() -> list[str]:
    generator = np.random.default_rng()
    textbook = TextbookPlanarLaplace(EPS)
    metres = generator.uniform(-1e4, 1e4, (N, 2))
    degrees = np.column_stack([generator.uniform(-180, 180, N), generator.uniform(-80, 80, N)])
    planar, globe, geod = PlanarLaplace(EPS), GlobeLaplace(EPS), Geod(ellps="WGS84")

    def qif_reports() -> None:
        for _ in range(N_QIF):
            qif.mechanism.geo_ind.planar_laplace_sample(EPS.per_m)

    def lambert_w_on_the_globe() -> None:
        noise = textbook.sample(np.zeros((N, 2)), generator)
        bearing = np.degrees(np.arctan2(noise[:, 0], noise[:, 1]))
        geod.fwd(degrees[:, 0], degrees[:, 1], bearing, np.hypot(noise[:, 0], noise[:, 1]))

    for mechanism, places in ((planar, metres), (globe, degrees)):
        mechanism.report(places[:10])  # compile or load
    bars = Bars(f"reports, {N:,} points at eps = 1/200 m (CPU time)")
    ours = cpu_seconds(lambda: planar.report(metres))
    bars.note("planar, exact", f"{N / ours / 1e6:10.1f} million points per CPU-second")
    lambert = cpu_ratio(lambda: textbook.sample(metres, generator), lambda: planar.report(metres))
    bars.at_least("planar: against numpy + lambertw", lambert, 4)
    per_call = cpu_ratio(qif_reports, lambda: planar.report(metres)) * N / N_QIF
    bars.at_least("planar: against qif planar_laplace_sample", per_call, 8)
    ours = cpu_seconds(lambda: globe.report(degrees))
    bars.note("globe, exact", f"{N / ours / 1e6:10.1f} million points per CPU-second")
    geodesic = cpu_ratio(lambert_w_on_the_globe, lambda: globe.report(degrees), repeats=2)
    bars.at_least("globe: against lambertw + pyproj.Geod.fwd", geodesic, 3)
    for decimals in (5, 7, 9):
        fine = GlobeLaplace(EPS, decimals=decimals)
        shares = [undecided_shares(fine, lat) for lat in LATITUDES]
        for stage, left in enumerate(("doubles leave open", "balls decide")):
            told = "  ".join(f"{share[stage]:.1e}" for share in shares)
            bars.note(f"globe, {decimals} decimals: {left} at {LATITUDES}", told)
    return bars.failed


if __name__ == "__main__":
    main()
