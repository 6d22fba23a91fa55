"""Certificates of maps are upper bounds in exact arithmetic, not only nearly so.

Each margin of 1e-12 is tested on both sides: what is certified is at least the exact number,
and at most 3e-12 above it; and without the margin it would fall below somewhere.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from whereish.privacy.maps.stencil import edge_slices
from whereish.solvers.eikonal.bilinear.bound import square_factors
from whereish.solvers.eikonal.certify import edge_factors
from whereish.solvers.geodesic.graph_metric import HORIZON, GraphMetric
from whereish.solvers.geodesic.lanes import LIMIT
from whereish.solvers.tables.law import factors_of, largest_changes

GUARD = 1e-12
QUANTUM = HORIZON / LIMIT


def random_metric(seed, rows=9, cols=8):
    draw = np.random.default_rng(seed)
    prices = draw.uniform(0.01, 3.0, (rows, cols, 8))
    return draw, prices, GraphMetric.from_prices(prices)


def check_margin(certified, exact):
    """`certified` doubles against `exact` balls."""
    below = 0
    for ours, truth in zip(certified, exact, strict=True):
        assert arb(ours) >= truth
        assert arb(ours) <= truth * arb(1 + 3 * GUARD)
        below += bool(arb(ours / (1 + GUARD)) < truth)
    assert below > len(exact) / 10, "without its margin the certificate would be too small"


def test_edge_factors_bound_the_exact_ones():
    draw, prices, metric = random_metric(1)
    sums = draw.integers(2**50, 2**62, metric.cells).astype(np.uint64)
    sums[:20] = sums[0] + draw.integers(0, 2**20, 20).astype(np.uint64)  # nearly equal
    found = edge_factors(metric, sums, prices)
    Z = sums.reshape(metric.shape).astype(object)
    ours, exact = [], []
    with ctx.workprec(200):
        for k, step in enumerate(metric.steps):
            tail, head = edge_slices(metric.shape, step)
            parts = (metric.weights[*tail, k], Z[tail], Z[head], prices[*tail, k], found[*tail, k])
            for weight, a, b, price, factor in zip(*(p.ravel() for p in parts), strict=True):
                change = abs((arb(int(a)) / arb(int(b))).log())
                exact.append((arb(int(weight)) * arb(metric.quantum) + change) / arb(price))
                ours.append(float(factor))
        check_margin(ours, exact)


def test_query_factors_bound_the_exact_ones():
    draw, prices, metric = random_metric(2)
    distances = draw.integers(0, 3000, (4, metric.cells)).astype(np.uint16)
    weights = np.ones(4, np.uint64)
    sums = draw.integers(2**50, 2**54, metric.cells).astype(np.uint64)
    found = factors_of(largest_changes(metric, distances, weights, sums)[0], prices)
    Z, D = sums.reshape(metric.shape).astype(object), distances.reshape(4, *metric.shape)
    ours, exact = [], []
    with ctx.workprec(200):
        for k, step in enumerate(metric.steps):
            tail, head = edge_slices(metric.shape, step)
            change = D[:, *tail].astype(int) - D[:, *head]
            parts = (change.max(axis=0), change.min(axis=0), Z[tail], Z[head])
            parts += (prices[*tail, k], found[*tail, k])
            for most, least, a, b, price, factor in zip(*(p.ravel() for p in parts), strict=True):
                slope, q = (arb(int(b)) / arb(int(a))).log(), arb(metric.quantum)
                both = q * int(most) - slope, slope - q * int(least)
                exact.append((both[0] if both[0] > both[1] else both[1]) / arb(price))
                ours.append(float(factor))
        check_margin(ours, exact)


@pytest.mark.parametrize("keep", [1.0, 0.9995, 1 / 3])
def test_quanta_never_exceed_their_price(keep):
    """Prices at whole quanta, to the last bits: doubles alone would round some of them up."""
    whole = np.random.default_rng(3).integers(1, LIMIT - 1, (40, 30, 4))
    prices = whole * (QUANTUM / keep) * (1 + 2.0**-52 * np.arange(-3, 1))
    weights = GraphMetric.from_prices(prices, keep=keep).weights
    most = Fraction(keep) * (1 - Fraction(GUARD) / 2) / Fraction(QUANTUM)
    for weight, price in zip(weights.ravel().tolist(), prices.ravel().tolist(), strict=True):
        assert weight <= Fraction(price) * most
    assert (whole - weights <= 1).all()


def test_square_factors_bound_the_exact_ones():
    """On a map of one cell there is one comparison: slope over level."""
    slopes, levels = np.random.default_rng(4).uniform(1e-4, 1e-2, (2, 300))
    found = square_factors(slopes[:, None, None], levels[:, None, None], (37.0, 51.0))
    with ctx.workprec(200):
        check_margin(found.tolist(), [arb(s) / arb(v) for s, v in zip(slopes, levels, strict=True)])
