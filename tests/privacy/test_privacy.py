from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from whereish.errors import InvalidInput
from whereish.privacy import (
    Basis,
    Chebyshev,
    Euclidean,
    Finite,
    Geodesic,
    GreatCircle,
    Guarantee,
    Manhattan,
    Metric,
    TupleMax,
    TupleSum,
)
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.metric import Sum
from whereish.privacy.norms import coordinate_error
from whereish.units import Epsilon

PLACE = arrays(float, (3, 2), elements=st.floats(-80, 80))
METRICS = [
    Euclidean(),
    Manhattan(),
    Chebyshev(),
    GreatCircle(),
    Geodesic(),
    0.5 * Euclidean() + 2 * Manhattan(),
]


@pytest.mark.parametrize(
    "metric", [*METRICS[:3], METRICS[5], Distinguishability.capped("9/m", 2).metric]
)
@given(PLACE, st.floats(1.0, 20.0))
def test_stretched_coordinates_never_promise_more_than_the_true_ones(metric, places, scale):
    x, y = places[0], places[1]
    kept = metric.stretched(scale)(scale * x, scale * y)
    assert kept <= metric(x, y) * (1 + 1e-13) + 1e-12
    assert kept >= metric(x, y) * (1 - 1e-12) - 1e-12


def test_degrees_and_matrices_are_not_stretched():
    for metric in (GreatCircle(), Geodesic(), Finite(np.zeros((2, 2)))):
        assert metric.stretched(2.0) == metric
    pair = TupleMax(Euclidean(), 2).stretched(2.0)
    assert isinstance(pair, TupleMax)
    assert pair([[0.0, 4.0], [0.0, 0.0]], np.zeros((2, 2))) == pytest.approx(2.0)


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.description)
@given(PLACE)
def test_axioms(metric, places):
    d = metric.matrix(places)
    assert np.allclose(d, d.T, rtol=1e-9, atol=1e-6)
    assert np.allclose(np.diag(d), 0, atol=1e-6)
    assert d[0, 2] <= (d[0, 1] + d[1, 2]) * (1 + 1e-9) + 1e-6


@pytest.mark.parametrize("a", METRICS, ids=lambda m: m.description)
@pytest.mark.parametrize("b", METRICS, ids=lambda m: m.description)
@given(PLACE)
def test_known_ratios_hold(a, b, places):
    c = a.ratio_to(b)
    if math.isfinite(c):
        assert (a.matrix(places) <= c * b.matrix(places) * (1 + 1e-9) + 1e-6).all()


def test_algebra_gathers_equal_bases():
    d = Euclidean()
    assert 0.01 * d == Epsilon(0.01) * d == d * 0.01
    assert 2 * (3 * d) == 6 * d
    assert d + d == 2 * d
    assert (0.1 * d + Manhattan()) + 0.2 * d == (0.1 + 0.2) * d + Manhattan()
    assert (0.01 * d).ratio_to(d) == 0.01
    assert 0.01 * d <= 0.02 * d
    assert not 0.02 * d <= 0.01 * d
    assert math.isinf(d.ratio_to(GreatCircle()))
    for bad in (0, -1, math.nan, math.inf):
        with pytest.raises(InvalidInput, match="> 0"):
            bad * d


def test_finite_metrics_check_their_matrix():
    metric = Finite(np.array([[0, 1.0], [1, 0]]))
    assert (2 * metric)(0, 1) == 2
    assert (2 * metric).ratio_to(metric) == 2
    assert metric == Finite(np.array([[0, 1.0], [1, 0]]))
    for bad in (
        [[0, 1], [2, 0]],
        [[1, 1], [1, 0]],
        [[0, -1], [-1, 0]],
        [[0, 1]],
        [[0, math.nan]] * 2,
    ):
        with pytest.raises(InvalidInput):
            Finite(np.array(bad, float))


@pytest.mark.parametrize(
    "metric",
    [*METRICS, 3 * Finite(np.array([[0, 1.0], [1, 0]])), TupleMax(0.1 * Euclidean(), 3)],
    ids=lambda m: m.description,
)
def test_json_round_trip(metric):
    assert Metric.from_json(metric.to_json()) == metric


def _nested(depth: int) -> dict[str, Any]:
    metric = Euclidean().to_json()
    for _ in range(depth):
        metric = {"kind": "scaled", "factor": 1.0, "base": metric}
    return metric


def test_json_garbage_is_refused():
    base = {"kind": "euclidean"}
    for bad in (
        {},
        {"kind": "nonsense"},
        {"kind": "scaled"},
        {"kind": "scaled", "factor": "abc", "base": base},
        {"kind": "sum", "parts": []},
        {"kind": "tuple-max", "size": 2.7, "base": base},
        {"kind": "finite", "distances": [[0, 1], [1]]},
        {"kind": "scaled", "factor": 10**400, "base": base},
        {"kind": "scaled", "factor": 1e300, "base": (1e300 * Euclidean()).to_json()},
        {"kind": "distance-level", "starts": [], "levels": [], "slopes": [], "text": ""},
        _nested(3000),
    ):
        with pytest.raises(InvalidInput):
            Metric.from_json(bad)
    for bad in (
        {"basis": "theorem"},
        {"metric": base, "basis": "theorem", "source": None, "numerics": "exact"},
        {"metric": base, "basis": "hope", "source": "", "numerics": "exact"},
    ):
        with pytest.raises(InvalidInput):
            Guarantee.from_json(bad)


@given(st.floats(1e-9, 1e3))
def test_the_order_is_exact_to_the_last_bit(factor):
    d, more = Euclidean(), math.nextafter(factor, math.inf)
    assert factor * d <= factor * d
    assert factor * d <= more * d
    assert not more * d <= factor * d


@given(st.floats(1e-6, 1e3), st.floats(1e-6, 1e3), st.floats(1e-6, 1e3), st.integers(1, 50))
def test_ratios_are_rounded_up(a, b, c, size):
    """A ratio rounded down would promise what is not kept."""
    d = Euclidean()
    one = Fraction((a * d).ratio_to(b * d))
    assert Fraction(a) <= one * Fraction(b)
    assert one * Fraction(b) <= Fraction(a) * (1 + Fraction(1, 2**51))
    added = Fraction(Sum((a * d, b * d)).ratio_to(c * d))
    assert Fraction(a) + Fraction(b) <= added * Fraction(c)
    tuples = Fraction((a * TupleSum(d, size)).ratio_to(b * TupleMax(d, size)))
    assert Fraction(a) * size <= tuples * Fraction(b)
    matrix = np.array([[0.0, a, b], [a, 0.0, 1.0], [b, 1.0, 0.0]])
    other = np.array([[0.0, b, c], [b, 0.0, 1.0], [c, 1.0, 0.0]])
    finite = Fraction(Finite(matrix).ratio_to(Finite(other)))
    assert max(Fraction(a) / Fraction(b), Fraction(b) / Fraction(c)) <= finite


def test_ratios_of_matrices_with_infinite_entries():
    apart = Finite(np.array([[0.0, np.inf], [np.inf, 0.0]]))
    near = Finite(np.array([[0.0, 2.0], [2.0, 0.0]]))
    zero = Finite(np.zeros((2, 2)))
    assert near.ratio_to(apart) == 0.0
    assert apart.ratio_to(near) == math.inf
    assert apart.ratio_to(Finite(apart.distances)) == 1.0
    assert zero.ratio_to(near) == 0.0
    assert near.ratio_to(zero) == math.inf


def test_tuples():
    x, y = np.array([[[0, 0], [0, 0.0]]]), np.array([[[3, 4], [6, 8.0]]])
    assert TupleSum(Euclidean(), 2)(x, y) == 15
    assert TupleMax(Euclidean(), 2)(x, y) == 10
    assert TupleSum(Euclidean(), 2) <= 2 * TupleMax(Euclidean(), 2)
    assert not TupleSum(Euclidean(), 2) <= 1.9 * TupleMax(Euclidean(), 2)
    assert TupleMax(Euclidean(), 2) <= TupleSum(Euclidean(), 2)
    assert not TupleMax(Euclidean(), 3) <= TupleSum(Euclidean(), 2)


def test_guarantees_compose():
    one = Guarantee(0.01 * Euclidean(), Basis.THEOREM, "a theorem")
    other = Guarantee(0.02 * Euclidean(), Basis.CERTIFIED, "a certificate", "doubles")
    both = one + other
    assert both.metric.ratio_to(Euclidean()) == pytest.approx(0.03)
    assert both.basis is Basis.CERTIFIED
    assert "theorem" in both.source
    assert one.repeated(4).metric == 4 * one.metric
    assert one.on_tuples(3).implies(3 * TupleMax(0.01 * Euclidean(), 3))
    assert one.implies(0.01 * Manhattan())
    assert not other.implies(0.01 * Manhattan())
    assert one.level("200 m", Euclidean()) == pytest.approx(2)
    assert one.epsilon(Euclidean()) == Epsilon(0.01)
    assert Guarantee.from_json(both.to_json()) == both
    with pytest.raises(InvalidInput):
        one.repeated(0)


def test_errors_of_computed_distances_add_up():
    both = 2.0 * Geodesic() + 3.0 * GreatCircle() + Geodesic()
    assert both.absolute_error == pytest.approx(3 * Geodesic().absolute_error)
    assert TupleSum(Geodesic(), 4).absolute_error == pytest.approx(4 * 5e-8)
    mixed = TupleSum(Geodesic(), 4) + TupleMax(Geodesic(), 4)
    assert mixed.absolute_error == pytest.approx(8 * 5e-8)


def test_a_stretched_metric_is_below_to_the_last_bit():
    for scale in np.random.default_rng(2).uniform(1.0, 3.0, 200).tolist():
        kept = Fraction(Euclidean().stretched(scale).factor) * Fraction(scale)
        assert 1 - Fraction(1, 2**48) < kept <= 1


def test_the_error_of_computed_distances_covers_their_rounding():
    from flint import arb, ctx

    places = np.random.default_rng(4).uniform(0, 1e6, (40, 2))
    distances = Euclidean().matrix(places)
    error = coordinate_error(Euclidean(), distances)
    with ctx.workprec(200):
        for i in range(40):
            for j in range(i):
                sides = [arb(a) - arb(b) for a, b in zip(places[i], places[j], strict=True)]
                truth = sum(side * side for side in sides).sqrt()
                off = abs(arb(distances[i, j]) / truth - 1)
                assert off <= arb(error[i, j])
    assert coordinate_error(Geodesic(), np.array([2.0]))[0] >= 2.5e-8
    assert error.max() < 1e-12
