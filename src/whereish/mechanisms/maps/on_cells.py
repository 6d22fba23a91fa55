"""Squared error and posterior means of the laws of cells, as distances or as a table."""

from __future__ import annotations

from whereish.arrays import FloatArray
from whereish.solvers.eikonal.cells import BuiltLaw
from whereish.solvers.eikonal.squared_error import posterior_means, squared_errors
from whereish.solvers.tables.error import table_errors, table_means

__all__ = ["mean_places", "mean_square"]


def mean_square(
    built: BuiltLaw, prior: FloatArray, places: FloatArray, reports: FloatArray
) -> float:
    """Expected squared error; `places` of all cells and what each is reported as."""
    if built.table is not None:
        return float(prior @ table_errors(built.table, places, reports[built.table.reported]))
    return float(prior @ squared_errors(built.law, built.secrets, places, reports))


def mean_places(built: BuiltLaw, prior: FloatArray, places: FloatArray) -> FloatArray:
    """The posterior mean of every report; what is never reported stays where it is."""
    if built.table is None:
        return posterior_means(built.law, built.secrets, places, prior)
    means = places.copy()
    means[built.table.reported] = table_means(built.table, places, prior)
    return means
