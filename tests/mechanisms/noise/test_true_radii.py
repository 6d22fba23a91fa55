"""Stated radii hold the stated share of the reports, in true metres."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pyproj import Geod

from whereish.errors import InvalidInput
from whereish.mechanisms.noise.axis_laplace import Laplace1D, ManhattanLaplace
from whereish.mechanisms.noise.circular import CircularNoise
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy import Euclidean, Geodesic, GreatCircle, Manhattan
from whereish.randomness import SeededRandomness
from whereish.solvers.radial.log_linear import LogLinear
from whereish.space.sphere import FARTHEST_M, RADIUS_M, true_metres
from whereish.units import Epsilon, Length

N = 1_000_000
LATITUDES = [0.0, 23.4, 48.85, -70.0, 85.0, 90.0]
SIGMAS = 4.9  # a false alarm below 1e-6
CHANCE = 0.95
SPREAD = math.sqrt(CHANCE * (1 - CHANCE) / N)


def true_distances(lat):
    secret = np.array([[2.35, lat]])
    mechanism = GlobeLaplace("ln(4)/200 m")
    reports = mechanism.report(np.repeat(secret, N, 0), rng=SeededRandomness(int(lat) + 200))
    return mechanism, secret, reports.coordinates


@pytest.mark.parametrize("lat", LATITUDES)
def test_radii_cover_in_true_metres(lat):
    """Fault 10: "within 685 m with probability 0.95" covered 0.9479 at 85 degrees."""
    mechanism, secret, reports = true_distances(lat)
    distance = Geodesic()(reports, secret)
    for radius in (mechanism.quantile(CHANCE), mechanism.quantile(CHANCE, at=(2.35, lat))):
        share = (distance <= radius.m).mean()
        assert share >= CHANCE - SIGMAS * SPREAD
        assert share <= 1.01 * CHANCE
        assert radius.m <= 1.01 * np.quantile(distance, CHANCE) + 2 * mechanism.rounding.m
        assert mechanism.coverage(radius) <= share + SIGMAS * SPREAD
    # What was told before: the radius on the sphere.
    before = (distance <= mechanism.ideal_quantile(CHANCE).m).mean()
    if abs(lat) > 40:
        assert before < CHANCE - SIGMAS * SPREAD
    assert mechanism.quantile(CHANCE, at=(2.35, lat)).m <= mechanism.quantile(CHANCE).m
    mean = distance.mean()
    assert mean <= mechanism.mean_error.m + mechanism.rounding.m
    assert mean >= mechanism.mean_error.m / 1.011


def test_true_metres_bound_every_direction():
    """Against short geodesics: never exceeded, and attained eastwards."""
    draw, geod = np.random.default_rng(1), Geod(ellps="WGS84")
    n = 20_000
    lon, lat = draw.uniform(-180, 180, n), draw.uniform(-90, 90, n)
    bearing = np.where(draw.random(n) < 0.1, 90.0, draw.uniform(0, 360, n))
    there_lon, there_lat, _ = geod.fwd(lon, lat, bearing, np.full(n, 1000.0))
    sphere = GreatCircle()(np.column_stack([lon, lat]), np.column_stack([there_lon, there_lat]))
    highest = np.maximum(np.abs(lat), np.abs(there_lat))
    share = 1000.0 / sphere / np.array([true_metres(h) for h in highest])
    assert share.max() <= 1 + 1e-8
    assert share.max() > 1 - 1e-5
    assert true_metres() == pytest.approx((6378137 / 6356752.314245179) ** 3, rel=1e-12)
    assert true_metres(0.0) * RADIUS_M == pytest.approx(6378137, rel=1e-12)
    assert pytest.approx(geod.inv(0, -90, 0, 90)[2], abs=2e-3) == FARTHEST_M
    assert geod.inv(0, -90, 0, 90)[2] < FARTHEST_M


@pytest.mark.parametrize(
    ("mechanism", "metric"),
    [
        (PlanarLaplace("1/20 m", resolution="30 m"), Euclidean()),
        (ManhattanLaplace("1/20 m", resolution="30 m"), Manhattan()),
        (Laplace1D("1/20 m", resolution="30 m"), Manhattan()),
        (
            CircularNoise(
                LogLinear(np.array([0, np.inf]), np.zeros(1), np.zeros(1), 0.05),
                resolution="30 m",
            ),
            Euclidean(),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_radii_hold_the_rounded_report(mechanism, metric):
    """On a lattice as coarse as the noise, where the ideal radius does not hold it."""
    secrets = np.random.default_rng(2).uniform(0, 30, (N, mechanism.space.dimension))
    distance = metric(mechanism.report(secrets, rng=SeededRandomness(3)).coordinates, secrets)
    short = []
    for chance in (0.1, 0.5, CHANCE):
        spread = math.sqrt(chance * (1 - chance) / N)
        assert (distance <= mechanism.quantile(chance).m).mean() >= chance - SIGMAS * spread
        ideal = mechanism.ideal_quantile(chance)
        short.append((distance <= ideal.m).mean() < chance - SIGMAS * spread)
        assert mechanism.coverage(mechanism.quantile(chance)) == pytest.approx(chance, rel=1e-9)
        assert mechanism.cdf(ideal) == pytest.approx(chance, rel=1e-9)
    assert any(short)


@pytest.mark.parametrize("lat", [0.0, 60.0, -89.0])
def test_a_calibrated_radius_is_kept_in_true_metres(lat):
    mechanism = GlobeLaplace.with_quantile(CHANCE, "500 m")
    assert mechanism.quantile(CHANCE).m <= 500 * (1 + 1e-12)
    secret = np.array([[10.0, lat]])
    reports = mechanism.report(np.repeat(secret, N, 0), rng=SeededRandomness(5)).coordinates
    share = (Geodesic()(reports, secret) <= 500).mean()
    assert CHANCE - SIGMAS * SPREAD <= share <= 1.01 * CHANCE


def test_no_radius_is_longer_than_half_a_meridian():
    wide = GlobeLaplace(Epsilon(1e-9))
    assert wide.quantile(0.999999) == Length(FARTHEST_M)
    assert wide.coverage("40000 km") == 1
    with pytest.raises(InvalidInput, match="latitude"):
        wide.quantile(0.5, at=(0.0, 91.0))
