"""One place without array ceremony: same words, same reports, same refusals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import whereish as wh
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.rounded import RoundedMechanism
from whereish.randomness import SeededRandomness
from whereish.space.points import one_place

POLES = np.array([[0.0, 90.0], [17.25, -90.0], [180.0, 0.0], [-180.0, 89.9999999], [360.0, 0.0]])


def degrees(count: int) -> np.ndarray:
    places = np.random.default_rng(11).uniform([-360, -90], [360, 90], (count, 2))
    places[: len(POLES)] = POLES
    return places


def metres(count: int) -> np.ndarray:
    places = np.random.default_rng(12).normal(0, 1e5, (count, 2))
    places[0] = 0.0
    return places


CASES = [
    (wh.GlobeLaplace("ln(4)/200 m"), degrees(20_000)),
    (wh.PlanarLaplace("ln(4)/200 m"), metres(20_000)),
    (wh.GlobeLaplace("1/km", decimals=9), degrees(1_000)),
    (wh.GlobeLaplace("1/5000 km", decimals=2), degrees(1_000)),  # proposals are rejected
    (wh.GlobeLaplace("1/20000 km", decimals=0), degrees(1_000)),  # cells at poles are frequent
    (wh.PlanarLaplace("100/m", resolution="1 m"), metres(500)),
    (wh.CircularNoise(([0, 100, 200], [4, 2, 1]), resolution="10 m"), metres(500)),
]


@pytest.mark.parametrize(("mechanism", "places"), CASES, ids=lambda case: type(case).__name__)
def test_same_words_give_the_same_report(mechanism: RoundedMechanism, places: np.ndarray):
    """Both ways read one stream side by side: a word more or less would part them for good."""
    one, general = SeededRandomness(5), SeededRandomness(5)
    same = 0
    for place in places:
        fast = mechanism.report(place[None, :], rng=one)
        slow = mechanism._places(mechanism.cells(place[None, :], rng=general))
        same += fast.coordinates.tobytes() == slow.tobytes()
        assert fast.coordinates.dtype == np.float64
    assert same == len(places)
    assert fast.reproducible
    assert not fast.coordinates.flags.writeable


def test_one_place_takes_the_short_way_and_many_do_not(monkeypatch: pytest.MonkeyPatch):
    noise = wh.GlobeLaplace("ln(4)/200 m")
    monkeypatch.setattr(wh.GlobeLaplace, "cells", lambda *_, **__: pytest.fail("the long way"))
    for place in ([2.0, 48.0], (2.0, 48.0), [[2.0, 48.0]], np.array([[2.0, 48.0]])):
        assert len(noise.report(place)) == 1
    assert noise.report([2.0, 48.0]).space == wh.Sphere()
    with pytest.raises(pytest.fail.Exception):
        noise.report([[2.0, 48.0], [2.0, 48.0]])


REFUSED = (
    [math.nan, 0.0],
    [0.0, math.inf],
    [0.0, 90.0000001],
    [361.0, 0.0],
    ["2.0", "48.0"],
    [[1.0, 2.0, 3.0]],
    [[[1.0, 2.0]]],
    [1.0],
    [None, 1.0],
    [1.0 + 1j, 1.0],
)


@pytest.mark.parametrize("places", REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_place_is_refused_as_ever(places: object):
    with pytest.raises(InvalidInput) as refusal:
        wh.GlobeLaplace("ln(4)/200 m").report(places)
    assert not any(text in str(refusal.value) for text in ("90.0000001", "361", "48.0"))


def test_a_plane_without_region_refuses_what_is_beyond_its_lattice():
    reach = 2.0**46
    noise = wh.PlanarLaplace("0.01/m")
    assert len(noise.report([reach, -reach])) == 1
    with pytest.raises(InvalidInput, match="2\\^46 lattice steps"):
        noise.report([0.0, math.nextafter(reach, math.inf)])


def test_a_declared_region_is_looked_at_for_one_place_too():
    noise = wh.PlanarLaplace("0.01/m", plane=wh.Plane.around(2.35, 48.85, "5 km"))
    assert len(noise.report([0.0, 0.0])) == 1
    with pytest.raises(InvalidInput, match="declared region"):
        noise.report([50_000.0, 0.0])


def test_points_of_another_space_are_refused():
    with pytest.raises(wh.WhereishError, match="convert them through degrees"):
        wh.GlobeLaplace("0.01/m").report(wh.Points([[0.0, 0.0]], wh.Plane()))


def test_integers_and_booleans_go_the_long_way():
    bounds = (360.0, 90.0)
    assert one_place([1, 2], bounds) is None
    assert one_place([True, 2.0], bounds) is None
    assert one_place(np.array([1, 2]), bounds) is None
    assert one_place(np.array([1.0, 2.0], np.float32), bounds) is None
    assert one_place([[1.0, -2.0]], bounds) == (1.0, -2.0)
    assert len(wh.GlobeLaplace("0.01/m").report([[1, 2]])) == 1


@pytest.mark.parametrize("shape", [(), (1,)])
def test_perturb_keeps_the_shape_of_one_place(shape: tuple[int, ...]):
    place = np.full(shape, 2.0).tolist(), np.full(shape, 48.0).tolist()
    lon, lat = wh.perturb(*place, epsilon="ln(4)/200 m")
    assert lon.shape == lat.shape == shape
    assert type(lon) is np.ndarray
    assert lon.dtype == np.float64


def test_perturb_of_one_place_follows_the_law_of_many():
    """Radii by both ways: Kolmogorov-Smirnov accepts, and rejects noise of 1.1 times the size."""
    from scipy.stats import ks_2samp

    count = 30_000
    one = np.array([np.ravel(wh.perturb(2.0, 48.0, epsilon="ln(4)/200 m")) for _ in range(count)])
    many = np.column_stack(
        wh.perturb(np.full(count, 2.0), np.full(count, 48.0), epsilon="ln(4)/200 m")
    )
    far = [wh.GreatCircle()(r, np.full_like(r, [2.0, 48.0])) for r in (one, many)]
    assert ks_2samp(far[0], far[1]).pvalue > 1e-7
    assert ks_2samp(far[0], 1.1 * far[1]).pvalue < 1e-7


def test_perturb_refuses_levels_as_before():
    for wrong, decimals in itertools.product(("fast", 0.01, ["1/m"]), (5,)):
        with pytest.raises(InvalidInput):
            wh.perturb(2.0, 48.0, epsilon=wrong, decimals=decimals)
    for decimals in (5.0, 10, -1, "5"):
        with pytest.raises(InvalidInput):
            wh.perturb(2.0, 48.0, epsilon="0.01/m", decimals=decimals)
