"""Circular noise: optimal radials with their gaps, sampling, and Bayesian remaps."""

from __future__ import annotations

import math
import time

import numpy as np

from benchmarks.measure import DATA, Bars, cpu_seconds
from whereish.mechanisms.noise.circular import CircularNoise
from whereish.mechanisms.noise.grid_remap import bayesian_grid_remap, nearest_grid_remap
from whereish.mechanisms.noise.optimal_circular import OptimalCircular, laplace_within
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy.distinguishability import Distinguishability
from whereish.randomness import SecureRandomness
from whereish.solvers.cells.grid_posterior import offset_tables, report_rows
from whereish.solvers.radial.loss import Loss
from whereish.space.plane import Plane
from whereish.space.raster import Raster

N = 1_000_000


def main() -> list[str]:
    return [*linear(), *location(), *others(), *sampling(), *remap()]


def timed(*arguments: object, **options: object) -> tuple[OptimalCircular, float]:
    start = time.process_time()
    found = OptimalCircular(*arguments, **options)  # type: ignore[arg-type]
    return found, time.process_time() - start


def linear() -> list[str]:
    bars = Bars("optimal radial for l = d / km: planar Laplace (Theorem 9)")
    keeps = Distinguishability.linear("1/km")
    for loss, exact in (
        (Loss.power(1), 2e3),
        (Loss.power(2), 6e6),
        (Loss.threshold("1.5 km"), 2.5 * math.exp(-1.5)),
    ):
        found, seconds = timed(keeps, loss)
        bars.at_most(
            f"{loss.text}: off {exact:.6g}", 100 * abs(found.loss_value / exact - 1), 0.1, "%"
        )
        bars.at_most(f"{loss.text}: certified gap, {seconds:.1f} s", 100 * found.gap, 0.1, "%")
    return bars.failed


def location() -> list[str]:
    bars = Bars("(D, eps)-location privacy, D = 1 km: optimum against planar Laplace")
    for level in (0.5, 1.0, 2.0):
        keeps = Distinguishability.location("1 km", level)
        found, seconds = timed(keeps)
        laplace = laplace_within(keeps)
        losses = f"{found.loss_value:.2f} m, {laplace.mean_error.m:.2f} m"
        name = f"eps = {level:g}: optimum, planar Laplace, gap, CPU"
        bars.note(name, f"{losses}, {found.gap:.1e}, {seconds:.1f} s")
        certified = laplace.mean_error.m / found.loss_value
        bars.at_least(f"eps = {level:g}: gain", 100 * (1 - 1 / certified), 0.01, "%")
        for mechanism, name in ((found, "optimum"), (laplace, "Laplace")):
            bars.at_most(f"eps = {level:g}: {name} keeps l", mechanism.certificate.upper, 1.0, "")
            refused = mechanism.certified(keeps.scaled(0.99)).lower
            bars.at_least(f"eps = {level:g}: {name} against 0.99 l", refused, 1.0 + 1e-9, "")
    return bars.failed


def others() -> list[str]:
    bars = Bars("other promises, expected distance")
    for keeps, options in (
        (Distinguishability.stairs("1 km", 0.5, base=0.5), {}),
        (Distinguishability.capped("1/km", 3.0).restricted("10 km"), {}),
        (Distinguishability.square_root(2.0, "1 km").restricted("20 km"), {}),
        (Distinguishability.location("1 km", 1.0), {"bound": 5e-8}),
        (Distinguishability.unlimited(), {"bound": 1e-6}),
    ):
        found, seconds = timed(keeps, **options)
        name = f"{keeps}"[:56]
        bars.note(name, f"{found.loss_value:10.1f} m, gap {found.gap:.1e}, {seconds:.1f} s")
    return bars.failed


def sampling() -> list[str]:
    bars = Bars(f"reports, {N:,} points (CPU time against planar Laplace)")
    places = np.random.default_rng().uniform(-1e4, 1e4, (N, 2))
    rng = SecureRandomness()
    laplace = PlanarLaplace("1/100 m")
    radii = np.linspace(0, 2000, 200)
    mechanisms = {
        "table of 5 radii": CircularNoise(
            (np.array([0, 40, 100, 150, 300]), np.array([1, 0.8, 0.9, 0.3, 0.1]))
        ),
        "table of 200 radii": CircularNoise((radii, np.exp(-radii / 150))),
        "optimal (1 km, 1)": OptimalCircular(Distinguishability.location("1 km", 1.0)),
    }
    for mechanism in (laplace, *mechanisms.values()):
        mechanism.report(places[:10])
    base = cpu_seconds(lambda: laplace.report(places, rng=rng), repeats=5)
    for name, mechanism in mechanisms.items():
        spent = cpu_seconds(lambda m=mechanism: m.report(places, rng=rng), repeats=5)
        bars.at_most(name, spent / base, 3.0)
    return bars.failed


def check_in_prior(raster: Raster) -> np.ndarray | None:
    path = DATA / "gowalla_nyc_checkins.parquet"
    if not path.exists():
        return None
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["lon", "lat"])
    lon, lat = (table[name].to_numpy() for name in ("lon", "lat"))
    metres = 111_320.0
    x = (lon + 73.98) * metres * math.cos(math.radians(40.75))
    xy = np.column_stack([x, (lat - 40.75) * metres])
    inside = raster.locate(xy[raster.box.contains(xy)])
    counts = np.bincount(inside, minlength=len(raster)).astype(float)
    return counts / counts.sum()


def remap() -> list[str]:
    bars = Bars("Bayesian remap of planar Laplace, 80 x 60 cells of 500 m, New York check-ins")
    raster = Raster(60, 80, (500.0, 500.0), (-20_000.0, -15_000.0), Plane())
    prior = check_in_prior(raster)
    if prior is None:
        bars.note("real data are not at WHEREISH_DATA", "skipped")
        return bars.failed
    centres = raster.centres()
    every = np.arange(len(raster))
    for level in (0.5, 1.0, 2.0):
        noise = PlanarLaplace(f"{level}/km")
        bayesian_grid_remap(noise, raster, prior)
        spent = cpu_seconds(lambda n=noise: bayesian_grid_remap(n, raster, prior))
        found = bayesian_grid_remap(noise, raster, prior)
        tables = offset_tables(
            lambda r, e=noise.level: (1 + e * r) * np.exp(-e * r), raster.shape, raster.cell
        )
        rows = np.empty((len(raster), len(raster)))
        report_rows(tables, raster.shape, every, 0, rows)

        def direct(rows: np.ndarray = rows) -> np.ndarray:
            """The double sum as one matrix product, the fastest that numpy has."""
            apart = np.hypot(
                centres[:, None, 0] - centres[None, :, 0], centres[:, None, 1] - centres[None, :, 1]
            )
            return (apart @ (prior[:, None] * rows.T)).argmin(axis=0)

        slow = cpu_seconds(direct, repeats=1)
        same = float((direct() == found.targets).mean())
        bayes = found.expected_distance(noise, prior).m
        nearest = nearest_grid_remap(raster).expected_distance(noise, prior).m
        bars.at_least(
            f"eps = {level:g}/km: faster than the product, {spent:.2f} s", slow / spent, 5
        )
        bars.at_least(f"eps = {level:g}/km: reports with the same target", 100 * same, 100, "%")
        bars.at_most(
            f"eps = {level:g}/km: {bayes:.0f} m, of nearest {nearest:.0f} m",
            bayes / nearest,
            0.9999,
        )
    return bars.failed


if __name__ == "__main__":
    main()
