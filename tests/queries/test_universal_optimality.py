"""Universal optimality as linear programmes: does any channel beat the Truncated Geometric?

The consumer has a prior over answers and a gain that falls with the distance of the guess.
The best channel for them alone is a linear programme over channels that keep the metric that
databases induce on answers; the Truncated Geometric knows neither prior nor gain.
"""

from __future__ import annotations

import itertools
import math

import highspy
import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

from whereish.errors import InvalidInput
from whereish.mechanisms.records.consumer import consumer_remap, consumer_utility
from whereish.mechanisms.records.geometric import TruncatedGeometric
from whereish.privacy import Metric, Records
from whereish.queries import Average, Count, Median, Sum
from whereish.queries.record_query import RecordQuery
from whereish.space.values import Values


def best_utility(distances: np.ndarray, prior: np.ndarray, gain: np.ndarray) -> float:
    """max over channels K that keep `distances` of sum_xz prior_x K_xz gain_zx, by HiGHS."""
    n = len(prior)
    rows = [([x * n + z for z in range(n)], [1.0] * n, 1.0) for x in range(n)]
    for x, y in itertools.permutations(range(n), 2):
        between = (distances[x] + distances[:, y] <= distances[x, y] + 1e-12).sum() > 2
        if not between:  # else the constraint follows from shorter ones
            pair = [1.0, -math.exp(distances[x, y])]
            rows += [([x * n + z, y * n + z], pair, -math.inf) for z in range(n)]
    solver = highspy.Highs()
    for option, value in {
        "output_flag": False,
        "threads": 1,
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
    }.items():
        solver.setOptionValue(option, value)
    solver.addVars(n * n, np.zeros(n * n), np.full(n * n, math.inf))
    cost = -(prior[:, None] * gain.T).ravel()
    solver.changeColsCost(n * n, np.arange(n * n, dtype=np.int32), cost)
    for columns, entries, low in rows:
        high = 1.0 if low == 1.0 else 0.0
        solver.addRow(low, high, len(columns), np.array(columns, np.int32), np.array(entries))
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return -solver.getObjectiveValue()


def monotone_gain(random: np.random.Generator, n: int) -> np.ndarray:
    """gain[w, x] falls with |w - x|, by a profile of its own for every x; plateaus included."""
    gain = np.empty((n, n))
    for x in range(n):
        drops = random.exponential(size=n) * (random.random(n) < random.choice([0.4, 1.0]))
        gain[:, x] = (random.normal() - np.cumsum(drops))[np.abs(np.arange(n) - x)]
    return gain


def induced(query: RecordQuery, metric: Metric) -> np.ndarray:
    """The metric on answers that H o f must keep: shortest chains of databases."""
    records = Records.of(metric)
    data = np.array(list(itertools.product(records.values.all_indices(), repeat=records.size)))
    data = data[(data != -1).any(axis=1)]
    answers = query.on_indices(data, records)
    d = metric.matrix(records.values.at(data))
    groups = [np.flatnonzero(answers == y) for y in range(query.answers(records).top + 1)]
    return shortest_path(np.array([[d[np.ix_(y, z)].min() for z in groups] for y in groups]))


def excesses(
    mechanism: TruncatedGeometric, distances: np.ndarray, *, count: int, seed: int
) -> np.ndarray:
    """By how much the best channel beats the mechanism and its remap, for random consumers."""
    random = np.random.default_rng(seed)
    n = len(distances)
    found = []
    for _ in range(count):
        prior = random.dirichlet(np.full(n, 10.0 ** random.uniform(-1, 1)))
        gain = monotone_gain(random, n)
        reached = mechanism.utility(prior, gain)
        found.append(best_utility(distances, prior, gain) - reached)
    return np.array(found)


@pytest.mark.parametrize("top", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("step", [1, 3])
def test_no_channel_beats_the_truncated_geometric(top, step):
    for seed, eps in enumerate((0.1, 0.5, math.log(2), 2.0)):
        values = Values(step, top)
        mechanism = TruncatedGeometric(values, eps / step)
        places = values.at(np.arange(top + 1))
        distances = eps / step * np.abs(places[:, None] - places)
        excess = excesses(mechanism, distances, count=50, seed=100 * top + seed)
        assert excess.max() <= 1e-9
        assert excess.min() >= -1e-9  # it is one of the channels


@pytest.mark.parametrize(
    ("query", "notion", "values", "size"),
    [
        (Sum(), "manhattan", Values(1, 3), 2),
        (Sum(), "normalised_manhattan", Values(1, 2, null=True), 3),
        (Count(lambda value: value > 1), "hamming", Values(1, 3), 4),
        (Median(), "maximum", Values(1, 4, null=True), 3),
        (Median(), "manhattan", Values(1, 5), 3),
        (Average(), "maximum", Values(1, 5), 3),
        (Average(), "hamming", Values(1, 3), 4),
    ],
)
def test_uniformly_sensitive_queries_have_no_better_mechanism(query, notion, values, size):
    metric = getattr(Records(values, size), notion)
    assert query.sensitivity(metric).uniform
    mechanism = query.mechanism(metric, 0.7)
    excess = excesses(mechanism, 0.7 * induced(query, metric), count=40, seed=7)
    assert excess.max() <= 1e-9


@pytest.mark.parametrize(
    ("query", "notion", "values", "size"),
    [
        (Sum(), "hamming", Values(1, 3), 2),
        (Median(), "hamming", Values(1, 4), 3),
        (Sum(), "maximum", Values(1, 2), 3),
        (Average(2), "maximum", Values(1, 3), 3),
    ],
)
def test_other_queries_have_a_better_one(query, notion, values, size):
    """So the test above can fail: here the linear programme finds better channels."""
    metric = getattr(Records(values, size), notion)
    assert not query.sensitivity(metric).uniform
    mechanism = query.mechanism(metric, 0.7)
    excess = excesses(mechanism, 0.7 * induced(query, metric), count=40, seed=7)
    assert excess.min() >= -1e-9
    assert excess.max() > 1e-2


def test_the_consumer_s_remap_is_the_best_of_all():
    random = np.random.default_rng(0)
    matrix = TruncatedGeometric(Values(1, 3), 0.5).matrix
    prior, gain = random.dirichlet(np.ones(4)), monotone_gain(random, 4)

    def utility(remap: tuple[int, ...]) -> float:
        return sum(prior[x] * matrix[x, z] * gain[remap[z], x] for x in range(4) for z in range(4))

    everyone = {remap: utility(remap) for remap in itertools.product(range(4), repeat=4)}
    assert consumer_utility(matrix, prior, gain) == pytest.approx(max(everyone.values()))
    chosen = tuple(consumer_remap(matrix, prior, gain).tolist())
    assert everyone[chosen] == pytest.approx(max(everyone.values()))


def test_bad_consumers_are_refused():
    matrix = np.eye(2)
    for prior, gain in [
        ([0.5, 0.6], np.eye(2)),
        ([1.5, -0.5], np.eye(2)),
        ([1.0], np.eye(2)),
        ([0.5, 0.5], np.ones((2, 3))),
        ([0.5, 0.5], np.full((2, 2), np.nan)),
    ]:
        with pytest.raises(InvalidInput):
            consumer_utility(matrix, prior, gain)
