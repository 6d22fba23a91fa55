"""Derived sensitivities against all databases with n <= 4 and k <= 4, null included."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from whereish.errors import InvalidInput
from whereish.privacy import Euclidean, Records, TupleMax, TupleSum
from whereish.privacy.norms import Manhattan
from whereish.privacy.tuples import DifferentPlaces, Discrete
from whereish.queries import (
    Average,
    Centroid,
    Count,
    Maximum,
    Median,
    Minimum,
    Percentile,
    Sum,
)
from whereish.space import Box
from whereish.space.values import Values

NAMES = ("hamming", "manhattan", "normalised_manhattan", "maximum")
QUERIES = {
    "sum": Sum(),
    "count from 1 on": Count(lambda value: value >= 1),
    "count of 0 and 2": Count(lambda value: value in (0, 2)),
    "count of the present": Count(),
    "minimum": Minimum(),
    "median": Median(),
    "maximum": Maximum(),
    "25-percentile": Percentile(25),
    "90-percentile": Percentile(90),
    "average": Average(),
    "average to q/2": Average(2),
    "average to q/3": Average(3),
    "average to q/4": Average(4),
}


@lru_cache(maxsize=2)
def steps(top: int, null: bool, size: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """All databases, and their distances by the definitions, in units of q (d_h: of 1)."""
    entries = [*range(top + 1), *([-1] if null else [])]
    data = np.array(list(itertools.product(entries, repeat=size)), np.int64)
    one_null = (data[:, None] == -1) != (data[None] == -1)
    apart = np.where(one_null, top, np.abs(data[:, None] - data[None])).astype(np.int16)
    return data, {
        "hamming": (apart > 0).sum(axis=2, dtype=np.int16),
        "manhattan": apart.sum(axis=2, dtype=np.int16),
        "maximum": apart.max(axis=2),
    }


def brute_force(answers: np.ndarray, top: int, d: np.ndarray) -> tuple[Fraction, bool]:
    """The least Delta in steps per unit of d, and whether all neighbouring answers are tight."""
    moved = np.abs(answers[:, None] - answers[None]).astype(np.int16)
    delta = Fraction(0)
    for distance in np.unique(d[d > 0]):
        delta = max(delta, Fraction(int(moved[d == distance].max()), int(distance)))
    tight = (moved == 1) & (d * delta.numerator == delta.denominator)
    lower = np.minimum(answers[:, None], answers[None])[tight]
    return delta, set(range(top)) <= set(lower.tolist())


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("top", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_derived_sensitivities_are_the_brute_force_ones(size, top, null):
    data, distances = steps(top, null, size)
    for step in (Fraction(1), Fraction(2, 3)):
        records = Records(Values(step, top, null=null), size)
        for name, query in QUERIES.items():
            try:
                unit = query.answers(records)
            except InvalidInput:
                assert isinstance(query, Count)  # constant on this universe
                continue
            answers = query.on_indices(data, records)
            assert answers.min() >= 0
            assert answers.max() <= unit.top
            for notion in NAMES:
                d = distances["manhattan" if notion == "normalised_manhattan" else notion]
                delta, uniform = brute_force(answers, unit.top, d)
                units = {"hamming": 1, "normalised_manhattan": Fraction(1, top)}
                found = query.sensitivity(getattr(records, notion))
                assert found.value == delta * unit.step / units.get(notion, step), (name, notion)
                assert found.uniform == uniform, (name, notion)
                assert found.reason


def test_the_metrics_used_above_are_the_library_s():
    data, distances = steps(3, True, 3)
    records = Records(Values(1, 3, null=True), 3)
    for name, d in distances.items():
        assert (getattr(records, name).matrix(records.values.at(data)) == d).all()


def test_the_closed_forms_of_the_papers():
    records = Records(Values("1/2", 100), 30)
    qk = Fraction(50)
    for query, notion, delta, uniform in [
        (Sum(), "manhattan", 1, True),
        (Sum(), "hamming", qk, False),
        (Sum(), "normalised_manhattan", qk, True),
        (Average(), "maximum", 1, True),
        (Average(), "manhattan", 1, True),
        (Median(), "maximum", 1, True),
        (Median(), "manhattan", 1, True),
        (Minimum(), "hamming", qk, False),
        (Count(lambda value: value > 7), "hamming", 1, True),
    ]:
        found = query.sensitivity(getattr(records, notion))
        assert (found.value, found.uniform) == (delta, uniform)


def test_the_table_of_the_documentation():
    q, k = Fraction(1, 2), 7

    def row(query, *, size: int, null: bool = False) -> list[tuple[Fraction, bool]]:
        records = Records(Values(q, k, null=null), size)
        found = [query.sensitivity(getattr(records, notion)) for notion in NAMES]
        return [(sensitivity.value, sensitivity.uniform) for sensitivity in found]

    yes, no = True, False
    n = 9
    assert row(Sum(), size=n) == [(q * k, no), (1, yes), (q * k, yes), (n, no)]
    count = Count(lambda value: value > 1)
    assert row(count, size=n) == [(1, yes), (1 / q, yes), (k, yes), (n / q, no)]
    for order in (Percentile(30), Minimum(), Median(), Maximum()):
        assert row(order, size=n) == [(q * k, no), (1, yes), (q * k, yes), (1, yes)]
    assert row(Average(), size=n) == [(q, yes), (1, yes), (q * k, yes), (1, yes)]
    assert row(Average(), size=3)[0] == (3 * q, no)
    exact = [(q * k / n, no), (Fraction(1, n), yes), (q * k / n, yes), (1, no)]
    assert row(Average(n), size=n) == exact
    assert row(Average(), size=n, null=True) == [(q * k, no), (1, yes), (q * k, yes), (1, yes)]


def test_large_universes_are_cheap():
    records = Records(Values(1, 5000), 100_000)
    assert Sum().sensitivity(records.maximum).value == 100_000
    assert Average(10).sensitivity(records.hamming).value == Fraction(1, 10)
    assert Average(10).sensitivity(records.hamming).uniform


@pytest.mark.parametrize("size", [1, 2, 5])
def test_centroid_sensitivities_hold_and_are_attained(size):
    random = np.random.default_rng(size)
    box = Box(-200, -100, 300, 400)
    metrics = [
        TupleMax(Euclidean(), size),
        TupleSum(Euclidean(), size),
        TupleSum(DifferentPlaces(box), size),
        3.0 * TupleMax(Euclidean(), size),
    ]
    x, y = (random.uniform((-200, -100), (300, 400), (4000, size, 2)) for _ in range(2))
    shifted = np.full((size, 2), (-200.0, -100.0))
    far = shifted.copy()
    far[0] = (300, 400)
    for metric in metrics:
        delta = float(Centroid().sensitivity(metric).value)
        moved = Euclidean()(x.mean(axis=1), y.mean(axis=1))
        assert (moved <= delta * metric(x, y) * (1 + 1e-12)).all()
        other = far if isinstance(metric.base, DifferentPlaces) else shifted + np.array([3, 4])
        attained = Euclidean()(shifted.mean(axis=0), other.mean(axis=0))
        assert attained == pytest.approx(delta * float(metric(shifted, other)), rel=1e-4)


def test_metrics_that_are_not_derived_are_refused():
    values = Values(1, 3)
    for metric in (Manhattan(), TupleMax(Discrete(values), 2), 2.0 * Records(values, 2).hamming):
        with pytest.raises(InvalidInput, match=r"metric|sensitivities"):
            Sum().sensitivity(metric)
    with pytest.raises(InvalidInput, match="centroid's sensitivity"):
        Centroid().sensitivity(TupleMax(Manhattan(), 2))
