"""Reports one by one are those of `report_one`, word for word."""

from __future__ import annotations

import ast
import os

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
    """Kernels that decide nothing: every report goes through ball arithmetic."""
    import whereish.mechanisms.noise.globe_laplace as module
    import whereish.mechanisms.noise.one_by_one as single

    def nothing(words, secrets, rate, per_degree, cells, state):
        state[:] = module.UNDECIDED
        return len(state)

    def nothing_of_one(memory):
        memory[10] = 1

    expected = [
        wh.GlobeLaplace("ln(4)/200 m").report_one(PLACES[0], rng=SeededRandomness(seed))
        for seed in range(20)
    ]
    monkeypatch.setattr(module, "cells_of", nothing)
    monkeypatch.setattr(single, "draw_one", nothing_of_one)
    noise = wh.GlobeLaplace("ln(4)/200 m")
    found = [one_by_one(noise, rng=SeededRandomness(seed))(*PLACES[0]) for seed in range(20)]
    assert found == expected


@pytest.mark.parametrize("decimals", [5, 9])
def test_neither_words_nor_a_place_stay_in_its_array(decimals):
    """At nine decimals many draws are left open."""
    report = one_by_one(wh.GlobeLaplace("1/m", decimals=decimals))
    kept = [cell.cell_contents for cell in report.__closure__]
    (memory,) = (value for value in kept if isinstance(value, np.ndarray))
    for _ in range(50):
        report(2.33316, 48.85412)
        assert (memory[:6] == 0).all()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_draws_reports_of_its_own():
    report = one_by_one(wh.GlobeLaplace("1/km"))
    report(2.33316, 48.85412)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, repr([report(2.33316, 48.85412) for _ in range(8)]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = ast.literal_eval(os.read(read, 4096).decode())
    ours = [report(2.33316, 48.85412) for _ in range(8)]
    assert not set(ours) & set(theirs)
