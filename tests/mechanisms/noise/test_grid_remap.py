from __future__ import annotations

import numpy as np
import pytest

from whereish.errors import InvalidInput
from whereish.mechanisms.channels.laplace import laplace_channel
from whereish.mechanisms.noise.axis_laplace import ManhattanLaplace
from whereish.mechanisms.noise.circular import CircularNoise
from whereish.mechanisms.noise.grid_remap import bayesian_grid_remap, nearest_grid_remap
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.randomness import SeededRandomness
from whereish.solvers.cells.grid_posterior import offset_tables, report_rows
from whereish.space.plane import Plane
from whereish.space.raster import Raster

RASTER = Raster(7, 9, (400.0, 500.0), (-1000.0, 200.0), Plane())
LAPLACE = PlanarLaplace("1/km")


def peaked_prior(raster, seed=0):
    weights = np.random.default_rng(seed).pareto(0.7, len(raster))
    return weights / weights.sum()


def channel(raster, survival):
    """Rows: secrets; columns: reports."""
    tables = offset_tables(survival, raster.shape, raster.cell)
    reports = np.empty((len(raster), len(raster)))
    report_rows(tables, raster.shape, np.arange(len(raster)), 0, reports)
    return reports.T


def laplace_survival(r):
    return (1 + r / 1000) * np.exp(-r / 1000)


def distances(raster):
    c = raster.centres()
    return np.hypot(c[:, None, 0] - c[None, :, 0], c[:, None, 1] - c[None, :, 1])


def direct_targets(raster, survival, prior, cells):
    """The double sum, cell by cell."""
    cost = distances(raster)[:, cells].T @ (prior[:, None] * channel(raster, survival))
    return cells[cost.argmin(axis=0)], cost


def test_the_tables_are_the_law_of_clamped_reports():
    matrix = channel(RASTER, laplace_survival)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    n = 200_000
    for cell in (0, 31):
        secret = RASTER.centres()[cell]
        reports = LAPLACE.report(np.tile(secret, (n, 1)), rng=SeededRandomness(4))
        counts = np.bincount(RASTER.locate(reports.coordinates), minlength=len(RASTER))
        wanted = n * matrix[cell]
        # The lattice of 1 m moves a little mass between neighbouring cells.
        assert ((counts - wanted) ** 2 / wanted).sum() < 63 + 6 * np.sqrt(2 * 63) + 10


def test_the_bayesian_remap_is_the_direct_double_sum():
    prior = peaked_prior(RASTER)
    remap = bayesian_grid_remap(LAPLACE, RASTER, prior)
    direct, cost = direct_targets(RASTER, laplace_survival, prior, np.arange(len(RASTER)))
    np.testing.assert_array_equal(remap.targets, direct)
    total = remap.expected_distance(LAPLACE, prior).m
    assert total == pytest.approx(cost.min(axis=0).sum(), rel=1e-9)
    assert total < nearest_grid_remap(RASTER).expected_distance(LAPLACE, prior).m


def test_admissible_cells_only():
    prior = peaked_prior(RASTER, 1)
    land = np.random.default_rng(2).random(RASTER.shape) < 0.3
    cells = np.flatnonzero(land)
    remap = bayesian_grid_remap(LAPLACE, RASTER, prior.reshape(RASTER.shape), onto=land)
    direct, _ = direct_targets(RASTER, laplace_survival, prior, cells)
    np.testing.assert_array_equal(remap.targets, direct)
    nearest = nearest_grid_remap(RASTER, onto=land)
    assert set(nearest.targets) <= set(cells)
    gaps = distances(RASTER)[:, cells].min(axis=1)
    np.testing.assert_allclose(distances(RASTER)[np.arange(63), nearest.targets], gaps)


def test_any_circular_noise_can_be_remapped():
    radii = np.array([0.0, 500, 900, 2000])
    noise = CircularNoise((radii, np.array([1, 0.9, 0.3, 0.05])))
    prior = peaked_prior(RASTER, 3)
    remap = bayesian_grid_remap(noise, RASTER, prior)
    survival = noise.radial.survival
    direct, _ = direct_targets(RASTER, survival, prior, np.arange(len(RASTER)))
    np.testing.assert_array_equal(remap.targets, direct)


def test_a_remapped_mechanism_reports_targets_and_keeps_its_guarantee():
    prior = peaked_prior(RASTER)
    remap = bayesian_grid_remap(LAPLACE, RASTER, prior)
    mechanism = LAPLACE >> remap
    assert mechanism.guarantee == LAPLACE.guarantee
    secrets = np.random.default_rng(5).uniform(-500, 2500, (200, 2))
    reports = mechanism.report(secrets, rng=SeededRandomness(2))
    assert reports.reproducible
    centres = RASTER.centres()[np.unique(remap.targets)]
    assert {tuple(p) for p in reports.coordinates} <= {tuple(c) for c in centres}


def test_where_no_secret_can_be_reports_stay_near():
    """Noise so small that most reports have no possible secret."""
    noise = PlanarLaplace("1/m")
    prior = np.zeros(len(RASTER))
    prior[5] = 1.0
    remap = bayesian_grid_remap(noise, RASTER, prior)
    assert remap.targets[5] == 5
    assert ((remap.targets >= 0) & (remap.targets < len(RASTER))).all()


def test_real_check_ins_on_80_by_60_cells(data_file):
    """Gowalla's New York as a prior: the same map as the double sum, and a smaller loss."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_file("gowalla_nyc_checkins.parquet"), columns=["lon", "lat"])
    lon, lat = (table[name].to_numpy() for name in ("lon", "lat"))
    metres = 111_320.0
    xy = np.column_stack(
        [(lon + 73.98) * metres * np.cos(np.radians(40.75)), (lat - 40.75) * metres]
    )
    raster = Raster(60, 80, (500.0, 500.0), (-20_000.0, -15_000.0), Plane())
    prior = np.bincount(raster.locate(xy[raster.box.contains(xy)]), minlength=len(raster)).astype(
        float
    )
    prior /= prior.sum()
    columns = np.random.default_rng(0).choice(len(raster), 16, replace=False)
    between = distances(raster)
    for level in (0.5, 1.0, 2.0):
        noise = PlanarLaplace(f"{level}/km")
        remap = bayesian_grid_remap(noise, raster, prior)
        nearest = nearest_grid_remap(raster)
        assert (
            remap.expected_distance(noise, prior).m
            < 0.95 * nearest.expected_distance(noise, prior).m
        )
        tables = offset_tables(
            lambda r, level=level: (1 + level * r / 1000) * np.exp(-level * r / 1000),
            raster.shape,
            raster.cell,
        )
        row = np.empty((1, len(raster)))
        for z in columns:
            report_rows(tables, raster.shape, np.arange(len(raster)), int(z), row)
            cost = between @ (prior * row[0])
            assert remap.targets[z] == cost.argmin()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bayesian_grid_remap(LAPLACE, RASTER, np.ones(5)), "one entry per cell"),
        (lambda: bayesian_grid_remap(LAPLACE, RASTER, np.ones(63)), "sum to 1"),
        (lambda: bayesian_grid_remap(LAPLACE, RASTER, -np.ones(63) / 63), ">= 0"),
        (lambda: nearest_grid_remap(RASTER, onto=np.zeros(63, bool)), "at least one"),
        (lambda: nearest_grid_remap(RASTER, onto=np.zeros(63)), "mask"),
        (
            lambda: bayesian_grid_remap(
                PlanarLaplace("1/km", plane=Plane.around(2.0, 48.0, "50 km")),
                RASTER,
                np.ones(63) / 63,
            ),
            "plane",
        ),
        (
            lambda: bayesian_grid_remap(ManhattanLaplace("1/km"), RASTER, np.ones(63) / 63),
            "circular noise",
        ),
    ],
)
def test_bad_input_says_why(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_a_channel_on_a_grid_is_remapped_onto_some_of_its_cells():
    raster = Raster(3, 4, (500.0, 500.0))
    onto = np.arange(len(raster)) % 2 == 0
    moved = laplace_channel(raster, "1/km") >> nearest_grid_remap(raster, onto=onto)
    assert len(moved.reports) <= onto.sum()
