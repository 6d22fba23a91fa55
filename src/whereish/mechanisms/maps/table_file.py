"""Saved tables: the reports of each cell, and the certificate that is checked again on loading.

A file of an eikonal mechanism whose reports come from a table holds, beside a law of distances,
the table of integers, its weights and sums, and the cells (on places, the nodes) by which its
reports are called.  Its metric follows from the promised prices; on places, where the certificate
is of slopes, it is what the columns keep.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.maps import entries
from whereish.mechanisms.saved import Artefact
from whereish.solvers.eikonal.certify import edges_between, worst_edge
from whereish.solvers.geodesic.graph_metric import HORIZON
from whereish.solvers.tables.between import kept_metric
from whereish.solvers.tables.carried import horizon_of, metric_of_table
from whereish.solvers.tables.law import (
    LARGEST_TABLE,
    ReportTable,
    TableLaw,
    table_factors,
    table_sums,
)

__all__ = ["recertified_table", "saved_table", "table_entries"]

Law = TypeVar("Law", bound=TableLaw)

_HORIZON = "table_horizon"
"""In the certificate of files that hold a table."""


def table_entries(law: ReportTable) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays of a table, and what the certificate says of it: the factor is the table's."""
    return {
        "table": law.distances,
        "table_weights": law.weights,
        "table_sums": law.sums,
        "table_reports": law.reported.astype(np.uint32),
    }, {
        _HORIZON: horizon_of(law.metric),
        "factor": law.factor,
        "worst_cells": list(law.worst),
        "rounds": law.rounds,
    }


def saved_table(
    saved: Artefact, promised: FloatArray, *, on_places: bool = False
) -> ReportTable | None:
    """The table of a file, still to be certified; None where it has none.

    `promised` are prices between cells, or with `on_places` between nodes.
    """
    if _HORIZON not in saved.certificate:
        return None
    horizon = entries.saved_float(saved, _HORIZON)
    if not 0 < horizon <= HORIZON:
        raise InvalidInput(f"{_HORIZON!r} in the file must be in (0, {HORIZON:g}]; got {horizon!r}")
    metric = metric_of_table(promised, horizon)
    distances = saved.arrays["table"]
    count = len(distances) if distances.ndim == 2 else 0
    if distances.dtype != np.uint16 or distances.shape != (max(count, 1), metric.cells):
        raise InvalidInput(
            f"'table' in the file must be uint16 of shape (reports, {metric.cells}); got"
            f" {distances.dtype} of shape {distances.shape}"
        )
    if distances.size > LARGEST_TABLE:
        raise InvalidInput(
            f"'table' in the file must have at most {LARGEST_TABLE:,} entries; got"
            f" {distances.size:,}"
        )
    reported = entries.saved_counts(saved, "table_reports", (count,)).astype(np.int64)
    if len(np.unique(reported)) < count or reported.max(initial=0) >= metric.cells:
        raise InvalidInput(f"'table_reports' in the file must be {count} different cells")
    if on_places:
        metric = kept_metric(distances, metric)
    return ReportTable(
        metric,
        entries.saved_counts(saved, "table_weights", (count,)),
        entries.saved_counts(saved, "table_sums", (metric.cells,)),
        *entries.claimed(saved, metric.cells),
        distances,
        promised,
        reported,
    )


def recertified_table(law: Law, *, on_places: bool = False) -> Law:
    """The law with the certificate of its numbers, whatever it said before.

    With `on_places` what edges keep is found but not asked for: there slopes are certified.

    Raises
    ------
    NotPrivate
        If the numbers do not keep what the map asks for.
    """
    if not np.array_equal(table_sums(law.metric, law.distances, law.weights), law.sums):
        raise NotPrivate("the sums of this mechanism are not those of its weights")
    factors = table_factors(law)
    if on_places:
        factor, worst = worst_edge(factors, law.metric)
        return replace(law, factor=factor, worst=worst)
    real = edges_between(law.metric, np.ones(law.metric.cells, np.bool_))
    factor, worst = entries.kept_factor(factors[real]), worst_edge(factors, law.metric)[1]
    return replace(law, factor=factor, worst=worst)
