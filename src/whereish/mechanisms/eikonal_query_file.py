"""Saved answers under a privacy map: the numbers, and the certificate checked again on loading.

Beside what every file under a map holds (:mod:`map_file`) there are the answers, the
answer of each cell, the integer weights and the sums.  Distances to the answers' sets
follow from the edges.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.artefact import Artefact, load_artefact, save_artefact
from whereish.mechanisms.eikonal_query import EikonalQuery
from whereish.mechanisms.map_file import (
    EIKONAL_QUERY,
    check_claim,
    check_kind,
    edge_arrays,
    edge_certificate,
    kept_factor,
    saved_map,
    saved_metric,
)
from whereish.solvers.eikonal_law import prices_on_cells
from whereish.solvers.query_law import QueryLaw, query_factors, query_sums

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
    arrays, certificate = saved.arrays, saved.certificate
    privacy_map, neighbours, divided = saved_map(saved)
    answers, answer_of = arrays["answers"], arrays["answer_of"].astype(np.intp)
    named = np.array_equal(np.unique(answer_of), np.arange(len(answers)))
    if answer_of.shape != (privacy_map.values.size,) or not named:
        raise InvalidInput("the file must name one of its answers for every cell, and all of them")
    promised = prices_on_cells(privacy_map.plane_levels(divided), privacy_map.sides, neighbours)
    metric = saved_metric(saved, promised)
    u, v = certificate["worst_cells"]
    law = QueryLaw(
        metric,
        metric.set_distances(answer_of, len(answers)),
        arrays["weights"],
        arrays["sums"],
        float(certificate["factor"]),
        (int(u), int(v)),
        int(certificate["rounds"]),
        promised,
    )
    mechanism = EikonalQuery(privacy_map, answers, answer_of, law, neighbours, divided)
    check_claim(recertified(mechanism), mechanism.factor)
    return mechanism


def recertified(mechanism: EikonalQuery) -> float:
    """The factor, from the numbers alone; raises `NotPrivate` if they do not bear it out."""
    law = mechanism.law
    if not np.array_equal(query_sums(law.metric, law.distances, law.weights), law.sums):
        raise NotPrivate("the sums of this mechanism are not those of its weights")
    return kept_factor(query_factors(law))
