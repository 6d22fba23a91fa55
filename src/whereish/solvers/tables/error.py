"""Expected squared error of a law in a table, and the best places for its reports."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.solvers.tables.law import TableLaw

__all__ = ["table_errors", "table_laws", "table_means"]


def table_laws(law: TableLaw, cells: NDArray[np.intp] | slice = slice(None)) -> FloatArray:
    """(cells, reports) probabilities, of all cells or of some."""
    masses = law.masses(cells).astype(np.float64)
    return np.asarray(masses / law.sums[cells].astype(np.float64)[:, None])


def table_means(law: TableLaw, places: FloatArray, prior: FloatArray) -> FloatArray:
    """(reports, 2) the posterior mean place of each report; `prior` is over the cells."""
    middle = prior @ places / prior.sum()
    joint = prior[:, None] * table_laws(law)
    return np.asarray(middle + joint.T @ (places - middle) / joint.sum(axis=0)[:, None])


def table_errors(law: TableLaw, places: FloatArray, reports: FloatArray) -> FloatArray:
    """E |reports[Y] - places[u]|^2 for every cell u, Y drawn from its law."""
    laws, middle = table_laws(law), places.mean(axis=0)
    at, to = places - middle, reports - middle
    crossed = (at * (laws @ to)).sum(axis=1)
    errors = laws @ (to**2).sum(axis=1) - 2.0 * crossed + (at**2).sum(axis=1)
    return np.asarray(np.maximum(errors, 0.0))
