"""Saved eikonal mechanisms: the numbers, and the certificate that can be checked again.

Saved are the map's levels, the map in use if it is another, the integer weights and
sums, and how far single edges were lowered; beside them the guarantee, the versions
and a SHA-256 (:mod:`artefact`).  The edge weights follow from the map in use; their
hash is checked too, so that the law read is the law certified.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.artefact import Artefact, load_artefact, save_artefact
from whereish.mechanisms.eikonal import EikonalMechanism
from whereish.privacy.privacy_map import PrivacyMap
from whereish.solvers.eikonal_law import BuiltLaw, gradient_factors, inner_cells
from whereish.solvers.frame import framed
from whereish.solvers.geodesics import GraphMetric
from whereish.solvers.integer_law import decay_table
from whereish.solvers.lowering import CertifiedLaw, edge_factors, metric_in_use
from whereish.solvers.stencil import edge_integrals

__all__ = ["KIND", "from_artefact", "read", "recertified", "write"]

KIND = "eikonal"


def write(mechanism: EikonalMechanism, path: Path) -> None:
    """Save `mechanism` to one npz file."""
    built, law = mechanism.built, mechanism.built.law
    unlowered = metric_in_use(built.promised).weights
    arrays: dict[str, NDArray[Any]] = {
        "levels": mechanism.map.values,
        "weights": law.weights.astype(np.uint32),
        "sums": law.sums[built.secrets],
        "lowered_by": (unlowered.astype(np.int32) - law.metric.weights).astype(np.int32),
    }
    if mechanism.places == "continuous":
        arrays["used"] = built.used.astype(np.float32)
    certificate = {
        "numpy": np.__version__,
        "guarantee": mechanism.guarantee.to_json(),
        "map": mechanism.map.to_json(),
        "places": mechanism.places,
        "neighbours": mechanism.neighbours,
        "divided_by": mechanism.divided,
        "frame": built.frame,
        "factor": law.factor,
        "worst_cells": list(law.worst),
        "gradient_factor": built.gradient_factor,
        "rounds": law.rounds,
        "products": law.products,
        "dropped": law.dropped,
        "sweeps": law.sweeps,
        "quantum": law.metric.quantum,
        "edges_sha256": _hash(law.metric.weights),
    }
    save_artefact(path, KIND, arrays, certificate)


def read(path: Path) -> EikonalMechanism:
    """Load a mechanism, and refuse numbers that are not those of its certificate."""
    return from_artefact(load_artefact(path))


def from_artefact(saved: Artefact) -> EikonalMechanism:
    """The mechanism of a file that was read already, certified anew from its numbers."""
    if saved.kind != KIND:
        raise InvalidInput(
            f"this file holds a mechanism of kind {saved.kind!r}, not an eikonal mechanism"
        )
    arrays, certificate = saved.arrays, saved.certificate
    privacy_map = PrivacyMap.from_json(certificate["map"], arrays["levels"])
    divided, neighbours = float(certificate["divided_by"]), int(certificate["neighbours"])
    used = privacy_map.values / (privacy_map.plane.scale * divided)
    if "used" in arrays:
        used = arrays["used"].astype(np.float64)
    frame = int(certificate["frame"])
    promised = edge_integrals(
        framed(used, privacy_map.sides, frame), privacy_map.sides, neighbours=neighbours
    )
    unlowered = metric_in_use(promised)
    weights = (unlowered.weights.astype(np.int32) - arrays["lowered_by"]).astype(np.uint16)
    if _hash(weights) != certificate["edges_sha256"]:
        raise NotPrivate(
            "the edge weights that follow from this file are not those that were certified;"
            " build the mechanism again on this machine"
        )
    metric = GraphMetric(weights, unlowered.quantum)
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
    )
    built = BuiltLaw(law, used, frame, promised, certificate["gradient_factor"])
    mechanism = EikonalMechanism(privacy_map, built, certificate["places"], neighbours, divided)
    if recertified(mechanism) > mechanism.factor * (1 + 1e-12):
        raise NotPrivate("this file claims a better certificate than its numbers bear out")
    return mechanism


def recertified(mechanism: EikonalMechanism) -> float:
    """The factor, from the numbers alone; raises `NotPrivate` if they do not bear it out."""
    built, law = mechanism.built, mechanism.built.law
    sums, sweeps = law.metric.exact_sums(
        law.weights, decay_table(law.metric.quantum), built.secrets
    )
    if not np.array_equal(sums, law.sums) or sweeps > law.sweeps:
        raise NotPrivate("the sums of this mechanism are not those of its weights")
    factors = edge_factors(law.metric, sums, built.promised)
    factor = 0.0 if np.isnan(factors).all() else float(np.nanmax(factors))
    if mechanism.places == "continuous" and mechanism.map.values.size > 1:
        asked = mechanism.map.values / (mechanism.map.plane.scale * mechanism.divided)
        factor = float(np.nanmax(gradient_factors(built, asked, mechanism.map.sides)))
    if factor > 1.0:
        raise NotPrivate(f"this mechanism keeps only {factor:.6f} times its promise")
    return factor


def _hash(*arrays: NDArray[Any]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
