"""S = sum_z E_z H_z^{-1} E_z', through which the sums couple all outputs: added up and factored.

Threads add what the outputs give to matrices of their own, in parts that are fixed, so that S does
not depend on the number of threads.  The matrices stay for the next step: memory that is new is
memory that the system has yet to give.
"""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.errors import SolverError
from whereish.solvers.lapack import address
from whereish.solvers.optimal.barrier.directions import shares
from whereish.solvers.optimal.barrier.factors import NO_FACTOR, factor_regularised, pack
from whereish.threads import Workers

__all__ = ["Coupling", "add_halves"]

_BLOCKS = 8
"""Of the rows of S, which threads add up at the same time."""


class Coupling:
    """The sum of symmetric matrices, of which each thread writes some, and its Cholesky factor.

    Attributes
    ----------
    parts : (parts, n, n) array
        The matrices to add; only what is on and below the diagonal counts.
    packed : array
        The factor, row after row of that half.
    """

    def __init__(self, parts: int, n: int) -> None:
        self.parts = np.empty((parts, n, n))
        self._sum = np.empty((n, n))
        self.packed = np.empty(n * (n + 1) // 2)

    def factor(self, team: Workers) -> None:
        """Factor the sum of all parts, regularised as little as works.

        Raises
        ------
        SolverError
            If it has no factor however it is regularised.
        """
        rows = shares(len(self._sum), _BLOCKS)
        team.map(lambda some: add_halves(self.parts, some, self._sum), rows)
        if not factor_regularised(address("dpotrf"), self._sum):
            raise SolverError(NO_FACTOR)
        pack(self._sum, self.packed)


@kernel
def add_halves(parts: FloatArray, rows: tuple[int, int], out: FloatArray) -> None:
    """Write a range of rows of the sum, and by symmetry those columns above the diagonal."""
    for i in range(rows[0], rows[1]):
        out[i, : i + 1] = parts[0, i, : i + 1]
        for part in range(1, parts.shape[0]):
            for j in range(i + 1):
                out[i, j] += parts[part, i, j]
        for j in range(i):
            out[j, i] = out[i, j]
