"""Remaps of reports that lie out of reach of every secret."""

from __future__ import annotations

import numpy as np

from whereish.solvers.eikonal.cells import framed_law, prices_on_cells
from whereish.solvers.eikonal.squared_error import posterior_means


def test_reports_out_of_reach_are_moved_to_the_box_of_the_secrets():
    """A frame of 40 nats: single precision has no posterior at its corner."""
    built = framed_law(
        np.ones((4, 4)), (1.0, 1.0), prices_on_cells, neighbours=16, frame=40, progress=None
    )
    places = np.indices(built.law.metric.shape).reshape(2, -1).T.astype(float)
    means = posterior_means(built.law, built.secrets, places, np.full(16, 1 / 16))
    assert len(means) == 84 * 84
    assert ((means >= 40) & (means <= 43)).all()
    assert np.ptp(means[built.secrets], axis=0).min() > 0.9
