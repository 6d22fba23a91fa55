"""Intervals enclose: what a formula gives at a place inside lies inside what it gives here."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.space.projection.interval import Interval

COUNT = 4000


def some(seed: int) -> tuple[Interval, np.ndarray]:
    """Intervals on both sides of zero and across it, and a place in each."""
    draw = np.random.default_rng(seed)
    lo, width = draw.uniform(-7, 7, COUNT), draw.choice([0.01, 1.0, 8.0], COUNT)
    hi = lo + width * draw.random(COUNT)
    return Interval(lo, hi), lo + (hi - lo) * draw.choice([0.0, 0.3, 1.0], COUNT)


def check(found: Interval, truth: np.ndarray, widest: float) -> None:
    """Nothing outside but by rounding; and not all of the line."""
    slack = 1e-13 * (1 + np.abs(truth))
    assert (found.lo <= truth + slack).all()
    assert (truth <= found.hi + slack).all()
    assert np.median(found.hi - found.lo) < widest


@pytest.mark.parametrize(
    ("formula", "widest"),
    [
        (lambda x, y: x + y, 8),
        (lambda x, y: x - y, 8),
        (lambda x, y: x * y, 30),
        (lambda x, y: 2.0 - x, 4),
        (lambda x, y: x * -3.0, 12),
    ],
)
def test_two_numbers(formula, widest):
    (X, x), (Y, y) = some(1), some(2)
    check(formula(X, Y), formula(x, y), widest)


def test_one_number():
    X, x = some(3)
    check(X.square(), x**2, 8)
    check(X.cos(), np.cos(x), 1.5)
    check(X.sin(), np.sin(x), 1.5)
    check(X.sqrt(), np.sqrt(np.maximum(x, 0.0)), 2)
    check(Interval(X.mignitude, X.magnitude), np.abs(x), 4)
    apart = x != 0
    inverse = X.inverse()
    check(Interval(inverse.lo[apart], inverse.hi[apart]), 1 / x[apart], 9)
    across = (X.lo <= 0) & (X.hi >= 0)
    assert across.any()
    assert np.isinf(inverse.lo[across]).all()
    assert np.isinf(inverse.hi[across]).all()


def test_products_are_the_least_enclosure():
    (X, _), (Y, _) = some(4), some(5)
    ends = np.array([a * b for a in (X.lo, X.hi) for b in (Y.lo, Y.hi)])
    assert np.array_equal((X * Y).lo, ends.min(axis=0))
    assert np.array_equal((X * Y).hi, ends.max(axis=0))
