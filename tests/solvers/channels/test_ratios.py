from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from whereish.errors import InvalidInput
from whereish.solvers.channels.ratios import largest_ratio


def line(n):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)


def brute_force(matrix, distances):
    n = len(matrix)
    return max(
        (
            (math.log(Fraction(matrix[x, z].item())) - math.log(Fraction(matrix[y, z].item())))
            / distances[x, y]
            for x in range(n)
            for y in range(n)
            if x != y
            for z in range(matrix.shape[1])
        ),
        default=0.0,
    )


@given(st.integers(2, 5), st.integers(1, 4), st.randoms(use_true_random=False))
def test_encloses_brute_force(n, m, random):
    weights = np.array([[random.randint(1, 2**62) for _ in range(m)] for _ in range(n)])
    found = largest_ratio(weights, line(n))
    truth = brute_force(weights, line(n))
    assert found.lower <= truth * (1 + 1e-12) + 1e-15
    assert truth <= found.upper * (1 + 1e-12) + 1e-15
    assert found.upper - found.lower <= 1e-12 * (1 + found.upper)


def test_two_sides_of_a_tight_channel():
    half = np.array([[4, 2, 1], [2, 4, 2], [1, 2, 4]])
    found = largest_ratio(half, math.log(2) * line(3))
    assert found.lower <= 1 <= found.upper
    assert found.upper - found.lower < 1e-14
    assert largest_ratio(half, 0.999 * math.log(2) * line(3)).lower > 1
    assert largest_ratio(half, 1.001 * math.log(2) * line(3)).upper < 1
    x, y, z = found.triple
    assert half[x, z] == 2 ** abs(x - y) * half[y, z]


def test_a_one_sided_zero_is_infinite_unless_infinitely_far():
    matrix = np.array([[1.0, 0.0], [0.5, 0.5]])
    assert largest_ratio(matrix, line(2)).lower == math.inf
    assert largest_ratio(matrix, line(2)).triple == (1, 0, 1)
    far = np.array([[0, math.inf], [math.inf, 0]])
    assert largest_ratio(matrix, far).upper == 0


def test_equal_secrets_must_have_equal_rows():
    close = np.zeros((2, 2))
    assert largest_ratio(np.array([[0.5, 0.5], [0.6, 0.4]]), close).upper == math.inf
    assert largest_ratio(np.array([[0.5, 0.5], [0.5, 0.5]]), close).upper == 0


def test_tiny_entries_count():
    matrix = np.array([[1 - 1e-300, 1e-300], [0.5, 0.5]])
    assert largest_ratio(matrix, line(2)).lower == pytest.approx(math.log(0.5e300))


def test_bad_input():
    for matrix, distances in [
        (np.ones((2, 2)), np.zeros((3, 3))),
        (-np.ones((2, 2)), line(2)),
        (np.full((2, 2), math.nan), line(2)),
        (np.ones((2, 2)), -line(2)),
    ]:
        with pytest.raises(InvalidInput):
            largest_ratio(matrix, distances)


@pytest.mark.parametrize("columns", [1, 2])  # with twins, the bound of the doubles counts
def test_upper_is_a_bound_to_the_last_bit(columns):
    rng = np.random.default_rng(7)
    for _ in range(60):
        pair = rng.integers(2**61, 2**62, 2)
        weights = np.repeat(pair[:, None], columns, axis=1)
        distance = float(rng.uniform(0.1, 10.0))
        found = largest_ratio(weights, distance * line(2))
        with ctx.workprec(200):
            truth = abs(arb(int(pair[0])).log() - arb(int(pair[1])).log()) / arb(distance)
            assert arb(found.lower) <= truth
            assert truth <= arb(found.upper)
            assert arb(found.upper) < truth * (1 + arb(2) ** -20)


@pytest.mark.parametrize("columns", [1, 2])
def test_the_error_of_the_distances_widens_the_enclosure(columns):
    weights = np.repeat([[3], [1]], columns, axis=1)
    found = largest_ratio(weights, line(2), distance_error=1e-3)
    assert found.upper >= math.log(3) / (1 - 1e-3) * (1 - 1e-15)
    assert found.lower <= math.log(3) / (1 + 1e-3) * (1 + 1e-15)
    assert found.upper < math.log(3) * (1 + 1.1e-3)


def test_rows_of_unequal_sums_widen_the_enclosure():
    matrix = np.array([[0.6, 0.4], [0.4, 0.6]])
    found, sure = (largest_ratio(matrix, line(2), row_error=e) for e in (1e-3, 0.0))
    assert found.upper >= sure.upper + 1e-3
    assert found.lower <= sure.lower - 1e-3


def test_columns_that_doubles_cannot_tell_apart_are_all_covered():
    """Two columns of almost the same ratio: doubles may find the smaller one the larger."""
    rng = np.random.default_rng(13)
    for _ in range(200):
        weights = rng.integers(2**60, 2**62, (2, 1)) + rng.integers(0, 2**13, (2, 2))
        found = largest_ratio(weights, line(2))
        with ctx.workprec(200):
            logs = [[arb(int(w)).log() for w in row] for row in weights]
            for z in range(2):
                assert abs(logs[0][z] - logs[1][z]) <= arb(found.upper)
