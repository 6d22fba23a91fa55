from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from whereish import audit
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Mechanism
from whereish.mechanisms.records.cube_geometric import CubeGeometric, CubeRadius
from whereish.privacy import Records
from whereish.space.values import Values

from laws import chi_square


@pytest.mark.parametrize("ratio", [Fraction(1, 3), Fraction(1, 2), Fraction(4, 5)])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_the_total_is_the_series(n, ratio):
    series = sum((2 * r + 1) ** n * ratio**r for r in range(400))
    total = CubeRadius(n, ratio).total
    assert series < total < series * (1 + Fraction(1, 10**20))


def test_thresholds_are_exact_tails():
    radius = CubeRadius(3, Fraction(2, 3))
    table = radius.thresholds.table
    below = Fraction(0)
    for r in range(1, len(table) + 1):
        below += (2 * r - 1) ** 3 * radius.ratio ** (r - 1)
        tail = 1 - below / radius.total
        assert int(table[r - 1]) == int(tail * 2**64)
        if r < 5:
            assert radius._prefix(r, 200) == int(tail * 2**200)
    assert table[-1] == 0


def test_the_mixture_of_cubes_is_the_norm_s_law():
    """sum over r of P(r) / (2r+1)^n [|v| <= r] is proportional to a^|v|, in fractions."""
    a = Fraction(3, 5)
    for n in (1, 2, 4):
        total = CubeRadius(n, a).total

        def density(size: int, n: int = n, total: Fraction = total) -> Fraction:
            head = sum((2 * r + 1) ** n * a**r / total / (2 * r + 1) ** n for r in range(size))
            return 1 / ((1 - a) * total) - head

        assert all(density(s + 1) == a * density(s) for s in range(6))


@pytest.mark.parametrize("epsilon", [0.5, 1.2])
def test_reports_follow_the_law_and_not_a_near_one(epsilon, rng):
    mechanism = CubeGeometric(Records(Values("1/2", 1000), 2), epsilon)
    noise = mechanism.noise(300_000, rng)
    reach = range(-12, 13)

    def law(eps: float) -> np.ndarray:
        a = np.exp(-eps / 2)
        norms = np.array([max(abs(i), abs(j)) for i, j in itertools.product(reach, repeat=2)])
        total = float(CubeRadius(2, Fraction(a)).total) * (1 - a)
        return a**norms / total

    inside = (np.abs(noise) <= 12).all(axis=1)
    flat = np.where(inside, (noise[:, 0] + 12) * 25 + noise[:, 1] + 12, 625)
    counts = np.bincount(flat, minlength=626).astype(float)
    assert chi_square(counts, law(epsilon)) > 1e-4
    assert chi_square(counts, law(1.03 * epsilon)) < 1e-4


def test_reports_stay_in_the_universe_with_their_guarantee(rng):
    records = Records(Values(1, 10), 4)
    mechanism = CubeGeometric(records, 0.2)
    reports = mechanism.report(np.tile([0.0, 10, 5, 3], (500, 1)), rng=rng)
    assert isinstance(mechanism, Mechanism)
    assert reports.coordinates.shape == (500, 4)
    assert reports.space == records
    assert reports.reproducible
    records.indices(reports.coordinates)
    assert len(mechanism.report([0.0, 10, 5, 3])) == 1
    assert len(mechanism.report(np.empty((0, 4)))) == 0
    assert mechanism.guarantee.metric == 0.2 * records.maximum
    # d_inf <= d_1, so that what keeps the first keeps the second; not the other way.
    assert mechanism.guarantee.implies(0.2 * records.manhattan)
    assert not mechanism.guarantee.implies(0.2 * records.normalised_manhattan)


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="null"):
        CubeGeometric(Records(Values(1, 3, null=True), 2), 1.0)
    with pytest.raises(InvalidInput, match="coarser step"):
        CubeGeometric(Records(Values(1, 3), 2), 1e-6)
    with pytest.raises(InvalidInput, match=r"an \(n, 2\) array"):
        CubeGeometric(Records(Values(1, 3), 2), 1.0).report([1.0, 2, 3])


def test_the_clamped_channel_keeps_the_metric_tightly():
    """All 3-step pairs of readings: the whole channel, audited on both sides."""
    records = Records(Values(1, 2), 2)
    mechanism = CubeGeometric(records, 0.8)
    a, reach = float(mechanism.ratio), 60
    noise = np.array(list(itertools.product(range(-reach, reach + 1), repeat=2)))
    law = a ** np.abs(noise).max(axis=1)
    data = np.array(list(itertools.product(range(3), repeat=2)))
    matrix = np.array(
        [
            np.bincount(np.clip(x + noise, 0, 2) @ (3, 1), weights=law, minlength=9) / law.sum()
            for x in data
        ]
    )
    d = records.maximum.matrix(data)
    assert audit.exact(matrix, 0.8 * d).factor == pytest.approx(1, abs=1e-9)
    assert audit.exact(matrix, 0.99 * 0.8 * d).refuted
