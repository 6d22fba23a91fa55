"""A certified law over the answers of a query q: U -> Y on the cells of a map.

The reports are answers, D(u, y) is the shortest path from cell u to the set q^-1(y) of
all cells with that answer, and

    P(y | u) = k_y·t[D(u, y)] / Z(u)

with the integer weights k and table t of :mod:`~whereish.solvers.geodesic.masses`.  A
distance to a set is 1-Lipschitz: |D(u, y) - D(u', y)| <= D'(u, u'), the metric in use, by
the triangle inequality to the set's closest cell.  So all that was argued for cells (sets of one
cell each) holds for sets.  Since there are few answers, the certificate of an edge
takes the largest change over the answers themselves, with its sign,

    max_y |ln P(y | u) - ln P(y | u')| <= max(q·up - s, q·down + s) <= W(u, u'),

up = max_y D(u,y) - D(u',y), down = max_y D(u',y) - D(u,y), s = ln Z(u') - ln Z(u): never
more than W'(u,u') + |s|, which :mod:`~whereish.solvers.eikonal.certify` certifies, and
less where going towards one answer is going away from the others.  Where it exceeds W, the
edge is lowered; at half its price it always passes, since |s| <= W'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, SolverError
from whereish.privacy.maps.stencil import edge_integrals, edge_slices
from whereish.solvers.eikonal.certify import RESERVE, EdgeLaw, metric_in_use, worst_edge
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.masses import (
    SUM_LIMIT,
    check_sums,
    checked_weights,
    decay_table,
    integer_weights,
)
from whereish.threads import one_blas_thread

__all__ = [
    "LARGEST_TABLE",
    "MOST_ANSWERS",
    "QueryLaw",
    "check_size",
    "law_on_answers",
    "query_factors",
    "query_sums",
]


MOST_ANSWERS = 4096
LARGEST_TABLE = 2**25
"""Entries of the largest table of distances (cells times answers): 64 MB."""

_GUARD = 1e-12  # relative: rounding of the logarithms
_PUSH = 1.5  # times what a failing edge lacks
_LAST_ROUNDS = 14  # from here on a failing edge goes to half its price at once
_ROUNDS = 40  # in the last one, every edge does
_HALF = 0.5 - 1e-9
_EXCHANGES = 60
_CHUNK = 2**22  # entries of a block of E


@dataclass(frozen=True, eq=False)
class QueryLaw(EdgeLaw):
    """Masses k_y·t[D(u, y)] of answers y.

    Attributes
    ----------
    distances : (answers, cells) integer distances to the sets of the answers.
    promised : edge prices that the law keeps.
    """

    distances: NDArray[np.uint16]
    promised: FloatArray

    def masses(self, cells: NDArray[np.intp]) -> NDArray[np.uint64]:
        """(cells, answers) integer masses; each row sums to its entry of `sums`."""
        table = decay_table(self.metric.quantum)
        return np.asarray(self.weights * table[self.distances[:, cells].T])


@one_blas_thread(scipy=False)
def law_on_answers(
    eps: FloatArray,
    cell: tuple[float, float],
    answers: NDArray[np.intp],
    *,
    neighbours: int = 16,
    progress: Callable[[int, float], None] | None = None,
) -> QueryLaw:
    """A law over answers that keeps the line integrals of `eps` between neighbours.

    Parameters
    ----------
    eps : (rows, cols) levels at the centres.
    cell : height and width of a cell.
    answers : (rows, cols) the answer of each cell, 0 .. count - 1, each of them given.
    progress : called with each round and its factor.
    """
    count = int(answers.max()) + 1
    check_size(answers.size, count)
    promised = edge_integrals(eps, cell, neighbours=neighbours)
    metric = metric_in_use(promised)
    use = promised * (1.0 - RESERVE)
    for number in range(1, _ROUNDS + 1):
        distances = metric.set_distances(answers.ravel(), count)
        weights = _integer_weights(distances, metric.quantum)
        sums = query_sums(metric, distances, weights)
        needs, steps = _largest_changes(metric, distances, weights, sums)
        factors = _factors(needs, promised)
        worst, where = worst_edge(factors, metric)
        if progress is not None:
            progress(number, worst)
        if worst <= 1.0:
            return QueryLaw(metric, weights, sums, worst, where, number, distances, promised)
        lacks = np.maximum(np.nan_to_num(needs) - promised * (1.0 - RESERVE), 0.0)
        push = np.inf if number >= _LAST_ROUNDS else _PUSH
        with np.errstate(invalid="ignore"):
            # From where the distances are: above, a price would not be felt.
            lowered = np.maximum(np.fmin(use, steps) - push * lacks, _HALF * promised)
        use = np.where(lacks > 0, np.minimum(use, lowered), use)
        if number == _ROUNDS - 1:
            use = np.minimum(use, _HALF * promised)
        metric = GraphMetric.from_prices(use)
    raise SolverError("no certified law found; please report this map")


def check_size(cells: int, answers: int) -> None:
    """Refuse more answers, or a larger table of distances, than can be had."""
    if answers > MOST_ANSWERS or answers * cells > LARGEST_TABLE:
        raise InvalidInput(
            f"a query must have at most {MOST_ANSWERS} answers, and at most {LARGEST_TABLE:,}"
            f" cells times answers; got {cells:,} cells and {answers:,} answers"
        )


def query_factors(law: QueryLaw) -> FloatArray:
    """The share of its promise that each edge uses, from the law's numbers alone."""
    changes, _ = _largest_changes(law.metric, law.distances, law.weights, law.sums)
    return _factors(changes, law.promised)


def _factors(changes: FloatArray, promised: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.asarray(changes * (1.0 + _GUARD) / promised)


def _largest_changes(
    metric: GraphMetric,
    distances: NDArray[np.uint16],
    weights: NDArray[np.uint64],
    sums: NDArray[np.uint64],
) -> tuple[FloatArray, FloatArray]:
    """Per edge, bounds of |ln P(y | u) - ln P(y | u')| and of q·|D(u, y) - D(u', y)|, over all y.

    NaN where there is no edge.
    """
    D = distances[weights > 0].reshape(-1, *metric.shape)
    Z = sums.astype(np.int64).reshape(metric.shape)  # sums stay below 2^63
    out = np.full((*metric.shape, len(metric.steps)), np.nan)
    steps = out.copy()
    for k, step in enumerate(metric.steps):
        tail, head = edge_slices(metric.shape, step)
        if out[*tail, k].size == 0:
            continue
        up = np.full(out[*tail, k].shape, -LARGEST_TABLE, np.int32)
        down = up.copy()
        for layer in D:
            change = layer[tail].astype(np.int32) - layer[head]
            np.maximum(up, change, out=up)
            np.maximum(down, -change, out=down)
        # The difference of the integers is exact; log1p adds one rounding.
        slope = np.log1p((Z[head] - Z[tail]) / Z[tail])
        out[*tail, k] = np.maximum(metric.quantum * up - slope, metric.quantum * down + slope)
        steps[*tail, k] = metric.quantum * np.maximum(up, down)
    return out, steps


def query_sums(
    metric: GraphMetric, distances: NDArray[np.uint16], weights: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """The exact sum of the masses of every cell; weights that could wrap it are refused."""
    checked_weights(weights, len(distances))
    table = decay_table(metric.quantum)
    total = np.zeros(distances.shape[1], np.uint64)
    for weight, layer in zip(weights, distances, strict=True):
        total = np.minimum(total + weight * table[layer], np.uint64(SUM_LIMIT))
    check_sums(total)
    return total


def _integer_weights(distances: NDArray[np.uint16], quantum: float) -> NDArray[np.uint64]:
    """Weights w >= 0 that bring Z = E·w closest to 1 in least squares, as integers."""
    count, cells = distances.shape
    gram, ones = np.zeros((count, count)), np.zeros(count)
    block = max(1, _CHUNK // count)
    for first in range(0, cells, block):
        E = np.exp(-quantum * distances[:, first : first + block].astype(np.float64))
        gram += E @ E.T
        ones += E.sum(axis=1)
    w = _nonnegative(gram, ones)
    largest = 0.0
    for first in range(0, cells, block):
        E = np.exp(-quantum * distances[:, first : first + block].astype(np.float64))
        largest = max(largest, float((w @ E).max()))
    weights = integer_weights(w, largest)
    # One quantum at least where an answer would be lost to rounding only.
    return np.where((w > 0) & (weights == 0), np.uint64(1), weights)


def _nonnegative(gram: FloatArray, ones: FloatArray) -> FloatArray:
    """min w'Gw/2 - b'w over w >= 0, exchanging all that are wrong at once.

    Privacy does not depend on the optimum: after `_EXCHANGES` the nonnegative part is taken.
    """
    count = len(ones)
    ridge = 1e-12 * float(np.trace(gram)) / count
    free = np.ones(count, np.bool_)
    w = np.zeros(count)
    for _ in range(_EXCHANGES):
        inside = gram[np.ix_(free, free)] + ridge * np.eye(int(free.sum()))
        w = np.zeros(count)
        w[free] = np.linalg.solve(inside, ones[free])
        negative = w < -1e-12
        lacking = ~free & (gram @ w < ones * (1.0 - 1e-9))
        if not (negative.any() or lacking.any()):
            break
        free = (free & ~negative) | lacking
    w = np.maximum(w, 0.0)
    return w if w.any() else np.ones(count)
