"""The integers that are drawn: where sums and weights must stop, and uniform numbers below."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.errors import NotPrivate
from whereish.solvers.geodesic.masses import check_sums, checked_weights, uniform_below


class Scripted:
    """Words from a list, for draws whose bits are known."""

    reproducible = True

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> np.ndarray:
        taken, self.left = self.left[:count], self.left[count:]
        assert len(taken) == count, "more bits were asked for than needed"
        return np.array(taken, np.uint64)


def test_uniform_below_draws_again_beyond_the_last_whole_share():
    last = 2**64 - 1  # 2^128 - 1 is in no third of 2^128 // 3 numbers: its quotient is 3
    source = Scripted(last, last, 2**63, 0)
    assert uniform_below(np.array([3], np.uint64), source).tolist() == [1]
    assert source.left == []
    third = 2**128 // 3
    for value in range(3):
        for word in (value * third, (value + 1) * third - 1):
            source = Scripted(word >> 64, word & last)
            assert uniform_below(np.array([3], np.uint64), source).tolist() == [value]


def test_the_largest_weight_is_below_a_mass_of_2_63():
    assert checked_weights(np.array([2**21 - 1], np.uint64), 1).tolist() == [2**21 - 1]
    with pytest.raises(NotPrivate, match="must be below"):
        checked_weights(np.array([2**21], np.uint64), 1)


def test_a_sum_that_was_stopped_is_refused():
    check_sums(np.array([2**63 - 1], np.uint64))
    with pytest.raises(NotPrivate, match="less than"):
        check_sums(np.array([2**63], np.uint64))
