"""The contract of every mechanism that reports points."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

from whereish.errors import InvalidInput, WhereishError
from whereish.mechanisms.base import Remapped
from whereish.mechanisms.channels.channel import Channel
from whereish.privacy.guarantee import Guarantee
from whereish.privacy.maps.geodesic import MapGeodesic
from whereish.randomness import SeededRandomness
from whereish.space.points import Points

from contract.cases import COUNT, MECHANISMS, example, secrets_of


@pytest.fixture(params=MECHANISMS)
def mechanism(request):
    return example(request.param)


def test_it_says_what_it_promises(mechanism):
    assert mechanism.guarantee.source
    assert mechanism.guarantee.numerics
    assert type(mechanism).__doc__


def test_its_guarantee_survives_a_file(mechanism):
    text = json.dumps(mechanism.guarantee.to_json(), default=np.ndarray.tolist)
    if isinstance(mechanism.guarantee.metric, MapGeodesic):
        with pytest.raises(InvalidInput, match=r"EikonalMechanism\.load"):
            Guarantee.from_json(json.loads(text))
        return
    read = Guarantee.from_json(json.loads(text))
    assert read.basis == mechanism.guarantee.basis
    assert read.implies(mechanism.guarantee.metric)  # its words may be made anew
    assert mechanism.guarantee.implies(read.metric)


def test_one_report_for_each_secret_and_nothing_is_changed(mechanism):
    secrets = secrets_of(mechanism)
    before = secrets.copy()
    reports = mechanism.report(secrets)
    assert isinstance(reports, Points)
    assert reports.coordinates.shape == secrets.shape
    assert np.array_equal(secrets, before)
    assert np.isfinite(reports.coordinates).all()
    assert len(mechanism.report(secrets[:0])) == 0
    assert len(mechanism.report(secrets[0])) == 1


def test_reports_are_drawn_anew(mechanism):
    if isinstance(mechanism, Channel) and (np.count_nonzero(mechanism.weights, axis=1) == 1).all():
        pytest.skip("a channel without noise, for comparison")
    secrets = np.repeat(secrets_of(mechanism), 4, axis=0)
    first, second = (mechanism.report(secrets).coordinates for _ in range(2))
    assert not np.array_equal(first, second)


def test_bad_secrets_are_refused_and_not_repeated(mechanism):
    secrets = secrets_of(mechanism) + 0.0
    for bad in (math.nan, math.inf, -math.inf):
        broken = secrets.copy()
        broken[3, 0] = bad
        with pytest.raises(InvalidInput, match=rf"1 of {COUNT}|1 of {broken.size}") as caught:
            mechanism.report(broken)
        assert not any(f"{value:.4f}" in str(caught.value) for value in secrets.ravel() if value)
    with pytest.raises(WhereishError):
        mechanism.report(secrets, rng=np.random.default_rng(0))
    with pytest.raises(WhereishError):
        mechanism.report(np.zeros((2, 7)))
    with pytest.raises(WhereishError):
        mechanism.report([["here", "there"][: secrets.shape[1]]])


def test_reproducible_noise_is_marked(mechanism):
    secrets = secrets_of(mechanism)
    first, second = (mechanism.report(secrets, rng=SeededRandomness(4)) for _ in range(2))
    assert np.array_equal(first, second)
    assert first.reproducible
    assert not mechanism.report(secrets).reproducible


def test_a_remap_keeps_the_guarantee(mechanism):
    still = mechanism >> (lambda reports: reports)
    assert isinstance(still, Remapped | Channel)
    assert still.guarantee == mechanism.guarantee
    secrets = secrets_of(mechanism)
    moved = still.report(secrets, rng=SeededRandomness(5))
    assert moved.reproducible
    if isinstance(still, Remapped):  # a channel sorts its columns anew
        assert np.array_equal(moved, mechanism.report(secrets, rng=SeededRandomness(5)))


def test_it_travels_to_other_processes(mechanism):
    """Spark and Dask send mechanisms to their workers."""
    copy = pickle.loads(pickle.dumps(mechanism))
    secrets = secrets_of(mechanism)
    there, here = (m.report(secrets, rng=SeededRandomness(6)) for m in (copy, mechanism))
    assert np.array_equal(there, here)


def test_its_text_is_short_and_quotes_no_data(mechanism):
    assert len(repr(mechanism)) <= 300
