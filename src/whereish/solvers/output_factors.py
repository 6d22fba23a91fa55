"""Cholesky factors of the outputs' normal matrices, many in one call.

A factor of some hundred places takes LAPACK less than a millisecond, a solution a twentieth of
that.  Threads that come back to Python after each of them wait for the interpreter's lock and for
each other; so a kernel, which does not hold it, calls LAPACK for a whole range of outputs.
Matrices are C-ordered and symmetric; LAPACK's upper half is the one below the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel, lazy_intrinsic
from whereish.errors import SolverError
from whereish.solvers.lapack import address
from whereish.solvers.optimal.barrier_rows import Pairs, Rows, assemble_normal_matrix
from whereish.threads import Workers

__all__ = ["LARGEST_REGULARISATION", "OneFactor", "OutputFactors"]

LARGEST_REGULARISATION = 1e-4
"""Of its diagonal: what is added to a nearly singular matrix at most."""

_CALLS = "whereish.compiled.lapack_calls"
call_on_matrix: Callable[[int, FloatArray], int] = lazy_intrinsic(_CALLS, "call_on_matrix")
call_on_factor: Callable[[int, FloatArray, FloatArray], int] = lazy_intrinsic(
    _CALLS, "call_on_factor"
)


class OutputFactors:
    """Factors of H_z = G_z' diag(weight) G_z for all outputs z, in memory that stays for the next.

    Every method works on the `ranges` begin <= z < end at once.
    """

    def __init__(self, outputs: int, n: int) -> None:
        self._factors = np.empty((outputs, n, n))

    def factor(
        self, rows: Rows, weight: FloatArray, ranges: Workers[tuple[int, int]]
    ) -> FloatArray:
        """Factor all H_z; the lower half of the sum of their inverses.

        Raises
        ------
        SolverError
            If one of them has no factor however it is regularised.
        """
        n = self._factors.shape[1]
        potrf, potri = address("dpotrf"), address("dpotri")

        def factor(part: tuple[int, int]) -> tuple[FloatArray, bool]:
            inverses = np.zeros((n, n))
            found = factor_outputs(
                potrf, potri, weight, rows.start, rows.pairs, part, self._factors, inverses
            )
            return inverses, found

        found = ranges.map(factor)
        if not all(good for _, good in found):
            raise SolverError("the interior point met a matrix that has no Cholesky factor")
        return sum((inverses for inverses, _ in found), np.zeros((n, n)))

    def solve(self, right: FloatArray, ranges: Workers[tuple[int, int]]) -> None:
        """Overwrite each row q_z of `right` by the solution of H_z k = q_z."""
        potrs = address("dpotrs")
        ranges.map(lambda part: solve_outputs(potrs, self._factors, part, right))

    def add_solutions(
        self, right: FloatArray, out: FloatArray, ranges: Workers[tuple[int, int]]
    ) -> None:
        """Add to each row of `out` the solution of H_z k = `right`."""
        potrs = address("dpotrs")
        ranges.map(lambda part: add_solutions(potrs, self._factors, part, right, out))


class OneFactor:
    """The factor of one such H = G' diag(weight) G, in memory that stays for the next."""

    def __init__(self, n: int) -> None:
        self._factor = np.empty((n, n))

    def factor(self, rows: Rows, weight: FloatArray) -> None:
        """Factor H of the first output of `rows`.

        Raises
        ------
        SolverError
            If it has no factor however it is regularised.
        """
        if not factor_one(address("dpotrf"), weight, rows.start, rows.pairs, self._factor):
            raise SolverError("the interior point met a matrix that has no Cholesky factor")

    def solve(self, right: FloatArray) -> FloatArray:
        """The solution of H k = `right`, which it overwrites."""
        call_potrs(address("dpotrs"), self._factor, right)
        return right


@kernel
def factor_one(
    potrf: int, weight: FloatArray, start: IntArray, pairs: Pairs, factor: FloatArray
) -> bool:
    """Factor the normal matrix of the first output; whether it has a factor."""
    assemble_normal_matrix(weight, start[0], start[1], pairs, factor)
    return factor_regularised(potrf, factor)


@kernel
def call_potrs(potrs: int, factor: FloatArray, right: FloatArray) -> None:
    """Overwrite the right-hand side by the solution."""
    call_on_factor(potrs, factor, right)


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
    """Factor a range of outputs and add their inverses up; whether all have factors."""
    n = inverses.shape[0]
    inverse = np.empty((n, n))
    for z in range(outputs[0], outputs[1]):
        assemble_normal_matrix(weight, start[z], start[z + 1], pairs, factors[z])
        if not factor_regularised(potrf, factors[z]):
            return False
        inverse[:] = factors[z]
        if call_on_matrix(potri, inverse) != 0:
            return False
        for i in range(n):
            for j in range(i + 1):
                inverses[i, j] += inverse[i, j]
    return True


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
def solve_outputs(
    potrs: int, factors: FloatArray, outputs: tuple[int, int], right: FloatArray
) -> None:
    """Overwrite a range of rows by the solutions."""
    for z in range(outputs[0], outputs[1]):
        call_on_factor(potrs, factors[z], right[z])


@kernel
def add_solutions(
    potrs: int,
    factors: FloatArray,
    outputs: tuple[int, int],
    right: FloatArray,
    out: FloatArray,
) -> None:
    """Add to a range of rows the solutions for one right-hand side."""
    solution = np.empty(right.size)
    for z in range(outputs[0], outputs[1]):
        solution[:] = right
        call_on_factor(potrs, factors[z], solution)
        for i in range(right.size):
            out[z, i] += solution[i]
