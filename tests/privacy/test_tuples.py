from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from whereish.errors import InvalidInput
from whereish.privacy import Basis, Euclidean, Guarantee, Metric, TupleMax, TupleSum
from whereish.privacy.tuples import DifferentPlaces, Records, maximum_of_places
from whereish.space import Box
from whereish.space.values import Values

NAMES = ("hamming", "manhattan", "normalised_manhattan", "maximum")
UNIVERSES = [
    Values(step, top, null=null)
    for step, top, null in itertools.product((1, Fraction(1, 2), 7), (1, 3), (False, True))
]


def databases(records: Records) -> np.ndarray:
    return records.values.at(
        list(itertools.product(records.values.all_indices(), repeat=records.size))
    )


def test_definitions_by_hand():
    records = Records(Values(2, 5, null=True), 3)
    x, y = [0, 4, None], [6, 4, 2]
    assert records.hamming(x, y) == 2
    assert records.manhattan(x, y) == 6 + 10  # null is qk = 10 away
    assert records.normalised_manhattan(x, y) == pytest.approx(1.6)
    assert records.maximum(x, y) == 10
    assert all(getattr(records, name)(x, x) == 0 for name in NAMES)


@pytest.mark.parametrize("values", UNIVERSES, ids=lambda v: v.description)
def test_all_four_are_metrics(values):
    records = Records(values, 2)
    data = databases(records)
    for name in NAMES:
        d = getattr(records, name).matrix(data)
        assert (d == d.T).all()
        assert ((d == 0) == np.eye(len(d), dtype=bool)).all()
        assert (d[:, :, None] <= d[:, None, :] + d[None, :, :].transpose(0, 2, 1) + 1e-12).all()


@pytest.mark.parametrize("values", UNIVERSES, ids=lambda v: v.description)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_ratios_are_the_least_ones(values, size):
    records = Records(values, size)
    data = databases(records)
    matrices = {name: getattr(records, name).matrix(data) for name in NAMES}
    apart = matrices["hamming"] > 0
    for one, other in itertools.product(NAMES, repeat=2):
        least = (matrices[one][apart] / matrices[other][apart]).max()
        assert getattr(records, one).ratio_to(getattr(records, other)) == pytest.approx(least)


def test_the_order_implies_differential_privacy():
    records = Records(Values(0.3, 7, null=True), 4)
    assert records.normalised_manhattan <= records.hamming
    assert not records.hamming <= records.normalised_manhattan
    kept = Guarantee(0.7 * records.normalised_manhattan, Basis.THEOREM, "test")
    assert kept.implies(0.7 * records.hamming)
    assert not kept.implies(0.69 * records.hamming)
    assert not Guarantee(0.7 * records.hamming, Basis.THEOREM, "test").implies(
        0.7 * records.normalised_manhattan
    )


def test_metrics_of_different_universes_say_nothing_of_each_other():
    one, other = Records(Values(1, 3), 2), Records(Values(1, 4), 2)
    assert one.manhattan.ratio_to(other.manhattan) == math.inf
    assert one.manhattan.ratio_to(Records(Values(1, 3), 3).manhattan) == math.inf


@pytest.mark.parametrize("name", NAMES)
def test_json_round_trip(name):
    metric = 0.5 * getattr(Records(Values("1/3", 4, null=True), 3), name)
    assert Metric.from_json(metric.to_json()) == metric


def test_places():
    metric = maximum_of_places(2)
    assert metric == TupleMax(Euclidean(), 2)
    assert metric([[0, 0], [1, 1]], [[3, 4], [1, 2]]) == 5
    assert TupleSum(Euclidean(), 2).ratio_to(metric) == 2
    region = DifferentPlaces(Box(0, 0, 3, 4))
    assert region.diameter == pytest.approx(5)
    assert region.diameter >= 5
    assert TupleSum(region, 2)([[0, 0], [1, 1]], [[3, 4], [1, 1]]) == 1
    assert Metric.from_json(TupleSum(region, 2).to_json()) == TupleSum(region, 2)


def test_what_is_no_record_is_refused():
    records = Records(Values(1, 3), 2)
    with pytest.raises(InvalidInput, match="empty"):
        records.indices([])
    with pytest.raises(InvalidInput, match="tuples of 2 entries"):
        records.indices([1, 2, 3])
    with pytest.raises(InvalidInput, match="at least one entry"):
        Records(Values(1, 3), 0)
    with pytest.raises(InvalidInput, match="one on records"):
        Records.of(Euclidean())
    with pytest.raises(InvalidInput, match="must be in"):
        records.hamming([0, 4], [0, 0])


def test_the_diameter_of_a_region_is_rounded_up():
    for width, height in np.random.default_rng(9).uniform(1, 1e5, (300, 2)).tolist():
        diameter = DifferentPlaces(Box(0, 0, width, height)).diameter
        assert Fraction(diameter) ** 2 >= Fraction(width) ** 2 + Fraction(height) ** 2
        assert diameter < math.hypot(width, height) * (1 + 1e-15)
