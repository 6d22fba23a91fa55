"""One rule for every prior: length, finite, >= 0, not all zero, a sum of 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whereish.audit.characterisations import hiding_attack
from whereish.audit.utility import quality_loss
from whereish.data.site_files import read_sites
from whereish.errors import InvalidInput
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.noise.grid_remap import bayesian_grid_remap
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.mechanisms.records.consumer import consumer_utility
from whereish.privacy import PrivacyMap
from whereish.space import Raster
from whereish.space.prior import TOLERANCE, as_prior
from whereish.units import Epsilon

COIN = [[0.75, 0.25], [0.25, 0.75]]
APART = [[0.0, 2.0], [2.0, 0.0]]
RASTER = Raster(1, 2, (500.0, 500.0))
MAP = PrivacyMap(np.full((1, 2), 1e-3), cell="500 m")

# Each takes a prior over two places.
TAKE_PROBABILITIES = {
    "definition": lambda prior: as_prior(prior, 2),
    "attack": lambda prior: hiding_attack(COIN, APART, prior, [1, 0]),
    "quality": lambda prior: quality_loss(COIN, prior, loss=APART),
    "consumer": lambda prior: consumer_utility(COIN, prior, np.eye(2)),
    "grid": lambda prior: bayesian_grid_remap(PlanarLaplace("1/km"), RASTER, prior),
}
TAKE_WEIGHTS = {
    "definition": lambda prior: as_prior(prior, 2, weights=True),
    "map": MAP.normalised_prior,
}


@pytest.mark.parametrize("take", TAKE_PROBABILITIES.values(), ids=TAKE_PROBABILITIES)
@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ([0.5, 0.5, 0.0], "one entry per"),
        ([[0.5], [0.5]], "one entry per"),
        ([0.5, np.nan], "finite entries >= 0"),
        ([np.inf, 0.5], "finite entries >= 0"),
        ([1.5, -0.5], "finite entries >= 0"),
        ([0.0, 0.0], "entry > 0"),
        ([0.5, 0.5 + 2 * TOLERANCE], r"sums to 1\.002: divide counts by their sum"),
        ([3, 1], "sums to 4: divide counts by their sum"),
        (["0.5", "0.5"], "must be numbers"),
    ],
)
def test_every_reader_of_a_prior_has_one_rule(take, prior, words):
    take([0.5, 0.5])
    take([0.5, 0.5 + TOLERANCE / 2])
    with pytest.raises(InvalidInput, match=words):
        take(prior)


@pytest.mark.parametrize("take", TAKE_WEIGHTS.values(), ids=TAKE_WEIGHTS)
def test_weights_are_taken_in_proportion(take):
    assert take([3, 1]).tolist() == [0.75, 0.25]
    assert take(None).tolist() == [0.5, 0.5]
    for prior, words in (
        ([1.0], "one entry per"),
        ([[1.0], [1.0]], "one entry per"),
        ([1, np.inf], "finite entries"),
        ([-1, 2], ">= 0"),
        ([0, 0], "entry > 0"),
        ([1e308, 1.5e308], "finite sum"),
    ):
        with pytest.raises(InvalidInput, match=words):
            take(prior)


def test_a_prior_that_is_transposed_is_refused():
    """A map of 2 x 3 cells once took an array of 3 x 2 as if it were its own."""
    cells = PrivacyMap(np.full((2, 3), 1e-3), cell="500 m")
    rows = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(cells.normalised_prior(rows), np.arange(6) / 15)
    assert np.array_equal(cells.normalised_prior(rows.ravel()), np.arange(6) / 15)
    with pytest.raises(InvalidInput, match="6 or 2 x 3"):
        cells.normalised_prior(rows.T)


def test_a_file_of_sites_names_its_column(tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("lon,lat,prior\n2,48,0\n2.1,48,0\n")
    with pytest.raises(InvalidInput, match=r"the column prior of sites\.csv must have an entry"):
        read_sites(path, Epsilon.of("1/km"))
    path.write_text("lon,lat,prior\n2,48,3\n2.1,48,1\n")
    _, prior = read_sites(path, Epsilon.of("1/km"))
    assert prior.tolist() == [0.75, 0.25]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20).filter(lambda w: sum(w) > 1e-300))
def test_weights_become_probabilities(weights):
    p = as_prior(weights, len(weights), weights=True)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.array_equal(as_prior(p, len(p)) > 0, p > 0)


def test_a_channel_is_measured_with_the_normalised_prior():
    channel = Channel.of_matrix(COIN, [[0.0, 0.0], [2.0, 0.0]])
    near = quality_loss(channel, [0.5, 0.5004])
    assert near == pytest.approx(0.5, abs=1e-12)
