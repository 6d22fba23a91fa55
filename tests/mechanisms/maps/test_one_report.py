"""One report goes its own way, by the same words to the same report as a batch of one."""

from __future__ import annotations

import math

import numpy as np
import pytest

import whereish as wh
from whereish.randomness import SeededRandomness
from whereish.sampling import spline
from whereish.sampling.spline_coin import exact_coin, exact_weights, nine_around
from whereish.solvers.eikonal.between import cell_laws

SHAPE = (7, 9)


class Scripted:
    """Words given beforehand, then those of a seed; counts what it gave."""

    reproducible = True

    def __init__(self, first: list[int], seed: int = 3) -> None:
        self._first, self._rest, self.given = list(first), SeededRandomness(seed), 0

    def words(self, count: int) -> np.ndarray:
        self.given += count
        mine = [self._first.pop(0) for _ in range(min(count, len(self._first)))]
        rest = self._rest.words(count - len(mine))
        return np.concatenate([np.array(mine, np.uint64), rest])


@pytest.fixture(scope="module", params=["cells", "continuous", "finer", "framed"])
def mechanism(request) -> wh.EikonalMechanism:
    levels = np.random.default_rng(4).uniform(0.006, 0.014, SHAPE)
    options = {
        "cells": {"places": "cells"},
        "continuous": {"frame": 0},
        "finer": {"finer": True, "frame": 0},
        "framed": {"frame": 2},
    }[request.param]
    return wh.EikonalMechanism.build(wh.PrivacyMap(levels, cell="100 m"), **options)


def places() -> np.ndarray:
    inside = np.random.default_rng(5).uniform((0, 0), (900, 700), (300, 2))
    corners = [[0.0, 0.0], [900.0, 700.0], [100.0, 100.0], [450.0, 350.0], [50.0, 650.0]]
    outside = [[-1.0, 350.0], [1e300, -1e300], [-1.7e308, 1.7e308], [901.0, 701.0]]
    return np.concatenate([inside, corners, outside])


def both(mechanism, place, script=(), seed=3):
    """The report and the words taken, as one place and as a batch."""
    out = []
    for way in (mechanism.report, None):
        source = Scripted(list(script), seed)
        if way is None:
            coordinates = mechanism.map.checked_places([place])
            drawn = mechanism._draws.batch(coordinates, source, padded=False)
        else:
            drawn = way(np.array([place]), rng=source)
        out.append((drawn.coordinates.tolist(), source.given))
    return out


def test_a_batch_of_one_has_the_same_report_by_the_same_words(mechanism):
    for seed, place in enumerate(places()):
        one, batch = both(mechanism, place, seed=seed)
        assert one == batch


@pytest.mark.parametrize("given", [list, tuple, np.array, lambda p: wh.Points(p, wh.Plane())])
def test_a_place_is_read_however_it_is_given(mechanism, given):
    place = [[321.0, 432.0]]
    drawn = mechanism.report(given(place), rng=SeededRandomness(9))
    again = mechanism.report(np.array(place), rng=SeededRandomness(9))
    assert drawn.coordinates.tolist() == again.coordinates.tolist()
    assert drawn.reproducible
    assert not drawn.coordinates.flags.writeable
    assert drawn.coordinates[0].tolist() in mechanism.reports.centres().tolist()


def test_what_is_no_place_is_refused_as_ever(mechanism):
    for wrong in ([[np.nan, 1.0]], [[np.inf, 1.0]], [["1", "2"]], [[1.0, 2.0, 3.0]]):
        with pytest.raises(wh.WhereishError):
            mechanism.report(wrong)


def test_choices_that_doubles_leave_open_are_exact_for_one_place_too(mechanism):
    """Uniforms whose first 64 bits are those of a weight: more bits are drawn for each."""
    if mechanism.places == "cells":
        pytest.skip("cells make no choice")
    place = np.array([331.7, 287.3])
    first = [exact_weights(mechanism._nodes, place, axis)[1][0] for axis in (0, 1)]
    one, batch = both(mechanism, place, [math.floor(weight * 2**64) for weight in first])
    assert one == batch
    assert one[1] >= 7  # three words, two for the draw, and one more for each choice


@pytest.mark.parametrize("off", [-1e-6, 0.0, 1e-6])
def test_the_coin_of_one_place_is_exact(mechanism, off, monkeypatch):
    """A uniform at the geometric over the arithmetic mean; beside it, it is kept or rejected."""
    if mechanism.places == "cells":
        pytest.skip("cells toss no coin")
    place = (333.0, 287.0)
    draw = [1 << 63, 1 << 63, 0, 1 << 62, 5]
    report = mechanism.report(np.array([place]), rng=Scripted(draw))
    y = int(mechanism.reports.locate(report.coordinates)[0])
    nine = nine_around(mechanism._nodes, np.array([place]))
    masses = cell_laws(mechanism.built, nine.cells(mechanism._nodes.columns)[0])[:, y]
    weights = nine.weights[0]
    chance = float(np.exp(weights @ np.log(masses)) / (weights @ masses))
    draw[2] = int(chance * (1.0 + off) * 2.0**64)
    asked = []
    monkeypatch.setattr(
        spline, "exact_coin", lambda *given: asked.append(given) or exact_coin(*given)
    )
    one, batch = both(mechanism, place, draw)
    assert one == batch
    if off:
        assert (one[1] == 5) == (off < 0)
        assert not asked
    else:
        assert len(asked) == 2  # once each way
