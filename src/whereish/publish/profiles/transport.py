"""The transport problem of two small profiles."""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.errors import SolverError

__all__ = ["transport_cost"]


def transport_cost(costs: FloatArray, supply: IntArray, demand: IntArray) -> float:
    """Least average cost of moving the shares of `supply` to the shares of `demand`."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    rows, columns = costs.shape
    share, wanted = supply / supply.sum(), demand / demand.sum()
    if rows == 1:
        return float(costs[0] @ wanted)
    if columns == 1:
        return float(costs[:, 0] @ share)
    flow = np.arange(rows * columns)
    index = np.concatenate([flow // columns, rows + flow % columns])
    margins = coo_array(
        (np.ones(2 * len(flow)), (index, np.concatenate([flow, flow]))),
        shape=(rows + columns, rows * columns),
    )
    # One margin follows from the others; leaving it out spares the solver a rounding.
    bounds = np.concatenate([share, wanted])
    result = linprog(
        costs.ravel(),
        A_eq=margins.tocsr()[:-1],  # type: ignore[call-overload]  # sparse is documented
        b_eq=bounds[:-1],
        bounds=(0, None),
        method="highs",
    )
    if result.status != 0:
        raise SolverError(f"the transport problem was not solved: {result.message}")
    return float(result.fun)
