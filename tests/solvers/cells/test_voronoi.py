from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.spatial import cKDTree
from tests.solvers.cells.test_mass import laplace_density, laplace_survival

from whereish.mechanisms.channels.laplace import clamped_masses_of
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.solvers.cells.voronoi import voronoi_masses
from whereish.space.raster import Raster


def masses(sites, secrets, scale=1.0):
    return voronoi_masses(1 / scale, np.asarray(sites, float), np.asarray(secrets, float))


def beyond(distance):
    """P(one coordinate of the noise > distance > 0), by the marginal's own integral."""

    def along(theta):  # ∫ over the half-plane in polar coordinates
        return laplace_survival(distance / np.cos(theta))

    return quad(along, -np.pi / 2, np.pi / 2, epsabs=0, epsrel=1e-11)[0] / (2 * np.pi)


@pytest.mark.parametrize("level", [0.02, 0.7, 6.0])
@pytest.mark.parametrize("shape", [(1, 7), (5, 4)])
def test_cells_of_a_grid_are_its_clamped_rectangles(level, shape):
    raster = Raster(*shape, (0.9, 1.3))
    ours = masses(raster.centres(), raster.centres(), 1 / level)
    np.testing.assert_allclose(
        ours, clamped_masses_of(raster, level, raster.centres()), rtol=1e-9, atol=1e-14
    )


def test_two_sites_part_the_plane():
    for d in (0.1, 1.0, 20.0, 60.0):
        share = masses([[0, 0], [2 * d, 0]], [[0, 0]])[0]
        assert share[1] == pytest.approx(beyond(d), rel=1e-9)
        assert share.sum() == pytest.approx(1, abs=1e-15)


def test_sites_on_one_slanted_line():
    at = np.array([0.0, 1.0, 1.5, 4.0])
    direction = np.array([np.cos(0.3), np.sin(0.3)])
    share = masses(at[:, None] * direction + 1e5, direction[None] + 1e5)[0]
    cuts = [beyond(0.5), beyond(0.25), beyond(1.75)]
    expected = [cuts[0], 1 - cuts[0] - cuts[1], cuts[1] - cuts[2], cuts[2]]
    np.testing.assert_allclose(share, expected, rtol=1e-7)


def test_scattered_cells_agree_with_counting_a_fine_grid():
    random = np.random.default_rng(5)
    sites, secrets = random.uniform(0, 6, (30, 2)), random.uniform(-1, 7, (3, 2))
    centres = Raster(1000, 1000, (0.04, 0.04), (-17.0, -17.0)).centres()
    closest = cKDTree(sites).query(centres)[1]
    for secret, ours in zip(secrets, masses(sites, secrets), strict=True):
        x, y = (centres - secret).T
        counted = np.bincount(closest, laplace_density(y, x) * 0.04**2, minlength=len(sites))
        np.testing.assert_allclose(ours, counted, atol=1e-3)
        assert np.abs(ours - np.roll(counted, 1)).max() > 0.01


def test_secrets_on_ridges_and_corners_share_alike():
    square = [[-1, -1], [1, -1], [1, 1], [-1, 1]]
    np.testing.assert_allclose(masses(square, [[0, 0]])[0], 0.25, atol=1e-12)
    on_ridge = masses(square, [[0.0, -1.0]])[0]
    assert on_ridge[0] == pytest.approx(on_ridge[1], abs=1e-12)
    nearly = masses(square, [[1e-13, -1.0]])[0]
    np.testing.assert_allclose(nearly, on_ridge, atol=1e-11)
    close_to_corner = masses(square, [[1e-13, -2e-13]])[0]
    np.testing.assert_allclose(close_to_corner, 0.25, atol=1e-11)


def test_one_site_takes_all_and_a_twin_takes_nothing():
    assert masses([[3, 4]], [[0, 0]]).tolist() == [[1.0]]
    shares = masses([[0, 0], [2, 0], [0, 0]], [[0, 0]])[0]
    assert shares[2] == 0
    assert shares[1] == pytest.approx(beyond(1.0), rel=1e-9)


def test_a_far_cell_keeps_its_relative_accuracy():
    """A unit square 40 scales away, as the cell of a site among its neighbours."""
    i, j = np.meshgrid(np.arange(-1, 2), np.arange(-1, 2))
    around = np.c_[i.ravel(), j.ravel()] + np.array([40.0, 3.0])
    sites = np.concatenate([around, [[0.0, 0.0]]])
    share = masses(sites, [[0.0, 0.0]])[0, 4]
    direct = dblquad(laplace_density, 39.5, 40.5, 2.5, 3.5, epsabs=0, epsrel=1e-10)[0]
    assert share == pytest.approx(direct, rel=1e-6)


@pytest.mark.parametrize("gap", [0.0, 1e-9, 1e-6])
def test_sites_that_nearly_coincide_are_one_place(gap):
    sites = [[0, 0], [gap, 0], [100, 0], [0, 100]]
    together = masses([sites[0], *sites[2:]], [[1.0, 2.0]], 100.0)[0]
    shares = masses(sites, [[1.0, 2.0]], 100.0)[0]
    np.testing.assert_allclose(shares, [together[0], 0, *together[1:]], rtol=1e-12)


def test_sites_a_millimetre_apart_are_two(rng):
    sites = np.array([[0.0, 0.0], [1e-3, 0.0], [100.0, 0.0], [0.0, 100.0]])
    shares = masses(sites, [[0.0, 0.0]], 100.0)[0]
    noise = PlanarLaplace("10/km", resolution="0.001 mm").report(np.zeros((200_000, 2)), rng=rng)
    counted = np.bincount(cKDTree(sites).query(noise.coordinates)[1], minlength=4) / 200_000
    np.testing.assert_allclose(shares, counted, atol=0.006)


@pytest.mark.parametrize("kind", ["scattered", "line"])
def test_secrets_in_blocks_and_threads_have_the_masses_of_one_alone(kind, monkeypatch):
    random = np.random.default_rng(8)
    sites = random.uniform(0, 30, (90, 2)) * (1.0, 1.0 if kind == "scattered" else 0.0)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("WHEREISH_THREADS", threads)
        found.append(masses(sites[:60], np.repeat(sites, 12, axis=0)))
    np.testing.assert_array_equal(*found)
    for secret in (0, 17, 89):
        alone = masses(sites[:60], sites[secret][None])
        np.testing.assert_allclose(found[0][12 * secret], alone[0], rtol=1e-12, atol=1e-15)
