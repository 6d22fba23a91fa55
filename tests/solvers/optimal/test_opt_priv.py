import numpy as np
import pytest

from instances import distances, peaked
from whereish.solvers.optimal.opt_priv import solve_opt_priv


def error(matrix, prior, d):
    return (d @ (prior[:, None] * matrix)).min(axis=0).sum()


def test_loss_bound_is_met_and_error_equals_it_while_it_binds():
    places, prior = peaked(5, 5)
    d = distances(places)
    blind = (d @ prior).min()
    previous = 0.0
    for bound in (100.0, 400.0, 800.0):
        matrix = solve_opt_priv(prior, d, d, bound)
        np.testing.assert_allclose(matrix.sum(axis=1), 1)
        loss = float((prior[:, None] * matrix * d).sum())
        assert loss <= bound * (1 + 1e-9)
        # The adversary errs at most by the loss (guess the report), and at best by it.
        assert error(matrix, prior, d) == pytest.approx(min(bound, blind), rel=1e-6)
        assert error(matrix, prior, d) > previous
        previous = error(matrix, prior, d)


def test_no_other_channel_does_better():
    places, prior = peaked(4, 4)
    d = distances(places)
    matrix = solve_opt_priv(prior, d, d**2, 500.0)
    best = error(matrix, prior, d**2)
    exponential = np.exp(-d / 700)
    exponential /= exponential.sum(axis=1, keepdims=True)
    loss = float((prior[:, None] * exponential * d).sum())
    scaled = solve_opt_priv(prior, d, d**2, loss)
    assert error(scaled, prior, d**2) >= error(exponential, prior, d**2)
    assert best > 0
