"""Reports one by one are those of `report_one`, word for word."""

from __future__ import annotations

import numpy as np
import pytest

import whereish as wh
from whereish.mechanisms.noise.one_by_one import one_by_one
from whereish.randomness import SeededRandomness

PLACES = [(2.33316, 48.85412), (179.99999, -70.0), (-180.0, 0.0), (10.0, 90.0), (-360.0, -89.99999)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("epsilon", "decimals"),
    [("ln(4)/200 m", 5), ("ln(4)/2 km", 0), ("1/m", 9), ("1e-6/m", 5), ("1e-8/m", 5)],
)
def test_the_same_words_give_the_same_reports(place, epsilon, decimals):
    """Rejected draws (small rates) and what doubles leave open (fine lattices) are among them."""
    noise = wh.GlobeLaplace(epsilon, decimals=decimals)
    ours, theirs = SeededRandomness(3), SeededRandomness(3)
    report = one_by_one(noise, rng=ours)
    for _ in range(400):
        assert report(*place) == noise.report_one(place, rng=theirs)
    assert (ours.words(1) == theirs.words(1)).all()  # no word more, no word less


def test_what_is_left_open_is_decided_with_the_same_words(monkeypatch):
    """A kernel that decides nothing: every report goes through ball arithmetic."""
    import whereish.mechanisms.noise.globe_laplace as module
    import whereish.mechanisms.noise.one_by_one as single

    def nothing(words, secrets, rate, per_degree, cells, state):
        state[:] = module.UNDECIDED
        return len(state)

    expected = [
        wh.GlobeLaplace("ln(4)/200 m").report_one(PLACES[0], rng=SeededRandomness(seed))
        for seed in range(20)
    ]
    for at in (module, single):
        monkeypatch.setattr(at, "cells_of", nothing)
    noise = wh.GlobeLaplace("ln(4)/200 m")
    found = [one_by_one(noise, rng=SeededRandomness(seed))(*PLACES[0]) for seed in range(20)]
    assert found == expected


def test_no_place_stays_in_its_arrays():
    report = one_by_one(wh.GlobeLaplace("ln(4)/200 m"))
    report(2.33316, 48.85412)
    kept = [cell.cell_contents for cell in report.__closure__]
    arrays = [value for value in kept if isinstance(value, np.ndarray) and value.dtype == float]
    assert len(arrays) == 1
    assert (arrays[0] == 0).all()
