"""A certified law over the answers of a query q: U -> Y on the cells of a map.

The reports are answers, D(u, y) is the shortest path from cell u to the set q^-1(y) of
all cells with that answer, and

    P(y | u) = k_y·t[D(u, y)] / Z(u)

is a law in a table (:mod:`~whereish.solvers.tables.law`).  A distance to a set is 1-Lipschitz:
|D(u, y) - D(u', y)| <= D'(u, u'), the metric in use, by the triangle inequality to the set's
closest cell.  So all that was argued for cells (sets of one cell each) holds for sets, and the
certificate with its sign asks for less where going towards one answer is going away from the
others.  Where it exceeds the promise W, the edge is lowered; at half its price it always passes,
since |ln Z(u) - ln Z(u')| <= W'.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, SolverError
from whereish.privacy.maps.stencil import edge_integrals
from whereish.solvers.eikonal.certify import RESERVE, metric_in_use, worst_edge
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.masses import integer_weights
from whereish.solvers.tables.law import (
    LARGEST_TABLE,
    TableLaw,
    factors_of,
    largest_changes,
    table_sums,
)
from whereish.threads import one_blas_thread

__all__ = ["MOST_ANSWERS", "check_size", "law_on_answers"]

MOST_ANSWERS = 4096

_PUSH = 1.5  # times what a failing edge lacks
_LAST_ROUNDS = 14  # from here on a failing edge goes to half its price at once
_ROUNDS = 40  # in the last one, every edge does
_HALF = 0.5 - 1e-9
_EXCHANGES = 60
_CHUNK = 2**22  # entries of a block of E


@one_blas_thread(scipy=False)
def law_on_answers(
    eps: FloatArray,
    cell: tuple[float, float],
    answers: NDArray[np.intp],
    *,
    neighbours: int = 16,
    progress: Callable[[int, float], None] | None = None,
) -> TableLaw:
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
        sums = table_sums(metric, distances, weights)
        needs, steps = largest_changes(metric, distances, weights, sums)
        factors = factors_of(needs, promised)
        worst, where = worst_edge(factors, metric)
        if progress is not None:
            progress(number, worst)
        if worst <= 1.0:
            return TableLaw(metric, weights, sums, worst, where, number, distances, promised)
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
