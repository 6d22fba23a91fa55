from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whereish import audit
from whereish.errors import InvalidInput
from whereish.mechanisms.base import HasChannel, Mechanism
from whereish.mechanisms.records.geometric import (
    GeometricNoise,
    TruncatedGeometric,
    TwoSidedGeometric,
)
from whereish.privacy import ValueDistance
from whereish.randomness import SeededRandomness
from whereish.space.values import Values

from laws import chi_square


def keeps(rows: list[list[Fraction]], ratio: Fraction) -> bool:
    """k_xz <= ratio^-|x-x'| k_x'z for all triples, in fractions."""
    size = range(len(rows))
    return all(
        rows[x][z] * ratio ** abs(x - y) <= rows[y][z]
        for x, y, z in itertools.product(size, repeat=3)
    )


@given(st.integers(1, 6), st.fractions("1/4", 4), st.floats(0.05, 3))
@settings(max_examples=30)
def test_the_matrix_keeps_its_metric_exactly_and_tightly(top, step, epsilon):
    mechanism = TruncatedGeometric(Values(step, top), epsilon)
    rows = mechanism.fractions()
    assert all(sum(row) == 1 for row in rows)
    assert keeps(rows, mechanism.ratio)
    assert not keeps(rows, mechanism.ratio + Fraction(1, 10**15))  # nothing less is kept
    # Every pair of secrets is tight, at both ends: the factor is exactly ratio^-|x-x'|.
    for x, y in itertools.permutations(range(top + 1), 2):
        ratios = {rows[x][z] / rows[y][z] for z in range(top + 1)}
        assert max(ratios) == mechanism.ratio ** -abs(x - y)
        assert min(ratios) == mechanism.ratio ** abs(x - y)


def test_a_rational_ratio_is_kept_as_it_is():
    mechanism = TruncatedGeometric.with_ratio(Values(1, 6), "1/2")
    assert mechanism.ratio == Fraction(1, 2)
    assert mechanism.epsilon >= math.log(2)
    weights = np.array([[int(p * 3 * 64) for p in row] for row in mechanism.fractions()])
    distances = np.abs(np.subtract.outer(np.arange(7.0), np.arange(7.0)))
    found = audit.exact(weights, math.log(2) * distances)
    assert found.factor == pytest.approx(1, abs=1e-12)
    assert audit.exact(weights, mechanism.epsilon * (1 + 1e-12) * distances).holds
    assert audit.exact(weights, 0.99 * math.log(2) * distances).refuted


def test_the_float_matrix_is_the_fractions_and_is_audited_as_such():
    mechanism = TruncatedGeometric(Values("1/2", 8), 0.9)
    assert isinstance(mechanism, Mechanism)
    assert isinstance(mechanism, HasChannel)
    exact = np.array(mechanism.fractions(), dtype=float)
    np.testing.assert_allclose(mechanism.matrix, exact, rtol=1e-13)
    places = mechanism.values.at(np.arange(9))
    d = ValueDistance(mechanism.values).matrix(places)
    assert audit.exact(mechanism, 0.9 * d).factor == pytest.approx(1, abs=1e-9)
    assert audit.exact(mechanism, 0.99 * 0.9 * d).refuted


@pytest.mark.parametrize(
    "ratio", [Fraction(1, 2), Fraction(9, 10), Fraction(2**64 - 1, 2**64 + 10**17)]
)
def test_the_table_is_the_exact_prefix(ratio):
    noise = GeometricNoise(ratio, clamp=300)
    table = noise.thresholds.table
    for n in {1, 2, 3, 17, len(table) - 1, len(table)}:
        assert int(table[n - 1]) == int(ratio**n / (1 + ratio) * 2**64)


@pytest.mark.parametrize(("secret", "epsilon"), [(0, 0.3), (7, 0.3), (40, 0.05), (20, 1.5)])
def test_reports_follow_the_law_and_not_a_near_one(secret, epsilon, rng):
    values = Values(1, 40)
    mechanism = TruncatedGeometric(values, epsilon)
    reports = mechanism.report(np.full(400_000, float(secret)), rng=rng)
    assert reports.reproducible
    index = values.indices(reports.coordinates[:, 0])
    counts = np.append(np.bincount(index, minlength=41), 0).astype(float)
    if (mechanism.matrix[secret] * counts.sum() >= 20).sum() > 11:
        assert chi_square(counts, mechanism.matrix[secret]) > 1e-4
        assert chi_square(counts, TruncatedGeometric(values, 1.03 * epsilon).matrix[secret]) < 1e-4
    else:
        expected = mechanism.matrix[secret] * counts.sum()
        likely = expected >= 20
        assert (np.abs(counts[:-1] - expected)[likely] < 6 * np.sqrt(expected[likely])).all()


def test_plain_noise_is_unbounded_and_follows_its_law(rng):
    mechanism = TwoSidedGeometric("1/2", 0.4)
    reports = mechanism.report(np.full(400_000, -3.0), rng=rng).coordinates[:, 0]
    steps = np.rint((reports + 3) * 2).astype(int)
    assert abs(steps).max() > 30
    reach = np.arange(-60, 61)
    a = math.exp(-0.2)
    law = (1 - a) / (1 + a) * a ** np.abs(reach)
    counts = np.array([*(np.count_nonzero(steps == n) for n in reach), 0.0])
    counts[-1] = len(steps) - counts.sum()
    assert chi_square(counts, law) > 1e-4
    assert mechanism.guarantee.metric([[1.0]], [[2.5]]) == pytest.approx(0.6)
    assert mechanism.usefulness(1.0) == pytest.approx(law[58:63].sum())


@pytest.mark.parametrize("top", [1, 2, 5, 9])
@pytest.mark.parametrize("radius", [0, 0.4, 1, 2.5, 4, 5, 9])
def test_usefulness_is_the_worst_row_s(top, radius):
    mechanism = TruncatedGeometric(Values("1/2", top), 0.7)
    places = mechanism.values.at(np.arange(top + 1))
    near = np.abs(places[:, None] - places) <= radius
    worst = (mechanism.matrix * near).sum(axis=1).min()
    assert mechanism.usefulness(radius) == pytest.approx(worst, abs=1e-12)
    assert mechanism.is_useful(radius, 1 - worst + 1e-9)
    if worst < 1 - 1e-6:
        assert not mechanism.is_useful(radius, 1 - worst - 1e-6)


def test_secure_noise_is_not_marked_and_differs():
    mechanism = TruncatedGeometric(Values(1, 1000), 0.01)
    first, second = (mechanism.report(np.full(50, 500.0)) for _ in range(2))
    assert not first.reproducible
    assert (first.coordinates != second.coordinates).any()
    assert len(mechanism.report(np.empty((0, 1)))) == 0


def test_a_seed_repeats_and_marks_and_other_generators_are_refused():
    for mechanism, secret in [
        (TruncatedGeometric(Values(1, 1000), 0.01), 500.0),
        (TwoSidedGeometric(1, 0.01), -500.0),
    ]:
        first, second = (
            mechanism.report(np.full(50, secret), rng=SeededRandomness(4)) for _ in range(2)
        )
        assert np.array_equal(first, second)
        assert first.reproducible
        with pytest.raises(InvalidInput, match="rng must be"):
            mechanism.report([secret], rng=np.random.default_rng(0))


def test_extreme_levels():
    assert TruncatedGeometric(Values(1, 3), 1e3).ratio == Fraction(1, 2**64)
    with pytest.raises(InvalidInput, match="coarser step"):
        TwoSidedGeometric(1, 1e-7)
    # A small universe needs only a small table, however little noise is left to say.
    assert TruncatedGeometric(Values(1, 5), 1e-7).usefulness(2) < 0.51


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), "1/km"])
def test_bad_levels_are_refused(epsilon):
    with pytest.raises(InvalidInput, match="epsilon"):
        TruncatedGeometric(Values(1, 3), epsilon)


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="null"):
        TruncatedGeometric(Values(1, 3, null=True), 1.0)
    with pytest.raises(InvalidInput, match="ratio"):
        TruncatedGeometric.with_ratio(Values(1, 3), Fraction(1))
    with pytest.raises(InvalidInput, match="must be in"):
        TruncatedGeometric(Values(1, 3), 1.0).report([4.0])
    with pytest.raises(InvalidInput, match="radius"):
        TruncatedGeometric(Values(1, 3), 1.0).usefulness(-1)
    with pytest.raises(InvalidInput, match="delta"):
        TruncatedGeometric(Values(1, 3), 1.0).is_useful(1, 2)
