"""Truncation remaps; it keeps epsilon where resampling does not."""

from __future__ import annotations

import numpy as np
import pytest

from whereish import audit
from whereish.errors import InvalidInput, SpaceMismatch
from whereish.mechanisms.base import Remapped
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy import Euclidean
from whereish.solvers.cells.mass import grid_masses
from whereish.space import Box, Plane, Points, Sites, Sphere
from whereish.units import Epsilon

EPS = 0.4
SIDE = 5
SECRETS = np.array([[0, 0], [4, 4], [0, 4], [2, 2], [1, 0], [4, 3], [0.4, 0.4]], float)


def inner_masses(secret: np.ndarray, open_border: bool) -> np.ndarray:
    """Masses of the 5 x 5 lattice cells; the border ones reach outwards if it is open."""
    edges = np.arange(SIDE + 1) - 0.5
    if open_border:
        edges[[0, -1]] = -400, 400
    masses = grid_masses(
        lambda r: (1 + EPS * r) * np.exp(-EPS * r), edges - secret[0], edges - secret[1]
    )
    return masses.ravel()


def test_clamping_keeps_epsilon_at_the_corners_and_resampling_breaks_it():
    clamped = np.array([inner_masses(secret, True) for secret in SECRETS])
    assert audit.exact(clamped, EPS * Euclidean(), sites=SECRETS).holds
    resampled = np.array([inner_masses(secret, False) for secret in SECRETS])
    resampled /= resampled.sum(axis=1, keepdims=True)
    assert audit.exact(resampled, EPS * Euclidean(), sites=SECRETS).factor_lower > 1.05


def test_the_clamped_sampler_has_the_clamped_law():
    mechanism = PlanarLaplace(Epsilon(EPS)).truncated(Box(0, 0, SIDE - 1, SIDE - 1))
    n = 400_000
    for secret in SECRETS[:4]:
        reports = mechanism.report(np.broadcast_to(secret, (n, 2))).coordinates.astype(int)
        counts = np.bincount(reports[:, 0] * SIDE + reports[:, 1], minlength=SIDE**2)
        expected = n * inner_masses(secret, True)
        assert ((counts - expected) ** 2 / expected).sum() < 80


def test_the_guarantee_is_the_mechanisms_own():
    mechanism = PlanarLaplace(Epsilon(EPS))
    truncated = mechanism.truncated(Box(0, 0, 4, 4))
    assert truncated.guarantee == mechanism.guarantee
    assert truncated.space == mechanism.space
    assert isinstance(truncated >> (lambda reports: reports), Remapped)
    with pytest.raises(InvalidInput, match="Box or Sites"):
        mechanism.truncated([0, 0, 1, 1])


def test_regions_of_another_space_are_refused():
    with pytest.raises(InvalidInput, match="latitudes"):
        GlobeLaplace("1/km").truncated(Box(-10, 80, 10, 95))
    with pytest.raises(SpaceMismatch):
        GlobeLaplace("1/km").truncated(Sites(Points([[0, 0]], Plane())))


def test_sites_and_globe_boxes():
    sites = Sites(Points([[0, 0], [100, 0], [0, 100]], Plane()))
    reports = PlanarLaplace("0.01/m").truncated(sites).report(np.zeros((500, 2))).coordinates
    assert {tuple(row) for row in reports.tolist()} <= {(0, 0), (100, 0), (0, 100)}
    box = Box(179.5, -1, 180.5, 1)
    globe = GlobeLaplace("0.00001/m").truncated(box).report(np.tile([[180.0, 0.0]], (500, 1)))
    lon, lat = Sphere().to_degrees(globe)
    assert (np.abs(lat) <= 1).all()
    assert (np.abs(lon) >= 179.5).all()
