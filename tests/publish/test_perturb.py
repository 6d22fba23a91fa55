from __future__ import annotations

import pickle

import numpy as np
import pytest

import whereish as wh
from whereish.errors import InvalidInput
from whereish.randomness import SeededRandomness


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


@pytest.mark.parametrize("lon", [[2.33316, [2.33316]], 10**400, [10**400]])
def test_perturb_refuses_what_is_no_array_of_numbers_in_a_sentence(lon):
    with pytest.raises(InvalidInput, match="longitudes must be numbers"):
        wh.perturb(lon, lon, epsilon="0.01/m")


def test_perturb_refuses_masked_entries_and_imaginary_parts():
    masked = np.ma.array([2.3, 2.4], mask=[False, True])
    for lon, lat in [(masked, [48.8, 48.9]), ([48.8, 48.9], masked), ([2.3 + 1j], [48.8])]:
        with pytest.raises(wh.WhereishError, match="must") as caught:
            wh.perturb(lon, lat, epsilon="1/km")
        assert "48" not in str(caught.value)
    unmasked = np.ma.array([2.3, 2.4], mask=False)
    assert wh.perturb(unmasked, [48.8, 48.9], epsilon="1/km")[0].shape == (2,)


def test_perturb_marks_seeded_reports():
    for given in (2.3, [2.3, 2.4]):
        seeded = wh.perturb(given, given, epsilon="1/km", rng=SeededRandomness(1))
        for axis in seeded:
            derived = [axis, axis[...], axis + 0.0, axis.copy(), pickle.loads(pickle.dumps(axis))]
            assert all(one.reproducible for one in derived)
            assert "ReproducibleArray" in repr(axis)
            assert np.shape(axis) == np.shape(given)
        for axis in wh.perturb(given, given, epsilon="1/km"):
            assert not getattr(axis, "reproducible", False)
            assert type(axis) is np.ndarray
