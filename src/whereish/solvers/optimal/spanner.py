"""Greedy spanners: few edges whose graph distance stays within a factor of the metric.

A delta-spanner of a metric d on n points is a graph with edge lengths d whose
shortest-path metric d_G satisfies d <= d_G <= delta * d.  The greedy algorithm
(Althöfer et al. 1993) scans the pairs by length, as Kruskal does, and keeps a
pair only when the graph so far needs more than delta times its length.

Bordenabe, Chatzikokolakis and Palamidessi (CCS 2014, section 5) use it to thin
the n^3 constraints of the optimal mechanism: a channel that keeps
(1/delta) * d_G on the edges keeps d on all pairs, since d_G <= delta * d.

All graph distances are held and updated as edges enter, which costs at most n^2
per edge and far less in practice, in place of one Dijkstra run per pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.errors import InvalidInput

__all__ = ["Spanner", "greedy_spanner", "shortest_path_closure"]


@dataclass(frozen=True)
class Spanner:
    """A spanner and the metric that it generates.

    Attributes
    ----------
    edges : (e, 2) array
        Pairs i < j.
    graph_distances : (n, n) array
        Shortest-path metric d_G of the edges.
    dilation : float
        The largest d_G / d over all pairs, at most the factor asked for.
    """

    edges: NDArray[np.intp]
    graph_distances: FloatArray
    dilation: float


def greedy_spanner(distances: FloatArray, factor: float) -> Spanner:
    """The greedy spanner of a metric matrix with dilation at most `factor`.

    >>> import numpy as np
    >>> d = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    >>> greedy_spanner(d, 1.0).edges.tolist()
    [[0, 1], [1, 2]]
    """
    d = np.ascontiguousarray(distances, dtype=np.float64)
    if d.ndim != 2 or d.shape[0] != d.shape[1]:
        raise InvalidInput(f"distances must be a square matrix; got shape {d.shape}")
    if not factor >= 1:
        raise InvalidInput(f"dilation must be a number >= 1; got {factor}")
    first, second = np.triu_indices(d.shape[0], 1)
    order = np.argsort(d[first, second], kind="stable")
    chosen, graph = _grow(d, first[order], second[order], float(factor))
    edges = np.stack([first[order][chosen], second[order][chosen]], axis=1)
    apart = d > 0
    dilation = float(np.max(graph[apart] / d[apart], initial=1.0))
    return Spanner(edges, graph, max(1.0, dilation))


@kernel
def _grow(
    d: FloatArray, first: NDArray[np.intp], second: NDArray[np.intp], factor: float
) -> tuple[NDArray[np.bool_], FloatArray]:
    n = d.shape[0]
    graph = np.full((n, n), np.inf)
    for x in range(n):
        graph[x, x] = 0.0
    chosen = np.zeros(first.size, np.bool_)
    for pair in range(first.size):
        i, j = first[pair], second[pair]
        length = d[i, j]
        # The hair of tolerance keeps lattice points on one line from needing every multiple.
        if graph[i, j] <= factor * length * (1.0 + 1e-12):
            continue
        chosen[pair] = True
        from_i, from_j = graph[:, i].copy(), graph[:, j].copy()
        # A pair gains by the new edge only if one end gains towards j and the other towards i.
        near_i = np.flatnonzero(from_i + length < from_j)
        near_j = np.flatnonzero(from_j + length < from_i)
        for one in near_i:
            for other in near_j:
                shorter = from_i[one] + length + from_j[other]
                if shorter < graph[one, other]:
                    graph[one, other] = shorter
                    graph[other, one] = shorter
    return chosen, graph


@kernel
def shortest_path_closure(lengths: FloatArray) -> FloatArray:
    """The largest metric below a symmetric matrix of lengths (Floyd-Warshall).

    Bounds on log-ratios chain along paths, so a channel keeps `lengths` if and
    only if it keeps this closure.
    """
    n = lengths.shape[0]
    closed = lengths.copy()
    for via in range(n):
        for x in range(n):
            start = closed[x, via]
            for z in range(n):
                length = start + closed[via, z]
                closed[x, z] = min(closed[x, z], length)
    return closed
