"""The full programme with all n^3 rows, as others solve it: reference and yardstick.

Variables k = K_xz, ordered output by output; rows a_ij K_iz - K_jz <= 0 for the
given ordered pairs; n equations for the row sums.  PIQP (interior point) is the
reference at small n; HiGHS (`ipx`, `simplex`) is what the published work and most
tools would use.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, SolverError, import_extra
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.threads import one_blas_thread

__all__ = ["all_pairs", "programme_matrices", "solve_reference"]

_PIQP_ITERATIONS = 400


def all_pairs(n: int) -> NDArray[np.intp]:
    """All pairs i < j."""
    return np.stack(np.triu_indices(n, 1), axis=1)


@one_blas_thread()
def solve_reference(
    programme: ChannelProgramme,
    *,
    solver: str = "piqp",
    pairs: NDArray[np.intp] | None = None,
) -> FloatArray:
    """The (n, outputs) solution of the full programme, as exact as the solver's tolerance.

    `pairs` restricts the rows, e.g. to the edges of a spanner, whose graph distance
    the programme's metric must then be.  `solver` is "piqp", "ipx" or "simplex".
    """
    pairs = all_pairs(programme.n) if pairs is None else pairs
    if solver == "piqp":
        x = _piqp(programme, pairs)
    elif solver in ("ipx", "simplex"):
        x = _highs(programme, pairs, solver)
    else:
        raise InvalidInput(f"solver must be 'piqp', 'ipx' or 'simplex'; got {solver!r}")
    return np.ascontiguousarray(x.reshape(programme.cost.shape).T)


def programme_matrices(
    programme: ChannelProgramme, pairs: NDArray[np.intp]
) -> tuple[sparse.csc_matrix, sparse.csc_matrix]:
    """The rows of privacy (at most 0) and of the sums (equal to 1)."""
    n, outputs = programme.n, programme.cost.shape[0]
    source = np.concatenate([pairs[:, 0], pairs[:, 1]])
    target = np.concatenate([pairs[:, 1], pairs[:, 0]])
    count = source.size
    block = sparse.csr_matrix(
        (
            np.concatenate([programme.closeness[source, target], -np.ones(count)]),
            (np.tile(np.arange(count), 2), np.concatenate([source, target])),
        ),
        shape=(count, n),
    )
    privacy = sparse.kron(sparse.identity(outputs), block, format="csc")
    sums = sparse.kron(np.ones((1, outputs)), sparse.identity(n), format="csc")
    return privacy, sums


def _piqp(programme: ChannelProgramme, pairs: NDArray[np.intp]) -> FloatArray:
    piqp = import_extra("piqp", "solvers")

    privacy, sums = programme_matrices(programme, pairs)
    size = programme.cost.size
    solver = piqp.SparseSolver()
    solver.settings.verbose = False
    solver.settings.max_iter = _PIQP_ITERATIONS
    solver.settings.eps_abs = 1e-10
    solver.settings.eps_rel = 1e-10
    solver.setup(
        sparse.csc_matrix((size, size)),
        programme.cost.ravel(),
        sums,
        np.ones(programme.n),
        privacy,
        np.full(privacy.shape[0], -np.inf),
        np.zeros(privacy.shape[0]),
        np.zeros(size),
        np.full(size, np.inf),
    )
    if solver.solve() != piqp.PIQP_SOLVED:
        raise SolverError("PIQP did not solve the full programme to its tolerance")
    return np.asarray(solver.result.x)


def _highs(programme: ChannelProgramme, pairs: NDArray[np.intp], solver: str) -> FloatArray:
    from whereish.solvers.optimal.highs import solve_highs

    privacy, sums = programme_matrices(programme, pairs)
    rows = privacy.shape[0]
    return solve_highs(
        programme.cost.ravel(),
        sparse.vstack([privacy, sums], format="csc"),
        row_lower=np.concatenate([np.full(rows, -np.inf), np.ones(programme.n)]),
        row_upper=np.concatenate([np.zeros(rows), np.ones(programme.n)]),
        solver=solver,
    ).x
