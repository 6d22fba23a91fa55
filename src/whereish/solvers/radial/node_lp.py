"""The least expected loss of circular noise that keeps l, from above and from below.

The problem, over radials R with c(r) = 2 pi r L(r) and w(r) = 2 pi r:

    minimise ∫ c R   subject to  ∫ w R = 1,   R(r) <= exp(l(|r - r'|)) R(r'),
                                 R <= M,      ∫_{r > q} w R <= rho_q.

*Decreasing radials suffice* when the loss does not decrease.  The symmetric decreasing
rearrangement of any noise density F has the same mass and bound, and no larger loss or
tail.  It still keeps l: F keeps l if and only if {F > t} + B_d lies in
{F > t exp(-l(d))} for all t and d, and by the Brunn-Minkowski inequality the disks of
the same areas then lie in each other too.

*From above* (:func:`best_nodes`): R is log-linear between nodes j h.  The nodes' values
obey linear constraints, one for each essential offset k (:func:`essential_offsets`): the
others follow by chaining and from R decreasing.

*From below* (:func:`lattice_value`): on each lattice {t + j h} the values of any
feasible R obey those same constraints.  For any multipliers lambda and tau_q >= 0

    loss >= lambda - sum tau_q rho_q + ∫_0^h V_t dt,
    V_t = min of sum_j f(t + j h) x_j over such x with x <= M,
    f = c - lambda w + sum tau_q w [r > q],

and V is concave in f: where a linear minorant of f is used between two values of t, the
mean of V at the two is a lower bound.  V itself is bounded by weak duality, from the
linear programme's multipliers after a repair, so no solver's tolerance enters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, SolverError
from whereish.solvers.radial.programme import least_cost

__all__ = ["NodeSolution", "best_nodes", "essential_offsets", "hat_moments", "lattice_value"]

_FEW_OFFSETS, _FIRST_NODES = 64, 8
_CUT_ROUNDS, _CUTS = 10, 20_000
_BROKEN = 1e-6
_TOLERANCES = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


def closure(levels: FloatArray) -> FloatArray:
    """The largest subadditive sequence below levels[k] = l(k h), with levels[0] = 0."""
    hull = np.array(levels, float)
    for k in range(2, len(hull)):
        half = k // 2
        hull[k] = min(hull[k], (hull[1 : half + 1] + hull[k - 1 : k - half - 1 : -1]).min())
    return hull


def essential_offsets(levels: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Offsets k whose constraint x_i <= e^{l(kh)} x_{i+k} the others do not imply.

    `levels[k]` = l(k h).  A constraint is implied by two shorter ones where
    l(k h) >= l(a h) + l(b h), a + b = k; and, for decreasing x, by the next longer one
    where l(k h) = l((k + 1) h).
    """
    hull = closure(levels)
    keep = []
    for k in range(1, len(levels)):
        half = k // 2
        chained = (
            (hull[1 : half + 1] + hull[k - 1 : k - half - 1 : -1]).min() if k > 1 else math.inf
        )
        flat = k + 1 < len(levels) and levels[k + 1] <= levels[k]
        if math.isfinite(levels[k]) and levels[k] < chained * (1 - 1e-12) and not flat:
            keep.append(k)
    offsets = np.array(keep, np.intp)
    return offsets, np.asarray(levels[offsets])


@dataclass(frozen=True)
class Rows:
    """Constraints x_i <= factor x_j, with x scaled by exp(log_scale)."""

    i: NDArray[np.intp]
    j: NDArray[np.intp]
    factor: FloatArray
    offset: NDArray[np.intp]

    def where(self, chosen: NDArray[Any]) -> Rows:
        """The chosen rows."""
        return Rows(self.i[chosen], self.j[chosen], self.factor[chosen], self.offset[chosen])

    def rounded_up(self) -> Rows:
        """With factors that are no smaller than the real numbers they stand for."""
        return Rows(self.i, self.j, self.factor * (1 + 2.0**-44), self.offset)

    def matrix(self, columns: int) -> csr_array:
        """One row for each: +1 at i, -factor at j (the two may coincide: the tail)."""
        rows = np.arange(len(self.i))
        data = np.concatenate([np.ones(len(rows)), -self.factor])
        at = np.concatenate([self.i, self.j])
        return csr_array(coo_array((data, (np.tile(rows, 2), at)), (len(rows), columns)))


def _monotone(log_scale: FloatArray) -> Rows:
    i = np.arange(1, len(log_scale))
    return Rows(i, i - 1, np.exp(log_scale[i - 1] - log_scale[i]), np.full(len(i), -1))


def _offset_rows(
    offset: int, level: float, log_scale: FloatArray, *, decay: float, step: float, tail: bool
) -> Rows:
    """x_i <= e^level x_{i+offset}; with a tail x_{N+q} = x_N e^{-decay q h} beyond node N."""
    last = len(log_scale) - 1
    i = np.arange(last + 1 if tail else max(last + 1 - offset, 0))
    j = np.minimum(i + offset, last)
    beyond = np.maximum(i + offset - last, 0)
    factor = np.exp(level - decay * step * beyond + log_scale[j] - log_scale[i])
    useful = (i != j) | (factor < 1)
    return Rows(i[useful], j[useful], factor[useful], np.full(int(useful.sum()), offset))


def _stacked(rows: list[Rows]) -> Rows:
    names = ("i", "j", "factor", "offset")
    return Rows(*(np.concatenate([getattr(r, name) for r in rows]) for name in names))


@dataclass(frozen=True)
class NodeSolution:
    """Values at the nodes in logarithms, the multipliers of mass and tails, rows added late."""

    log_values: FloatArray
    added: NDArray[np.intp]
    mass_price: float
    tail_prices: FloatArray
    loss: float


def best_nodes(
    *,
    step: float,
    offsets: NDArray[np.intp],
    levels: FloatArray,
    decay: float,
    log_scale: FloatArray,
    cost: FloatArray,
    mass: FloatArray,
    bound: float,
    tail_mass: FloatArray,
    tail_limits: FloatArray,
) -> NodeSolution:
    """Solve for the values x_j at nodes j h, the last of which starts the tail.

    `cost`, `mass` and the rows of `tail_mass` are linear functionals of x (not scaled).
    Where l has many essential offsets, constraints are added as they are violated, for some
    rounds; the caller must close the values under the constraints that are left.
    """
    count = len(log_scale)
    scale = np.exp(log_scale)
    base = [_monotone(log_scale)]
    rows, pending = _first_rows(offsets, levels, log_scale, decay=decay, step=step, tail=True)
    initial = len(rows)
    upper = np.full(count, np.inf)
    upper[0] = bound / scale[0]
    for _ in range(_CUT_ROUNDS):
        constraints = _stacked(base + rows)
        result = _solved(
            cost * scale, constraints, upper, mass * scale, tail_mass * scale, tail_limits
        )
        x = np.maximum(result.x, 1e-300)
        new = _violated(x, pending)
        if new is None:
            break
        rows.append(new)
    tails = len(tail_limits)
    multipliers = result.ineqlin.marginals
    prices = -multipliers[len(multipliers) - tails :] if tails else np.empty(0)
    added = [np.column_stack([r.i, r.offset]) for r in rows[initial:]]
    return NodeSolution(
        np.log(x) + log_scale,
        np.concatenate(added) if added else np.empty((0, 2), np.intp),
        float(result.eqlin.marginals[0]),
        np.maximum(prices, 0.0),
        float(result.fun),
    )


def _first_rows(
    offsets: NDArray[np.intp],
    levels: FloatArray,
    log_scale: FloatArray,
    *,
    decay: float,
    step: float,
    tail: bool,
) -> tuple[list[Rows], list[Rows]]:
    """Rows to start with, and those to add where they are violated."""
    every = [
        _offset_rows(int(k), float(level), log_scale, decay=decay, step=step, tail=tail)
        for k, level in zip(offsets, levels, strict=True)
    ]
    if len(every) <= _FEW_OFFSETS:
        return every, []
    spread = np.geomspace(1, len(every), _FEW_OFFSETS // 4).astype(int) - 1
    chosen = set(np.unique(spread).tolist())
    start, pending = [], []
    for k, rows in enumerate(every):
        if k in chosen:
            start.append(rows)
        else:
            first = rows.i < _FIRST_NODES
            start.append(rows.where(first))
            pending.append(rows.where(~first))
    return start, pending


def _violated(x: FloatArray, pending: list[Rows]) -> Rows | None:
    """The rows that x breaks by more than 1e-6 of its size, the worst first."""
    if not pending:
        return None
    rows = _stacked(pending)
    excess = x[rows.i] / (rows.factor * x[rows.j]) - 1
    broken = np.flatnonzero(excess > _BROKEN)
    if not broken.size:
        return None
    return rows.where(broken[np.argsort(-excess[broken])][:_CUTS])


def _solved(
    cost: FloatArray,
    rows: Rows,
    upper: FloatArray,
    mass: FloatArray | None = None,
    tail_mass: FloatArray | None = None,
    tail_limits: FloatArray | None = None,
) -> Any:
    """linprog on scaled variables."""
    tails = None if tail_mass is None or tail_limits is None else (tail_mass, tail_limits)
    matrix = rows.matrix(len(cost))
    result = least_cost(cost, matrix, upper, mass=mass, tails=tails, options=_TOLERANCES)
    if result.status == 2:
        raise InvalidInput("no radial satisfies the constraints")
    if result.status != 0:
        raise SolverError(f"the radial linear programme failed: {result.message}")
    return result


def lattice_value(
    f: FloatArray,
    *,
    step: float,
    offsets: NDArray[np.intp],
    levels: FloatArray,
    added: NDArray[np.intp],
    log_scale: FloatArray,
    bound: float,
) -> float:
    """A proven lower bound of min sum f_j x_j over decreasing x >= 0, x_0 <= bound.

    Of the constraints x_i <= e^{level_k} x_{i + offset_k} a choice is used, with those of the
    pairs `added` = (i, offset); f must be nonnegative beyond the given nodes.
    """
    rows, _ = _first_rows(offsets, levels, log_scale, decay=0.0, step=step, tail=False)
    i, offset = added.T
    known = np.isin(offset, offsets) & (i + offset < len(f))
    i, offset = i[known], offset[known]
    level = levels[np.searchsorted(offsets, offset)] if len(offset) else np.empty(0)
    factor = np.exp(level + log_scale[i + offset] - log_scale[i])
    chains = _stacked([*rows, Rows(i, i + offset, factor, offset)])
    decreasing, scale = _monotone(log_scale).rounded_up(), np.exp(log_scale)
    chains = chains.rounded_up()
    upper = np.full(len(f), np.inf)
    upper[0] = bound / scale[0]
    result = _solved(f * scale, _stacked([decreasing, chains]), upper)
    y = np.maximum(-result.ineqlin.marginals, 0.0)
    split = len(decreasing.i)
    return -float(upper[0]) * _deficit(f * scale, decreasing, y[:split], chains, y[split:])


def _deficit(
    f: FloatArray, decreasing: Rows, down: FloatArray, chains: Rows, along: FloatArray
) -> float:
    """z >= 0 with f + A'y + z e_0 >= 0 after a repair of the multipliers y >= 0.

    Any y >= 0 proves a minimum >= -bound * z.  From the last node to the first, a negative
    residual is first taken from the chains that end there, which passes a smaller one on
    to their starts; what is left goes to the node before along x_j <= x_{j-1}.  At node 0
    it meets the bound.
    """
    residual, spread, along = f.copy(), np.abs(f), along.copy()
    for rows, y in ((decreasing, down), (chains, along)):
        np.add.at(residual, rows.i, y)
        np.subtract.at(residual, rows.j, rows.factor * y)
        np.add.at(spread, rows.i, y)
        np.add.at(spread, rows.j, rows.factor * y)
    residual -= 2.0**-48 * spread  # the roundings of these sums
    used = np.flatnonzero(along > 0)
    order = used[np.argsort(chains.j[used], kind="stable")]
    first = np.searchsorted(chains.j[order], np.arange(len(f) + 1))
    for j in range(len(f) - 1, 0, -1):
        if residual[j] >= 0:
            continue
        for row in order[first[j] : first[j + 1]]:
            cut = min(along[row], -residual[j] / chains.factor[row])
            along[row] -= cut
            residual[j] += chains.factor[row] * cut
            residual[chains.i[row]] -= cut * (1 + 2.0**-50)
            if residual[j] >= 0:
                break
        if residual[j] < 0:
            residual[j - 1] += decreasing.factor[j - 1] * residual[j] * (1 + 2.0**-50)
            residual[j] = 0.0
    return max(-float(residual[0]), 0.0)


def hat_moments(nodes: FloatArray, cost: Any, cuts: list[float]) -> FloatArray:
    """∫ cost(r) hat_j(r) dr for the piecewise linear hat functions on `nodes`.

    Gauss-Legendre on every interval, split at `cuts`.
    """
    points, weights = np.polynomial.legendre.leggauss(12)
    edges = np.unique(np.concatenate([nodes, [c for c in cuts if 0 < c < nodes[-1]]]))
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    r = middle[:, None] + half[:, None] * points
    values = half[:, None] * weights * np.asarray(cost(r), float)
    piece = np.clip(np.searchsorted(nodes, middle) - 1, 0, len(nodes) - 2)
    share = (r - nodes[piece][:, None]) / np.diff(nodes)[piece][:, None]
    moments = np.zeros(len(nodes))
    np.add.at(moments, piece, (values * (1 - share)).sum(axis=1))
    np.add.at(moments, piece + 1, (values * share).sum(axis=1))
    return moments
