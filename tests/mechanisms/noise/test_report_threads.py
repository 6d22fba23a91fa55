from __future__ import annotations

import numpy as np
import pytest

from whereish.errors import InvalidInput
from whereish.mechanisms.noise.axis_laplace import Laplace1D, ManhattanLaplace
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.mechanisms.noise.rounded import RoundedMechanism
from whereish.randomness import SeededRandomness
from whereish.sampling.lazy_uniform import DECIDED, UNDECIDED
from whereish.sampling.words_ahead import WordsAhead
from whereish.units import Epsilon

COUNT = 3 * 8192 + 1234
MECHANISMS = [
    PlanarLaplace(Epsilon(0.005)),
    ManhattanLaplace(Epsilon(0.02)),
    Laplace1D(Epsilon(0.02)),
    GlobeLaplace(Epsilon(0.005)),
    GlobeLaplace(Epsilon(1e-6)),  # many attempts are rejected
]


def secrets_of(mechanism, count=COUNT):
    return np.random.default_rng(8).uniform(-80, 80, (count, mechanism.space.dimension))


def drawn(mechanism, threads, count=COUNT):
    rng = SeededRandomness(3)
    reports = mechanism.report(secrets_of(mechanism, count), rng=rng, threads=threads)
    assert reports.reproducible
    return reports.coordinates, rng.words(4)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_reports_are_the_same_whatever_the_number_of_threads(mechanism):
    alone, next_alone = drawn(mechanism, 1)
    for threads in (2, 3, None):
        together, next_together = drawn(mechanism, threads)
        np.testing.assert_array_equal(together, alone)
        np.testing.assert_array_equal(next_together, next_alone)


@pytest.mark.parametrize("mechanism", [MECHANISMS[0], MECHANISMS[4]], ids=str)
def test_further_words_for_open_draws_are_the_next_ones(mechanism, monkeypatch):
    """Draws that take more words than theirs, in the middle of a wave and at its end."""
    fast, decide = type(mechanism)._fast, RoundedMechanism._decide

    def leave_some_open(self, words, secrets, cells, state):
        left = fast(self, words, secrets, cells, state)
        some = np.zeros(len(state), bool)
        some[int(words[0] % np.uint64(len(state)))] = words[1] % np.uint64(2) == 0
        some &= state == DECIDED
        state[some] = UNDECIDED
        return left + int(some.sum())

    def take_more(self, uniforms, secret, rng):
        rng.words(1 + uniforms[0].prefix % 3)
        return decide(self, uniforms, secret, rng)

    monkeypatch.setattr(type(mechanism), "_fast", leave_some_open)
    monkeypatch.setattr(RoundedMechanism, "_decide", take_more)
    alone, next_alone = drawn(mechanism, 1, 20 * 8192)
    together, next_together = drawn(mechanism, 2, 20 * 8192)
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(next_together, next_alone)


def test_no_secrets_and_wrong_numbers_of_threads():
    mechanism = MECHANISMS[0]
    assert len(mechanism.report(np.empty((0, 2)), threads=2)) == 0
    with pytest.raises(InvalidInput, match="threads"):
        mechanism.report(secrets_of(mechanism), threads=0)


def test_words_that_were_put_back_come_next():
    alone, ahead = SeededRandomness(5), WordsAhead(SeededRandomness(5))
    expected = alone.words(20)
    first, second = ahead.words(6), ahead.words(4)
    ahead.put_back([first[4:], second])
    assert len(ahead) == 6
    np.testing.assert_array_equal(ahead.words(3), expected[4:7])
    np.testing.assert_array_equal(ahead.words(13), expected[7:20])
    assert len(ahead) == 0
    assert ahead.words(0).size == 0
    assert ahead.reproducible
