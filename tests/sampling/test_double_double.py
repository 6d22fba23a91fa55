"""Arithmetic of two doubles against balls."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, ctx

from whereish.mechanisms.noise.globe_laplace import GlobeLaplace, drawn_finer
from whereish.randomness import SeededRandomness
from whereish.sampling import double_double as dd
from whereish.sampling.lazy_uniform import LazyUniform
from whereish.units import Epsilon

N = 400
RANDOM = np.random.default_rng(5)


def ball(a):
    return arb(float(a[0])) + arb(float(a[1]))


def numbers(low, high, count=N):
    """Doubles with a tail, of sizes from 10^low to 10^high and both signs."""
    high_part = RANDOM.choice([-1, 1], count) * 10.0 ** RANDOM.uniform(low, high, count)
    return [
        (h, h * 2.0**-54 * t) for h, t in zip(high_part, RANDOM.uniform(-1, 1, count), strict=True)
    ]


@pytest.fixture(autouse=True)
def bits():
    with ctx.workprec(400):
        yield


def test_sums_products_quotients_and_roots():
    for a, b in zip(numbers(-8, 8), numbers(-8, 8), strict=True):
        x, y = ball(a), ball(b)
        for got, want in (
            (dd.mul(a, b), x * y),
            (dd.div(a, b), x / y),
            (dd.sqrt((abs(a[0]), a[1])), (arb(abs(a[0])) + arb(a[1])).sqrt()),
            (dd.add(a, b), x + y),
        ):
            assert abs(ball(got) / want - 1) < 2.0**-100


def test_constants():
    for got, want in ((dd.PI, arb.pi()), (dd.DEGREE, arb.pi() / 180), (dd.RADIAN, 180 / arb.pi())):
        assert abs(ball(got) / want - 1) < 2.0**-104


def test_functions_are_within_their_bounds():
    for a in numbers(-12, 0.79):
        s, c = dd.sincos(a)
        assert abs(ball(s) - ball(a).sin()) < 2.0**-95
        assert abs(ball(c) - ball(a).cos()) < 2.0**-95
    for a in [(abs(high), low) for high, low in numbers(-30, 0)]:
        assert abs(ball(dd.log(a)) - ball(a).log()) < 2.0**-93
    for y, x in zip(numbers(-9, 0), numbers(-9, 0), strict=True):
        assert abs(ball(dd.atan2(y, x)) - arb.atan2(ball(y), ball(x))) < 2.0**-95
    assert (
        abs(ball(dd.log((1 - 2.0**-53, 2.0**-60))) - (1 - arb(2) ** -53 + arb(2) ** -60).log())
        < 2.0**-95
    )


def test_units_are_the_middles_of_their_intervals():
    for word in RANDOM.integers(0, 2**63, 50).astype(np.uint64) * np.uint64(2) + np.uint64(1):
        for bits in (64, 61):
            prefix = int(word) & (2**bits - 1)
            assert ball(dd.unit(word, bits)) == LazyUniform(prefix, bits).ball().mid()


def test_what_a_word_leaves_open_is_within_the_error():
    """Small uniforms followed by zeros and by ones: both reports are where they are said to be."""
    mechanism = GlobeLaplace(Epsilon(0.005), decimals=9)
    words = SeededRandomness(15).words(4 * 200).reshape(-1, 4)
    words[:, 0] >>= np.uint64(30)
    words[:, 3] >>= np.uint64(8)  # accepted
    for row in words:
        found = drawn_finer(row, 2.3, 48.8, mechanism._rate, 10.0**9)
        for rest in (0, 2**64 - 1):
            uniforms = [LazyUniform((int(word) << 64) | rest, 128) for word in row]
            exact = mechanism._exact(uniforms, np.array([2.3, 48.8]))
            for at, (cell, place, error) in zip(exact, (found[:3], found[3:]), strict=True):
                assert abs(at - arb(int(cell)) - arb(place)) <= arb(error)
