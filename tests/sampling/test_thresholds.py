from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from whereish.errors import InvalidInput
from whereish.sampling.thresholds import (
    Thresholds,
    exp_minus_up,
    level,
    log_inverse_up,
    uniform_below,
)


class Scripted:
    """Words from a list, for draws whose bits are known."""

    reproducible = True

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> np.ndarray:
        taken, self.left = self.left[:count], self.left[count:]
        assert len(taken) == count, "more bits were asked for than needed"
        return np.array(taken, np.uint64)


def thirds(last: int | None = None, length: int = 80) -> Thresholds:
    """T_n = 3^-n, whose bits never end."""

    def prefix(n: int, bits: int) -> int:
        return (1 << bits) // 3**n

    table = [prefix(n, 64) for n in range(1, length + 1)]
    return Thresholds(
        np.array(table[: table.index(0) + 1 if 0 in table else length], np.uint64), prefix, last
    )


def test_sure_draws_need_no_further_bit():
    thresholds = thirds()
    third = 2**64 // 3
    words = np.array([2**63, third + 1, third - 1, 2**64 // 9 - 1, 2], np.uint64)
    assert thresholds.counts(words, Scripted()).tolist() == [0, 0, 1, 2, 39]


def test_a_draw_on_a_threshold_is_decided_by_its_next_bits():
    third = 2**64 // 3  # 0.010101..., so the next 64 bits of 1/3 are 0x5555...
    more = 2**64 // 3
    assert thirds().counts(np.array([third], np.uint64), Scripted(more - 1)).tolist() == [1]
    assert thirds().counts(np.array([third], np.uint64), Scripted(more + 1)).tolist() == [0]
    assert thirds().counts(np.array([third], np.uint64), Scripted(more, 0)).tolist() == [1]


def test_the_far_tail_goes_on_unless_the_sequence_ends():
    # 3^-n 2^128 falls through 2^62 between n = 41 and 42.
    tail = np.array([0], np.uint64)
    exact = next(n for n in range(1, 200) if 2**128 // 3**n < 2**62)
    assert thirds().counts(tail, Scripted(2**62)).tolist() == [exact - 1]
    deep = next(n for n in range(1, 200) if 2**128 // 3**n < 5)
    assert thirds().counts(tail, Scripted(5)).tolist() == [deep - 1] == [79]
    assert thirds(last=5, length=5).counts(tail, Scripted()).tolist() == [5]


def test_uniform_below_has_no_bias():
    # 2^64 mod 3 = 1: the word 0 lies in the incomplete multiple and is drawn again.
    assert uniform_below(np.array([3]), Scripted(0, 7)).tolist() == [1]
    assert uniform_below(np.array([3]), Scripted(1)).tolist() == [1]
    assert uniform_below(np.array([4]), Scripted(0)).tolist() == [0]


def test_uniform_below_spans_its_range(rng):
    drawn = Counter(uniform_below(np.full(70_000, 7), rng).tolist())
    assert set(drawn) == set(range(7))
    assert max(abs(count - 10_000) for count in drawn.values()) < 600  # six standard deviations


@given(st.fractions("1/10000", 30))
def test_exponential_is_an_upper_bound_to_the_last_bit(x):
    bound = exp_minus_up(x)
    with ctx.workprec(300):
        truth = (-arb(fmpq(x.numerator, x.denominator))).exp()
        assert truth <= arb(fmpq(bound.numerator, bound.denominator))
        below = bound - Fraction(1, 2**64)
        assert truth > arb(fmpq(below.numerator, below.denominator)) or below == 0


@given(st.fractions("1/1000", "999/1000"), st.fractions("1/10", 10))
def test_logarithm_is_an_upper_bound_to_the_last_bit(ratio, per):
    bound = log_inverse_up(ratio, per)
    with ctx.workprec(300):
        inverse = arb(fmpq(ratio.denominator, ratio.numerator)).log()
        truth = inverse / arb(fmpq(per.numerator, per.denominator))
        assert truth <= arb(bound)
        assert truth > arb(math.nextafter(bound, 0.0)) * (1 - arb(2) ** -52)


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), "x", None])
def test_what_is_no_level_is_refused(epsilon):
    with pytest.raises(InvalidInput, match="epsilon must be"):
        level(epsilon)
