"""The linear programmes behind optimal radials, solved by HiGHS on a cost of size 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from whereish.arrays import FloatArray

__all__ = ["least_cost"]


def least_cost(
    cost: FloatArray,
    rows: csr_array,
    upper: FloatArray,
    *,
    mass: FloatArray | None = None,
    tails: tuple[FloatArray, FloatArray] | None = None,
    options: Mapping[str, float] | None = None,
) -> Any:
    """linprog over 0 <= x <= upper with rows x <= 0, mass x = 1 and tails x <= their limits.

    The multipliers and the value are those of the cost as it is given.
    """
    matrix: Any = rows
    right = np.zeros(rows.shape[0])
    if tails is not None and len(tails[1]):
        matrix, right = vstack([matrix, csr_array(tails[0])]), np.append(right, tails[1])
    size = float(np.abs(cost).max()) or 1.0
    found: Any = linprog(  # type: ignore[call-overload]
        cost / size,
        A_ub=matrix,
        b_ub=right,
        A_eq=None if mass is None else csr_array(mass[None]),
        b_eq=None if mass is None else np.ones(1),
        bounds=np.column_stack([np.zeros(len(cost)), upper]),
        method="highs",
        options=None if options is None else dict(options),
    )
    if found.status == 0:
        found.fun *= size
        found.ineqlin.marginals = found.ineqlin.marginals * size
        if mass is not None:
            found.eqlin.marginals = found.eqlin.marginals * size
    return found
