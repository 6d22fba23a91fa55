"""Saved eikonal mechanisms: the numbers, and the certificate that can be checked again.

Saved are the map's levels, the map in use if it is another, the integer weights and
sums, and how far single edges were lowered (:mod:`map_file`); beside them the guarantee,
the versions and a SHA-256 (:mod:`artefact`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.maps.entries import (
    EIKONAL,
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
from whereish.mechanisms.maps.options import check_places
from whereish.mechanisms.saved import Artefact, load_artefact, save_artefact
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.solvers.eikonal.cells import BuiltLaw, inner_cells, prices_on_cells
from whereish.solvers.eikonal.certify import CertifiedLaw, edge_factors, edges_between, worst_edge
from whereish.solvers.eikonal.margin import framed
from whereish.solvers.eikonal.places import gradient_factors, prices_on_places
from whereish.solvers.geodesic.graph_metric import LARGEST_MAP
from whereish.solvers.geodesic.lanes import LIMIT

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
    privacy_map, neighbours, divided = saved_map(saved)
    places, sides = saved.certificate["places"], privacy_map.sides
    check_places(places)
    frame = _saved_frame(saved, privacy_map)
    if places == "continuous":
        used, prices = _saved_levels(saved, privacy_map), prices_on_places
    else:
        used, prices = privacy_map.plane_levels(divided), prices_on_cells
    promised = prices(framed(used, sides, frame), sides, neighbours)
    metric = saved_metric(saved, promised)
    weights = saved_counts(saved, "weights", (metric.cells,))
    sums = np.zeros(metric.cells, np.uint64)
    sums[inner_cells(privacy_map.shape, frame)] = saved_counts(
        saved, "sums", (privacy_map.values.size,)
    )
    check_cells(saved, "worst_cells", metric.cells)
    law = CertifiedLaw(
        metric,
        weights,
        sums,
        saved_float(saved, "factor"),
        (0, 0),
        saved_int(saved, "rounds"),
        saved_int(saved, "products"),
        int((weights == 0).sum()),
        saved_int(saved, "sweeps"),
        saved_int(saved, "core", most=LIMIT),
    )
    built = BuiltLaw(law, used, frame, promised)
    mechanism = EikonalMechanism(privacy_map, built, places, neighbours, divided)
    found = recertified(mechanism)
    # Factor and worst cells are those of the numbers, whatever the file says.
    factor, worst = worst_edge(edge_factors(metric, sums, promised), metric)
    gradient = found if places == "continuous" else None
    built = replace(built, law=replace(law, factor=factor, worst=worst), gradient_factor=gradient)
    mechanism = replace(mechanism, built=built)
    if gradient is None and saved.certificate["gradient_factor"] is not None:
        raise InvalidInput("a file of a mechanism on cells must not claim a gradient")
    check_claims(saved, mechanism, found, "factor" if gradient is None else "gradient_factor")
    return mechanism


def _saved_frame(saved: Artefact, privacy_map: PrivacyMap) -> int:
    """The width of the frame, such that the framed map is one that can be built."""
    frame = saved_int(saved, "frame")
    rows, cols = privacy_map.shape
    if (rows + 2 * frame) * (cols + 2 * frame) > LARGEST_MAP or (
        frame and privacy_map.one_dimensional
    ):
        raise InvalidInput(f"a {rows} x {cols} map cannot have the file's frame of {frame} cells")
    return frame


def _saved_levels(saved: Artefact, privacy_map: PrivacyMap) -> FloatArray:
    """The levels in use on continuous places."""
    used = saved.arrays["used"]
    if used.dtype != np.float32 or used.shape != privacy_map.shape:
        raise InvalidInput(
            f"'used' in the file must be float32 of shape {privacy_map.shape}; got {used.dtype} of"
            f" shape {used.shape}"
        )
    if not (np.isfinite(used) & (used > 0)).all():
        raise InvalidInput("'used' in the file must be finite and > 0 in every cell")
    return used.astype(np.float64)


def recertified(mechanism: EikonalMechanism) -> float:
    """The factor, from the numbers alone; raises `NotPrivate` if they do not bear it out."""
    built, law = mechanism.built, mechanism.built.law
    shape = mechanism.map.shape
    if built.used.shape != shape or law.metric.shape != tuple(n + 2 * built.frame for n in shape):
        raise NotPrivate("the law of this mechanism is not one on the cells of its map")
    sums, sweeps = law.metric.exact_sums(law.weights, law.table, built.secrets)
    if not np.array_equal(sums, law.sums) or sweeps > law.sweeps:
        raise NotPrivate("the sums of this mechanism are not those of its weights")
    if mechanism.places == "continuous" and mechanism.map.values.size > 1:
        asked = mechanism.map.plane_levels(mechanism.divided)
        return kept_factor(gradient_factors(built, asked, mechanism.map.sides))
    real = edges_between(law.metric, np.isin(np.arange(law.metric.cells), built.secrets))
    return kept_factor(edge_factors(law.metric, sums, built.promised)[real])
