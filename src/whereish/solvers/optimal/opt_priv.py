"""Shokri's optimal strategy: the most adversary error for a bounded quality loss.

Shokri, Theodorakopoulos, Troncoso, Hubaux and Le Boudec (CCS 2012, section 4):
the user commits to a channel K, the adversary, who knows the prior pi, answers
each report z with the estimate that minimises his posterior expected distance
d_A.  The Stackelberg game is the linear programme

    maximise    sum_z xi_z
    subject to  xi_z <= sum_x pi_x K_xz d_A(x', x)   for all z, x'
                sum_xz pi_x K_xz d_Q(x, z) <= bound
                K row-stochastic.

HiGHS's dual simplex suits its shape.  It makes no promise of metric privacy.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from whereish.arrays import FloatArray
from whereish.solvers.optimal.highs import solve_highs
from whereish.threads import one_blas_thread

__all__ = ["solve_opt_priv"]


@one_blas_thread(scipy=False)
def solve_opt_priv(
    prior: FloatArray, loss: FloatArray, adversary: FloatArray, bound: float
) -> FloatArray:
    """The (n, outputs) channel of largest adversary error with quality loss <= bound.

    Parameters
    ----------
    prior
        (n,) probabilities.
    loss
        (n, outputs): d_Q(x, z).
    adversary
        (guesses, n): d_A(x', x).
    bound
        Largest quality loss, at least that of the least lossy channel.
    """
    n, outputs = loss.shape
    guesses = adversary.shape[0]
    # Variables: K output by output, then xi.
    weighted = sparse.csr_matrix(adversary * prior)
    game = sparse.hstack(
        [
            sparse.kron(sparse.identity(outputs), -weighted),
            sparse.kron(sparse.identity(outputs), np.ones((guesses, 1))),
        ]
    )
    quality = np.concatenate([(prior[:, None] * loss).T.ravel(), np.zeros(outputs)])[None, :]
    sums = sparse.hstack(
        [sparse.kron(np.ones((1, outputs)), sparse.identity(n)), sparse.csr_matrix((n, outputs))]
    )
    rows = game.shape[0]
    solution = solve_highs(
        np.concatenate([np.zeros(n * outputs), -np.ones(outputs)]),
        sparse.vstack([game, sparse.csr_matrix(quality), sums], format="csc"),
        row_lower=np.concatenate([np.full(rows + 1, -np.inf), np.ones(n)]),
        row_upper=np.concatenate([np.zeros(rows), [bound], np.ones(n)]),
    )
    matrix = np.maximum(solution.x[: n * outputs].reshape(outputs, n).T, 0.0)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))
