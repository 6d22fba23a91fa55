"""Areas of interest and retrieval: the thesis's numbers, and the stated confidence by counting."""

from __future__ import annotations

import math

import numpy as np
import pytest

import whereish as wh
from whereish.errors import InvalidInput
from whereish.lbs.areas import retrieval_radius_by_report
from whereish.lbs.report_errors import report_errors
from whereish.mechanisms.base import Remapped
from whereish.privacy import Euclidean, Geodesic
from whereish.randomness import SeededRandomness

N = 200_000
SIGMAS = 4.9  # a false alarm below 1e-6
EPS = "ln(4)/200 m"


def spread(chance, n=N):
    return SIGMAS * math.sqrt(chance * (1 - chance) / n)


# -- the thesis's numbers -----------------------------------------------------------

FINE = wh.PlanarLaplace(EPS, resolution="1 cm")


@pytest.mark.parametrize(
    ("confidence", "within_m"), [(0.75, 390), (0.9, 560), (0.95, 690), (0.992, 1000)]
)
def test_radii_of_the_thesis(confidence, within_m):
    """Section 5.3: l = ln 4 within 0.2 km; printed to 10 m, 684 m as 690."""
    assert FINE.quantile(confidence).m == pytest.approx(within_m, abs=6)
    assert wh.accuracy(FINE, f"{within_m + 300} m", "300 m") == pytest.approx(confidence, abs=3e-3)


def test_the_retrieval_radius_and_the_ratio_of_the_thesis():
    """(0.95, 0.3 km) needs 0.99 km; the ratio of the areas is printed as 10.7."""
    radius = wh.retrieval_radius(FINE, "300 m", 0.95)
    assert radius.m == pytest.approx(990, abs=6)
    more = wh.bandwidth_overhead(radius, "300 m", per_km2=1, bytes_each=1)
    assert math.floor(10 * more.ratio) / 10 == 10.7


TABLE_5_1 = {  # KB fetched in vain, by restaurants per square km and l within 200 m
    (137, 6): (162, 216, 359),
    (137, 4): (235, 318, 539),
    (137, 2): (698, 974, 1700),
    (22, 6): (26, 34, 54),
    (22, 4): (38, 51, 86),
    (22, 2): (112, 156, 279),
}


def test_table_5_1_of_the_thesis():
    """17 of 18 cells within 1 KB (one printed as 1.7 MB); 54 should be 57.7."""
    away = {}
    for (density, level), printed in TABLE_5_1.items():
        noise = wh.PlanarLaplace(f"ln({level})/200 m", resolution="1 cm")
        for confidence, kilobytes in zip((0.9, 0.95, 0.99), printed, strict=True):
            radius = wh.retrieval_radius(noise, "300 m", confidence)
            more = wh.bandwidth_overhead(radius, "300 m", per_km2=density, bytes_each=840)
            away[density, level, confidence] = more.bytes / 1000 - kilobytes
    odd = away.pop((22, 6, 0.99))
    assert 54 + odd == pytest.approx(57.7, abs=0.1)
    assert abs(away.pop((137, 2, 0.99))) < 50  # to 0.1 MB
    assert max(map(abs, away.values())) < 1


def test_the_smallest_epsilon_of_experiment_5_17():
    """rad_I 200 m, rad_R 200 + 150 sqrt 2, 0.99: the equation gives 0.0313 per metre."""
    around = wh.Length(200 + 150 * math.sqrt(2))
    found = wh.smallest_epsilon(around, "200 m", 0.99, noise=wh.PlanarLaplace, resolution="1 cm")
    assert found.per_m == pytest.approx(0.0313, abs=5e-5)
    enough = wh.PlanarLaplace(found, resolution="1 cm")
    assert wh.accuracy(enough, around, "200 m") >= 0.99
    less = wh.PlanarLaplace(wh.Epsilon(0.999 * found.per_m), resolution="1 cm")
    assert wh.accuracy(less, around, "200 m") < 0.99
    with pytest.raises(InvalidInput, match="greater than interest_radius"):
        wh.smallest_epsilon("200 m", "200 m", 0.9)


# -- every kind of mechanism, by counting -------------------------------------------

SITES = np.array([[100.0 * (i % 5), 130.0 * (i // 5)] for i in range(20)])
LEVELS = 1e-3 * (1 + 4.0 * (np.mgrid[:8, :9][1] > 4))


@pytest.fixture(scope="module")
def eikonal():
    return wh.EikonalMechanism.build(wh.PrivacyMap(LEVELS, "400 m"), places="cells")


def covered(mechanism, secret, radius_m, seed, metric):
    secrets = np.repeat(np.atleast_2d(secret), N, 0)
    reports = mechanism.report(secrets, rng=SeededRandomness(seed)).coordinates
    return (metric(reports, np.atleast_2d(secret)) <= radius_m).mean()


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize(
    ("mechanism", "secret", "metric", "most"),
    [
        (wh.PlanarLaplace(EPS), (10, 20), Euclidean(), 1.01),
        (wh.GlobeLaplace(EPS), (179.9999, -70.0), Geodesic(), 1.01),
        (wh.CircularNoise(([0, 100, 900], [4, 2, 1])), (10, 20), Euclidean(), 1.01),
        (wh.PlanarLaplace(EPS).truncated(wh.Box(0, 0, 900, 900)), (899, 1), Euclidean(), 2),
        (wh.GlobeLaplace(EPS).truncated(wh.Box(9, 79, 10, 80)), (9.0, 80.0), Geodesic(), 2),
        (
            wh.PlanarLaplace(EPS) >> wh.nearest_grid_remap(wh.Raster(20, 20, (100, 100))),
            (1010, 990),
            Euclidean(),
            1.3,
        ),
        (wh.exponential_channel(SITES, EPS), SITES[0], Euclidean(), 2),
    ],
    ids=["planar", "globe", "circular", "box", "globe box", "grid", "channel"],
)
def test_the_area_of_interest_lies_inside_with_the_confidence(
    mechanism, secret, metric, most, confidence
):
    radius = wh.retrieval_radius(mechanism, "300 m", confidence).m - 300
    share = covered(mechanism, secret, radius, 11, metric)
    assert share >= confidence - spread(confidence)
    assert share <= most * confidence + spread(confidence)
    stated = wh.accuracy(mechanism, wh.Length(radius + 300 + 1e-6), "300 m")
    assert confidence - 1e-9 <= stated <= share + spread(confidence)


def test_a_near_miss_is_seen_by_this_count():
    mechanism = wh.PlanarLaplace(EPS)
    radius = wh.retrieval_radius(mechanism, "300 m", 0.95).m - 300
    assert covered(mechanism, (0, 0), 0.97 * radius, 11, Euclidean()) < 0.95 - spread(0.95)


def test_channels_for_the_worst_place_and_the_mean():
    """Against a sum over the matrix; the worst is never below the mean."""
    prior = np.linspace(1, 3, len(SITES))
    prior /= prior.sum()
    channel = wh.optimal_channel(SITES, prior, EPS)
    distances = np.linalg.norm(SITES[:, None] - channel.reports.coordinates[None], axis=2)
    for confidence in (0.2, 0.5, 0.9, 0.99):
        inner = wh.retrieval_radius(channel, "1 m", confidence).m - 1
        held = (channel.matrix * (distances <= inner)).sum(axis=1)
        assert held.min() >= confidence
        shorter = (channel.matrix * (distances <= inner - 0.02)).sum(axis=1)
        assert shorter.min() < confidence
        mean = wh.retrieval_radius(channel, "1 m", confidence, prior=prior).m - 1
        assert mean <= inner
        assert prior @ (channel.matrix * (distances <= mean)).sum(axis=1) >= confidence


@pytest.mark.parametrize("confidence", [0.6, 0.95])
def test_maps_have_one_radius_or_one_for_each_report(eikonal, confidence):
    """Against the probabilities of all reports, for places at the corners of their cells."""
    radius = wh.retrieval_radius(eikonal, "300 m", confidence).m - 300
    by_report = retrieval_radius_by_report(eikonal, "300 m", confidence)
    centres = eikonal.reports.centres()
    shares, own = [], []
    for centre in eikonal.map.raster.centres():
        for corner in (-199.999, 199.999):
            place = centre + corner
            chances = eikonal.distribution(place).ravel()
            away = np.hypot(*(centres - place).T)
            shares.append(chances[away <= radius].sum())
            own.append(chances[away <= by_report.at(centres) - 300].sum())
    assert min(shares) >= confidence
    assert min(own) >= confidence
    mean = wh.retrieval_radius(eikonal, "300 m", confidence, prior=np.ones(LEVELS.shape)).m
    assert mean <= radius + 300
    # Where the map hides less, the reports' radii are shorter.
    assert by_report.radii_m.min() < radius + 300


def test_a_remapped_map_is_counted_as_it_reports(eikonal):
    remap = eikonal.posterior_mean()
    radius = wh.retrieval_radius(eikonal >> remap, "300 m", 0.9).m - 300
    share = covered(eikonal >> remap, eikonal.map.raster.centres()[0] + 150, radius, 5, Euclidean())
    assert share >= 0.9 - spread(0.9)


def test_a_map_on_a_projected_plane_has_true_radii():
    plane = wh.Plane.projected("EPSG:3413", wh.Box(-30, 87, -20, 88.5))
    origin = plane.from_degrees([-25.0], [88.0]).coordinates[0]
    asked = wh.PrivacyMap(np.full((5, 5), 0.002), "400 m", tuple(origin), plane)
    flat = wh.PrivacyMap(np.full((5, 5), 0.002 / plane.scale), "400 m")
    true, on_plane = (
        wh.retrieval_radius(wh.EikonalMechanism.build(one, places="cells"), "1 m", 0.9).m - 1
        for one in (asked, flat)
    )
    assert true == pytest.approx(on_plane / 0.9705, rel=2e-3)


def test_the_mechanisms_that_are_not_known_are_refused():
    sites = wh.Sites(wh.Points(SITES, wh.Plane()))
    truncated = wh.PlanarLaplace(EPS).truncated(sites)
    with pytest.raises(InvalidInput, match="nearest site"):
        wh.retrieval_radius(truncated, "300 m", 0.9)
    stated = wh.retrieval_radius(truncated, "300 m", 0.9, moved="100 m").m - 300
    share = covered(truncated, (150, 60), stated, 3, Euclidean())
    assert share >= 0.9
    own = Remapped(wh.PlanarLaplace(EPS), lambda reports: reports)
    with pytest.raises(InvalidInput, match="state a bound"):
        wh.retrieval_radius(own, "300 m", 0.9)
    assert wh.retrieval_radius(own, "300 m", 0.9, moved="5 m").m == pytest.approx(
        wh.retrieval_radius(own.mechanism, "305 m", 0.9).m
    )
    with pytest.raises(InvalidInput, match="are known for"):
        report_errors(wh.Laplace1D("0.01/m"))
    with pytest.raises(InvalidInput, match="prior is for"):
        wh.retrieval_radius(wh.GlobeLaplace(EPS), "300 m", 0.9, prior=[1.0])
    with pytest.raises(InvalidInput, match="along a line"):
        wh.retrieval_radius(
            wh.EikonalMechanism.build(wh.PrivacyMap([0.001, 0.002], "500 m")), "300 m", 0.9
        )
    with pytest.raises(InvalidInput, match=r"\[0, 1\)"):
        wh.retrieval_radius(wh.GlobeLaplace(EPS), "300 m", 1.0)
    assert wh.accuracy(wh.GlobeLaplace(EPS), "100 m", "300 m") == 0.0


# -- a radius that fits the draw ----------------------------------------------------


def test_the_auditor_finds_a_radius_that_was_adapted_to_the_draw():
    """What the service sees is (report, radius).  The public radius keeps eps; one that just
    reaches the area of interest tells the distance that was drawn."""
    noise = wh.PlanarLaplace(EPS)
    public = wh.retrieval_radius(noise, "300 m", 0.95).m
    draws = SeededRandomness(1)

    def seen(secrets, *, adapted):
        reports = noise.report(secrets, rng=draws).coordinates
        away = Euclidean()(reports, secrets)
        radius = 300 + away if adapted else np.full(len(away), public)
        return np.column_stack([reports, radius])

    asked = {
        "x": [0, 0],
        "y": [50, 0],
        "metric": Euclidean(),
        "epsilon": noise.epsilon,
        "samples": 40_000,
        "rng": SeededRandomness(2),
    }

    def squeezed(secrets, adapted):
        """Two numbers of what is seen: the radius, and how far the report is from (0, 0)."""
        view = seen(secrets, adapted=adapted)
        return np.column_stack([view[:, 2], np.hypot(view[:, 0], view[:, 1])])

    fair = wh.audit.statistical(lambda secrets: squeezed(secrets, False), **asked)
    assert not fair.refuted
    broken = wh.audit.statistical(lambda secrets: squeezed(secrets, True), **asked)
    assert broken.refuted
    assert broken.epsilon_lower > 2 * noise.epsilon.per_m


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_radii_of_a_map_hold_at_places_between_its_centres(confidence):
    mechanism = wh.EikonalMechanism.build(wh.PrivacyMap(LEVELS, "400 m"))
    radius = wh.retrieval_radius(mechanism, "1 m", confidence).m - 1
    places = [(1990.0, 1210.0), (2001.0, 1599.0), (0.0, 0.0), (1400.0, 1000.0)]
    for seed, place in enumerate(places):
        share = covered(mechanism, place, radius, 20 + seed, Euclidean())
        assert share >= confidence - spread(confidence)


@pytest.mark.parametrize("confidence", [0.6, 0.95])
def test_radii_of_a_map_hold_everywhere_in_a_cell(confidence):
    """Against the law of places all over the map, which is the mean of those of nine corners."""
    mechanism = wh.EikonalMechanism.build(wh.PrivacyMap(LEVELS, "400 m"))
    radius = wh.retrieval_radius(mechanism, "1 m", confidence).m - 1
    by_report = retrieval_radius_by_report(mechanism, "1 m", confidence)
    reports = mechanism.reports.centres()
    own = by_report.at(reports) - 1
    assert own.min() < radius
    rows, columns = LEVELS.shape
    for x in np.linspace(0, 400 * columns, 2 * columns + 1):
        for y in np.linspace(0, 400 * rows, 2 * rows + 1):
            chances = mechanism.distribution((x, y)).ravel()
            away = np.hypot(*(reports - (x, y)).T)
            assert chances[away <= radius].sum() >= confidence
            assert chances[away <= own].sum() >= confidence
    held = wh.accuracy(mechanism, wh.Length(radius + 1.01), "1 m")
    assert held >= confidence
