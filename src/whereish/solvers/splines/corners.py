"""Nodes of a map's spline law: the corners of its cells.

Levels are given at the centres of cells and are bilinear between them.  The laws between which a
spline law goes stand at the corners: a spline through these is steepest between two of them, and
its slope there is the price of the edge over its length.  So at the centre of a cell the slope is
that of the edges around this cell alone, and wherever levels jump only the edges on the border
between two cells have to take the lower of both.  (Through the centres, the slope at one would be
that of all the cells around: a cell at a low level would cost its neighbours theirs.)

Around a node, half a cell wide on each side, lie quarters of four cells, and there eps is one
bilinear function with the four centres as corners.  Along an axis with a single cell there is a
single node, in its middle.
"""

from __future__ import annotations

import math

import numpy as np

from whereish.arrays import FloatArray
from whereish.privacy.maps.stencil import STENCILS, edge_slices
from whereish.space.raster import Raster

__all__ = ["Corners", "centre_levels", "corner_prices", "mean_at_corners"]

_PARTS = 6
"""Edges cross the lines between cells at multiples of a sixth of their length."""


class Corners:
    """Nodes at the corners of cells."""

    name = "corners"
    half_rim = True
    """Half of the square around an outermost node lies outside the map."""

    def shape(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Rows and columns of the nodes of a map with so many rows and columns of cells."""
        rows, cols = (count + 1 if count > 1 else 1 for count in shape)
        return rows, cols

    def sides(self, cell: tuple[float, float], shape: tuple[int, ...]) -> tuple[float, float]:
        """Height and width of the squares around the nodes."""
        return cell

    def raster(self, raster: Raster) -> Raster:
        """The raster whose cells are the squares around the nodes."""
        rows, columns = self.shape(raster.shape)
        (x, y), (width, height) = raster.origin, raster.cell
        origin = (
            x - (columns - raster.columns) * width / 2,
            y - (rows - raster.rows) * height / 2,
        )
        return Raster(rows, columns, raster.cell, origin, raster.plane)

    def square_levels(self, eps: FloatArray) -> FloatArray:
        """eps at the corners of these squares, one row and column more than there are nodes."""
        return centre_levels(eps)

    def levels(self, eps: FloatArray) -> FloatArray:
        """eps at the nodes."""
        return mean_at_corners(eps)

    def basis(self, eps: FloatArray) -> FloatArray:
        """What prices are made of, around which a frame may be put: here the cells' own levels."""
        return eps

    def start(self, eps: FloatArray) -> FloatArray:
        """Such a basis from which the search for a law starts; nowhere above the other."""
        return eps

    def prices(self, basis: FloatArray, sides: tuple[float, float], neighbours: int) -> FloatArray:
        """Prices of edges that no law exceeds."""
        return corner_prices(basis, sides, neighbours=neighbours)

    def asked(self, basis: FloatArray, sides: tuple[float, float], neighbours: int) -> FloatArray:
        """Integrals of the levels along edges."""
        return corner_prices(basis, sides, neighbours=neighbours, tight=False)

    def shares(self, weights: FloatArray) -> FloatArray:
        """(nodes, 4) what the quarters around every node have of `weights` over the map's cells.

        Quarters are in the order south-west, south-east, north-west, north-east; those outside the
        map have nothing.
        """
        rows, cols = self.shape(weights.shape)
        pads = [(1, 1) if count > 1 else (0, 0) for count in weights.shape]
        wide = np.pad(weights / 4.0, pads)
        if rows == 1:
            wide = np.repeat(wide, 2, axis=0)
        if cols == 1:
            wide = np.repeat(wide, 2, axis=1)
        parts = [wide[a : a + rows, b : b + cols].ravel() for a in (0, 1) for b in (0, 1)]
        return np.stack(parts, axis=1)

    def over_cells(self, values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """The mean of the nodes' `values` around every cell of a map of the given shape."""
        rows, cols = values.shape
        padded = np.pad(values, [(0, rows == shape[0]), (0, cols == shape[1])], mode="edge")
        four = padded[1:, 1:] + padded[1:, :-1] + padded[:-1, 1:] + padded[:-1, :-1]
        return np.asarray(four / 4)


def centre_levels(eps: FloatArray) -> FloatArray:
    """Levels at the corners of the squares around the nodes, one row and column more than these.

    These corners are the centres of cells; beyond the outermost, eps is constant.
    """
    pads = [(1, 1) if count > 1 else (0, 1) for count in eps.shape]
    return np.pad(eps, pads, mode="edge")


def mean_at_corners(eps: FloatArray) -> FloatArray:
    """eps at the nodes."""
    wide = centre_levels(eps)
    return np.asarray((wide[1:, 1:] + wide[1:, :-1] + wide[:-1, 1:] + wide[:-1, :-1]) / 4)


def corner_prices(
    eps: FloatArray, cell: tuple[float, float], *, neighbours: int, tight: bool = True
) -> FloatArray:
    """Prices of the edges between nodes, each cell at its level along the way.

    An edge along the border of two cells takes the lower of their levels, or with `tight` false
    their mean.  Returned as by :func:`~whereish.privacy.maps.stencil.edge_integrals`.
    """
    wide, shape = centre_levels(eps), Corners().shape(eps.shape)
    merge = np.minimum.reduce if tight else _mean
    prices = np.full((*shape, neighbours // 2), np.inf)
    for k, (di, dj) in enumerate(STENCILS[neighbours]):
        tail, _ = edge_slices(shape, (di, dj))
        (top, left), (bottom, right) = ((s.start for s in tail), (s.stop for s in tail))
        total = np.zeros((bottom - top, right - left))
        for part in range(_PARTS):
            t = (part + 0.5) / _PARTS
            # Of a node (i, j) the cells around have the indices i, i + 1 and j, j + 1.
            rows = [math.floor(t * di) + 1] if di else [0, 1]
            cols = [math.floor(t * dj) + 1] if dj else [0, 1]
            beside = [wide[top + i : bottom + i, left + j : right + j] for i in rows for j in cols]
            total += merge(beside) / _PARTS
        prices[*tail, k] = total * math.hypot(di * cell[0], dj * cell[1])
    return prices


def _mean(parts: list[FloatArray]) -> FloatArray:
    return np.asarray(np.add.reduce(parts) / len(parts)) if len(parts) > 1 else parts[0]
