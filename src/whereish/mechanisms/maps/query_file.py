"""Saved answers under a privacy map: the numbers, and the certificate checked again on loading.

Beside what every file under a map holds (:mod:`whereish.mechanisms.maps.entries`) there are the
answers, the answer of each cell, the integer weights and the sums.  Distances to the answers'
sets follow from the edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.errors import InvalidInput
from whereish.mechanisms.maps import entries
from whereish.mechanisms.maps.table_file import recertified_table
from whereish.mechanisms.saved import Artefact
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.solvers.eikonal.answers import check_size
from whereish.solvers.eikonal.cells import prices_on_cells
from whereish.solvers.tables.law import TableLaw

__all__ = ["query_entries", "saved_query"]


def query_entries(
    mechanism: entries.UnderMap, answers: NDArray[Any], answer_of: NDArray[np.intp], law: TableLaw
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the certificate of a law on answers."""
    arrays = {
        **entries.edge_arrays(mechanism, law.promised, law.metric),
        "answers": answers,
        "answer_of": answer_of.astype(np.uint16),  # at most 4096 answers
        "weights": law.weights,
        "sums": law.sums,
    }
    return arrays, entries.edge_certificate(mechanism, law)


def saved_query(
    saved: Artefact,
) -> tuple[PrivacyMap, NDArray[Any], NDArray[np.intp], TableLaw, int, float]:
    """Map, answers, answer of each cell, law, neighbours and divisor of a file, certified anew."""
    privacy_map, neighbours, divided = entries.saved_map(saved)
    cells = privacy_map.values.size
    answers = saved.arrays["answers"]
    if answers.ndim != 1 or answers.dtype.kind not in "biufUS":
        raise InvalidInput("'answers' in the file must be a list of numbers or text")
    check_size(cells, len(answers))
    answer_of = entries.saved_counts(saved, "answer_of", (cells,)).astype(np.intp)
    if not np.array_equal(np.unique(answer_of), np.arange(len(answers))):
        raise InvalidInput("the file must name one of its answers for every cell, and all of them")
    promised = prices_on_cells(privacy_map.plane_levels(divided), privacy_map.sides, neighbours)
    metric = entries.saved_metric(saved, promised)
    law = TableLaw(
        metric,
        entries.saved_counts(saved, "weights", answers.shape),
        entries.saved_counts(saved, "sums", (cells,)),
        *entries.claimed(saved, cells),
        metric.set_distances(answer_of, len(answers)),
        promised,
    )
    return privacy_map, answers, answer_of, recertified_table(law), neighbours, divided
