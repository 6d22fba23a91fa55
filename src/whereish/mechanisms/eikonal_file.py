"""Saved eikonal mechanisms: the numbers, and the certificate that can be checked again.

Saved are the map's levels, the map in use if it is another, the integer weights and
sums, and how far single edges were lowered (:mod:`map_file`); beside them the guarantee,
the versions and a SHA-256 (:mod:`artefact`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.errors import NotPrivate
from whereish.mechanisms.artefact import Artefact, load_artefact, save_artefact
from whereish.mechanisms.eikonal import EikonalMechanism
from whereish.mechanisms.map_file import (
    EIKONAL,
    check_claim,
    check_kind,
    edge_arrays,
    edge_certificate,
    kept_factor,
    saved_map,
    saved_metric,
)
from whereish.solvers.eikonal_law import BuiltLaw, inner_cells, prices_on_cells
from whereish.solvers.frame import framed
from whereish.solvers.lowering import CertifiedLaw, edge_factors
from whereish.solvers.places_law import gradient_factors, prices_on_places

__all__ = ["from_artefact", "read", "recertified", "write"]


def write(mechanism: EikonalMechanism, path: Path) -> None:
    """Save `mechanism` to one npz file."""
    built, law = mechanism.built, mechanism.built.law
    arrays: dict[str, NDArray[Any]] = {
        **edge_arrays(mechanism, built.promised, law.metric),
        "weights": law.weights.astype(np.uint32),
        "sums": law.sums[built.secrets],
    }
    if mechanism.places == "continuous":
        arrays["used"] = built.used.astype(np.float32)
    certificate = {
        **edge_certificate(mechanism, law.metric),
        "places": mechanism.places,
        "frame": built.frame,
        "factor": law.factor,
        "worst_cells": list(law.worst),
        "gradient_factor": built.gradient_factor,
        "core": law.core,
        "rounds": law.rounds,
        "products": law.products,
        "dropped": law.dropped,
        "sweeps": law.sweeps,
    }
    save_artefact(path, EIKONAL, arrays, certificate)


def read(path: Path) -> EikonalMechanism:
    """Load a mechanism, and refuse numbers that are not those of its certificate."""
    return from_artefact(load_artefact(path))


def from_artefact(saved: Artefact) -> EikonalMechanism:
    """The mechanism of a file that was read already, certified anew from its numbers."""
    check_kind(saved, EIKONAL)
    arrays, certificate = saved.arrays, saved.certificate
    privacy_map, neighbours, divided = saved_map(saved)
    sides, frame = privacy_map.sides, int(certificate["frame"])
    if certificate["places"] == "continuous":
        used, prices = arrays["used"].astype(np.float64), prices_on_places
    else:
        used, prices = privacy_map.plane_levels(divided), prices_on_cells
    promised = prices(framed(used, sides, frame), sides, neighbours)
    metric = saved_metric(saved, promised)
    sums = np.zeros(metric.cells, np.uint64)
    sums[inner_cells(privacy_map.shape, frame)] = arrays["sums"]
    u, v = certificate["worst_cells"]
    law = CertifiedLaw(
        metric,
        arrays["weights"].astype(np.uint64),
        sums,
        float(certificate["factor"]),
        (int(u), int(v)),
        int(certificate["rounds"]),
        int(certificate["products"]),
        int(certificate["dropped"]),
        int(certificate["sweeps"]),
        int(certificate["core"]),
    )
    built = BuiltLaw(law, used, frame, promised, certificate["gradient_factor"])
    mechanism = EikonalMechanism(privacy_map, built, certificate["places"], neighbours, divided)
    check_claim(recertified(mechanism), mechanism.factor)
    return mechanism


def recertified(mechanism: EikonalMechanism) -> float:
    """The factor, from the numbers alone; raises `NotPrivate` if they do not bear it out."""
    built, law = mechanism.built, mechanism.built.law
    sums, sweeps = law.metric.exact_sums(law.weights, law.table, built.secrets)
    if not np.array_equal(sums, law.sums) or sweeps > law.sweeps:
        raise NotPrivate("the sums of this mechanism are not those of its weights")
    if mechanism.places == "continuous" and mechanism.map.values.size > 1:
        asked = mechanism.map.plane_levels(mechanism.divided)
        factors = gradient_factors(built, asked, mechanism.map.sides)
    else:
        factors = edge_factors(law.metric, sums, built.promised)
    return kept_factor(factors)
