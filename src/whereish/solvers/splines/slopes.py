"""Slopes of a law between cells: proven ones, and those at points.

A search looks at the slopes at points many times, while edges change by per cents and then by less.
So it looks at all points now and then, and in between only at those at which a slope is about the
largest around (:class:`PointSlopes`).  All reports count every time: in a tenth of the squares the
steepest is more than ten nats away.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.solvers.eikonal.cells import BuiltLaw
from whereish.solvers.splines.bound import SplineSlopes, largest_slopes
from whereish.solvers.splines.lattice import Lattice, lattice_of
from whereish.solvers.splines.points import (
    PARTS,
    Chosen,
    NearLaws,
    all_points,
    point_gradients,
    point_grid,
    sampled_means,
    sampled_slopes,
)
from whereish.solvers.splines.report_blocks import near_shares, report_shares
from whereish.solvers.tables.blocks import laws_of_table

__all__ = ["PointSlopes", "leave_out_rim", "points_between", "slopes_between", "spline_laws"]

_MATTERS = 0.005  # of eps: points so much below the largest of all windows around them do not


def spline_laws(built: BuiltLaw) -> NearLaws:
    """The laws at the nodes: those of the table, if there is one."""
    if built.table is not None:
        return laws_of_table(built.table)
    law, metric = built.law, built.metric_on_map
    rows, cols = metric.shape
    steps, used = metric.steps, metric.weights.astype(np.float64) * metric.quantum
    whole = float(law.table[0]) * float(law.weights.max())
    sums = law.sums[built.secrets].astype(np.float64).reshape(rows, cols)
    return NearLaws(
        shares=partial(report_shares, built),
        log_sums=np.log(sums / whole),
        across=used[:, :-1, steps.index((0, 1))],
        along=used[:-1, :, steps.index((1, 0))],
        deepest=math.log(float(law.table[0]) / float(law.table[-1])),
        near=partial(near_shares, built),
    )


def slopes_between(
    built: BuiltLaw, eps: FloatArray, cell: tuple[float, float], *, bar: float = 0.0
) -> SplineSlopes:
    """Bounds of |grad ln P| / eps around every node, over all reports; sharp above `bar`."""
    lattice = lattice_of(eps.shape, built.used.shape)
    levels, sides = lattice.square_levels(eps), lattice.sides(cell, eps.shape)
    return largest_slopes(spline_laws(built), levels, sides, bar=bar, half_rim=lattice.half_rim)


def points_between(built: BuiltLaw, eps: FloatArray, cell: tuple[float, float]) -> FloatArray:
    """|grad ln P| / eps at points around every node; 0 at those outside the map."""
    return PointSlopes(built, eps, cell).everywhere(built)


class PointSlopes:
    """|grad ln P| / eps at points around every node of similar laws on one map.

    Parameters
    ----------
    built : one of the laws.
    eps, cell : the map.
    """

    def __init__(self, built: BuiltLaw, eps: FloatArray, cell: tuple[float, float]) -> None:
        lattice: Lattice = lattice_of(eps.shape, built.used.shape)
        self._levels, self._sides = lattice.square_levels(eps), lattice.sides(cell, eps.shape)
        self._points = all_points(built.used.shape)
        if lattice.half_rim:
            leave_out_rim(self._points)
        self._chosen: Chosen | None = None
        self._means: tuple[FloatArray, FloatArray] | None = None  # and ln of the nodes' sums

    def everywhere(self, built: BuiltLaw) -> FloatArray:
        """(rows, cols, 5, 5) slopes at all points; 0 outside the map."""
        laws = spline_laws(built)
        self._means = laws.log_sums, sampled_means(laws, self._sides, self._points)
        slopes = self._slopes(laws, self._points, self._means[1])
        self._chosen = self._points & _matter(slopes)
        return slopes

    def chosen(
        self,
        built: BuiltLaw,
        squares: NDArray[np.bool_] | None = None,
        *,
        carried: bool = False,
    ) -> FloatArray:
        """The same at the points that mattered when all were looked at; elsewhere 0.

        With `squares` (rows, cols) it is looked at these alone.  If means are `carried`, they are
        those of that time, but for what the sums of the nodes have changed since: m is the gradient
        of the logarithm of a sum, which between nodes is the spline of theirs and the logarithm of
        the chance that a draw is kept, and that hardly changes.
        """
        if self._chosen is None or self._means is None:
            return self.everywhere(built)
        chosen, laws = self._chosen, spline_laws(built)
        if squares is not None:
            chosen = chosen & squares[:, :, None, None]
        if carried:
            before, means = self._means
            means = means + point_gradients(laws.log_sums - before, self._sides)
        else:
            means = sampled_means(laws, self._sides, chosen)
        return self._slopes(laws, chosen, means)

    def look_at(self, squares: NDArray[np.bool_]) -> None:
        """Let all points of some squares (rows, cols) matter, until all are looked at again."""
        if self._chosen is None:
            return
        wanted = np.zeros(self._points.shape, np.bool_)
        wanted[squares] = True
        wanted[1:, :, 0] |= squares[:-1, :, None]  # points between two squares are the later one's
        wanted[:, 1:, :, 0] |= squares[:, :-1, None]
        wanted[1:, 1:, 0, 0] |= squares[:-1, :-1]
        self._chosen = self._chosen | (self._points & wanted)

    def _slopes(self, laws: NearLaws, chosen: Chosen, means: FloatArray) -> FloatArray:
        return sampled_slopes(laws, self._levels, self._sides, chosen, means)


def _matter(slopes: FloatArray) -> Chosen:
    """At which points a slope is about the largest of some window as wide as a square."""
    grid = point_grid(slopes)
    least = -_largest_around(-_largest_around(grid))
    rows, cols = slopes.shape[:2]
    out = np.empty(slopes.shape, np.bool_)
    for a in range(PARTS + 1):
        for b in range(PARTS + 1):
            here = slice(a, a + PARTS * rows, PARTS), slice(b, b + PARTS * cols, PARTS)
            out[:, :, a, b] = grid[here] > least[here] - _MATTERS
    return out


def _largest_around(grid: FloatArray) -> FloatArray:
    """The largest value within half a square of each point."""
    reach = PARTS // 2
    for axis in (0, 1):
        pads = [(0, 0), (0, 0)]
        pads[axis] = (reach, reach)
        wide = np.pad(grid, pads, mode="edge")
        grid = np.lib.stride_tricks.sliding_window_view(wide, 2 * reach + 1, axis).max(axis=-1)
    return grid


def leave_out_rim(points: Chosen) -> None:
    """Take the points outside the map out, of which half of every outermost square is."""
    middle = PARTS // 2
    if points.shape[0] > 1:
        points[0, :, :middle], points[-1, :, middle + 1 :] = False, False
    if points.shape[1] > 1:
        points[:, 0, :, :middle], points[:, -1, :, middle + 1 :] = False, False
