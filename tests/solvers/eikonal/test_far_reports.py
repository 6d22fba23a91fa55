"""Remaps of reports that lie out of reach of every secret."""

from __future__ import annotations

import numpy as np

import whereish as wh
from whereish.solvers.eikonal.squared_error import posterior_means


def test_reports_out_of_reach_are_moved_to_the_box_of_the_secrets():
    """A frame of 30 cells at a nat or more: single precision has no posterior at its corner."""
    levels = wh.PrivacyMap(np.full((4, 4), 0.01), cell="100 m")
    built = wh.EikonalMechanism.build(levels, places="cells", frame=30).built
    prior = np.full(16, 1 / 16)
    places = np.indices(built.law.metric.shape).reshape(2, -1).T.astype(float)
    means = posterior_means(built.law, built.secrets, places, prior)
    assert ((means >= 30) & (means <= 33)).all()
    assert np.ptp(means[built.secrets], axis=0).min() > 1.0
