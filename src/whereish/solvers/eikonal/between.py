"""A certified law on places between cells: geometric means of the laws around a place.

The promise is |grad ln P(y | u)| <= eps(u) at every place u and for every report y, eps the
bilinear interpolant of the map's levels, constant beyond the outermost centres.  So along any path
ln P(y | u) changes by at most the integral of eps: the metric of the map, between places.

A law on the corners of cells (:mod:`~whereish.solvers.splines.corners` says why these) or on the
centres of half cells (:mod:`~whereish.solvers.splines.halves`) is solved as in
:mod:`~whereish.solvers.eikonal.cells`, at prices that leave room for what lies between (`SHARES`),
and its slope is bounded by :mod:`~whereish.solvers.splines.bound`.  Where the bound exceeds eps the
edges around are lowered by as much (:mod:`~whereish.solvers.eikonal.settling`), and the weights are
solved again from the last ones while edges still move much: weights that are held would leave a
slope of ln Z wherever prices fell, and with it more to lower.  At the end, when edges fall by parts
of a per cent, they are held: then little changes but what is beside these edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.privacy.maps.stencil import STENCILS
from whereish.solvers.eikonal.cells import (
    BuiltLaw,
    RoundProgress,
    check_resolution,
    framed_law,
)
from whereish.solvers.eikonal.certify import (
    CertifiedLaw,
    edge_factors,
    residual_allowed,
    worst_edge,
)
from whereish.solvers.eikonal.margin import framed
from whereish.solvers.eikonal.preconditioner import approximate_inverse_factor
from whereish.solvers.eikonal.rounding_norm import longest_side
from whereish.solvers.eikonal.settling import Search, proof_bar, settled
from whereish.solvers.eikonal.weights import Remembered, nonnegative_weights
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.lanes import LIMIT
from whereish.solvers.geodesic.masses import TABLE_BITS, integer_weights
from whereish.solvers.geodesic.near import NearProduct
from whereish.solvers.splines.bound import SplineSlopes
from whereish.solvers.splines.lattice import LATTICES, Lattice
from whereish.solvers.splines.report_blocks import report_blocks
from whereish.solvers.splines.shares import EdgeShares
from whereish.solvers.splines.slopes import PointSlopes, points_between, slopes_between
from whereish.solvers.tables.error import table_laws
from whereish.threads import one_blas_thread

__all__ = [
    "SHARES",
    "cell_laws",
    "geometric_laws",
    "law_between",
    "points_between",
    "prices_between",
    "report_blocks",
    "slopes_between",
]

SHARES = {(0, 1): 0.9688, (1, 1): 0.9813, (1, 2): 0.9754, (1, 3): 0.9793, (2, 3): 0.9790}
"""Prices along the 32 steps on square cells, as shares of eps.

Of all shares for which the spline of the graph metric is nowhere steeper than a constant eps, some
have the least squared error where cells are small, others where a cell is a nat wide (found by
Nelder and Mead's method); these are the geometric means of both."""

_STEEPEST = 4.0
"""Most nats per cell side in use: beyond, hardly a draw between cells would be accepted, and the
cell's own side is the error that counts."""

_SQUARE = 1.02  # oblong cells have no shares of their own
_BUDGET = 3  # products per round: one pass from the weights of the last,
_NEXT_BUDGET = 2  # which takes one less where what is far is known from the round before
_SUM_BITS = 62 - TABLE_BITS  # of the largest sum of weights, as they are rounded
_LEAST_SUM, _LARGEST_SUM = 0.25, 1.4  # times that, before they are rounded anew


@one_blas_thread()
def law_between(
    eps: FloatArray,
    cell: tuple[float, float],
    *,
    neighbours: int = 32,
    frame: int | None = None,
    finer: bool = False,
    prior: FloatArray | None = None,
    progress: RoundProgress | None = None,
    instead: Callable[[BuiltLaw, FloatArray], BuiltLaw | None] | None = None,
) -> BuiltLaw:
    """A law whose geometric spline keeps |grad ln P(y | u)| <= eps(u) everywhere.

    The parameters are those of :func:`~whereish.solvers.eikonal.cells.law_on_cells`; with `finer`
    laws stand at the centres of half cells, else at the corners of cells.  `instead` is given the
    law from which rounds start, and the prices of a map without a frame; a law that it returns is
    taken, and no round is made.
    """
    lattice = LATTICES["halves" if finer else "corners"]
    check_resolution(eps, lattice.sides(cell, eps.shape))
    sides = lattice.sides(cell, eps.shape)
    first = _first_levels(eps, longest_side(sides, eps.shape))
    start, nodes = lattice.start(first), lattice.levels(first)

    def prices(wide: FloatArray, sides: tuple[float, float], neighbours: int) -> FloatArray:
        frame = (wide.shape[0] - nodes.shape[0]) // 2
        return prices_between(lattice, framed(start, sides, frame), sides, neighbours)

    built = framed_law(
        nodes,
        sides,
        prices,
        neighbours=neighbours,
        frame=frame,
        progress=progress,
        prior=None if prior is None else lattice.shares(prior.reshape(eps.shape)).sum(axis=1),
        first=instead is None,
    )
    first_edges = built.law.metric.weights
    most = _steepest_edges(sides, neighbours, built.law.metric.quantum)
    promised = lattice.prices(framed(lattice.basis(eps), sides, built.frame), sides, neighbours)
    law = built.law
    kept, pair = worst_edge(edge_factors(law.metric, law.sums, promised), law.metric)
    law = replace(law, factor=kept, worst=pair)
    built = replace(built, law=law, used=lattice.levels(eps), promised=promised)
    if eps.size == 1:
        return replace(built, gradient_factor=0.0, acceptance=1.0)
    other = None
    if instead is not None:
        other = instead(built, prices_between(lattice, start, sides, neighbours))
    if other is not None:
        return other
    inverse = partial(approximate_inverse_factor, framed(nodes, sides, built.frame), sides)
    solver = _Solver(Remembered(inverse))

    def at(shares: EdgeShares, last: BuiltLaw, solve: bool) -> BuiltLaw:
        """The law at those shares of the first edges."""
        edges = np.minimum(shares.of(first_edges, last.frame, neighbours), most)
        found = _with_edges(last, edges)
        return solver.with_weights(found, _weights(last)) if solve else found

    def proof(law: BuiltLaw) -> tuple[BuiltLaw, SplineSlopes]:
        exact = _in_integers(law)
        return exact, slopes_between(exact, eps, cell, bar=proof_bar(law.used.size))

    highest = EdgeShares.up_to(most, first_edges, built.frame, neighbours)
    points = PointSlopes(built, eps, cell)
    search = Search(points=points, proof=proof, at=at, most=highest, progress=progress)
    return settled(built, search)


def prices_between(
    lattice: Lattice, basis: FloatArray, sides: tuple[float, float], neighbours: int
) -> FloatArray:
    """Edge prices in use for levels: each direction at its share, where squares are square."""
    prices = lattice.prices(basis, sides, neighbours)
    square = max(sides) <= _SQUARE * min(sides) and 1 not in basis.shape
    if neighbours != 32 or not square:
        return prices
    shares = [SHARES[min(abs(i), abs(j)), max(abs(i), abs(j))] for i, j in STENCILS[32]]
    return np.asarray(prices * np.array(shares))


def cell_laws(built: BuiltLaw, cells: NDArray[np.intp]) -> FloatArray:
    """(n, reports) probabilities of all reports for cells of the map."""
    if built.table is not None:
        out = np.zeros((len(cells), built.used.size))
        out[:, built.table.reported] = table_laws(built.table, cells)
        return out
    law, inner = built.law, built.secrets[cells]
    masses = law.weights * law.table[law.metric.distances(inner)]
    return np.asarray(masses.astype(np.float64) / law.sums[inner].astype(np.float64)[:, None])


def geometric_laws(built: BuiltLaw, nine: NDArray[np.intp], shares: FloatArray) -> FloatArray:
    """(n, reports) normalised geometric means of the laws of nine cells, with (n, 9) shares."""
    cells, which = np.unique(nine, return_inverse=True)
    laws = cell_laws(built, cells)
    used = laws[0] > 0
    logs = np.log(laws[:, used])
    out = np.zeros((len(nine), len(used)))
    means = np.einsum("nc,ncy->ny", shares, logs[which.reshape(nine.shape)])
    out[:, used] = np.exp(means)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def _first_levels(eps: FloatArray, side: float) -> FloatArray:
    """Levels that the slope is likely to leave: at most `_STEEPEST` nats, less what m takes.

    At a constant level of p nats per side of a square the bound was found to be that much above it.
    """
    levels = np.minimum(eps, _STEEPEST / side)
    price = levels * side
    return np.asarray(levels / (1.0008 + 0.0105 * price**2 + 0.0005 * price**4))


def _steepest_edges(
    sides: tuple[float, float], neighbours: int, quantum: float
) -> NDArray[np.uint16]:
    """Edges along each step, in quanta, at `_STEEPEST` nats along the longer side."""
    lengths = [math.hypot(i * sides[0], j * sides[1]) for i, j in STENCILS[neighbours]]
    most = _STEEPEST * np.array(lengths) / max(sides) / quantum
    return np.minimum(most, LIMIT).astype(np.uint16)


def _with_edges(built: BuiltLaw, edges: NDArray[np.uint16]) -> BuiltLaw:
    """The law with other edges and the weights and sums of before: these are not its own as yet."""
    metric = GraphMetric(edges, built.law.metric.quantum)
    return replace(built, law=replace(built.law, metric=metric, rounds=built.law.rounds + 1))


@dataclass
class _Solver:
    """Solves for weights, round by round.

    Attributes
    ----------
    inverse : makes the preconditioner.
    far : what far reports have of the sums, as of the last weights: hardly changes with edges.
    """

    inverse: Remembered
    far: FloatArray | None = None

    def with_weights(self, built: BuiltLaw, start: FloatArray) -> BuiltLaw:
        """The law with weights that are solved for, from others, and about its sums."""
        law = built.law
        solved = nonnegative_weights(
            law.metric.product,
            NearProduct(law.metric),
            self.inverse,
            start,
            aim=law.aim,
            tolerance=residual_allowed(built.promised),
            budget=_BUDGET if self.far is None else _NEXT_BUDGET,
            far=self.far,
        )
        self.far = np.asarray(solved.far)
        largest = float(solved.image.max())
        counts = integer_weights(solved.values, largest)
        scale = float(counts.max()) / float(solved.values.max()) * float(law.table[0])
        sums = np.rint(solved.image * scale).astype(np.uint64)
        products = law.products + solved.products
        return replace(built, law=replace(law, weights=counts, sums=sums, products=products))


def _weights(built: BuiltLaw) -> FloatArray:
    """Weights as they are solved for: sums are about 1."""
    law = built.law
    return np.asarray(law.weights / float(law.sums[built.secrets].mean()) * float(law.table[0]))


def _in_integers(built: BuiltLaw) -> BuiltLaw:
    """The law with its exact sums, and the factor of its edges."""
    law = built.law
    metric, counts = law.metric, law.weights
    largest = float(metric.product(counts.astype(np.float64)).max())
    if not _LEAST_SUM < largest / 2.0**_SUM_BITS < _LARGEST_SUM:  # edges have changed much since
        counts = integer_weights(counts.astype(np.float64) / largest, 1.0)
    sums, sweeps = metric.exact_sums(counts, law.table, built.secrets)
    edge, worst = worst_edge(edge_factors(metric, sums, built.promised), metric)
    dropped, products = int((counts == 0).sum()), law.products + 1
    counted = law.rounds, products, dropped, sweeps
    exact = CertifiedLaw(metric, counts, sums, edge, worst, *counted, aim=law.aim)
    return replace(built, law=exact)
