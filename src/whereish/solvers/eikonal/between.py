"""A certified law on places between cells: geometric means of the laws around a place.

The promise is |grad ln P(y | u)| <= eps(u) at every place u and for every report y, eps the
bilinear interpolant of the map's levels, constant beyond the outermost centres.  So along any path
ln P(y | u) changes by at most the integral of eps: the metric of the map, between places.

A law on the corners of cells (:mod:`~whereish.solvers.splines.corners` says why these) or on the
centres of half cells (:mod:`~whereish.solvers.splines.halves`) is solved as in
:mod:`~whereish.solvers.eikonal.cells`, at prices that leave room for what lies between (`SHARES`),
and its slope is bounded by :mod:`~whereish.solvers.splines.bound`.  Where the bound exceeds eps the
edges around are lowered by as much, and the weights are solved again from the last ones, in every
round (:mod:`~whereish.solvers.eikonal.settling`): weights that are held would leave a slope of ln Z
wherever prices fell, and with it more to lower.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
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
from whereish.solvers.eikonal.settling import PROOF_BAR, Search, settled
from whereish.solvers.eikonal.weights import Inverse, nonnegative_weights
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.lanes import LANES, LIMIT
from whereish.solvers.geodesic.masses import integer_weights
from whereish.solvers.geodesic.near import NearProduct
from whereish.solvers.geodesic.sweeps import BORDER, batch_distances, padded_cell
from whereish.solvers.splines.bound import (
    Block,
    CellLaws,
    SplineSlopes,
    largest_slopes,
)
from whereish.solvers.splines.lattice import LATTICES, Lattice, lattice_of
from whereish.solvers.splines.points import PARTS, sampled_slopes
from whereish.solvers.splines.shares import EdgeShares

__all__ = [
    "PROOF_BAR",
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
_BUDGET = 20  # products per round


def law_between(
    eps: FloatArray,
    cell: tuple[float, float],
    *,
    neighbours: int = 32,
    frame: int | None = None,
    finer: bool = False,
    progress: RoundProgress | None = None,
) -> BuiltLaw:
    """A law whose geometric spline keeps |grad ln P(y | u)| <= eps(u) everywhere.

    The parameters are those of :func:`~whereish.solvers.eikonal.cells.law_on_cells`; with `finer`
    laws stand at the centres of half cells, else at the corners of cells.
    """
    lattice = LATTICES["halves" if finer else "corners"]
    check_resolution(eps, lattice.sides(cell, eps.shape))
    sides = lattice.sides(cell, eps.shape)
    first = _first_levels(eps, longest_side(sides, eps.shape))
    start, nodes = lattice.start(first), lattice.levels(first)

    def prices(wide: FloatArray, sides: tuple[float, float], neighbours: int) -> FloatArray:
        frame = (wide.shape[0] - nodes.shape[0]) // 2
        return prices_between(lattice, framed(start, sides, frame), sides, neighbours)

    built = framed_law(nodes, sides, prices, neighbours=neighbours, frame=frame, progress=progress)
    first_edges = built.law.metric.weights
    most = _steepest_edges(sides, neighbours, built.law.metric.quantum)
    promised = lattice.prices(framed(lattice.basis(eps), sides, built.frame), sides, neighbours)
    law = built.law
    kept, pair = worst_edge(edge_factors(law.metric, law.sums, promised), law.metric)
    law = replace(law, factor=kept, worst=pair)
    built = replace(built, law=law, used=lattice.levels(eps), promised=promised)
    if eps.size == 1:
        return replace(built, gradient_factor=0.0, acceptance=1.0)
    inverse = partial(approximate_inverse_factor, framed(nodes, sides, built.frame), sides)

    def at(shares: EdgeShares, last: BuiltLaw) -> BuiltLaw:
        """The law at those shares of the first edges."""
        edges = shares.of(first_edges, last.frame, neighbours)
        return _with_edges(last, np.minimum(edges, most), inverse)

    search = Search(
        points=lambda law: points_between(law, eps, cell),
        proof=lambda law: slopes_between(law, eps, cell, bar=PROOF_BAR),
        at=at,
    )
    return settled(built, search, progress)


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


def slopes_between(
    built: BuiltLaw, eps: FloatArray, cell: tuple[float, float], *, bar: float = 0.0
) -> SplineSlopes:
    """Bounds of |grad ln P| / eps around every node, over all reports; sharp above `bar`."""
    laws, levels, sides, half_rim = _spline_problem(built, eps, cell)
    return largest_slopes(laws, levels, sides, bar=bar, half_rim=half_rim)


def points_between(built: BuiltLaw, eps: FloatArray, cell: tuple[float, float]) -> FloatArray:
    """|grad ln P| / eps at points around every node; 0 at those outside the map."""
    laws, levels, sides, half_rim = _spline_problem(built, eps, cell)
    slopes = sampled_slopes(laws, levels, sides)
    middle = PARTS // 2
    if half_rim and slopes.shape[0] > 1:
        slopes[0, :, :middle], slopes[-1, :, middle + 1 :] = 0.0, 0.0
    if half_rim and slopes.shape[1] > 1:
        slopes[:, 0, :, :middle], slopes[:, -1, :, middle + 1 :] = 0.0, 0.0
    return slopes


def _spline_problem(
    built: BuiltLaw, eps: FloatArray, cell: tuple[float, float]
) -> tuple[CellLaws, FloatArray, tuple[float, float], bool]:
    """Laws at the nodes, eps at the corners of the squares around them, their sides, the rim."""
    lattice = lattice_of(eps.shape, built.used.shape)
    law, metric = built.law, built.metric_on_map
    rows, cols = metric.shape
    steps, used = metric.steps, metric.weights.astype(np.float64) * metric.quantum
    whole = float(law.table[0]) * float(law.weights.max())
    sums = law.sums[built.secrets].astype(np.float64).reshape(rows, cols)
    laws = CellLaws(
        blocks=lambda: (block for _, block in report_blocks(built)),
        log_sums=np.log(sums / whole),
        across=used[:, :-1, steps.index((0, 1))],
        along=used[:-1, :, steps.index((1, 0))],
        deepest=math.log(float(law.table[0]) / float(law.table[-1])),
    )
    sides = lattice.sides(cell, eps.shape)
    return laws, lattice.square_levels(eps), sides, lattice.half_rim


def cell_laws(built: BuiltLaw, cells: NDArray[np.intp]) -> FloatArray:
    """(n, reports) probabilities of all reports for cells of the map."""
    law, inner = built.law, built.secrets[cells]
    masses = law.weights * law.table[law.metric.distances(inner)]
    return np.asarray(masses.astype(np.float64) / law.sums[inner].astype(np.float64)[:, None])


def geometric_laws(built: BuiltLaw, nine: NDArray[np.intp], shares: FloatArray) -> FloatArray:
    """(n, reports) normalised geometric means of the laws of nine cells, with (n, 9) shares."""
    cells, which = np.unique(nine, return_inverse=True)
    laws, used = cell_laws(built, cells), built.law.weights > 0
    logs = np.log(laws[:, used])
    out = np.zeros((len(nine), len(used)))
    means = np.einsum("nc,ncy->ny", shares, logs[which.reshape(nine.shape)])
    out[:, used] = np.exp(means)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def report_blocks(built: BuiltLaw) -> Iterator[tuple[IntArray, Block]]:
    """Up to 64 reports at a time, with their logarithms and masses over the map's cells."""
    law, metric, frame = built.law, built.law.metric, built.frame
    table = law.table / float(law.table[0])
    logs, masses = np.log(table).astype(np.float32), table.astype(np.float32)
    shares = (law.weights / float(law.weights.max())).astype(np.float32)
    order = metric.order[law.weights[metric.order] > 0]
    rows, cols = metric.shape
    cells = built.used.size
    D = np.empty(((rows + 2 * BORDER) * metric.pitch, LANES), np.uint16)
    A, E = np.empty((cells, LANES), np.float32), np.empty((cells, LANES), np.float32)
    top = np.empty(cells, np.float32)
    for start in range(0, len(order), LANES):
        reports = order[start : start + LANES]
        grid = metric.edges, metric.offsets, rows, cols, frame
        _fill(D, *grid, reports, logs, masses, shares, A, E, top)
        yield reports, (A, E, top)


@kernel
def _fill(
    D: Any,
    edges: Any,
    offsets: Any,
    rows: int,
    cols: int,
    frame: int,
    reports: Any,
    logs: Any,
    masses: Any,
    shares: Any,
    A: Any,
    E: Any,
    top: Any,
) -> None:
    sources = np.empty(LANES, np.int64)
    share = np.zeros(LANES, np.float32)
    for lane in range(LANES):
        # A short block repeats its last report, without mass: it changes no sum and no maximum.
        y = reports[min(lane, len(reports) - 1)]
        sources[lane] = padded_cell(y, cols)
        if lane < len(reports):
            share[lane] = shares[y]
    batch_distances(D, edges, offsets, rows, cols, sources, 0)
    pitch, at = cols + 2 * BORDER, 0
    for i in range(frame, rows - frame):
        for j in range(frame, cols - frame):
            c = (i + BORDER) * pitch + j + BORDER
            nearest = D[c, 0]
            for lane in range(LANES):
                d = D[c, lane]
                nearest = min(nearest, d)
                A[at, lane] = logs[d]
                E[at, lane] = masses[d] * share[lane]
            top[at] = logs[nearest]
            at += 1


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


def _with_edges(built: BuiltLaw, edges: NDArray[np.uint16], inverse: Inverse) -> BuiltLaw:
    """The law with other edges, its weights solved again from the last ones.

    `inverse` makes their preconditioner.
    """
    law = built.law
    metric = GraphMetric(edges, law.metric.quantum)
    weights = law.weights / float(law.sums[built.secrets].mean()) * float(law.table[0])
    solved = nonnegative_weights(
        metric.product,
        NearProduct(metric),
        inverse,
        weights,
        tolerance=residual_allowed(built.promised),
        budget=_BUDGET,
    )
    counts = integer_weights(solved.values, float(solved.image.max()))
    sums, sweeps = metric.exact_sums(counts, law.table, built.secrets)
    edge, worst = worst_edge(edge_factors(metric, sums, built.promised), metric)
    lowered = CertifiedLaw(
        metric,
        counts,
        sums,
        edge,
        worst,
        law.rounds + 1,
        law.products + solved.products,
        int((counts == 0).sum()),
        sweeps,
    )
    return replace(built, law=lowered)
