from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from whereish.errors import InvalidInput, UnitError
from whereish.privacy import Euclidean, Records, TupleMax, TupleSum
from whereish.privacy.tuples import DifferentPlaces
from whereish.queries import (
    Average,
    Centroid,
    Count,
    Median,
    Minimum,
    Sum,
    answer,
)
from whereish.queries.centroid import largest_coordinate
from whereish.space import Box, Plane, Points
from whereish.space.values import Values
from whereish.units import Epsilon, Length

RECORDS = Records(Values(1, 3, null=True), 2)
NAMES = ("hamming", "manhattan", "normalised_manhattan", "maximum")


@pytest.mark.parametrize("notion", NAMES)
@pytest.mark.parametrize(
    "query", [Sum(), Count(lambda value: value > 1), Average(), Average(2), Minimum(), Median()]
)
def test_the_answer_s_law_keeps_its_guarantee_and_no_less(query, notion):
    """All pairs of databases: ln-ratios of the answers' law against eps * metric."""
    metric, eps = getattr(RECORDS, notion), 0.8
    mechanism = query.mechanism(metric, eps)
    data = np.array(list(itertools.product(RECORDS.values.all_indices(), repeat=2)))
    laws = np.log(mechanism.matrix)[query.on_indices(data, RECORDS)]
    lost = np.abs(laws[:, None] - laws[None]).max(axis=2)
    allowed = eps * metric.matrix(RECORDS.values.at(data))
    assert (lost <= allowed * (1 + 1e-12) + 1e-12).all()
    assert (lost > 0.99 * allowed + 1e-12).any()


def test_an_answer_carries_all_that_is_known(rng):
    reply = answer(Minimum(), [3, None], RECORDS.manhattan, math.log(2) / 5, rng=rng)
    assert reply.value in range(4)
    assert reply.guarantee.metric == math.log(2) / 5 * RECORDS.manhattan
    assert reply.sensitivity.value == 1
    assert reply.universally_optimal
    assert reply.reproducible
    assert "Truncated Geometric" in reply.guarantee.source
    assert not answer(Minimum(), [3, 2], RECORDS.hamming, 1.0).universally_optimal
    assert not answer(Minimum(), [3, 2], RECORDS.hamming, 1.0).reproducible


def test_answers_follow_the_mechanism_s_law(rng):
    drawn = np.array(
        [answer(Sum(), [2, 3], RECORDS.manhattan, 0.7, rng=rng).value for _ in range(4000)]
    )
    law = Sum().mechanism(RECORDS.manhattan, 0.7).matrix[5]
    counts = np.bincount(drawn.astype(int), minlength=7)
    assert (np.abs(counts - 4000 * law) < 5 * np.sqrt(4000 * law)).all()


def test_the_level_is_divided_by_the_sensitivity_exactly():
    mechanism = Sum().mechanism(RECORDS.hamming, Fraction(3, 10))
    assert mechanism.epsilon == 0.1
    assert float(mechanism.ratio) == pytest.approx(math.exp(-0.1), rel=1e-15)
    assert mechanism.values == Values(1, 6)


@pytest.mark.parametrize("query", [Average(), Average(2), Minimum(), Median()])
@pytest.mark.parametrize("notion", NAMES)
def test_that_no_entry_is_there_is_told_by_no_refusal(query, notion, rng):
    """One entry more or less: the answers differ by what the metric allows, and both come."""
    metric = getattr(RECORDS, notion)
    answers = {
        answer(query, data, metric, 1e-3, rng=rng).value
        for data in ([None, None], [None, 3])
        for _ in range(200)
    }
    assert len(answers) > 1


def test_bad_questions_about_records_are_refused():
    with pytest.raises(InvalidInput, match="bare number"):
        answer(Sum(), [1, 2], RECORDS.hamming, "1/km")
    with pytest.raises(InvalidInput, match="epsilon must be"):
        answer(Sum(), [1, 2], RECORDS.hamming, -1.0)
    with pytest.raises(InvalidInput, match="empty"):
        answer(Sum(), [], RECORDS.hamming, 1.0)
    with pytest.raises(InvalidInput, match="must be in"):
        answer(Sum(), [1, 9], RECORDS.hamming, 1.0)
    with pytest.raises(InvalidInput, match="one database"):
        answer(Sum(), [[1, 2], [2, 3]], RECORDS.hamming, 1.0)
    with pytest.raises(InvalidInput, match="one on records"):
        answer(Sum(), [1, 2], Euclidean(), 1.0)
    with pytest.raises(InvalidInput, match=r"whereish\.queries"):
        answer(sum, [1, 2], RECORDS.hamming, 1.0)


PLACES = np.array([[0.0, 0.0], [900.0, 300.0], [300.0, 600.0]])


@pytest.mark.parametrize(
    ("metric", "level", "per_metre_of_centroid"),
    [
        (TupleMax(Euclidean(), 3), "0.02/m", 0.02),
        (TupleSum(Euclidean(), 3), "0.02/m", 0.06),
        (TupleSum(DifferentPlaces(Box(0, 0, 3000, 4000)), 3), 5.0, 5 / (5000 / 3)),
    ],
)
def test_the_centroid_s_noise_has_the_level_that_sensitivity_asks(
    metric, level, per_metre_of_centroid, rng
):
    replies = [answer(Centroid(), PLACES, metric, level, rng=rng) for _ in range(1500)]
    reach = np.hypot(*(np.array([reply.value for reply in replies]) - (400, 300)).T)
    # Planar Laplace: the radius has mean 2/eps and standard deviation sqrt(2)/eps.
    wanted = 2 / per_metre_of_centroid
    assert abs(reach.mean() - wanted) < 5 * wanted / math.sqrt(2 * len(reach))
    first = replies[0]
    assert not first.universally_optimal
    assert first.guarantee.metric.ratio_to(metric) == (0.02 if level == "0.02/m" else 5.0)
    assert (first.value == np.round(first.value)).all()  # the public lattice of 1 m


def test_the_centroid_s_level_never_exceeds_what_is_promised():
    for size in range(1, 200):
        for eps in (0.1, 0.0069, 1 / 3):
            metric = TupleMax(Euclidean(), size)
            mechanism = Centroid().mechanism(
                metric, Epsilon.per_metre(eps), plane=Plane.metres(), resolution=Length(1.0)
            )
            assert Fraction(mechanism.level) * size <= Fraction(eps)
            assert mechanism.level * size == pytest.approx(eps)


def test_a_projected_plane_is_charged_its_scale(rng):
    plane = Plane.around(2.35, 48.85, "30 km")
    points = plane.from_degrees([2.3, 2.4], [48.8, 48.9])
    metric = TupleMax(Euclidean(), 2)
    reply = answer(Centroid(), points, metric, "0.01/m", rng=rng)
    assert reply.guarantee.metric.ratio_to(metric) == pytest.approx(0.01 / plane.scale, rel=1e-12)
    assert 2 * reply.mechanism.level <= reply.guarantee.metric.ratio_to(metric)


def test_bad_questions_about_places_are_refused():
    metric = TupleMax(Euclidean(), 3)
    with pytest.raises(UnitError, match="unit"):
        answer(Centroid(), PLACES, metric, 0.02)
    with pytest.raises(InvalidInput, match="tuples of 3 places; got 2"):
        answer(Centroid(), PLACES[:2], metric, "0.02/m")
    counted = TupleSum(DifferentPlaces(Box(0, 0, 500, 700)), 3)
    with pytest.raises(InvalidInput, match="1 of 3 do not") as error:
        answer(Centroid(), PLACES, counted, 1.0)
    assert "900" not in str(error.value)
    with pytest.raises(InvalidInput, match="bare number"):
        answer(Centroid(), PLACES, counted, "1/m")
    with pytest.raises(InvalidInput, match="2 places are beyond"):
        answer(Centroid(), Points(PLACES * 1e11, Plane.metres()), metric, "0.02/m")


def _answered(points, metric, resolution="1 m"):
    try:
        answer(Centroid(), points, metric, "1e-6/m", resolution=resolution)
    except InvalidInput:
        return False
    return True


def test_the_centroid_is_no_noiseless_oracle():
    """The attack of issue 11: bisect a place by how far known places move the sum."""
    plane = Plane.around(2.35, 48.85, "30 km")
    secret = np.array([1234.5, -678.9])
    metric = TupleMax(Euclidean(), 2)
    for known in np.linspace(-29_000, 29_000, 21):
        places = Points(np.array([secret, [known, 0.0]]), plane)
        assert _answered(places, metric), "a refusal told where the sum lies"
    # Far from the origin every sum of two places is outside the region.
    shifted = Plane.projected("EPSG:2154", Box(2.0, 48.5, 2.7, 49.1))
    paris = shifted.from_degrees([2.3, 2.4], [48.8, 48.9])
    value = answer(Centroid(), paris, metric, "1/m").value
    assert np.hypot(*(value - paris.coordinates.mean(axis=0))) < 100


def test_the_centroid_refuses_place_by_place():
    """What is refused depends on single places against public bounds, never on their sum."""
    plane = Plane.around(2.35, 48.85, "30 km")
    metric = TupleMax(Euclidean(), 2)
    # The sum of these two is the region's centre.
    assert not _answered(Points([[50_000.0, 0.0], [-50_000.0, 0.0]], plane), metric)
    bound = largest_coordinate(2)
    inside = np.array([[0.99 * bound, 0.0]])
    for other in (inside, -inside, 0 * inside):
        assert _answered(np.concatenate([inside, other]), metric)
        assert not _answered(np.concatenate([1.01 * inside / 0.99, other]), metric)
    fine = largest_coordinate(2, Length(0.1))  # a lattice that ends before 2^43 m does
    for other in (0.99 * fine, 0.0, -0.99 * fine):
        assert _answered([[0.99 * fine, 0.0], [other, 0.0]], metric, "0.1 m")
