"""Cholesky factors of the outputs' normal matrices, many in one call.

A factor of some hundred places takes LAPACK less than a millisecond, a solution a twentieth of
that.  Threads that come back to Python after each of them wait for the interpreter's lock and for
each other; so a kernel, which does not hold it, calls LAPACK for a whole range of outputs.
Matrices are C-ordered and symmetric; LAPACK's upper half is the one below the diagonal.  Factors
are kept packed, row after row of that half: solving with one right-hand side reads the factor
twice and is done, so that half the memory is half the time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel, lazy_intrinsic
from whereish.solvers.optimal.barrier.rows import Pairs, assemble_normal_matrix

__all__ = [
    "LARGEST_REGULARISATION",
    "NO_FACTOR",
    "add_solutions",
    "factor_outputs",
    "factor_regularised",
    "pack",
    "solve_outputs",
    "solve_packed",
]

LARGEST_REGULARISATION = 1e-4
"""Of its diagonal: what is added to a nearly singular matrix at most."""

NO_FACTOR = "the interior point met a matrix that has no Cholesky factor"
_CALLS = "whereish.compiled.lapack_calls"
call_on_matrix: Callable[[int, FloatArray], int] = lazy_intrinsic(_CALLS, "call_on_matrix")
call_on_packed: Callable[[int, FloatArray, FloatArray, bool], None] = lazy_intrinsic(
    _CALLS, "call_on_packed"
)
call_on_rows: Callable[[int, FloatArray, FloatArray], None] = lazy_intrinsic(_CALLS, "call_on_rows")


@kernel
def factor_outputs(
    potrf: int,
    potri: int,
    weight: FloatArray,
    start: IntArray,
    pairs: Pairs,
    outputs: tuple[int, int],
    factors: FloatArray,
    inverses: FloatArray,
) -> bool:
    """Factor H_z = G_z' diag(weight) G_z of a range of outputs; whether all have factors.

    Writes the lower half of the sum of their inverses.
    """
    n = inverses.shape[0]
    inverses[:] = 0.0
    work = np.empty((n, n))
    for z in range(outputs[0], outputs[1]):
        assemble_normal_matrix(weight, start[z], start[z + 1], pairs, work)
        if not factor_regularised(potrf, work):
            return False
        pack(work, factors[z])
        if call_on_matrix(potri, work) != 0:
            return False
        for i in range(n):
            for j in range(i + 1):
                inverses[i, j] += work[i, j]
    return True


@kernel
def pack(matrix: FloatArray, out: FloatArray) -> None:
    """Write the half below the diagonal, row after row."""
    at = 0
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            out[at + j] = matrix[i, j]
        at += i + 1


@kernel
def factor_regularised(potrf: int, matrix: FloatArray) -> bool:
    """Factor a nearly singular positive matrix, regularised as little as works."""
    n = matrix.shape[0]
    diagonal = np.empty(n)
    for i in range(n):
        diagonal[i] = matrix[i, i]
    regularisation = 1e-15
    while regularisation <= LARGEST_REGULARISATION:
        for i in range(n):
            matrix[i, i] = diagonal[i] * (1.0 + regularisation)
        if call_on_matrix(potrf, matrix) == 0:
            return True
        for i in range(n):
            for j in range(i):
                matrix[i, j] = matrix[j, i]
        regularisation *= 100.0
    return False


@kernel
def solve_packed(tpsv: int, factor: FloatArray, right: FloatArray) -> None:
    """Overwrite one right-hand side by the solution for R' R."""
    call_on_packed(tpsv, factor, right, True)
    call_on_packed(tpsv, factor, right, False)


@kernel
def solve_outputs(
    tpsv: int, factors: FloatArray, outputs: tuple[int, int], right: FloatArray, sums: FloatArray
) -> None:
    """Overwrite the beginning of a range of rows by the solutions, and add them to `sums`."""
    for z in range(outputs[0], outputs[1]):
        solve_packed(tpsv, factors[z], right[z][: sums.size])
        for i in range(sums.size):
            sums[i] += right[z, i]


@kernel
def add_solutions(
    tpsv: int,
    factors: FloatArray,
    outputs: tuple[int, int],
    right: FloatArray,
    out: FloatArray,
) -> None:
    """Add to a range of rows the solutions for one right-hand side."""
    solution = np.empty(right.size)
    for z in range(outputs[0], outputs[1]):
        solution[:] = right
        solve_packed(tpsv, factors[z], solution)
        for i in range(right.size):
            out[z, i] += solution[i]
