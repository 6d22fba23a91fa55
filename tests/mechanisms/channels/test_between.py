"""Channels on a grid, for places between the sites."""

from __future__ import annotations

import numpy as np
import pytest

import whereish as wh
from whereish.audit import statistical
from whereish.mechanisms.channels.between import grid_of

from laws import chi_square

EPS = 0.01


def grid(rows: int = 5, columns: int = 6, cell: float = 60.0) -> wh.Sites:
    box = wh.Box(1000.0, -500.0, 1000.0 + columns * cell, -500.0 + rows * cell)
    return wh.Raster.over(box, f"{cell} m").sites()


def prior(count: int) -> np.ndarray:
    weights = np.random.default_rng(4).gamma(0.4, size=count) + 1e-3
    return weights / weights.sum()


@pytest.fixture(scope="module", params=["optimal", "laplace", "exponential"])
def between(request) -> wh.BetweenSites:
    sites = grid()
    if request.param == "optimal":
        return wh.optimal_channel(sites, prior(len(sites)), f"{EPS}/m").between_sites()
    make = wh.laplace_channel if request.param == "laplace" else wh.exponential_channel
    return make(sites, f"{EPS}/m").between_sites()


def slopes(mechanism: wh.BetweenSites, places: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """|grad ln P| by central differences of the law itself, largest over the reports."""
    out = []
    for place in places:
        parts = [
            np.log(mechanism.distribution(place + step * e))
            - np.log(mechanism.distribution(place - step * e))
            for e in np.eye(2)
        ]
        out.append(np.hypot(*parts).max() / (2 * step))
    return np.array(out)


def test_the_slope_holds_everywhere_and_is_nearly_reached(between):
    box = between.raster.box
    places = np.random.default_rng(1).uniform(
        (box.x_low + 1, box.y_low + 1), (box.x_high - 1, box.y_high - 1), (800, 2)
    )
    found = slopes(between, places)
    assert found.max() <= between.slope * (1 + 1e-6)
    assert found.max() > 0.9 * between.slope
    assert between.guarantee.metric.ratio_to(wh.Euclidean()) >= between.slope


def test_an_optimal_channel_needs_little_more_than_its_level():
    sites = grid(7, 7, 70.0)
    mechanism = wh.optimal_channel(sites, prior(49), f"{EPS}/m").between_sites()
    assert 0.95 < mechanism.factor < 1.2
    assert mechanism.acceptance > 0.7


def test_reports_follow_the_geometric_mean():
    mechanism = wh.exponential_channel(grid(), f"{EPS}/m").between_sites()
    for place, padded in (((1131.0, -342.0), False), ((1050.0, -220.0), True)):
        secrets = np.tile(np.array(place), (200_000, 1))
        reports = mechanism.report(secrets, rng=wh.SeededRandomness(6), padded=padded)
        columns = mechanism.channel.reports.nearest(reports.coordinates)
        counts = np.bincount(columns, minlength=len(mechanism.channel.reports) + 1)
        assert chi_square(counts, mechanism.distribution(place)) > 1e-6
        moved = np.array(place) + np.array([9.0, -9.0])
        assert chi_square(counts, mechanism.distribution(moved)) < 1e-6


def test_the_audit_accepts_it_across_a_border_where_the_nearest_site_fails():
    channel = wh.exponential_channel(grid(), f"{EPS}/m")
    mechanism = channel.between_sites()
    x, y = np.array([1119.0, -350.0]), np.array([1121.0, -350.0])
    source = wh.SeededRandomness(3)

    def audited(report):
        rng = wh.SeededRandomness(4)
        return statistical(report, x, y, distance=mechanism.slope * 2.0, samples=100_000, rng=rng)

    fair = audited(lambda s: mechanism.report(s, rng=source).coordinates)
    assert fair.epsilon_lower <= 1.0
    nearest = channel.nearest_sites
    broken = audited(lambda s: channel.report(nearest(s), rng=source).coordinates)
    assert broken.epsilon_lower > 2.0


def test_sites_may_come_in_any_order_and_lie_on_a_line():
    sites = grid(4, 3)
    order = np.random.default_rng(0).permutation(12)
    shuffled = wh.exponential_channel(wh.Sites(sites.points[order]), f"{EPS}/m").between_sites()
    plain = wh.exponential_channel(sites, f"{EPS}/m").between_sites()
    place = [1077.0, -333.0]
    by_place = [
        dict(zip(map(tuple, m.channel.reports.coordinates), m.distribution(place), strict=True))
        for m in (shuffled, plain)
    ]
    assert by_place[0].keys() == by_place[1].keys()
    for where, chance in by_place[0].items():
        assert chance == pytest.approx(by_place[1][where], rel=1e-6)
    assert shuffled.slope == pytest.approx(plain.slope, rel=1e-6)
    line = wh.exponential_channel([[100.0 * i, 7.0] for i in range(9)], f"{EPS}/m").between_sites()
    assert len(line.report([[333.3, 7.0], [-50.0, 90.0]])) == 2
    raster, site_of = grid_of(wh.Sites(sites.points[order]))
    np.testing.assert_allclose(raster.centres(), sites.coordinates[order][site_of])


@pytest.mark.parametrize(
    "sites",
    [
        [[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]],
        [[0.0, 0.0], [100.0, 0.0], [250.0, 0.0]],
        [[0.0, 0.0], [100.0, 3.0], [40.0, 100.0], [111.0, 90.0]],
    ],
)
def test_scattered_sites_are_refused_and_offered_the_grid(sites):
    channel = wh.exponential_channel(sites, f"{EPS}/m")
    with pytest.raises(wh.WhereishError, match=r"full rectangular grid.*nearest_sites"):
        channel.between_sites()


def test_channels_with_zeros_are_refused():
    channel = wh.identity_channel(grid(2, 2))
    with pytest.raises(wh.WhereishError, match="every site can give every report"):
        channel.between_sites()
