"""What reports no points: answers to a query, and whole traces."""

from __future__ import annotations

import math

import numpy as np
import pytest

from whereish.errors import InvalidInput, WhereishError
from whereish.mechanisms.base import Mechanism
from whereish.randomness import SeededRandomness

from contract.cases import OTHERS, example, secrets_of


@pytest.fixture(params=OTHERS)
def mechanism(request):
    return example(request.param)


def test_it_is_no_mechanism_on_points(mechanism):
    assert not isinstance(mechanism, Mechanism)


def drawn(mechanism, secrets, seed=None):
    found = mechanism.report(secrets, rng=None if seed is None else SeededRandomness(seed))
    return np.asarray(getattr(found, "reports", found))


def test_the_same_seed_draws_the_same_and_no_seed_draws_anew(mechanism):
    secrets = secrets_of(mechanism)
    assert np.array_equal(drawn(mechanism, secrets, 4), drawn(mechanism, secrets, 4))
    assert not np.array_equal(drawn(mechanism, secrets), drawn(mechanism, secrets))


def test_bad_secrets_are_refused(mechanism):
    secrets = secrets_of(mechanism)
    for bad in (math.nan, math.inf):
        broken = secrets.copy()
        broken[3, 0] = bad
        with pytest.raises(InvalidInput, match="1 of 60"):
            mechanism.report(broken)
    with pytest.raises(WhereishError):
        mechanism.report(secrets, rng=np.random.default_rng(0))


def test_it_says_what_it_promises(mechanism):
    found = mechanism.report(secrets_of(mechanism))
    promised = getattr(mechanism, "guarantee", None) or found.guarantee
    assert promised.source
