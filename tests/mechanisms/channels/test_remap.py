import numpy as np
import pytest

import whereish as wh
from instances import EPSILON, peaked
from whereish.audit.utility import quality_loss
from whereish.errors import InvalidInput

RASTER = wh.Raster(6, 7, (658.0, 712.0))


@pytest.fixture(scope="module")
def laplace():
    prior = np.random.default_rng(4).dirichlet(np.full(42, 0.3))
    return wh.laplace_channel(RASTER, EPSILON), prior


@pytest.mark.parametrize("loss", ["euclidean", "squared"])
def test_remap_is_the_argmin_among_sites(laplace, loss):
    channel, prior = laplace
    remapped = wh.bayesian_remap(channel, prior, loss=loss)
    # The adversary who judges by the same loss can do no better: that is the argmin.
    assert quality_loss(remapped, prior, loss) == pytest.approx(
        wh.adversary_error(channel, prior, loss), rel=1e-12
    )
    assert quality_loss(remapped, prior, loss) < quality_loss(channel, prior, loss)
    assert remapped.guarantee.metric == channel.guarantee.metric
    remapped.verify()


def test_matrix_losses_go_the_general_way(laplace):
    channel, prior = laplace
    losses = wh.Euclidean().matrix(RASTER.centres())
    by_matrix = wh.bayesian_remap(channel, prior, loss=losses)
    by_name = wh.bayesian_remap(channel, prior)
    assert quality_loss(by_matrix, prior) == pytest.approx(quality_loss(by_name, prior), rel=1e-12)


@pytest.mark.parametrize("loss", ["euclidean", "squared"])
def test_anywhere_is_at_least_as_good_as_sites(laplace, loss):
    channel, prior = laplace
    free = wh.bayesian_remap(channel, prior, loss=loss, anywhere=True)
    bound = wh.bayesian_remap(channel, prior, loss=loss)
    assert quality_loss(free, prior, loss) < quality_loss(bound, prior, loss)


def test_a_wrong_prior_costs_no_privacy(laplace):
    channel, _ = laplace
    wrong = np.zeros(42)
    wrong[0] = 1.0
    remapped = channel >> wh.BayesianRemap(wrong)
    assert len(remapped.reports) == 1
    remapped.verify()


def test_silent_reports_stay_near():
    sites = RASTER.centres()[:3]
    channel = wh.Channel.of_matrix(np.eye(3), sites)
    remapped = channel >> wh.BayesianRemap([0.5, 0.5, 0.0])
    np.testing.assert_array_equal(remapped.matrix, np.eye(3))


def test_anywhere_needs_a_plane():
    sphere = wh.Points(np.array([[2.3, 48.8], [2.4, 48.9]]), wh.Sphere())
    channel = wh.uniform_channel(sphere)
    with pytest.raises(InvalidInput, match="anywhere needs a plane"):
        wh.bayesian_remap(channel, None, anywhere=True)
    assert len((channel >> wh.BayesianRemap(None)).reports) == 1


def test_remapped_laplace_is_near_the_optimum():
    raster = wh.Raster(7, 7, (658.0, 712.0))
    _, prior = peaked(7, 7)
    remapped = wh.bayesian_remap(wh.laplace_channel(raster, EPSILON), prior)
    optimum = wh.optimal_channel(raster, prior, EPSILON)
    assert optimum.lower_bound <= quality_loss(remapped, prior) < 1.2 * optimum.loss
