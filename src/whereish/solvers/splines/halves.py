"""Nodes of a finer spline law: the centres of half cells.

Where eps·h is not small, a law with one node to a cell rounds off its own tip, and edges along the
border of two cells must take the lower of their levels.  With two nodes to a cell along each axis,
a quarter of the side away from its border, neither costs much.  The squares around the nodes are
quarters of cells, in each of which eps (bilinear between the centres of cells) is one bilinear
function.  Along an axis with a single cell there is a single node, in its middle.

Along an axis the slope of a spline is the linear interpolant of its edges' slopes, taken between
the nodes, which is where eps has its knots; across, it is a mean over three rows of nodes.  At the
centre of a cell two rows have equal shares, and their mean must not be above the level there:
:func:`levels_below` takes from the levels at the nodes what they are too high.
"""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray
from whereish.privacy.maps.stencil import edge_integrals
from whereish.space.raster import Raster

__all__ = ["Halves", "levels_below"]


class Halves:
    """Two nodes to a cell along each axis; methods as in :class:`Corners`."""

    name = "halves"
    half_rim = False

    def shape(self, shape: tuple[int, ...]) -> tuple[int, int]:
        rows, cols = (2 * count if count > 1 else 1 for count in shape)
        return rows, cols

    def sides(self, cell: tuple[float, float], shape: tuple[int, ...]) -> tuple[float, float]:
        height, width = (
            side / 2 if count > 1 else side for side, count in zip(cell, shape, strict=True)
        )
        return height, width

    def raster(self, raster: Raster) -> Raster:
        height, width = self.sides((raster.cell[1], raster.cell[0]), raster.shape)
        return Raster(*self.shape(raster.shape), (width, height), raster.origin, raster.plane)

    def square_levels(self, eps: FloatArray) -> FloatArray:
        for axis in (0, 1):
            eps = _at_ends(eps, axis)
        return eps

    def levels(self, eps: FloatArray) -> FloatArray:
        for axis in (0, 1):
            eps = _quarters(eps, axis)[0]
        return eps

    def basis(self, eps: FloatArray) -> FloatArray:
        return self.levels(eps)

    def start(self, eps: FloatArray) -> FloatArray:
        return levels_below(eps)

    def prices(self, basis: FloatArray, sides: tuple[float, float], neighbours: int) -> FloatArray:
        return edge_integrals(basis, sides, neighbours=neighbours)

    asked = prices

    def shares(self, weights: FloatArray) -> FloatArray:
        parts = 1
        for axis in (0, 1):
            if weights.shape[axis] > 1:
                weights, parts = np.repeat(weights, 2, axis), 2 * parts
        return np.repeat(weights.reshape(-1, 1) / (4 * parts), 4, axis=1)

    def over_cells(self, values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        rows, cols = shape
        blocks = values.reshape(rows, values.shape[0] // rows, cols, values.shape[1] // cols)
        return np.asarray(blocks.mean(axis=(1, 3)))


def levels_below(eps: FloatArray) -> FloatArray:
    """Levels at the nodes whose mean at the centre of a cell is nowhere above the level there.

    Of the two nodes of a cell along an axis, those above the cell's level give up as much as the
    mean is too high, in proportion to their height above it; the others are as they are.
    """
    for axis in (0, 1):
        if eps.shape[axis] == 1:
            continue
        nodes, middle = _quarters(eps, axis)
        pairs = _paired(nodes, axis)
        above = np.maximum(pairs - middle, 0.0)
        high = np.maximum(pairs.sum(axis=0) - 2 * middle, 0.0)
        height = above.sum(axis=0)
        pairs = pairs - above * (high / np.where(height > 0, height, 1.0))
        eps = _interleaved(pairs[0], pairs[1], axis)
    return eps


def _quarters(eps: FloatArray, axis: int) -> tuple[FloatArray, FloatArray]:
    """Linear interpolants a quarter before and after each centre, interleaved, and the levels."""
    if eps.shape[axis] == 1:
        return eps, eps
    before, after = _beside(eps, axis)
    return _interleaved((3 * eps + before) / 4, (3 * eps + after) / 4, axis), eps


def _at_ends(eps: FloatArray, axis: int) -> FloatArray:
    """Levels at the ends of half cells along an axis: rim, centre, border, centre, ..., rim."""
    if eps.shape[axis] == 1:
        return np.repeat(eps, 2, axis)
    _, after = _beside(eps, axis)
    first = np.take(eps, [0], axis)
    return np.concatenate([first, _interleaved(eps, (eps + after) / 2, axis)], axis)


def _beside(eps: FloatArray, axis: int) -> tuple[FloatArray, FloatArray]:
    """The levels before and after each along an axis, the outermost repeated."""
    count = eps.shape[axis]
    index = np.arange(count)
    return (
        np.take(eps, np.maximum(index - 1, 0), axis),
        np.take(eps, np.minimum(index + 1, count - 1), axis),
    )


def _interleaved(one: FloatArray, other: FloatArray, axis: int) -> FloatArray:
    shape = list(one.shape)
    shape[axis] *= 2
    return np.stack([one, other], axis=axis + 1).reshape(shape)


def _paired(nodes: FloatArray, axis: int) -> FloatArray:
    """(2, ...) the first and the second nodes of the cells along an axis."""
    shape = list(nodes.shape)
    shape[axis : axis + 1] = [shape[axis] // 2, 2]
    return np.moveaxis(nodes.reshape(shape), axis + 1, 0)
