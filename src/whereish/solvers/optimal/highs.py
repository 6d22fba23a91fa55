"""One call into HiGHS, with its status checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from whereish.arrays import FloatArray
from whereish.errors import SolverError, import_extra

__all__ = ["HighsSolution", "solve_highs"]


@dataclass(frozen=True)
class HighsSolution:
    """Primal values, value of the objective and row duals."""

    x: FloatArray
    value: float
    row_duals: FloatArray


def solve_highs(
    cost: FloatArray,
    matrix: sparse.csc_matrix,
    *,
    row_lower: FloatArray,
    row_upper: FloatArray,
    solver: str = "simplex",
    time_limit: float | None = None,
) -> HighsSolution:
    """Minimise cost . x subject to row_lower <= matrix x <= row_upper and x >= 0."""
    highspy = import_extra("highspy", "solvers")

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("parallel", "off")
    highs.setOptionValue("solver", solver)
    if time_limit is not None:
        highs.setOptionValue("time_limit", float(time_limit))
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_ = cost
    lp.col_lower_ = np.zeros(cost.size)
    lp.col_upper_ = np.full(cost.size, highspy.kHighsInf)
    lp.row_lower_, lp.row_upper_ = row_lower, row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = matrix.indptr
    lp.a_matrix_.index_ = matrix.indices
    lp.a_matrix_.value_ = matrix.data
    highs.passModel(lp)
    highs.run()
    status = highs.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise SolverError(f"HiGHS stopped without an optimum: {highs.modelStatusToString(status)}")
    solution = highs.getSolution()
    return HighsSolution(
        np.asarray(solution.col_value),
        float(highs.getInfo().objective_function_value),
        np.asarray(solution.row_dual),
    )
