"""Radii of mechanisms on projected planes hold their share of the reports, in true metres."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pyproj import Geod

from whereish.errors import InvalidInput
from whereish.mechanisms.noise.circular import CircularNoise
from whereish.mechanisms.noise.optimal_circular import OptimalCircular
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy.distinguishability import Distinguishability
from whereish.randomness import SeededRandomness
from whereish.space import Box, Plane
from whereish.space.projection.ellipsoid import WGS84
from whereish.space.sphere import FARTHEST_M
from whereish.units import Epsilon, Length

N = 1_000_000
SIGMAS = 4.9  # a false alarm below 1e-6
CHANCE = 0.95
SPREAD = math.sqrt(CHANCE * (1 - CHANCE) / N)
GEOD = Geod(ellps="WGS84")
AIRY = (
    "+proj=tmerc +lat_0=49 +lon_0=-2 +k=0.9996012717 +x_0=400000 +y_0=-100000 +ellps=airy"
    " +towgs84=446.448,-125.157,542.06,0.15,0.247,0.842,-20.489 +units=m"
)
PLANES = {
    "UTM, equator": ("EPSG:32631", Box(2.9, -0.1, 3.1, 0.1)),
    "UTM, edge of the zone": ("EPSG:32631", Box(5.6, 23.3, 5.8, 23.5)),
    "UTM, 48 degrees": ("EPSG:32631", Box(2.2, 48.8, 2.5, 48.9)),
    "UTM, 70 degrees": ("EPSG:32631", Box(2.2, 70.0, 2.5, 70.1)),
    "UTM, 83 degrees": ("EPSG:32631", Box(2.2, 83.0, 2.5, 83.1)),
    "Lambert 93": ("EPSG:2154", Box(-0.7, 44.7, -0.4, 45.0)),
    "Europe, equal area": ("EPSG:3035", Box(-9.3, 38.6, -9.0, 38.9)),
    "polar stereographic": ("EPSG:3413", Box(-30, 87, -20, 88.5)),
    "Web Mercator": ("EPSG:3857", Box(24.8, 60.1, 25.1, 60.3)),
    "a datum shift": (AIRY, Box(-0.4, 51.3, 0.1, 51.7)),
    # EPSG:2272 in metres; it has US feet, which planes refuse.
    "Pennsylvania South": ("EPSG:32129", Box(-75.3, 39.8, -74.9, 40.2)),
}


def true_distances(mechanism, lon, lat, seed):
    """Distances of a million reports in true metres, and the secret's coordinates.

    Geodesics where they decide, within 6% of a radius; else the midpoint rule, good to 1e-5.
    """
    plane = mechanism.plane
    secret = plane.from_degrees([lon], [lat]).coordinates
    reports = mechanism.report(np.repeat(secret, N, 0), rng=SeededRandomness(seed))
    there = np.array(plane.to_degrees(reports))
    middle, east, north = np.radians([(lat + there[1]) / 2, there[0] - lon, there[1] - lat])
    distance = WGS84.a * np.hypot(east * WGS84.parallel(middle), north * WGS84.meridian(middle))
    for chance in (0.5, CHANCE):
        close = np.abs(distance / mechanism.quantile(chance).m - 1) < 0.06
        start = np.full((2, int(close.sum())), [[lon], [lat]])
        distance[close] = GEOD.inv(*start, *there[:, close])[2]
    return distance, tuple(secret[0])


@pytest.mark.parametrize("name", PLANES)
def test_radii_cover_in_true_metres(name):
    """At least the stated share, and less than 1% more; a radius 1% shorter is rejected."""
    crs, region = PLANES[name]
    shift = "NAD83 to WGS 84 (1)" if crs == "EPSG:32129" else None
    plane = Plane.projected(crs, region, shift=shift)
    assert plane.proven
    mechanism = PlanarLaplace("ln(4)/200 m", plane=plane)
    seed = sum(map(ord, name))
    u, v = np.random.default_rng(seed).uniform(size=2)
    lon, lat = region.x_low + u * region.width, region.y_low + v * region.height
    distance, place = true_distances(mechanism, lon, lat, seed)
    everywhere, here = mechanism.quantile(CHANCE), mechanism.quantile(CHANCE, at=place)
    assert here.m <= everywhere.m
    for radius in (everywhere, here):
        share = (distance <= radius.m).mean()
        assert share >= CHANCE - SIGMAS * SPREAD
        assert share <= 1.01 * CHANCE
    # Lisbon is far from the centre of the equal-area projection: circles become ellipses.
    shorter = 0.97 if crs == "EPSG:3035" else 0.99
    assert (distance <= shorter * here.m).mean() < CHANCE - SIGMAS * SPREAD
    assert mechanism.coverage(here, at=place) == pytest.approx(CHANCE, abs=1e-3)
    assert mechanism.coverage(everywhere) <= (distance <= everywhere.m).mean() + SIGMAS * SPREAD
    assert distance.mean() <= mechanism.mean_error.m + mechanism.rounding.m
    assert distance.mean() >= mechanism.mean_error.m / 1.03


def test_metres_of_the_plane_were_too_short_near_the_pole():
    """What was told before: 0.945 of the reports where 0.95 was said."""
    crs, region = PLANES["polar stereographic"]
    mechanism = PlanarLaplace("ln(4)/200 m", plane=Plane.projected(crs, region))
    distance, _ = true_distances(mechanism, -25.0, 88.4, 3)
    before = mechanism.ideal_quantile(CHANCE).m + mechanism.rounding.m
    assert (distance <= before).mean() < CHANCE - SIGMAS * SPREAD


@pytest.mark.parametrize("resolution", ["1 m", "300 m"])
def test_circular_noise_covers_in_true_metres(resolution):
    """On a lattice as coarse as the noise too."""
    plane = Plane.projected(*PLANES["polar stereographic"])
    level = Epsilon.of("ln(4)/200 m").per_m / plane.scale
    radii = np.linspace(0, 3000, 31)
    noise = CircularNoise((radii, np.exp(-level * radii)), resolution=resolution, plane=plane)
    distance, place = true_distances(noise, -22.0, 88.2, 8)
    for chance in (0.5, CHANCE):
        radius = noise.quantile(chance, at=place)
        spread = math.sqrt(chance * (1 - chance) / N)
        assert (distance <= radius.m).mean() >= chance - SIGMAS * spread
    assert distance.mean() <= noise.mean_error.m + 1.03 * noise.rounding.m


def test_optimal_circular_noise_states_true_radii():
    region = Box(-30, 87, -20, 88.5)
    plane = Plane.projected("EPSG:3413", region)
    keeps = Distinguishability.linear("0.01/m")
    flat, stretched = OptimalCircular(keeps), OptimalCircular(keeps, plane=plane)
    ratio = plane.scale / plane.contraction(1000).factor
    expected = flat.ideal_quantile(CHANCE).m * ratio
    assert stretched.quantile(CHANCE).m == pytest.approx(expected, rel=2e-3)
    assert stretched.mean_error.m == pytest.approx(flat.mean_error.m * ratio, rel=2e-3)


def test_a_calibrated_radius_is_kept():
    plane = Plane.projected(*PLANES["Web Mercator"])
    mechanism = PlanarLaplace.with_quantile(CHANCE, "500 m", plane=plane)
    assert 499 < mechanism.quantile(CHANCE).m <= 500 * (1 + 1e-12)
    distance, _ = true_distances(mechanism, 25.0, 60.11, 5)
    assert CHANCE - SIGMAS * SPREAD <= (distance <= 500).mean() <= 1.01 * CHANCE
    mean = PlanarLaplace.with_mean_error("200 m", plane=plane)
    assert 199 < mean.mean_error.m <= 200 * (1 + 1e-12)


def test_reports_that_may_cross_an_edge_are_within_half_a_meridian():
    """With almost no budget no factor is known, and no radius below half the Earth is stated."""
    mechanism = PlanarLaplace(
        "1e-8/m", resolution="1 km", plane=Plane.projected(*PLANES["UTM, 48 degrees"])
    )
    assert mechanism.quantile(CHANCE) == Length(FARTHEST_M)
    assert mechanism.mean_error == Length(FARTHEST_M)
    assert mechanism.coverage("20004 km") == 1.0
    assert mechanism.coverage("19000 km") == 0.0
    assert 0 < mechanism.coverage("1000 km") < 1e-3
    near_pole = Plane.projected("EPSG:3413", Box(-40, 88, -20, 88.9))
    assert near_pole.contraction(50_000).factor > 0.969
    assert near_pole.contraction(200_000).factor == 0.0  # beyond the pole


def test_a_place_must_lie_in_the_region():
    mechanism = PlanarLaplace("0.01/m", plane=Plane.projected(*PLANES["Lambert 93"]))
    with pytest.raises(InvalidInput, match="declared region"):
        mechanism.quantile(0.5, at=(0.0, 0.0))


def test_a_plane_without_a_projection_is_in_true_metres_already():
    plain = PlanarLaplace("ln(4)/200 m")
    assert plain.quantile(CHANCE).m == pytest.approx(
        plain.ideal_quantile(CHANCE).m + plain.rounding.m, rel=1e-9
    )
    assert plain.mean_error.m == 2 / plain.level
    assert plain.coverage("30000 km") == pytest.approx(1.0)


def test_feet_are_refused():
    with pytest.raises(InvalidInput, match="axes in metres"):
        Plane.projected("EPSG:2272", Box(-75.3, 39.8, -74.9, 40.2))
