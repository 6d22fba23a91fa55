"""GLPK, with which the thesis solved its programmes: its dual simplex on the whole programme."""

from __future__ import annotations

from importlib.util import find_spec

from scipy import sparse

from whereish.errors import SolverError, import_extra
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.reference import all_pairs, programme_matrices

__all__ = ["glpk_is_here", "glpk_value"]


def glpk_is_here() -> bool:
    """Whether swiglpk is installed (extra `bench`)."""
    return find_spec("swiglpk") is not None


def glpk_value(programme: ChannelProgramme) -> float:
    """The optimum of the programme, by GLPK.

    Raises
    ------
    SolverError
        If GLPK does not solve it.
    """
    glpk = import_extra("swiglpk", "bench")
    privacy, sums = programme_matrices(programme, all_pairs(programme.n))
    rows = sparse.vstack([privacy, sums]).tocoo()
    problem = glpk.glp_create_prob()
    try:
        glpk.glp_set_obj_dir(problem, glpk.GLP_MIN)
        glpk.glp_add_rows(problem, rows.shape[0])
        for row in range(privacy.shape[0]):
            glpk.glp_set_row_bnds(problem, row + 1, glpk.GLP_UP, 0.0, 0.0)
        for row in range(privacy.shape[0], rows.shape[0]):
            glpk.glp_set_row_bnds(problem, row + 1, glpk.GLP_FX, 1.0, 1.0)
        glpk.glp_add_cols(problem, rows.shape[1])
        for column, cost in enumerate(programme.cost.ravel().tolist()):
            glpk.glp_set_col_bnds(problem, column + 1, glpk.GLP_LO, 0.0, 0.0)
            glpk.glp_set_obj_coef(problem, column + 1, cost)
        _load(glpk, problem, rows)
        options = glpk.glp_smcp()
        glpk.glp_init_smcp(options)
        options.msg_lev, options.meth, options.presolve = (
            glpk.GLP_MSG_OFF,
            glpk.GLP_DUALP,
            glpk.GLP_ON,
        )
        if glpk.glp_simplex(problem, options) != 0 or glpk.glp_get_status(problem) != glpk.GLP_OPT:
            raise SolverError("GLPK did not solve the programme")
        return float(glpk.glp_get_obj_val(problem))
    finally:
        glpk.glp_delete_prob(problem)


def _load(glpk: object, problem: object, rows: sparse.coo_matrix) -> None:
    """The matrix, entry by entry: GLPK counts from 1."""
    made = vars(glpk)
    i, j, values = (made[kind](rows.nnz + 1) for kind in ("intArray", "intArray", "doubleArray"))
    entries = zip(rows.row.tolist(), rows.col.tolist(), rows.data.tolist(), strict=True)
    for at, (row, column, value) in enumerate(entries, 1):
        i[at], j[at], values[at] = row + 1, column + 1, value
    made["glp_load_matrix"](problem, rows.nnz, i, j, values)
