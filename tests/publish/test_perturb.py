from __future__ import annotations

import numpy as np
import pytest

import whereish as wh


def test_degrees_in_degrees_out():
    lon, lat = wh.perturb([[2.3, 2.4]], [[48.8, 48.9]], epsilon="ln(4)/200 m")
    assert lon.shape == lat.shape == (1, 2)
    assert (np.abs(lat - 48.85) < 0.5).all()
    scalar = wh.perturb(2.3, 48.8, epsilon="1/km")
    assert scalar[0].shape == ()


def test_bad_input():
    for lon, lat in [([1], [1, 2]), ([0], [91]), ([np.nan], [0]), (["x"], [0])]:
        with pytest.raises(wh.WhereishError):
            wh.perturb(lon, lat, epsilon="1/km")
    with pytest.raises(wh.WhereishError):
        wh.perturb([0], [0], epsilon=0.01)
