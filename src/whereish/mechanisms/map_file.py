"""What the files of mechanisms under a privacy map share.

Saved are the map's levels and, per edge, by how many quanta it was lowered; the prices
themselves follow from the map.  A hash of the edges in use is checked when a file is
read, so that the law read is the law certified.
"""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.artefact import Artefact
from whereish.privacy.guarantee import Guarantee
from whereish.privacy.privacy_map import PrivacyMap
from whereish.solvers.geodesics import GraphMetric
from whereish.solvers.lowering import metric_in_use

__all__ = [
    "EIKONAL",
    "EIKONAL_QUERY",
    "UnderMap",
    "check_claim",
    "check_kind",
    "edge_arrays",
    "edge_certificate",
    "kept_factor",
    "saved_map",
    "saved_metric",
]

EIKONAL = "eikonal"
EIKONAL_QUERY = "eikonal query"
"""The kinds of mechanisms under a map, as their files name them."""


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
    mechanism: UnderMap, promised: NDArray[np.float64], metric: GraphMetric
) -> dict[str, NDArray[Any]]:
    """The map's levels, and how far each edge in use is below the price promised."""
    unlowered = metric_in_use(promised).weights
    return {
        "levels": mechanism.map.values,
        "lowered_by": (unlowered.astype(np.int32) - metric.weights).astype(np.int32),
    }


def edge_certificate(mechanism: UnderMap, metric: GraphMetric) -> dict[str, Any]:
    """The guarantee, the map and its edges."""
    return {
        "numpy": np.__version__,
        "guarantee": mechanism.guarantee.to_json(),
        "map": mechanism.map.to_json(),
        "neighbours": mechanism.neighbours,
        "divided_by": mechanism.divided,
        "quantum": metric.quantum,
        "edges_sha256": _hash(metric.weights),
    }


def check_kind(saved: Artefact, kind: str) -> None:
    """Refuse a file of another kind of mechanism."""
    if saved.kind != kind:
        raise InvalidInput(f"this file holds a mechanism of kind {saved.kind!r}, not {kind!r}")


def saved_map(saved: Artefact) -> tuple[PrivacyMap, int, float]:
    """The map, the directions of its stencil, and the factor by which it was divided."""
    certificate = saved.certificate
    privacy_map = PrivacyMap.from_json(certificate["map"], saved.arrays["levels"])
    return privacy_map, int(certificate["neighbours"]), float(certificate["divided_by"])


def saved_metric(saved: Artefact, promised: NDArray[np.float64]) -> GraphMetric:
    """The edges in use, from the prices that follow from the map in the file."""
    unlowered = metric_in_use(promised)
    weights = (unlowered.weights.astype(np.int32) - saved.arrays["lowered_by"]).astype(np.uint16)
    if _hash(weights) != saved.certificate["edges_sha256"]:
        raise NotPrivate(
            "the edge weights that follow from this file are not those that were certified;"
            " build the mechanism again on this machine"
        )
    return GraphMetric(weights, unlowered.quantum)


def kept_factor(factors: NDArray[np.float64]) -> float:
    """The largest factor where there is an edge (NaN: none); raises `NotPrivate` above 1."""
    factor = 0.0 if np.isnan(factors).all() else float(np.nanmax(factors))
    if factor > 1.0:
        raise NotPrivate(f"this mechanism keeps only {factor:.6f} times its promise")
    return factor


def check_claim(found: float, claimed: float) -> None:
    """Refuse a certificate that is better than the numbers."""
    if found > claimed * (1 + 1e-12):
        raise NotPrivate("this file claims a better certificate than its numbers bear out")


def _hash(array: NDArray[Any]) -> str:
    digest = hashlib.sha256(f"{array.dtype} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
