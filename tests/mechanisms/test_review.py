"""Counterexamples that a review once found, so that they stay mended."""

from __future__ import annotations

import json

import numpy as np
import pytest

from whereish import audit
from whereish.errors import InvalidInput, NotPrivate, WhereishError
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.laplace import laplace_channel
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.noise.circular import CircularNoise
from whereish.mechanisms.noise.grid_remap import nearest_grid_remap
from whereish.privacy import Geodesic
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.solvers.radial.log_linear import LogLinear
from whereish.space import Box, Plane, Points, Raster, Sphere

FAR_NORTH = np.array([[0.0, 9e6], [1000.0, 9e6], [0.0, 9.001e6]])


def test_radii_that_only_round_to_an_edge_are_compared_too():
    """3000 + 333.3 rounds to the edge 3333.3, whose true distance is a little larger."""
    apart = 333.3
    law = LogLinear(
        np.array([0, 3000.0, 3333.3, np.inf]),
        np.array([0, 0.0, -40.0]),
        np.array([0, -40.0, -np.inf]),
        0.5 / apart * 0.99,
    )
    with pytest.raises(NotPrivate):
        CircularNoise(law, keeps=Distinguishability.location("333.3 m", 0.5))


def test_the_promise_of_continuous_places_is_the_true_integral():
    levels = np.where(np.arange(129) % 8 == 4, 0.009, 0.04) / 100
    mechanism = EikonalMechanism.build(PrivacyMap(levels, cell="100 m"), places="continuous")
    ends = np.array([[50.0], [12850.0]])
    fine = np.interp(np.linspace(50, 12850, 200_001), 50 + 100 * np.arange(129), levels)
    integral = np.trapezoid(fine, dx=12800 / 200_000)
    assert mechanism.guarantee.metric(ends[:1], ends[1:])[0] == pytest.approx(integral, rel=1e-6)
    p, q = (mechanism.distribution(end) for end in ends)
    seen = (p > 0) & (q > 0)
    assert np.abs(np.log(p[seen] / q[seen])).max() <= integral


def test_sites_and_secrets_beyond_the_declared_region_are_refused():
    plane = Plane("EPSG:3857", Box(0, 0, 1, 1))
    with pytest.raises(InvalidInput, match="declared region"):
        optimal_channel(Points(FAR_NORTH, plane), None, "1/km")
    near = PrivacyMap(np.full((4, 4), 1e-3), cell="1 km", origin=(5e3, 5e3), plane=plane)
    with pytest.raises(InvalidInput, match="declared region"):
        EikonalMechanism.build(near).report(FAR_NORTH[:1])


def changed(path, **words):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    certificate = json.loads(arrays["certificate"].tobytes())
    certificate.update(words)
    arrays["certificate"] = np.frombuffer(json.dumps(certificate).encode(), np.uint8)
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    "words", [{"places": "continuous", "gradient_factor": 0.5}, {"sweeps": 1}, {"factor": 0.1}]
)
def test_a_saved_map_whose_words_were_changed_is_refused(tmp_path, words):
    path = tmp_path / "map.npz"
    levels = np.linspace(4e-4, 2e-3, 64).reshape(8, 8)
    EikonalMechanism.build(PrivacyMap(levels, cell="500 m")).save(path)
    assert EikonalMechanism.load(path).factor <= 1
    changed(path, **words)
    with pytest.raises(WhereishError):
        EikonalMechanism.load(path)


def test_a_certificate_allows_for_the_errors_of_its_metric():
    places = np.array([2.0, 48.0]) + np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) * 1e-5
    channel = optimal_channel(Points(places, Sphere()), None, "2/m", metric=Geodesic(), gap=1e-3)
    assert audit.exact(channel, channel.guarantee.metric, sites=places).holds


def test_remaps_of_grids_and_masks_of_secrets():
    raster = Raster(3, 4, (500.0, 500.0))
    channel = laplace_channel(raster, "1/km")
    onto = np.arange(len(raster)) % 2 == 0
    moved = channel >> nearest_grid_remap(raster, onto=onto)
    assert len(moved.reports) <= onto.sum()
    some = channel.restricted([False, True, True, *[False] * 9])
    assert isinstance(some, Channel)
    assert np.array_equal(some.secrets.coordinates, channel.secrets.coordinates[1:3])
