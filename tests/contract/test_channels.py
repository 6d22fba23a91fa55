"""Channels: integer rows that keep their metric and no smaller one, and are what is sampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from whereish import audit
from whereish.errors import NotPrivate
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.registry import REGISTRY
from whereish.privacy import Basis, Finite
from whereish.solvers.channels.rows import TOTAL

from contract.cases import CHANNELS, FINITE, example, secrets_of


@pytest.fixture(params=CHANNELS)
def name(request):
    return request.param


def test_every_row_has_the_same_total(name):
    assert {sum(row.tolist()) for row in example(name).weights} == {TOTAL}


def promised(channel: Channel) -> np.ndarray:
    """Distances of all pairs of secrets, by their places or by their numbers."""
    metric = channel.guarantee.metric
    by_number = isinstance(getattr(metric, "base", metric), Finite)
    return metric.matrix(
        np.arange(len(channel.secrets)) if by_number else channel.secrets.coordinates
    )


def test_the_metric_is_kept_and_a_smaller_one_is_not(name):
    channel = example(name)
    assert channel.verify().upper <= 1
    distances = promised(channel)
    assert not audit.exact(channel.weights, distances).refuted
    if REGISTRY[name].tight and (distances[np.isfinite(distances)] > 0).any():
        assert audit.exact(channel.weights, 0.99 * distances).refuted
        smaller = replace(channel.guarantee, metric=0.99 * channel.guarantee.metric)
        with pytest.raises(NotPrivate):
            replace(channel, guarantee=smaller).verify()


def test_it_is_saved_with_its_promise(name, tmp_path):
    channel = example(name)
    channel.save(tmp_path / "channel.npz")
    read = Channel.load(tmp_path / "channel.npz")
    assert np.array_equal(read.weights, channel.weights)
    # The words of a file are not believed: what was verified anew is a certificate.
    assert read.guarantee.basis == min(channel.guarantee.basis, Basis.CERTIFIED)
    assert np.array_equal(promised(read), promised(channel))


@pytest.mark.parametrize("name", [*CHANNELS, *FINITE])
def test_draws_follow_the_rows_and_not_near_ones(name, rng):
    mechanism, n = example(name), 400_000
    row = np.asarray(mechanism.matrix[0], float)
    secret = first_secret(mechanism)
    reports = mechanism.report(np.repeat(secret, n, axis=0), rng=rng)
    index = columns_of(mechanism, np.asarray(reports))
    counts = np.bincount(index, minlength=len(row)).astype(float)
    assert counts[row == 0].sum() == 0
    if np.count_nonzero(row) == 1:
        return  # nothing is drawn
    counts, row = counts[row > 0], row[row > 0]
    assert chisquare(counts, n * row).pvalue > 1e-6
    tilted = row * np.linspace(0.96, 1.04, len(row))
    assert chisquare(counts, n * tilted / tilted.sum()).pvalue < 1e-9


def first_secret(mechanism) -> np.ndarray:
    if isinstance(mechanism, Channel):
        return mechanism.secrets.coordinates[:1]
    return np.zeros((1, 1)) if not hasattr(mechanism, "map") else secrets_of(mechanism)[:1]


def columns_of(mechanism, reports: np.ndarray) -> np.ndarray:
    """Which column each report is."""
    if isinstance(mechanism, Channel):
        return mechanism.reports.nearest(reports)
    answers = getattr(mechanism, "answers", None)
    return reports.ravel().astype(int) if answers is None else np.searchsorted(answers, reports)
