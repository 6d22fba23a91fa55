"""The metric that a privacy map promises, between places."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.maps.stencil import STENCILS, edge_integrals, edge_slices
from whereish.privacy.metric import Metric, scaled_up
from whereish.privacy.norms import Euclidean, Manhattan
from whereish.space.points import Space

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["MapGeodesic"]


@dataclass(frozen=True, eq=False)
class MapGeodesic(Metric):
    """Shortest path integral of eps.

    On cells (`continuous` false): the shortest path over the stencil's edges between the
    cells of two places, each edge at its line integral.  On continuous places: an upper
    bound of the continuous geodesic distance, the smaller of the straight segment and of
    the path over the centres of the two cells.
    """

    map: PrivacyMap
    neighbours: int = 16
    continuous: bool = False
    kind = "map-geodesic"

    @property
    def description(self) -> str:
        """The metric in the field's notation."""
        where = "continuous places" if self.continuous else "cells"
        return f"min over paths of the integral of eps(u)|du| ({where} of a privacy map)"

    @cached_property
    def _graph(self) -> csr_matrix[np.float64]:
        from scipy.sparse import csr_matrix

        shape = self.map.shape
        prices = edge_integrals(self.map.plane_levels(), self.map.sides, neighbours=self.neighbours)
        cells = np.arange(shape[0] * shape[1]).reshape(shape)
        tails, heads, costs = [], [], []
        for k, step in enumerate(STENCILS[self.neighbours]):
            tail, head = edge_slices(shape, step)
            tails.append(cells[tail].ravel())
            heads.append(cells[head].ravel())
            costs.append(prices[*tail, k].ravel())
        count = cells.size
        return csr_matrix(
            (np.concatenate(costs), (np.concatenate(tails), np.concatenate(heads))),
            shape=(count, count),
        )

    def _ratio_to(self, other: Metric) -> float:
        """On places: a segment costs at most the largest level times its length.

        Between cells no ratio is known: places on either side of a border are as close as you like.
        """
        if not (self.continuous and isinstance(other, Euclidean | Manhattan)):
            return math.inf
        return scaled_up(1.0, float(self.map.values.max()), self.map.plane.scale)

    def fits(self, space: Space) -> bool:
        """On the map's own plane or line."""
        return space == self.map.space

    def between_cells(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Distances of cells by their flat indices, broadcast against each other."""
        from scipy.sparse.csgraph import dijkstra

        x, y = np.broadcast_arrays(np.asarray(x, np.intp), np.asarray(y, np.intp))
        if np.unique(y).size < np.unique(x).size:
            x, y = y, x  # symmetric: search from the side with fewer cells
        sources, which = np.unique(x, return_inverse=True)
        rows = dijkstra(self._graph, directed=False, indices=sources)
        return np.asarray(rows[which.reshape(x.shape), y])

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Distances of places, rows broadcast against each other."""
        x, y = np.broadcast_arrays(self._coordinates(x), self._coordinates(y))
        raster = self.map.raster
        centres = raster.centres()
        shape = x.shape[:-1]
        a, b = x.reshape(-1, 2), y.reshape(-1, 2)
        cell_a, cell_b = raster.locate(a), raster.locate(b)
        over_centres = self.between_cells(cell_a, cell_b)
        if not self.continuous:
            return over_centres.reshape(shape)
        over_centres = (
            over_centres + self._along(a, centres[cell_a]) + self._along(centres[cell_b], b)
        )
        return np.asarray(np.minimum(self._along(a, b), over_centres)).reshape(shape)

    def _coordinates(self, places: ArrayLike) -> FloatArray:
        array = np.asarray(places, float)
        if self.map.one_dimensional:
            array = array if array.ndim > 0 and array.shape[-1] == 1 else array[..., None]
            middle = np.full_like(array, self.map.origin[1] + self.map.raster.cell[1] / 2)
            return np.concatenate([array, middle], axis=-1)
        return array

    def _along(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Integral of eps along straight segments: Simpson's rule between lines of centres.

        There the interpolant is quadratic along the segment, so that the rule is exact.
        """
        from scipy.ndimage import map_coordinates

        levels = self.map.plane_levels()
        (x0, y0), (width, height) = self.map.origin, self.map.raster.cell
        corner, side = np.array([y0, x0]), np.array([height, width])
        starts, ends = ((p[:, ::-1] - corner) / side - 0.5 for p in (a, b))
        out = np.empty(len(a))
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            cuts = [np.array([0.0, 1.0])]
            for u, v, count in zip(start, end, levels.shape, strict=True):
                lines = np.arange(max(np.ceil(min(u, v)), 0), min(max(u, v), count - 1) + 1)
                cuts.append((lines - u) / (v - u) if u != v else np.empty(0))
            t = np.unique(np.clip(np.concatenate(cuts), 0.0, 1.0))
            nodes = np.stack([t[:-1], (t[:-1] + t[1:]) / 2, t[1:]])
            index = start[:, None, None] + nodes * (end - start)[:, None, None]
            values = map_coordinates(levels, index, order=1, mode="nearest")
            out[row] = (np.diff(t) * (np.array([1, 4, 1]) / 6 @ values)).sum()
        return np.asarray(out * np.hypot(*(b - a).T))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapGeodesic) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, int, bool]:
        return self.map.digest(), self.neighbours, self.continuous

    def to_json(self) -> dict[str, Any]:
        """Which map, by its place and hash; the levels are with the mechanism."""
        return {
            "kind": self.kind,
            "map": self.map.to_json(),
            "neighbours": self.neighbours,
            "continuous": self.continuous,
        }

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Metric:
        raise InvalidInput(
            "the metric of a privacy map needs the map's levels: read it with its mechanism, by"
            " EikonalMechanism.load(path)"
        )
