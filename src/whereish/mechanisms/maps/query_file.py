"""Saved answers under a privacy map: the numbers, and the certificate checked again on loading.

Beside what every file under a map holds (:mod:`map_file`) there are the answers, the
answer of each cell, the integer weights and the sums.  Distances to the answers' sets
follow from the edges.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.maps.entries import (
    EIKONAL_QUERY,
    check_cells,
    check_claims,
    check_kind,
    edge_arrays,
    edge_certificate,
    kept_factor,
    saved_counts,
    saved_float,
    saved_int,
    saved_map,
    saved_metric,
)
from whereish.mechanisms.maps.query import EikonalQuery
from whereish.mechanisms.saved import Artefact, load_artefact, save_artefact
from whereish.solvers.eikonal.answers import QueryLaw, check_size, query_factors, query_sums
from whereish.solvers.eikonal.cells import prices_on_cells
from whereish.solvers.eikonal.certify import edges_between, worst_edge

__all__ = ["from_artefact", "read", "recertified", "write"]


def write(mechanism: EikonalQuery, path: Path) -> None:
    """Save `mechanism` to one npz file."""
    law = mechanism.law
    arrays = {
        **edge_arrays(mechanism, law.promised, law.metric),
        "answers": mechanism.answers,
        "answer_of": mechanism.answer_of.astype(np.uint16),  # at most 4096 answers
        "weights": law.weights,
        "sums": law.sums,
    }
    certificate = {
        **edge_certificate(mechanism, law.metric),
        "factor": law.factor,
        "worst_cells": list(law.worst),
        "rounds": law.rounds,
    }
    save_artefact(path, EIKONAL_QUERY, arrays, certificate)


def read(path: Path) -> EikonalQuery:
    """Load a mechanism, and refuse numbers that are not those of its certificate."""
    return from_artefact(load_artefact(path))


def from_artefact(saved: Artefact) -> EikonalQuery:
    """The mechanism of a file that was read already, certified anew from its numbers."""
    check_kind(saved, EIKONAL_QUERY)
    privacy_map, neighbours, divided = saved_map(saved)
    cells = privacy_map.values.size
    answers = saved.arrays["answers"]
    if answers.ndim != 1 or answers.dtype.kind not in "biufUS":
        raise InvalidInput("'answers' in the file must be a list of numbers or text")
    check_size(cells, len(answers))
    answer_of = saved_counts(saved, "answer_of", (cells,)).astype(np.intp)
    if not np.array_equal(np.unique(answer_of), np.arange(len(answers))):
        raise InvalidInput("the file must name one of its answers for every cell, and all of them")
    promised = prices_on_cells(privacy_map.plane_levels(divided), privacy_map.sides, neighbours)
    metric = saved_metric(saved, promised)
    check_cells(saved, "worst_cells", cells)
    law = QueryLaw(
        metric,
        metric.set_distances(answer_of, len(answers)),
        saved_counts(saved, "weights", answers.shape),
        saved_counts(saved, "sums", (cells,)),
        saved_float(saved, "factor"),
        (0, 0),
        saved_int(saved, "rounds"),
        promised,
    )
    # Factor and worst cells are those of the numbers, whatever the file says.
    factors = _factors(law)
    found = kept_factor(factors[_edges(law)])
    law = replace(law, factor=found, worst=worst_edge(factors, metric)[1])
    mechanism = EikonalQuery(privacy_map, answers, answer_of, law, neighbours, divided)
    check_claims(saved, mechanism, found, "factor")
    return mechanism


def recertified(mechanism: EikonalQuery) -> float:
    """The factor, from the numbers alone; raises `NotPrivate` if they do not bear it out."""
    return kept_factor(_factors(mechanism.law)[_edges(mechanism.law)])


def _factors(law: QueryLaw) -> FloatArray:
    """The share of its promise that each edge uses, once the sums were found to be right."""
    if not np.array_equal(query_sums(law.metric, law.distances, law.weights), law.sums):
        raise NotPrivate("the sums of this mechanism are not those of its weights")
    return query_factors(law)


def _edges(law: QueryLaw) -> NDArray[np.bool_]:
    return edges_between(law.metric, np.ones(law.metric.cells, np.bool_))
