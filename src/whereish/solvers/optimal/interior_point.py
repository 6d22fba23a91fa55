"""A primal-dual interior point for optimal channels that uses the structure of outputs.

The linear programme, for m outputs z and n secrets x, with c_zx = prior_x loss(x, z):

    minimise    sum_z c_z . k_z
    subject to  G_z k_z >= 0      (privacy rows of output z: k_j - a_ij k_i)
                sum_z k_z  = 1    (every secret's row is a distribution)

Its dual has y >= 0 for the rows and mu for the sums: c_z - mu - G_z' y_z = 0.
The Newton system splits by output: H_z = G_z' diag(y/s) G_z is n x n, and the
sums couple the outputs only through S = sum_z H_z^{-1}.

Rows that are far from equality carry no barrier term; they enter when they come
near or are violated, so the slacks s are variables of their own, which agree
with G k in the limit.  For any y >= 0 the Lagrangian gives the lower bound
sum_x min_z (c_z - G_z' y_z)_x for the outputs at hand; `pricing` extends it to
the outputs that are absent, and `repair` turns the columns into a channel that
is private on all rows, whose cost is the upper bound.

Predictor-corrector after Mehrotra (1992) with Gondzio's (1996) multiple
centrality corrections.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import SolverError
from whereish.solvers.lapack import cholesky, cholesky_solve
from whereish.solvers.optimal.barrier_rows import (
    AtRows,
    Moves,
    RowLists,
    SharedRows,
    Steps,
    feasible_multipliers,
    near_active_pairs,
)
from whereish.solvers.output_factors import LARGEST_REGULARISATION, OutputFactors
from whereish.threads import Workers, in_threads, workers

__all__ = [
    "WORTH_THREADS",
    "Candidate",
    "Direction",
    "InteriorPoint",
    "Measure",
    "cholesky_factor",
    "corrected_direction",
]

NewtonSolve = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
_ENTRY_SLACK = 0.05  # slack of a violated row on entry, relative to its target's entry
_PARTS = 8  # of the outputs, each for one thread at a time: fixed, so that sums are, too
WORTH_THREADS = 150  # places; below, a factorisation is over before a thread has started
_LARGEST_SHARE = 0.02  # part of a target's multipliers that one new row may take


class Measure(NamedTuple):
    """Where an iterate stands: its cost, its dual bound and its complementarity."""

    cost: float
    lower: float
    complementarity: float
    pulled: FloatArray
    """G' y, (outputs, n)."""
    bound_duals: FloatArray
    """mu_x = min_z (c_z - G_z' y_z)_x less what rounding may have added; the bound is its sum."""

    @property
    def relative_complementarity(self) -> float:
        """Complementarity over cost: the gap that the central path would leave."""
        return self.complementarity / self.cost


@dataclass(frozen=True)
class Direction:
    """A Newton direction with the steps that keep s and y nonnegative along it."""

    dk: FloatArray
    dmu: FloatArray
    moves: Moves
    steps: Steps


def cholesky_factor(matrix: FloatArray) -> FloatArray:
    """Upper Cholesky factor of a nearly singular positive matrix, regularised as little as works.

    `matrix` is Fortran-ordered and symmetric; its upper half is overwritten.
    """
    diagonal = matrix.diagonal().copy()
    index = np.arange(diagonal.size)
    regularisation = 1e-15
    while regularisation <= LARGEST_REGULARISATION:
        matrix[index, index] = diagonal * (1.0 + regularisation)
        if cholesky(matrix) == 0:
            return matrix
        matrix[:] = np.tril(matrix, -1) + np.tril(matrix, -1).T
        regularisation *= 100.0
    raise SolverError("the interior point met a matrix that has no Cholesky factor")


def corrected_direction(
    rows: SharedRows,
    slack: FloatArray,
    y: FloatArray,
    *,
    solve: NewtonSolve,
    dual_residual: FloatArray,
    corrections: int,
    row_residual: FloatArray | None = None,
) -> Direction:
    """Mehrotra's predictor-corrector direction with up to `corrections` of Gondzio's.

    `solve(q)` returns (dk, dmu) of the reduced system with right-hand side q;
    `row_residual` is G k - s where slacks are variables of their own.
    """
    n = dual_residual.shape[1]
    at = AtRows(slack, y, np.zeros(y.size) if row_residual is None else row_residual)
    complementarity = float(slack @ y)

    def along(target: FloatArray) -> Direction:
        dk, dmu = solve(rows.pull_targets(at, target, n) - dual_residual)
        moves = rows.moves(at, target, dk)
        steps = Steps(1.0 / max(1.0, moves.fall_s), 1.0 / max(1.0, moves.fall_y))
        return Direction(dk, dmu, moves, steps)

    predicted = along(-slack * y)
    after = rows.after(at, predicted.moves, predicted.steps)
    centring = min(max((after / complementarity) ** 3, 1e-6), 1.0)
    aim = centring * complementarity / rows.size
    target = rows.centred(at, predicted.moves, aim)
    best = along(target)
    for _ in range(corrections):
        if min(best.steps) > 0.95:
            break
        longer = Steps(*(min(1.0, 1.08 * step + 0.1) for step in best.steps))
        target = rows.drawn_in(at, best.moves, longer, aim, target)
        corrected = along(target)
        if sum(corrected.steps) < sum(best.steps) + 0.02:
            break
        best = corrected
    return best


@dataclass(frozen=True)
class Candidate:
    """An absent output with a column of negative reduced cost, found by pricing."""

    output: int
    column: FloatArray
    y: FloatArray
    """Multipliers for the rows that the output had when it was priced."""


class InteriorPoint:
    """The iterate (k, y, mu) on the outputs at hand, and how it moves.

    Attributes
    ----------
    outputs : (m,) array
        The outputs at hand, sorted.
    k : (m, n) array
        Columns of the channel, summing to one over outputs; private in the limit.
    s, y : arrays
        Slack and multiplier of every row in the barrier, positive.
    mu : (n,) array
        Multipliers of the row sums.
    """

    def __init__(self, cost: FloatArray, lists: RowLists, outputs: NDArray[np.intp]) -> None:
        self.all_cost = cost
        self.lists = lists
        self.closeness = lists.closeness
        self.n = cost.shape[1]
        self._take(outputs)
        self.k = np.full((outputs.size, self.n), 1.0 / outputs.size)
        self.s = self.rows.slack(self.k)
        self.y, self.mu = self._feasible_duals()

    def _take(self, outputs: NDArray[np.intp]) -> None:
        self.outputs = outputs
        self.cost = np.ascontiguousarray(self.all_cost[outputs])
        self.rows = self.lists.rows(outputs)
        self.factors = OutputFactors(outputs.size, self.n)

    def _feasible_duals(self) -> tuple[FloatArray, FloatArray]:
        """Duals with c_z - mu - G_z' y_z = 0 and y > 0, for a constant mu below all costs."""
        level = float(self.cost.mean())
        y = [
            feasible_multipliers(self.cost[z] + level, self.rows.only(z))
            for z in range(self.outputs.size)
        ]
        return np.concatenate(y), np.full(self.n, -level)

    def measure(self) -> Measure:
        """Cost, dual bound on the present outputs, and complementarity."""
        pulled = self.rows.pull(self.y, self.n)
        off = self.rows.rounding(self.y, self.n) + 8 * np.finfo(float).eps * self.cost
        duals = (self.cost - pulled - off).min(axis=0)
        return Measure(
            float((self.cost * self.k).sum()),
            math.nextafter(math.fsum(duals), -math.inf),
            float(self.s @ self.y),
            pulled,
            duals,
        )

    def step(self, at: Measure, *, corrections: int = 3) -> None:
        """Move along the corrected direction, as far as s and y stay positive."""
        with workers(self._ranges(), threads=self._threads) as ranges:
            direction = corrected_direction(
                SharedRows(self.rows, ranges),
                self.s,
                self.y,
                solve=self._newton(self.y / self.s, ranges),
                dual_residual=self.cost - self.mu - at.pulled,
                corrections=corrections,
                row_residual=self.rows.slack(self.k) - self.s,
            )
        relative = at.relative_complementarity
        share = 0.9 if relative > 0.1 else min(0.9995, max(0.95, 1.0 - relative))
        primal, dual = (share * step for step in direction.steps)
        self.k = self.k + primal * direction.dk
        self.s = self.s + primal * direction.moves.ds
        self.y = self.y + dual * direction.moves.dy
        self.mu = self.mu + dual * direction.dmu

    def _newton(self, weight: FloatArray, ranges: Workers[tuple[int, int]]) -> NewtonSolve:
        """Factor every H_z and the Schur complement S = sum_z H_z^{-1}."""
        factors = self.factors
        schur = factors.factor(self.rows, weight, ranges)
        schur_factor = cholesky_factor(np.asfortranarray(np.tril(schur) + np.tril(schur, -1).T))
        row_error = 1.0 - self.k.sum(axis=0)

        def solve(q: FloatArray) -> tuple[FloatArray, FloatArray]:
            factors.solve(q, ranges)
            dmu = cholesky_solve(schur_factor, row_error - q.sum(axis=0))
            factors.add_solutions(dmu, q, ranges)
            return q, dmu

        return solve

    @property
    def _threads(self) -> int | None:
        return 1 if self.n < WORTH_THREADS else None

    def _ranges(self) -> list[tuple[int, int]]:
        """The outputs in `_PARTS`, begin <= z < end."""
        each, more = divmod(self.outputs.size, parts := min(_PARTS, self.outputs.size))
        return list(pairwise(each * part + min(part, more) for part in range(parts + 1)))

    def admit_rows(self, at: Measure, *, within: float, most: int) -> None:
        """Give a barrier term to rows with a_ij k_i > (1 - within) k_j.

        A violated row enters with a small positive slack, which later steps
        reconcile with k.  Its multiplier is taken from the other rows of the same
        target and kept small, so that the duals stay nearly feasible and the
        lower bound does not fall.
        """
        keys, begin = self._near_active(within, most)
        barrier = at.complementarity / self.rows.size
        cap = min(_LARGEST_SHARE, at.relative_complementarity)
        s: list[FloatArray] = []
        y: list[FloatArray] = []
        for z, output in enumerate(self.outputs):
            part = slice(self.rows.start[z], self.rows.start[z + 1])
            s.append(self.s[part])
            y.append(self.y[part])
            new = self.lists.missing(output, keys[begin[z] : begin[z + 1]])
            if new.size == 0:
                continue
            i, j = np.divmod(new, self.n)
            slack = self.k[z, j] - self.closeness[i, j] * self.k[z, i]
            slack = np.maximum(slack, _ENTRY_SLACK * np.abs(self.k[z, j]))
            target = self.rows.pairs.target[part]
            inflow = np.bincount(target, y[z], minlength=self.n)
            fresh = np.minimum(0.1 * barrier / slack, cap * inflow[j])
            taken = np.bincount(j, fresh, minlength=self.n) / inflow
            order = self.lists.add(output, new)
            s[z] = np.concatenate([s[z], slack])[order]
            y[z] = np.concatenate([y[z] * (1.0 - taken[target]), fresh])[order]
        self.s, self.y = np.concatenate(s), np.concatenate(y)
        if self.s.size > self.rows.size:
            self.rows = self.lists.rows(self.outputs)

    def _near_active(self, within: float, most: int) -> tuple[IntArray, IntArray]:
        """`near_active_pairs` of all outputs."""

        def near(part: tuple[int, int]) -> tuple[IntArray, IntArray]:
            return near_active_pairs(self.k[slice(*part)], self.closeness, within, most)

        found = in_threads(near, self._ranges(), threads=self._threads)
        sizes = np.concatenate([np.diff(begin) for _, begin in found])
        return np.concatenate([keys for keys, _ in found]), np.append(0, np.cumsum(sizes))

    def exchange(
        self, at: Measure, candidates: Sequence[Candidate], keep: NDArray[np.bool_]
    ) -> None:
        """Take in priced outputs and let go of idle ones."""
        barrier = at.complementarity / self.rows.size
        share = 0.1 * at.relative_complementarity / max(1, len(candidates))
        share = min(1e-2, max(1e-5, share))
        columns = {int(z): self.k[q].copy() for q, z in enumerate(self.outputs) if keep[q]}
        multipliers: dict[int, FloatArray] = {
            int(z): self.y[self.rows.start[q] : self.rows.start[q + 1]]
            for q, z in enumerate(self.outputs)
            if keep[q]
        }
        # A column that leaves goes to the output that serves it best: sums stay private.
        kept = self.outputs[keep]
        for column in self.k[~keep]:
            columns[int(kept[(self.cost[keep] @ column).argmin()])] += column
        for candidate in candidates:
            columns[candidate.output] = share * candidate.column / candidate.column.max()
            multipliers[candidate.output] = candidate.y
        self._take(np.array(sorted(columns)))
        self.k = np.array([columns[int(z)] for z in self.outputs])
        owner = np.repeat(np.arange(self.outputs.size), np.diff(self.rows.start))
        least = _ENTRY_SLACK * np.abs(self.k[owner, self.rows.pairs.target])
        self.s = np.maximum(self.rows.slack(self.k), least)
        central = barrier / self.s
        y = []
        for z, output in enumerate(self.outputs):
            begin, end = self.rows.start[z], self.rows.start[z + 1]
            old = multipliers[int(output)]
            y.append(old if old.size == end - begin else central[begin:end])
        self.y = np.maximum(np.concatenate(y), 1e-3 * central)
