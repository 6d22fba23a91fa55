"""Exact selection: the law, the coin at its border, the guarantee on both sides."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from whereish.errors import InvalidInput
from whereish.randomness import SeededRandomness
from whereish.sampling.lazy_uniform import LazyUniform
from whereish.sampling.selection import ExponentialSelection


class Words:
    """A source that gives these words first, then random ones."""

    reproducible = True

    def __init__(self, *first: int) -> None:
        self.first, self.rest, self.drawn = list(first), SeededRandomness(3), 0

    def words(self, count: int) -> np.ndarray:
        self.drawn += count
        head = [self.first.pop(0) for _ in range(min(count, len(self.first)))]
        return np.concatenate([np.array(head, np.uint64), self.rest.words(count - len(head))])


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 1000), Fraction(1, 7), Fraction(3)])
def test_the_law_is_the_stated_one(rate, rng):
    costs = np.array([[0, 3, 7, 7, 20], [5, 1, 2, 9, 9]])
    selection = ExponentialSelection(costs, rate)
    weights = np.exp(-float(rate) * costs)
    for row in range(2):
        expected = weights[row] / weights[row].sum()
        np.testing.assert_allclose(selection.probabilities()[row], expected, rtol=1e-12)
        draws = selection.draw(np.full(200_000, row), rng=rng)
        counts = np.bincount(draws, minlength=5)
        often = expected * len(draws) > 20
        assert counts[~often].sum() < 200
        assert (
            chisquare(
                counts[often], expected[often] / expected[often].sum() * counts[often].sum()
            ).pvalue
            > 1e-6
        )
        if rate:
            wrong = np.exp(-1.05 * float(rate) * costs[row])
            wrong = (wrong / wrong.sum())[often]
            if float(rate) > 0.1 and float(rate) < 1:
                assert (
                    chisquare(counts[often], wrong / wrong.sum() * counts[often].sum()).pvalue
                    < 1e-6
                )


def test_it_keeps_twice_rate_times_sensitivity_and_less_is_refuted():
    """Costs |s - j| on a line: moving by c changes costs by at most c."""
    places = np.arange(200)
    costs = np.abs(places[:, None] - places[None])
    logs = np.log(ExponentialSelection(costs, Fraction(1, 10)).probabilities())
    # Far from the ends the normaliser hardly changes, so rate * c is nearly tight; at the
    # ends it does change.
    gap = np.abs(logs[:-1] - logs[1:]).max()
    assert gap <= 2 * 0.1 * (1 + 1e-9)
    assert gap > 0.1


def test_the_coin_is_decided_in_balls_where_doubles_cannot_tell():
    selection = ExponentialSelection(np.array([[0, 1]]), Fraction(1, 3))
    border = int(math.exp(-1 / 3) * 2**64)
    near = np.array([border - 3000, border + 3000], np.uint64)
    heads = [selection._exact_coin(LazyUniform(int(w)), 1, SeededRandomness(1)) for w in near]
    assert heads == [True, False]
    source = Words(border)
    coin = selection._coins(np.array([1]), source)
    assert coin.shape == (1,)
    assert source.drawn >= 1
    # Doubles and balls agree on the same words.
    words = SeededRandomness(8).words(3000)
    fast = ExponentialSelection(np.array([[0, 2]]), Fraction(1, 4))._coins(
        np.full(3000, 2), Words(*map(int, words))
    )
    exact = [
        ExponentialSelection(np.array([[0, 2]]), Fraction(1, 4))._exact_coin(
            LazyUniform(int(w)), 2, SeededRandomness(1)
        )
        for w in words
    ]
    assert fast.tolist() == exact


@pytest.mark.parametrize(
    ("costs", "rate"),
    [
        (np.zeros((0, 0), int), 1),
        (np.array([[0.5]]), 1),
        (np.array([[-1]]), 1),
        (np.array([[2**50]]), 1),
        (np.array([[1]]), -1),
    ],
)
def test_bad_costs_are_refused(costs, rate):
    with pytest.raises(InvalidInput):
        ExponentialSelection(costs, Fraction(rate))


def test_bad_rows_are_refused():
    selection = ExponentialSelection(np.array([[0, 1]]), Fraction(1))
    for rows in ([1], [-1], [[0]]):
        with pytest.raises(InvalidInput):
            selection.draw(rows)
    assert len(selection.draw([])) == 0


@pytest.mark.parametrize("rate", [Fraction(n, 13) for n in range(1, 30, 2)], ids=str)
def test_coins_beside_the_border_are_what_their_bits_say(rate):
    """Doubles cannot tell the words around e^-gamma; without their error bound some are wrong."""
    from flint import arb, ctx

    selection = ExponentialSelection(np.array([[0, 1]]), rate)
    with ctx.workprec(300):
        gamma = arb(rate.numerator) / rate.denominator
        border = int(((-gamma).exp() * arb(2) ** 64).floor().unique_fmpz())
    words = [border + step for step in range(-4000, 4001, 40) if step]
    heads = selection._coins(np.full(len(words), 1), Words(*words))
    assert heads.tolist() == [word < border for word in words]


def test_a_uniform_that_begins_with_64_zeros_may_be_as_small_as_it_takes():
    selection = ExponentialSelection(np.array([[0, 60]]), Fraction(1))
    assert selection._coins(np.array([60]), Words(0, 0)).tolist() == [True]  # U < 2^-128 < e^-60
    assert selection._coins(np.array([60]), Words(0, 2**63)).tolist() == [False]
