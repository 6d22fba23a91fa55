"""Whether one mechanism is best for every consumer of a query: Theorem 4.3, both directions.

A consumer has a prior p and a gain g(w, y) that does not increase with the distance |w - y| of
the guess w from the true answer y.  Mechanisms on the answers keep a metric d (eps times the
induced metric, :mod:`whereish.queries.finite_query`).

**Theorem.**  If d is the metric of a path through the answers in the order of their values, with
steps of any lengths, then the mechanism P(z | y) = u_z exp(-d(y, z)), u = E^{-1} 1 with E =
exp(-d), is best for every consumer.  With equal steps it is the Truncated Geometric (Ghosh,
Roughgarden, Sundararajan, STOC 2009; Theorem 4.3 of Bordenabe's thesis).

*Proof.*  Number the answers along the path, a_i = exp(-d(i, i+1)), e_i = exp(-d(i, .)).  Columns
of a private channel lie in the cone C of all x >= 0 with a_i <= x(i+1)/x(i) <= 1/a_i, and sum to
1 over the channel.  With h_r(y) = p(y) g(r, y) a column is worth phi(x) = max_r <h_r, x>.  Let L
be the linear function with L(e_i) = phi(e_i); the mechanism is worth sum_i u_i phi(e_i) =
L(1).  So it suffices that <h_r, x> <= L(x) for all guesses r and x in C.

1. For r < s the function K = h_s - h_r is <= 0 at answers nearer to r and >= 0 at those nearer to
   s: one change of sign, at an answer y0.  If q >= 0 does not decrease, e >= 0 and <K, e> >= 0,
   then <K, q e> >= q(y0) <K, e> >= 0.
2. e_{i+1}/e_i does not decrease, so by 1. what s gains over r at e_i it gains at e_{i+1}: best
   guesses r_i for e_i can be chosen so that they do not decrease.
3. Write x = sum_i c_i e_i.  Then L(x) - <h_r, x> = sum_i c_i <h_{r_i} - h_r, e_i>.  The terms
   with r_i > r have i >= some I, and by telescoping over the changes of r_i they are sums of <K,
   x'> with x' = sum_{i >= I} c_i e_i and a K as in 1. for which <K, e_I> >= 0.
4. x' = q e_I, where q(y) is constant up to I, namely (x(I) - a x(I-1)) / (1 - a^2) >= 0 with a =
   a_{I-1}, and x(y) exp(d(I, y)) minus a constant beyond, which does not decrease, since x is in
   C.  By 1. <K, x'> >= 0.  Terms with r_i < r are the mirror image.  (At the first answer x' =
   x.)

Otherwise there are three answers, the middle one off the shortest way between the outer two.  In
general no mechanism is best for all then (Brenner and Nissim, FOCS 2010, for graphs).  The proof
for a given metric is constructive: two consumers for whom no single channel is best, by three
linear programmes (:func:`~whereish.solvers.channels.consumers.best_utility`).  They are looked
for on those triples, then among flat priors on all answers, with gains of 1 within a distance
that is chosen for every answer.  Where none is found the answer is None: not decided.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from whereish.arrays import FloatArray
from whereish.privacy.finite import SAME
from whereish.results import JsonResult
from whereish.solvers.channels.consumers import Consumer, best_utility

__all__ = ["UniversalOptimality", "bent_triples", "universal_optimality"]

_MOST_TRIPLES = 16
_MOST_SEARCHED = 8  # answers for which consumers of all of them are looked for
_MOST_PLAIN, _MOST_GAINS, _MOST_CONSUMERS = 8, 64, 256
_SHORT = 1e-7  # a shortfall this large is not the solver's tolerance
_PLAIN = 1e-4  # and at this one need not look further


@dataclass(frozen=True, eq=False)
class UniversalOptimality(JsonResult):
    """Whether one mechanism is best for every consumer of a query.

    Attributes
    ----------
    exists
        True, False, or None where it is not decided.
    reason
        Which argument decided.
    consumers
        Where none exists: two consumers (prior over answers, gain by guess and answer) for whom
        no channel is best.
    shortfall
        By how much every channel falls short of the two best utilities together.
    """

    exists: bool | None
    reason: str
    consumers: tuple[Consumer, Consumer] | None = field(default=None, repr=False)
    shortfall: float = 0.0


def universal_optimality(values: FloatArray, distances: FloatArray) -> UniversalOptimality:
    """Whether some mechanism on increasing `values` that keeps `distances` is best for all."""
    triples = bent_triples(distances)
    if not triples:
        return UniversalOptimality(
            True,
            "the induced metric is that of a path through the answers in their order: the"
            " geometric mechanism of its steps (Ghosh, Roughgarden, Sundararajan 2009 for equal"
            " ones; Bordenabe's thesis, Theorem 4.3)",
        )
    found = _conflict_of_triples(values, distances, triples)
    many = len(values) > _MOST_SEARCHED
    if found is None and not many:
        found = _conflict(values, distances)
    if found is None:
        where = "three answers" if many else "three answers or of all"
        return UniversalOptimality(
            None,
            "the answers are no path, and no conflict of two consumers was found among those of"
            f" {where}",
        )
    first, second, shortfall = found
    reason = "no channel is best for both consumers (three linear programmes)"
    return UniversalOptimality(False, reason, (first, second), shortfall)


def bent_triples(distances: FloatArray) -> list[tuple[int, int, int]]:
    """Answers i < j < k with d(i, k) < d(i, j) + d(j, k), the most bent first; none on a path."""
    d, found = distances, []
    for i, k in itertools.combinations(range(len(d)), 2):
        between = np.arange(i + 1, k)
        if len(between) and math.isfinite(d[i, k]):
            around = d[i, between] + d[between, k]
            with np.errstate(invalid="ignore"):
                share = np.where(around > 0, 1 - d[i, k] / around, 0.0)
            found += [
                (float(s), (i, int(j), k)) for s, j in zip(share, between, strict=True) if s > SAME
            ]
    return [triple for _, triple in sorted(found, key=lambda pair: (-pair[0], pair[1]))]


def _conflict_of_triples(
    values: FloatArray, distances: FloatArray, triples: list[tuple[int, int, int]]
) -> tuple[Consumer, Consumer, float] | None:
    """Two consumers of three answers whom no channel on all answers serves best."""
    best: tuple[Consumer, Consumer, float] | None = None
    for triple in triples[:_MOST_TRIPLES]:
        three = list(triple)
        small = _conflict(values[three], distances[np.ix_(three, three)])
        if small is None:
            continue
        pair = _lifted(small[0], values, three), _lifted(small[1], values, three)
        short = _shortfall(distances, pair, three)
        if short > (_SHORT if best is None else best[2]):
            best = (*pair, short)
        if best is not None and best[2] > _PLAIN:
            break
    return best


def _lifted(consumer: Consumer, values: FloatArray, three: list[int]) -> Consumer:
    """A consumer of three answers among all: of the others only the right one is worth a gain."""
    prior, gain = np.zeros(len(values)), np.eye(len(values))
    prior[three] = consumer[0]
    for column, answer in enumerate(three):
        far = np.abs(values[three] - values[answer])
        reach = far[consumer[1][:, column] > 0].max(initial=0.0)
        gain[:, answer] = np.abs(values - values[answer]) <= reach
    return prior, gain


def _shortfall(distances: FloatArray, pair: tuple[Consumer, Consumer], three: list[int]) -> float:
    """What every channel falls short of both optima; guesses of the same worth count once."""
    few = [(p, g[np.unique(g[:, three], axis=0, return_index=True)[1]]) for p, g in pair]
    alone = sum(best_utility(distances, [one])[0] for one in few)
    return float(alone - best_utility(distances, few)[0])


def _conflict(values: FloatArray, distances: FloatArray) -> tuple[Consumer, Consumer, float] | None:
    """Two consumers that no channel serves best."""
    best: tuple[Consumer, Consumer, float] | None = None
    plain = [(one, best_utility(distances, [one])[0]) for one in _plain(len(values))]
    for other in itertools.islice(_consumers(values), _MOST_CONSUMERS):
        alone = best_utility(distances, [other])[0]
        for one, own in plain:
            short = own + alone - best_utility(distances, [one, other])[0]
            if short > (_SHORT if best is None else best[2]):
                best = (one, other, short)
        if best is not None and best[2] > _PLAIN:
            break
    return best


def _subsets(n: int) -> Iterator[FloatArray]:
    """Flat priors on two answers or more."""
    for size in range(2, n + 1):
        for chosen in itertools.combinations(range(n), size):
            prior = np.zeros(n)
            prior[list(chosen)] = 1 / size
            yield prior


def _plain(n: int) -> list[Consumer]:
    """Those who gain only from the right answer: of all answers, or of two."""
    priors = [p for p in _subsets(n) if np.count_nonzero(p) in (2, n)]
    return [(prior, np.eye(n)) for prior in priors[::-1][:_MOST_PLAIN]]


def _consumers(values: FloatArray) -> Iterator[Consumer]:
    """Flat priors with gains of 1 within a distance of its own for each answer."""
    apart = np.abs(values[:, None] - values[None])
    reaches = [np.unique(column) for column in apart.T]
    for prior in reversed(list(_subsets(len(values)))):
        for reach in itertools.islice(itertools.product(*reaches), _MOST_GAINS):
            yield prior, (apart <= np.array(reach)[None]).astype(float)
