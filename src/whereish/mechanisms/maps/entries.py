"""What the files of mechanisms under a privacy map share.

Saved are the map's levels and, per edge, by how many quanta it was lowered; the prices
themselves follow from the map.  A hash of the edges in use is checked when a file is
read, so that the law read is the law certified.

Whoever writes a file can compute its hashes, so nothing in it is believed: every entry must
have its form, the certificate is computed anew, and what the file claims must follow from it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.maps.options import checked_neighbours
from whereish.mechanisms.saved import Artefact, described
from whereish.privacy.guarantee import Guarantee
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.maps.stencil import stencil_factor
from whereish.solvers.eikonal.certify import EdgeLaw, metric_in_use
from whereish.solvers.geodesic.graph_metric import LARGEST_MAP, GraphMetric
from whereish.solvers.geodesic.lanes import LIMIT

__all__ = [
    "EIKONAL",
    "EIKONAL_QUERY",
    "UnderMap",
    "check_claims",
    "claimed",
    "edge_arrays",
    "edge_certificate",
    "kept_factor",
    "saved_counts",
    "saved_float",
    "saved_int",
    "saved_map",
    "saved_metric",
]

EIKONAL = "eikonal"
EIKONAL_QUERY = "eikonal query"
"""The kinds of mechanisms under a map, as their files name them."""

_LEAST_QUANTUM = 2.0**-20  # of the usual: no law falls so far, and a table still falls by it


class UnderMap(Protocol):
    """A mechanism that keeps a privacy map."""

    @property
    def map(self) -> PrivacyMap:
        """The map."""

    @property
    def guarantee(self) -> Guarantee:
        """The certified promise."""

    @property
    def neighbours(self) -> int:
        """Directions of the stencil."""

    @property
    def divided(self) -> float:
        """The stencil factor by which the map was divided."""


def edge_arrays(
    mechanism: UnderMap, promised: FloatArray, metric: GraphMetric
) -> dict[str, NDArray[Any]]:
    """The map's levels, and how far each edge in use is below the price promised."""
    unlowered = metric_in_use(promised).weights
    return {
        "levels": mechanism.map.values,
        "lowered_by": (unlowered.astype(np.int32) - metric.weights).astype(np.int32),
    }


def edge_certificate(mechanism: UnderMap, law: EdgeLaw) -> dict[str, Any]:
    """The guarantee, the map, its edges and how far they are used."""
    return {
        "numpy": np.__version__,
        "guarantee": mechanism.guarantee.to_json(),
        "map": mechanism.map.to_json(),
        "neighbours": mechanism.neighbours,
        "divided_by": mechanism.divided,
        "quantum": law.metric.quantum,
        "edges_sha256": _hash(law.metric.weights),
        "factor": law.factor,
        "worst_cells": list(law.worst),
        "rounds": law.rounds,
    }


def saved_map(saved: Artefact) -> tuple[PrivacyMap, int, float]:
    """The map, the directions of its stencil, and the factor by which it was divided."""
    certificate = saved.certificate
    levels = saved.arrays["levels"]
    if levels.dtype != np.float64 or levels.ndim != 2 or levels.size > LARGEST_MAP:
        raise InvalidInput(
            "the levels in the file must be an array (rows, columns) of float64 with at most"
            f" {LARGEST_MAP:,} cells; got {levels.dtype} of shape {levels.shape}"
        )
    privacy_map = described(
        saved, "map", "a privacy map", lambda said: PrivacyMap.from_json(said, levels)
    )
    now = privacy_map.to_json()
    # Earlier versions named no operation, and estimated the scale, on which nothing here stands:
    # the law is certified anew.
    earlier = {key: now[key] for key in ("operation", "plane_scale") if "operation" in now}
    said = certificate["map"] if "operation" in certificate["map"] else certificate["map"] | earlier
    if said != now:
        raise InvalidInput("the file's 'map' does not describe the privacy map that it holds")
    neighbours = checked_neighbours(saved_int(saved, "neighbours"))
    divided = saved_float(saved, "divided_by")
    factor = stencil_factor(neighbours, privacy_map.sides, privacy_map.shape)
    if divided not in (1.0, factor):
        raise InvalidInput(
            f"'divided_by' in the file must be 1 or the stencil factor, {factor:.6f}; got"
            f" {divided!r}: build the mechanism again"
        )
    return privacy_map, neighbours, divided


def saved_int(saved: Artefact, name: str, *, most: int | None = None) -> int:
    """An integer >= 0 (and <= `most`) of the certificate."""
    value = saved.certificate[name]
    if type(value) is not int or value < 0 or (most is not None and value > most):
        limit = "" if most is None else f" and <= {most}"
        raise InvalidInput(f"{name!r} in the file must be an integer >= 0{limit}; got {value!r}")
    return value


def saved_float(saved: Artefact, name: str) -> float:
    """A finite number of the certificate."""
    value = saved.certificate[name]
    # A comparison, since an integer may be too large to be made a double.
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise InvalidInput(f"{name!r} in the file must be a finite number; got {value!r}")
    return float(value)


def claimed(saved: Artefact, cells: int) -> tuple[float, tuple[int, int], int]:
    """Factor, worst edge and rounds of a law that is still to be certified.

    The file must name two cells for its worst edge; which, only the numbers tell.
    """
    value = saved.certificate["worst_cells"]
    pair = isinstance(value, list) and len(value) == 2
    if not pair or any(type(cell) is not int or not 0 <= cell < cells for cell in value):
        raise InvalidInput(f"'worst_cells' in the file must be two of {cells} cells; got {value!r}")
    return saved_float(saved, "factor"), (0, 0), saved_int(saved, "rounds")


def saved_counts(saved: Artefact, name: str, shape: tuple[int, ...]) -> NDArray[np.uint64]:
    """An array of integers >= 0 of the file."""
    array = saved.arrays[name]
    if array.dtype.kind != "u" or array.shape != shape:
        raise InvalidInput(
            f"{name!r} in the file must be unsigned integers of shape {shape}; got"
            f" {array.dtype} of shape {array.shape}"
        )
    return np.asarray(array, np.uint64)


def saved_metric(saved: Artefact, promised: FloatArray) -> GraphMetric:
    """The edges in use, from the prices that follow from the map in the file."""
    unlowered = metric_in_use(promised)
    lowered_by = saved.arrays["lowered_by"]
    highest = unlowered.weights.astype(np.int64)
    if lowered_by.dtype.kind != "i" or lowered_by.shape != highest.shape:
        raise InvalidInput(
            f"'lowered_by' in the file must be integers of shape {highest.shape}; got"
            f" {lowered_by.dtype} of shape {lowered_by.shape}"
        )
    if ((lowered_by > highest) | (lowered_by < highest - LIMIT)).any():
        raise InvalidInput(f"'lowered_by' in the file must leave every edge between 0 and {LIMIT}")
    weights = (highest - lowered_by).astype(np.uint16)
    if _hash(weights) != saved.certificate["edges_sha256"]:
        raise NotPrivate(
            "the edge weights that follow from this file are not those that were certified;"
            " build the mechanism again on this machine"
        )
    quantum = saved_float(saved, "quantum")
    least = _LEAST_QUANTUM * unlowered.quantum
    if not least <= quantum <= unlowered.quantum:
        raise InvalidInput(
            f"'quantum' in the file must be at least {least!r} and at most"
            f" {unlowered.quantum!r}; got {quantum!r}"
        )
    return GraphMetric(weights, quantum)


def kept_factor(factors: FloatArray) -> float:
    """The largest factor, 0 if there are none; raises `NotPrivate` above 1.

    What cannot be bounded (NaN) counts as infinite: give the factors of real edges only.
    """
    factor = float(np.where(np.isnan(factors), np.inf, factors).max(initial=0.0))
    if factor > 1.0:
        raise NotPrivate(f"this mechanism needs {factor:.6f} times the promised metric")
    return factor


def check_claims(saved: Artefact, mechanism: UnderMap, found: float, claim: str) -> None:
    """Refuse a certificate that is not that of the numbers: its factor and its guarantee.

    The bound of a gradient may have become sharper since the file was written.  Then its guarantee
    is that of the factor that it claims: weaker than today's, and borne out as well.
    """
    claimed, said = saved_float(saved, claim), saved.certificate["guarantee"]
    if not found <= claimed * (1 + 1e-12):
        raise NotPrivate("this file claims a better certificate than its numbers bear out")
    if said == _as_read(mechanism):
        return
    if claim != "gradient_factor" or claimed > 1.0 or said != _as_read(_at(mechanism, claimed)):
        raise NotPrivate(
            "the guarantee in this file is not the one that its numbers bear out; build the"
            " mechanism again"
        )


def _as_read(mechanism: UnderMap) -> Any:
    return json.loads(json.dumps(mechanism.guarantee.to_json()))


def _at(mechanism: Any, factor: float) -> Any:
    """A mechanism with another bound of its gradient."""
    return replace(mechanism, built=replace(mechanism.built, gradient_factor=factor))


def _hash(array: NDArray[Any]) -> str:
    digest = hashlib.sha256(f"{array.dtype} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
