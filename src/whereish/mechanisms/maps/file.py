"""Saved eikonal mechanisms: the numbers, and the certificate that can be checked again.

Saved are the map's levels, the map in use if it is another, the integer weights and
sums, and how far single edges were lowered (:mod:`whereish.mechanisms.maps.entries`); beside
them the guarantee, the versions and a SHA-256 (:mod:`whereish.mechanisms.saved`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.maps import entries
from whereish.mechanisms.maps.options import Places
from whereish.mechanisms.maps.table_file import recertified_table, saved_table, table_entries
from whereish.mechanisms.saved import Artefact
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.solvers.eikonal.between import slopes_between
from whereish.solvers.eikonal.bilinear.places import gradient_factors, prices_on_places
from whereish.solvers.eikonal.cells import BuiltLaw, inner_cells, prices_on_cells
from whereish.solvers.eikonal.certify import CertifiedLaw, edge_factors, edges_between, worst_edge
from whereish.solvers.eikonal.margin import framed
from whereish.solvers.eikonal.settling import SHARP_BAR, proof_bar
from whereish.solvers.geodesic.graph_metric import LARGEST_MAP
from whereish.solvers.geodesic.lanes import LIMIT
from whereish.solvers.splines.lattice import LATTICES, lattice_of

__all__ = ["law_entries", "recertified", "saved_law"]

_KINDS: dict[str, Places] = {
    "cells": "cells",
    "continuous": "bilinear",
    **dict.fromkeys(LATTICES, "continuous"),
}
"""What files call the places: those named "continuous" are of the time when that was bilinear, and
the others tell where the laws of continuous places stand."""


def law_entries(
    mechanism: entries.UnderMap, built: BuiltLaw, places: Places
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the certificate of a law on cells or continuous places."""
    law = built.law
    arrays: dict[str, NDArray[Any]] = {
        **entries.edge_arrays(mechanism, built.promised, law.metric),
        "weights": law.weights.astype(np.uint32),
        "sums": law.sums[built.secrets],
    }
    kind = next(kind for kind, named in _KINDS.items() if named == places)
    if places == "bilinear":
        arrays["used"] = built.used.astype(np.float32)
    elif places == "continuous":
        kind = lattice_of(mechanism.map.shape, built.used.shape).name
    table, of_table = ({}, {}) if built.table is None else table_entries(built.table)
    return {**arrays, **table}, {
        **entries.edge_certificate(mechanism, law),
        "places": kind,
        "frame": built.frame,
        "gradient_factor": built.gradient_factor,
        "core": law.core,
        "products": law.products,
        "dropped": law.dropped,
        "sweeps": law.sweeps,
        **of_table,
    }


def saved_law(saved: Artefact) -> tuple[PrivacyMap, BuiltLaw, Places, int, float]:
    """Map, law, kind of places, neighbours and divisor of a file, certified anew."""
    privacy_map, neighbours, divided = entries.saved_map(saved)
    kind, sides = saved.certificate["places"], privacy_map.sides
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidInput(f"places must be one of {', '.join(_KINDS)} in a file; got {kind!r}")
    places = _KINDS[kind]
    frame = _saved_frame(saved, privacy_map)
    if places == "bilinear":
        used, prices = _saved_levels(saved, privacy_map), prices_on_places
    else:
        used, prices = privacy_map.plane_levels(divided), prices_on_cells
    if places == "continuous":
        lattice = LATTICES[kind]
        sides, basis = lattice.sides(sides, used.shape), lattice.basis(used)
        promised = lattice.prices(framed(basis, sides, frame), sides, neighbours)
        used = lattice.levels(used)
    else:
        promised = prices(framed(used, sides, frame), sides, neighbours)
    metric = entries.saved_metric(saved, promised)
    weights = entries.saved_counts(saved, "weights", (metric.cells,))
    sums = np.zeros(metric.cells, np.uint64)
    sums[inner_cells(used.shape, frame)] = entries.saved_counts(saved, "sums", (used.size,))
    law = CertifiedLaw(
        metric,
        weights,
        sums,
        *entries.claimed(saved, metric.cells),
        entries.saved_int(saved, "products"),
        int((weights == 0).sum()),
        entries.saved_int(saved, "sweeps"),
        entries.saved_int(saved, "core", most=LIMIT),
    )
    table = saved_table(saved, promised, on_places=places == "continuous")
    if table is not None and (places == "bilinear" or frame):
        raise InvalidInput("a file with a table must have no frame, and none of bilinear places")
    claimed = None if places == "cells" else entries.saved_float(saved, "gradient_factor")
    built = BuiltLaw(law, used, frame, promised, claimed, table=table)
    built = recertified(privacy_map, built, places, divided)
    if built.gradient_factor is None and saved.certificate["gradient_factor"] is not None:
        raise InvalidInput("a file of a mechanism on cells must not claim a gradient")
    return privacy_map, built, places, neighbours, divided


def _saved_frame(saved: Artefact, privacy_map: PrivacyMap) -> int:
    """The width of the frame, such that the framed map is one that can be built."""
    frame = entries.saved_int(saved, "frame")
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


def recertified(
    privacy_map: PrivacyMap, built: BuiltLaw, places: Places, divided: float
) -> BuiltLaw:
    """The law with the certificate of its numbers, whatever it said before.

    Raises
    ------
    NotPrivate
        If the numbers do not keep what the map asks for.
    """
    law, shape = built.law, privacy_map.shape
    if places == "continuous":
        shape = lattice_of(shape, built.used.shape).shape(shape)
    if built.used.shape != shape or law.metric.shape != tuple(n + 2 * built.frame for n in shape):
        raise NotPrivate("the law of this mechanism is not one on the cells of its map")
    sums, sweeps = law.metric.exact_sums(law.weights, law.table, built.secrets)
    if not np.array_equal(sums, law.sums) or sweeps > law.sweeps:
        raise NotPrivate("the sums of this mechanism are not those of its weights")
    table = built.table
    if table is not None:
        table = recertified_table(table, on_places=places == "continuous")
    factors = edge_factors(law.metric, sums, built.promised)
    acceptance = 1.0 if places == "continuous" else None
    if places != "cells" and privacy_map.values.size > 1:
        asked, sides = privacy_map.plane_levels(divided), privacy_map.sides
        if places == "continuous":
            slopes = slopes_between(built, asked, sides, bar=proof_bar(built.used.size))
            claimed = built.gradient_factor
            if claimed is not None and slopes.factors.max() > claimed:  # proven as all were once
                slopes = slopes_between(built, asked, sides, bar=SHARP_BAR)
            gradients, acceptance = slopes.factors, slopes.acceptance
        else:
            gradients = gradient_factors(built, asked, sides)
        found = entries.kept_factor(gradients)
    else:
        real = edges_between(law.metric, np.isin(np.arange(law.metric.cells), built.secrets))
        found = entries.kept_factor(factors[real])
    factor, worst = worst_edge(factors, law.metric)
    gradient = found if places != "cells" else None
    # No more sweeps than it takes: a padded draw makes as many as the law says.
    law = replace(law, factor=factor, worst=worst, sweeps=sweeps)
    return replace(built, law=law, gradient_factor=gradient, acceptance=acceptance, table=table)
