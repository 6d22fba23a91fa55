"""Arbitrary finite queries: all tables on all small graphs of databases, by brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from whereish.errors import InvalidInput
from whereish.mechanisms.records.consumer import consumer_utility
from whereish.privacy import Metric, Records
from whereish.queries import Average, Count, FiniteQuery, Maximum, Median, Sum
from whereish.solvers.channels.consumers import best_utility
from whereish.space.values import Values

EPSILON = 0.7
SOLVED = 5e-7  # what the linear programmes may be off


def graphs(n: int):
    """The distances of every connected graph on n labelled databases."""
    pairs = list(itertools.combinations(range(n), 2))
    for chosen in itertools.product((False, True), repeat=len(pairs)):
        d = np.full((n, n), math.inf)
        np.fill_diagonal(d, 0)
        for (a, b), joined in zip(pairs, chosen, strict=True):
            if joined:
                d[a, b] = d[b, a] = 1
        for a, b, c in itertools.product(range(n), repeat=3):
            d[b, c] = min(d[b, c], d[b, a] + d[a, c])
        if np.isfinite(d).all():
            yield d


def by_definition(table, d):
    """Delta; whether tight chains join all answers; d_f: by walking through all sequences."""
    n = len(table)
    pairs = list(itertools.permutations(range(n), 2))
    delta = max((Fraction(abs(table[x] - table[y]), int(d[x, y])) for x, y in pairs), default=0)
    answers = sorted(set(table))
    step = {
        (y, z): min(
            int(d[a, b]) for a in range(n) for b in range(n) if (table[a], table[b]) == (y, z)
        )
        for y, z in itertools.permutations(answers, 2)
    }
    uniform, induced = True, {}
    for y, z in itertools.permutations(answers, 2):
        others = [a for a in answers if a not in (y, z)]
        chains = [
            (y, *middle, z)
            for size in range(len(others) + 1)
            for middle in itertools.permutations(others, size)
        ]
        induced[y, z] = min(sum(step[s] for s in itertools.pairwise(c)) for c in chains)
        uniform &= any(
            sum(abs(a - b) for a, b in itertools.pairwise(c)) == abs(y - z)
            and all(abs(a - b) == delta * step[a, b] for a, b in itertools.pairwise(c))
            for c in chains
        )
    return delta, uniform, answers, induced


@cache
def all_queries():
    """Every table of at most three values on every connected graph of at most four databases."""
    made = []
    for n in range(1, 5):
        for d in graphs(n):
            for table in itertools.product(range(3), repeat=n):
                made.append((table, d))
    return made


def test_sensitivity_and_uniformity_of_all_small_queries():
    assert len(all_queries()) == 3 + 9 + 27 * 4 + 81 * 38
    for table, d in all_queries():
        query = FiniteQuery(np.array(table, float), d)
        delta, uniform, answers, induced = by_definition(table, d)
        assert query.sensitivity.value == delta
        assert query.sensitivity.uniform == uniform
        assert query.values.tolist() == answers
        for (i, y), (j, z) in itertools.permutations(enumerate(answers), 2):
            assert query.induced[i, j] == induced[y, z]


def monotone_consumers(values: np.ndarray, count: int, seed: int):
    random = np.random.default_rng(seed)
    n = len(values)
    apart = np.abs(values[:, None] - values)
    for _ in range(count):
        gain = np.empty((n, n))
        for x in range(n):
            reach, at = np.unique(apart[:, x], return_inverse=True)
            drops = random.exponential(size=len(reach)) * (random.random(len(reach)) < 0.7)
            gain[:, x] = -np.cumsum(drops)[at]
        yield random.dirichlet(np.full(n, 10.0 ** random.uniform(-1, 1))), gain


def test_a_universally_optimal_mechanism_exists_exactly_where_the_theorem_says():
    """Each induced metric once: the geometric is best for all, or two consumers clash."""
    kinds = {}
    for table, d in all_queries():
        query = FiniteQuery(np.array(table, float), d)
        kinds.setdefault((tuple(query.values), query.induced.tobytes()), query)
    verdicts = []
    for query in kinds.values():
        found = query.universal_optimality(EPSILON)
        assert found.exists is query.sensitivity.uniform  # never undecided here
        verdicts.append(found.exists)
        d = EPSILON * query.induced
        if found.exists:
            matrix = query.mechanism(EPSILON).matrix
            for prior, gain in monotone_consumers(query.values, 40, 3):
                best, _ = best_utility(d, [(prior, gain)])
                assert consumer_utility(matrix, prior, gain) == pytest.approx(best, abs=1e-8)
            continue
        (p, g), (q, h) = found.consumers
        for gain in (g, h):  # monotone: it does not rise with the distance
            for x in range(len(gain)):
                order = np.argsort(np.abs(query.values - query.values[x]), kind="stable")
                assert (np.diff(gain[order, x]) <= 0).all()
        together, matrix = best_utility(d, [(p, g), (q, h)])
        apart = sum(best_utility(d, [c])[0] for c in found.consumers)
        assert apart - together == pytest.approx(found.shortfall, abs=1e-9)
        assert found.shortfall > 1e-6
        # And that channel is private and gives what the programme says.
        assert consumer_utility(matrix, p, g) + consumer_utility(matrix, q, h) == pytest.approx(
            together
        )
    assert verdicts.count(True) == 7  # one answer (3), two (3), the line 0 - 1 - 2
    assert verdicts.count(False) == 3  # the triangle, and the lines around 0 and around 2


def edges_of(query, metric: Metric) -> set[tuple[int, int]]:
    return set(FiniteQuery.of(query, metric).edges)


def test_induced_graphs_of_the_usual_queries():
    """Figure 4.1: what neighbouring databases make of a count, a sum, an average, a maximum."""
    values, size = Values(1, 3), 3
    records = Records(values, size)
    line = {(i, i + 1) for i in range(9)}
    assert edges_of(Count(lambda v: v > 1), records.hamming) == {(0, 1), (1, 2), (2, 3)}
    assert edges_of(Sum(), records.manhattan) == line
    near = {(i, j) for i, j in itertools.combinations(range(10), 2) if j - i <= 3}
    assert edges_of(Sum(), records.hamming) == near  # all sums that one entry can change
    clique = set(itertools.combinations(range(4), 2))
    assert edges_of(Median(), records.hamming) == clique
    assert edges_of(Maximum(), records.hamming) == clique
    assert edges_of(Maximum(), records.maximum) == {(0, 1), (1, 2), (2, 3)}
    assert edges_of(Average(), records.manhattan) == {(0, 1), (1, 2), (2, 3)}
    # Two counts at once: a grid, numbered here as 10 a + b.
    both = FiniteQuery.of(
        lambda x: 10 * (x == 1).sum() + (x == 2).sum(), Records(values, 2).hamming
    )
    assert not both.is_line


def test_listed_sensitivities_are_the_derived_ones():
    for values, size in itertools.product((Values(1, 3), Values("1/2", 2, null=True)), (1, 2, 3)):
        records = Records(values, size)
        for query in (Sum(), Median(), Maximum(), Count(lambda v: v > 0)):
            for name in ("hamming", "manhattan", "normalised_manhattan", "maximum"):
                metric = getattr(records, name)
                derived, listed = (
                    query.sensitivity(metric),
                    FiniteQuery.of(query, metric).sensitivity,
                )
                assert float(listed.value) == pytest.approx(float(derived.value))
                assert listed.uniform == derived.uniform


def test_adding_and_removing_records():
    """d_r by breadth-first search over single additions and removals, beside d_h."""
    records = Records(Values(1, 2, null=True), 2)
    data = list(itertools.product([0, 1, 2, None], repeat=2))
    matrix = records.add_remove.matrix(np.array(data, float))
    near = [
        [
            sum(a != b for a, b in zip(x, y, strict=True)) == 1 and (x + y).count(None) % 2 == 1
            for y in data
        ]
        for x in data
    ]
    for start in range(len(data)):
        reached, frontier, distance = {start: 0}, [start], 0
        while frontier:
            distance += 1
            frontier = [
                b for a in frontier for b in range(len(data)) if near[a][b] and b not in reached
            ]
            reached.update(dict.fromkeys(frontier, distance))
        assert [reached[b] for b in range(len(data))] == matrix[start].tolist()
    assert records.hamming <= records.add_remove
    assert records.add_remove.ratio_to(records.hamming) == 2
    assert records.hamming.ratio_to(records.add_remove) == 1
    assert records.manhattan.ratio_to(records.add_remove) == 2  # null is 2 away from every value
    assert records.add_remove.ratio_to(records.manhattan) == 2
    assert Metric.from_json(records.add_remove.to_json()) == records.add_remove
    with pytest.raises(InvalidInput, match="null"):
        _ = Records(Values(1, 2), 2).add_remove
    with pytest.raises(InvalidInput, match=r"FiniteQuery\.of"):
        Sum().sensitivity(records.add_remove)


def test_queries_under_added_and_removed_records():
    records = Records(Values(1, 2, null=True), 3)
    count = FiniteQuery.of(Count(), records.add_remove)
    assert (count.sensitivity.value, count.sensitivity.uniform) == (1, True)
    assert count.universal_optimality(0.5).exists
    total = FiniteQuery.of(Sum(), records.add_remove)
    assert (total.sensitivity.value, total.sensitivity.uniform) == (2, False)


def test_conflicts_on_more_answers():
    """A star of four answers and a cycle of four have no best mechanism; a long line has one."""
    star = np.full((4, 4), 2.0) - 2 * np.eye(4)
    star[0, 1:] = star[1:, 0] = 1
    ring = np.array([[min((i - j) % 4, (j - i) % 4) for j in range(4)] for i in range(4)], float)
    for d in (star, ring):
        found = FiniteQuery(np.arange(4.0), d).universal_optimality(1.0)
        assert found.exists is False
        assert found.shortfall > 1e-4
    line = np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0)))
    assert FiniteQuery(np.arange(12.0), line).universal_optimality(1.0).exists


def falls_short(query: FiniteQuery, epsilon: float) -> float:
    """The conflict that is named, by the linear programmes on all answers and all guesses."""
    found = query.universal_optimality(epsilon)
    assert found.exists is False
    d = epsilon * query.induced
    for _, gain in found.consumers:
        for x in range(len(gain)):
            order = np.argsort(np.abs(query.values - query.values[x]), kind="stable")
            assert (np.diff(gain[order, x]) <= 0).all()
    apart = sum(best_utility(d, [c])[0] for c in found.consumers)
    short = apart - best_utility(d, list(found.consumers))[0]
    assert short == pytest.approx(found.shortfall, abs=1e-8)
    return short


def test_conflicts_on_twelve_answers_are_those_of_three():
    """The clipped line, whose ends are no farther apart than three steps."""
    line = np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0)))
    clipped = FiniteQuery(np.arange(12.0), np.minimum(line, 3))
    found = clipped.universal_optimality(1.0)
    assert found.exists is False
    assert all(np.count_nonzero(prior) <= 3 for prior, _ in found.consumers)
    seven = FiniteQuery(np.arange(7.0), np.minimum(line[:7, :7], 3))
    assert falls_short(seven, 1.0) > 1e-6


@pytest.mark.parametrize("steps", [(1, 2), (3, 1), (1, 2, 1), (2, 1, 3), (1, 4, 1, 2)])
@pytest.mark.parametrize("squares", [False, True], ids=["values as steps", "other values"])
def test_the_geometric_of_a_line_with_unequal_steps_is_best_for_all(steps, squares):
    """The theorem of `universal_optimality`, beyond the thesis's equal steps."""
    at = np.concatenate([[0.0], np.cumsum(steps)])
    values = np.arange(len(at), dtype=float) ** 2 if squares else at
    query = FiniteQuery(values, np.abs(at[:, None] - at))
    assert query.is_line
    assert query.universal_optimality(EPSILON).exists
    matrix = query.mechanism(EPSILON).matrix
    for prior, gain in monotone_consumers(query.values, 30, sum(steps)):
        best, _ = best_utility(EPSILON * query.induced, [(prior, gain)])
        assert consumer_utility(matrix, prior, gain) == pytest.approx(best, abs=SOLVED)
    if len(at) > 3:
        return
    # Gains that do not fall with the distance are outside the theorem, and it does not hold.
    odd = [(np.full(3, 1 / 3), np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0.0]]))]
    best, _ = best_utility(EPSILON * query.induced, odd)
    assert consumer_utility(matrix, *odd[0]) < best - 1e-4


def test_answers_that_nothing_joins_are_told_apart():
    """Distances may be infinite: two lines beside each other."""
    d = np.array([[0, 1, math.inf], [1, 0, math.inf], [math.inf, math.inf, 0]])
    query = FiniteQuery(np.array([0.0, 1.0, 2.0]), d)
    assert query.universal_optimality(EPSILON).exists
    for prior, gain in monotone_consumers(query.values, 20, 1):
        best, _ = best_utility(EPSILON * query.induced, [(prior, gain)])
        matrix = query.mechanism(EPSILON).matrix
        assert consumer_utility(matrix, prior, gain) == pytest.approx(best, abs=SOLVED)


def test_random_metrics_are_decided_in_both_directions():
    """Metrics of random places in a plane clash, those of places on a line in order do not."""
    random = np.random.default_rng(5)
    for size in (3, 4, 5):
        for _ in range(4):
            places = random.uniform(0, 2, (size, 2))
            d = np.hypot(*np.moveaxis(places[:, None] - places, -1, 0))
            assert falls_short(FiniteQuery(np.arange(size, dtype=float), d), 1.0) > 1e-7
            straight = np.sort(places[:, 0])
            line = FiniteQuery(straight, np.abs(straight[:, None] - straight))
            assert line.universal_optimality(1.0).exists


def test_wrong_queries_are_refused():
    for answers, distances, message in [
        ([1.0, 2.0], np.zeros((2, 2)), "distance 0"),
        ([1.0, 2.0], np.zeros((3, 3)), "one answer"),
        ([1.0, math.nan], np.ones((2, 2)) - np.eye(2), "finite"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            FiniteQuery(np.array(answers), distances)
    two = FiniteQuery(np.array([0.0, 1.0]), np.ones((2, 2)) - np.eye(2))
    with pytest.raises(InvalidInput, match="epsilon"):
        two.universal_optimality(0.0)
    with pytest.raises(InvalidInput, match="listed"):
        FiniteQuery.of(Sum(), Records(Values(1, 9), 5).hamming)
