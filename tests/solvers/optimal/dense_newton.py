"""Rows of a few outputs, and the corrected direction of any by one dense matrix."""

from __future__ import annotations

import numpy as np

from whereish.solvers.optimal.barrier.rows import RowLists, assemble_normal_matrix

__all__ = ["N", "dense", "normal_matrix", "reference", "rows_of_outputs"]

N = 12


def rows_of_outputs():
    """Rows of five outputs on twelve places."""
    places = np.random.default_rng(1).uniform(0, 3, (N, 2))
    metric = np.linalg.norm(places[:, None] - places, axis=2)
    edges = np.argwhere(np.triu(metric < 1.5, 1))
    return RowLists(np.exp(-metric), edges, 5).rows(np.arange(5))


def normal_matrix(rows, weight, z):
    work = np.empty((N, N))
    assemble_normal_matrix(weight, rows.start[z], rows.start[z + 1], rows.pairs, work)
    return work


def dense(rows, width):
    """G of all rows, for numbers in rows of k."""
    matrix = np.zeros((rows.size, (rows.start.size - 1) * width))
    at = np.arange(rows.size)
    offset = width * np.repeat(np.arange(rows.start.size - 1), np.diff(rows.start))
    source, target, factor = rows.pairs
    np.add.at(matrix, (at, offset + target), 1.0)
    np.add.at(matrix, (at, offset + source), -factor)
    return matrix


def reference(G, A, at, residual, missing, corrections, least=0.0):
    """The corrected direction by one dense matrix: dk, dmu, ds, dy and the longest steps."""
    used = np.abs(G).any(axis=0)
    H = G.T @ np.diag(at.y / at.slack) @ G + np.diag(~used * 1.0)
    system = np.block([[H, -A.T], [A, np.zeros((len(A), len(A)))]])

    def along(target):
        q = G.T @ ((target - at.y * at.residual) / at.slack) - residual
        solution = np.linalg.solve(system, np.append(q, missing))
        dk, dmu = solution[: G.shape[1]], solution[G.shape[1] :]
        ds = G @ dk + at.residual
        dy = (target - at.y * ds) / at.slack
        steps = [1 / max(1.0, *(-d / x)) for d, x in ((ds, at.slack), (dy, at.y))]
        return dk, dmu, ds, dy, steps

    products = at.slack * at.y
    _, _, ds, dy, (p, d) = along(-products)
    after = ((at.slack + p * ds) * (at.y + d * dy)).sum()
    centring = min(max((after / products.sum()) ** 3, 1e-6), 1.0)
    aim = max(centring * products.sum(), least) / at.y.size
    target = aim - products - ds * dy
    best = along(target)
    for _ in range(corrections):
        if min(best[4]) > 0.95:
            break
        p, d = (min(1.0, 1.08 * step + 0.1) for step in best[4])
        trial = (at.slack + p * best[2]) * (at.y + d * best[3])
        target = target + np.maximum(np.clip(trial, 0.1 * aim, 10 * aim) - trial, -10 * aim)
        other = along(target)
        if sum(other[4]) < sum(best[4]) + 0.02:
            break
        best = other
    return best
