"""A certified law on places between cells: geometric means of the laws around a place.

The promise is |grad ln P(y | u)| <= eps(u) at every place u and for every report y, eps the
bilinear interpolant of the map's levels, constant beyond the outermost centres.  So along any path
ln P(y | u) changes by at most the integral of eps: the metric of the map, between places.

A law on the corners of cells (:mod:`~whereish.solvers.splines.corners` says why these) or on the
centres of half cells (:mod:`~whereish.solvers.splines.halves`) is solved as in
:mod:`~whereish.solvers.eikonal.cells`, at prices that leave room for what lies between (`SHARES`),
and its slope is bounded by :mod:`~whereish.solvers.splines.bound`.  Where the bound exceeds eps the
edges around are lowered by as much, and the weights are solved again from the last ones, in every
round: weights that are held would leave a slope of ln Z wherever prices fell, and with it more to
lower.  In a few early rounds prices may rise again where there is room.  After some rounds all
edges fall alike; so they do when all are nearly there, since that keeps the shape of ln Z.  G and
its mean are both at most the edges' prices per length, so that a small enough share of all edges
passes: the rounds end.
Rounds look at slopes that are nearly right and cheap; when these pass, the proof decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray, least_around
from whereish.compiled import kernel
from whereish.errors import SolverError
from whereish.privacy.maps.stencil import STENCILS, edge_integrals, edge_slices
from whereish.solvers.eikonal.cells import (
    BuiltLaw,
    RoundProgress,
    check_resolution,
    framed_law,
)
from whereish.solvers.eikonal.certify import (
    CertifiedLaw,
    edge_factors,
    metric_in_use,
    residual_allowed,
    worst_edge,
)
from whereish.solvers.eikonal.margin import framed
from whereish.solvers.eikonal.preconditioner import Factor, approximate_inverse_factor
from whereish.solvers.eikonal.rounding_norm import longest_side
from whereish.solvers.eikonal.weights import nonnegative_weights
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.solvers.geodesic.lanes import LANES, LIMIT
from whereish.solvers.geodesic.masses import integer_weights
from whereish.solvers.geodesic.sweeps import BORDER, batch_distances, padded_cell
from whereish.solvers.splines.bound import (
    Block,
    CellLaws,
    Sharpness,
    SplineSlopes,
    largest_slopes,
)
from whereish.solvers.splines.lattice import LATTICES, Lattice, lattice_of

__all__ = [
    "PROOF_BAR",
    "SHARES",
    "cell_laws",
    "geometric_laws",
    "law_between",
    "prices_between",
    "report_blocks",
    "slopes_between",
]

SHARES = {(0, 1): 0.9742, (1, 1): 0.9884, (1, 2): 0.9768, (1, 3): 0.9832, (2, 3): 0.9806}
"""Prices along the 32 steps on square cells, as shares of eps: of all for which the spline of the
graph metric is nowhere steeper than a constant eps, those with the least squared error (found by
Nelder and Mead's method; 3.1% above planar Laplace, where equal shares are 3.9% above)."""

PROOF_BAR = 0.985
"""Slopes above that share of eps are bounded sharply in a proof, which says how much is used."""

_STEEPEST = 4.0
"""Most nats per cell side in use: beyond, hardly a draw between cells would be accepted, and the
cell's own side is the error that counts."""

_SQUARE = 1.02  # oblong cells have no shares of their own
_ROUNDS = 40
_MARGIN = 0.002  # of the room that the largest slope leaves is kept free
_LOCAL_ROUNDS = 16
_NEARLY = 0.995  # what is nearly there falls as a whole, so that ln Z keeps its shape
_EARLY_ROUNDS = 4  # in which prices may rise again, where the last weights leave room
_SLACK = 0.1  # beyond which room is not looked for
_DAMPED = 0.7
_HIGHEST = 1.5  # times the first law's prices, up to those that it began with
_UNKNOWN = 0.001  # what the rough slopes lack of the proven ones, before these are known
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
    first_edges, most = built.law.metric.weights, metric_in_use(built.promised).weights
    promised = lattice.prices(framed(lattice.basis(eps), sides, built.frame), sides, neighbours)
    law = built.law
    kept, pair = worst_edge(edge_factors(law.metric, law.sums, promised), law.metric)
    law = replace(law, factor=kept, worst=pair)
    built = replace(built, law=law, used=lattice.levels(eps), promised=promised)
    if eps.size == 1:
        return replace(built, gradient_factor=0.0, acceptance=1.0)
    factor = approximate_inverse_factor(framed(nodes, sides, built.frame), sides)

    def at(share: FloatArray, last: BuiltLaw) -> BuiltLaw:
        """The law at that share of the first edges around each node."""
        edges = _along_edges(first_edges, np.pad(share, last.frame, mode="edge"), neighbours)
        return _with_edges(last, np.minimum(edges, most), factor)

    return _settled(built, eps, cell, at, progress)


def _settled(
    built: BuiltLaw,
    eps: FloatArray,
    cell: tuple[float, float],
    at: Callable[[FloatArray, BuiltLaw], BuiltLaw],
    progress: RoundProgress | None,
) -> BuiltLaw:
    """The law after the rounds of lowering, certified; `at` makes that of shares of its prices."""
    share = np.ones(built.used.shape)
    missing: FloatArray | float = _UNKNOWN
    certified: BuiltLaw | None = None
    for number in range(1, _ROUNDS + 1):
        early = number <= _EARLY_ROUNDS
        bar = 1.0 - float(np.max(missing)) - (_SLACK if early else 0.0)
        factors = slopes_between(built, eps, cell, bar=bar, rough=True).factors + missing
        likely = factors.max() <= 1.0
        if likely and not early:
            found = slopes_between(built, eps, cell, bar=PROOF_BAR)
            short = np.maximum(found.factors - factors, 0.0)
            missing = missing + np.where(found.factors > 1.0, short, 0.0)  # others are not sharp
            factors = found.factors
        worst = float(factors.max())
        if progress is not None:
            progress(built.law.rounds, worst)
        if certified is not None and worst > 1.0:
            return certified
        if likely and not early and worst <= 1.0:
            certified = replace(built, gradient_factor=worst, acceptance=found.acceptance)
            if worst > 1.0 - 2.0 * _MARGIN:
                return certified
            # Not all of the map is used: all edges rise alike.
            room = np.full(share.shape, (1.0 - _MARGIN) / max(worst, PROOF_BAR))
        else:
            room = _room(factors, number)
        share = np.minimum(share * room, _HIGHEST)
        built = at(share, built)
    if certified is None:
        raise SolverError("lowering the privacy map for places between cells did not settle")
    return certified


def _room(factors: FloatArray, number: int) -> FloatArray:
    """By what the edges around every node are multiplied in a round of that number."""
    room = least_around((1.0 - _MARGIN) / np.maximum(factors, 1.0 - _SLACK))
    if number <= _EARLY_ROUNDS:
        return np.where(room > 1.0, room**_DAMPED, room)
    room = np.minimum(room, 1.0)
    if number > _LOCAL_ROUNDS or room.min() > _NEARLY:
        return np.full(room.shape, float(room.min()))
    return room


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
    built: BuiltLaw, eps: FloatArray, cell: tuple[float, float], **sharp: Unpack[Sharpness]
) -> SplineSlopes:
    """Bounds of |grad ln P| / eps around every node, over all reports (or `rough` ones)."""
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
    levels, sides = lattice.square_levels(eps), lattice.sides(cell, eps.shape)
    return largest_slopes(laws, levels, sides, **sharp)


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


def _along_edges(
    edges: NDArray[np.uint16], share: FloatArray, neighbours: int
) -> NDArray[np.uint16]:
    """Edges times the mean of `share` along each, rounded down."""
    out = edges.copy()
    shares = edge_integrals(share, (1.0, 1.0), neighbours=neighbours)
    for k, step in enumerate(STENCILS[neighbours]):
        tail, _ = edge_slices(share.shape, step)
        part = shares[*tail, k] / math.hypot(*step)
        out[*tail, k] = np.minimum(np.floor(edges[*tail, k] * part + 1e-6), LIMIT)
    return out


def _with_edges(built: BuiltLaw, edges: NDArray[np.uint16], factor: Factor) -> BuiltLaw:
    """The law with other edges, its weights solved again from the last ones.

    `factor` is their preconditioner.
    """
    law = built.law
    metric = GraphMetric(edges, law.metric.quantum)
    weights = law.weights / float(law.sums[built.secrets].mean()) * float(law.table[0])
    solved = nonnegative_weights(
        metric.product,
        factor,
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
