"""S = sum_z E_z H_z^{-1} E_z', through which the sums couple all outputs: added up and factored.

Threads add what the outputs give to matrices of their own, in parts that are fixed, so that S does
not depend on the number of threads.  The matrices stay for the next step: memory that is new is
memory that the system has yet to give.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.optimal.barrier.factors import factor_regularised, pack

__all__ = ["BLOCKS", "Coupling", "add_block", "factor_sum"]

BLOCKS = 8
"""Of the rows of S, which threads add up at the same time."""


class Coupling(NamedTuple):
    """The sum of symmetric matrices, of which each thread writes some, and its Cholesky factor.

    Attributes
    ----------
    parts : (parts, n, n) array
        The matrices to add; only what is on and below the diagonal counts.
    whole : (n, n) array
        Their sum.
    packed : array
        Its factor, row after row of that half.
    """

    parts: FloatArray
    whole: FloatArray
    packed: FloatArray

    @classmethod
    def of(cls, parts: int, n: int) -> Coupling:
        """Memory for so many matrices."""
        return cls(np.empty((parts, n, n)), np.empty((n, n)), np.empty(n * (n + 1) // 2))


@kernel
def add_block(coupling: Coupling, block: int) -> None:
    """Write a block of rows of the sum, and by symmetry those columns above the diagonal."""
    parts, out = coupling.parts, coupling.whole
    n = out.shape[0]
    for i in range(n * block // BLOCKS, n * (block + 1) // BLOCKS):
        out[i, : i + 1] = parts[0, i, : i + 1]
        for part in range(1, parts.shape[0]):
            for j in range(i + 1):
                out[i, j] += parts[part, i, j]
        for j in range(i):
            out[j, i] = out[i, j]


@kernel
def factor_sum(potrf: int, coupling: Coupling) -> bool:
    """Factor the sum, regularised as little as works; whether it has a factor."""
    if not factor_regularised(potrf, coupling.whole):
        return False
    pack(coupling.whole, coupling.packed)
    return True
