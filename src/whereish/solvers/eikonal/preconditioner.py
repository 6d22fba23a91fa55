"""A factored sparse approximate inverse of E = e^{-d} on a grid.

For a symmetric positive definite E and an order of its indices, row p of the
factor G solves the small system E_SS g = e_p on a pattern S of p and a few
earlier indices, scaled to g_p = sqrt(g_p); then G^T G approximates E^{-1}
(Kolotilina and Yeremin 1993; the Vecchia approximation of statistics).  With
the 20 nearest cells of a coarse-to-fine order, and distances taken locally as
(eps_a + eps_b)/2·|a - b|, conjugate gradients need about ten products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel

__all__ = ["Factor", "approximate_inverse_factor"]

_PATTERN = 20  # earlier cells in a row of the factor
_REACH = 3  # candidates are at most so many steps of the cell's own level away
_COARSEST = 128


@kernel
def _levels(rows: int, cols: int) -> IntArray:
    """The largest power of two that divides both indices of a cell, at most _COARSEST."""
    level = np.empty(rows * cols, np.int64)
    for i in range(rows):
        for j in range(cols):
            step = 1
            while step < _COARSEST and i % (2 * step) == 0 and j % (2 * step) == 0:
                step *= 2
            level[i * cols + j] = step
    return level


@dataclass(frozen=True, eq=False)
class Factor:
    """A sparse G by rows, each of at most 21 entries: a preconditioner is all that is asked of it.

    Attributes
    ----------
    columns, entries : (n, 21); what a row does not use is 0 at column 0.
    """

    columns: IntArray
    entries: FloatArray

    def preconditioned(self, residual: FloatArray) -> FloatArray:
        """G^T G r."""
        image = np.einsum("ij,ij->i", self.entries, residual[self.columns])
        spread = self.entries * image[:, None]
        summed = np.bincount(self.columns.ravel(), spread.ravel(), minlength=len(residual))
        return np.asarray(summed, np.float64)


@kernel
def _solve(A: Any, b: Any) -> None:
    """b <- A^{-1} b by elimination with pivots; A is overwritten.

    For a few unknowns, where the call of a library costs as much, and finding it in SciPy more.
    """
    n = len(b)
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        if pivot != k:
            b[k], b[pivot] = b[pivot], b[k]
            for j in range(k, n):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
        for i in range(k + 1, n):
            share = A[i, k] / A[k, k]
            b[i] -= share * b[k]
            for j in range(k + 1, n):
                A[i, j] -= share * A[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            b[k] -= A[k, j] * b[j]
        b[k] /= A[k, k]


@kernel
def _rows(
    eps: Any, height: float, width: float, level: Any, rank: Any, free: Any
) -> tuple[IntArray, FloatArray]:
    rows, cols = eps.shape
    flat = eps.ravel()
    cells = rows * cols
    columns = np.zeros((cells, _PATTERN + 1), np.int64)
    entries = np.zeros((cells, _PATTERN + 1))
    side = 2 * _REACH + 1
    candidate = np.empty(side * side, np.int64)
    away = np.empty(side * side)
    for p in range(cells):
        if not free[p]:
            columns[p, 0], entries[p, 0] = p, 1.0
            continue
        i, j, step, found = p // cols, p % cols, level[p], 0
        for a in range(i - _REACH * step, i + _REACH * step + 1, step):
            for b in range(j - _REACH * step, j + _REACH * step + 1, step):
                if not (0 <= a < rows and 0 <= b < cols):
                    continue
                if free[a * cols + b] and rank[a * cols + b] < rank[p]:
                    candidate[found] = a * cols + b
                    away[found] = np.hypot((a - i) * height, (b - j) * width) * (
                        flat[p] + flat[a * cols + b]
                    )
                    found += 1
        size = min(_PATTERN, found)
        nearest = np.argsort(away[:found])
        for t in range(size):
            columns[p, t] = candidate[nearest[t]]
        columns[p, size] = p
        size += 1
        block = np.empty((size, size))
        for s in range(size):
            for t in range(size):
                x, y = columns[p, s], columns[p, t]
                block[s, t] = np.exp(
                    -0.5
                    * (flat[x] + flat[y])
                    * np.hypot((x // cols - y // cols) * height, (x % cols - y % cols) * width)
                )
        solution = np.zeros(size)
        solution[size - 1] = 1.0
        _solve(block, solution)
        # Local distances need not form a metric; a diagonal below zero would break the scaling.
        diagonal = np.sqrt(max(abs(solution[size - 1]), 1e-12))
        entries[p, :size] = solution / diagonal
    return columns, entries


def approximate_inverse_factor(
    eps: FloatArray, cell: tuple[float, float], free: NDArray[np.bool_] | None = None
) -> Factor:
    """The sparse factor G with G^T G close to the inverse of e^{-d_eps}.

    With `free`, one for each cell, it is the inverse of the block of the free cells, and the
    identity elsewhere: where half of the cells are dropped, a third of the steps suffices.
    """
    rows, cols = eps.shape
    level = _levels(rows, cols)
    order = np.lexsort((np.arange(rows * cols), -level))
    rank = np.empty(rows * cols, np.int64)
    rank[order] = np.arange(rows * cols)
    chosen = np.ones(rows * cols, np.bool_) if free is None else np.ascontiguousarray(free)
    return Factor(*_rows(np.ascontiguousarray(eps), *cell, level, rank, chosen))
