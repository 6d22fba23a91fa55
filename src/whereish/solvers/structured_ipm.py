"""A primal-dual interior point for optimal channels that uses the structure of outputs.

The linear programme, for m outputs z and n secrets x, with c_zx = prior_x loss(x, z):

    minimise    sum_z c_z . k_z
    subject to  G_z k_z >= 0      (privacy rows of output z: k_j - a_ij k_i)
                sum_z k_z  = 1    (every secret's row is a distribution)

Its dual has y >= 0 for the rows and mu for the sums: c_z - mu - G_z' y_z = 0.
The Newton system splits by output: H_z = G_z' diag(y/s) G_z is n x n, and the
sums couple the outputs only through S = sum_z H_z^{-1}.

Rows that are far from equality carry no barrier term.  Steps are nevertheless
cut so that every iterate stays strictly feasible for all n^2 rows of every
output: the primal iterate is at all times a private channel, and its cost an
upper bound.  For any y >= 0 the Lagrangian gives the lower bound
sum_x min_z (c_z - G_z' y_z)_x for the outputs at hand; `pricing` extends it to
the outputs that are absent.

Predictor-corrector after Mehrotra (1992) with Gondzio's (1996) multiple
centrality corrections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from whereish.compiled import kernel
from whereish.errors import SolverError
from whereish.solvers.barrier_rows import (
    RowLists,
    Rows,
    assemble_normal_matrix,
    feasible_multipliers,
    largest_violation_rate,
    near_active_pairs,
)

__all__ = ["Candidate", "Direction", "InteriorPoint", "Measure", "cholesky_factor", "corrected_direction"]

Floats = NDArray[np.float64]
NewtonSolve = Callable[[Floats], tuple[Floats, Floats]]
_LARGEST_REGULARISATION = 1e-4


@dataclass(frozen=True)
class Measure:
    """Where an iterate stands: its cost, its dual bound and its complementarity."""

    upper: float
    lower: float
    complementarity: float
    pulled: Floats
    """G' y, (outputs, n)."""
    bound_duals: Floats
    """mu_x = min_z (c_z - G_z' y_z)_x, whose sum is the lower bound."""

    @property
    def relative_complementarity(self) -> float:
        """Complementarity over cost: the gap that the central path would leave."""
        return self.complementarity / self.upper


@dataclass(frozen=True)
class Direction:
    """A Newton direction with the steps that keep s and y nonnegative along it."""

    dk: Floats
    dmu: Floats
    dy: Floats
    primal: float
    dual: float


def cholesky_factor(matrix: Floats) -> Floats:
    """Upper Cholesky factor of a nearly singular positive matrix, regularised as little as works.

    `matrix` is Fortran-ordered and is overwritten.
    """
    diagonal = matrix.diagonal().copy()
    index = np.arange(diagonal.size)
    regularisation = 1e-15
    saved = matrix.copy(order="F")
    while regularisation <= _LARGEST_REGULARISATION:
        matrix[index, index] = diagonal * (1.0 + regularisation)
        factor, info = lapack.dpotrf(matrix, lower=0, overwrite_a=1, clean=0)
        if info == 0:
            return np.asarray(factor)
        matrix[:] = saved
        regularisation *= 100.0
    raise SolverError("the interior point met a matrix that has no Cholesky factor")


def corrected_direction(
    rows: Rows,
    slack: Floats,
    y: Floats,
    *,
    solve: NewtonSolve,
    dual_residual: Floats,
    corrections: int,
) -> Direction:
    """Mehrotra's predictor-corrector direction with up to `corrections` of Gondzio's.

    `solve(q)` returns (dk, dmu) of the reduced system with right-hand side q.
    """
    n = dual_residual.shape[1]
    product = slack * y
    complementarity = float(product.sum())

    def along(target: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        dk, dmu = solve(rows.pull(target / slack, n) - dual_residual)
        ds = rows.slack(dk)
        return dk, dmu, ds, (target - y * ds) / slack

    def direction(parts: tuple[Floats, Floats, Floats, Floats]) -> Direction:
        dk, dmu, ds, dy = parts
        primal = 1.0 / max(1.0, float(np.max(-ds / slack)))
        dual = 1.0 / max(1.0, float(np.max(-dy / y)))
        return Direction(dk, dmu, dy, primal, dual)

    parts = along(-product)
    predicted = direction(parts)
    _, _, ds, dy = parts
    after = float((slack + predicted.primal * ds) @ (y + predicted.dual * dy))
    centring = min(max((after / complementarity) ** 3, 1e-6), 1.0)
    aim = centring * complementarity / rows.count
    target = aim - product - ds * dy
    parts = along(target)
    best = direction(parts)
    for _ in range(corrections):
        if min(best.primal, best.dual) > 0.95:
            break
        _, _, ds, dy = parts
        longer_primal = min(1.0, 1.08 * best.primal + 0.1)
        longer_dual = min(1.0, 1.08 * best.dual + 0.1)
        trial = (slack + longer_primal * ds) * (y + longer_dual * dy)
        # Pull outlying products into [aim/10, 10 aim]; Gondzio bounds the pull from above.
        target = target + np.maximum(np.clip(trial, 0.1 * aim, 10.0 * aim) - trial, -10.0 * aim)
        parts = along(target)
        corrected = direction(parts)
        if corrected.primal + corrected.dual < best.primal + best.dual + 0.02:
            break
        best = corrected
    return best


@dataclass(frozen=True)
class Candidate:
    """An absent output with a column of negative reduced cost, found by pricing."""

    output: int
    column: Floats
    y: Floats
    """Multipliers for the rows that the output had when it was priced."""


class InteriorPoint:
    """The iterate (k, y, mu) on the outputs at hand, and how it moves.

    Attributes
    ----------
    outputs : (m,) array
        The outputs at hand, sorted.
    k : (m, n) array
        Columns of the channel: strictly private, and summing to one over outputs.
    """

    def __init__(self, cost: Floats, lists: RowLists, outputs: NDArray[np.intp]) -> None:
        self.all_cost = cost
        self.lists = lists
        self.closeness = lists.closeness
        self.n = cost.shape[1]
        self._take(outputs)
        self.k = np.full((outputs.size, self.n), 1.0 / outputs.size)
        self.y, self.mu = self._feasible_duals()

    def _take(self, outputs: NDArray[np.intp]) -> None:
        self.outputs = outputs
        self.cost = np.ascontiguousarray(self.all_cost[outputs])
        self.rows = self.lists.rows(outputs)

    def _feasible_duals(self) -> tuple[Floats, Floats]:
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
        duals = (self.cost - pulled).min(axis=0)
        return Measure(
            float((self.cost * self.k).sum()),
            float(duals.sum()),
            float(self.rows.slack(self.k) @ self.y),
            pulled,
            duals,
        )

    def step(self, at: Measure, *, corrections: int = 3) -> bool:
        """Move along the corrected direction; True if a row outside the barrier cut the step."""
        slack = self.rows.slack(self.k)
        solve = self._newton(self.y / slack)
        direction = corrected_direction(
            self.rows,
            slack,
            self.y,
            solve=solve,
            dual_residual=self.cost - self.mu - at.pulled,
            corrections=corrections,
        )
        relative = at.relative_complementarity
        share = 0.9 if relative > 0.1 else min(0.9995, max(0.95, 1.0 - relative))
        primal, dual = share * direction.primal, share * direction.dual
        rate = largest_violation_rate(self.k, direction.dk, self.closeness)
        cut = rate * primal > 1.5
        if rate * primal > 0.98:
            primal = min(primal, 0.9 / rate)
        self.k = self.k + primal * direction.dk
        self.y = self.y + dual * direction.dy
        self.mu = self.mu + dual * direction.dmu
        return cut

    def _newton(self, weight: Floats) -> NewtonSolve:
        """Factor every H_z and the Schur complement S = sum_z H_z^{-1}."""
        n, m, rows = self.n, self.outputs.size, self.rows
        factors = []
        schur = np.zeros((n, n), order="F")
        for z in range(m):
            work = np.empty((n, n), order="F")
            assemble_normal_matrix(
                weight,
                rows.start[z],
                rows.start[z + 1],
                rows.source,
                rows.target,
                rows.factor,
                work,
            )
            factors.append(cholesky_factor(work))
            inverse, info = lapack.dpotri(factors[z], lower=0, overwrite_c=0)
            if info != 0:
                raise SolverError("the interior point met a singular normal matrix")
            schur += inverse
        schur = np.asfortranarray(np.triu(schur) + np.triu(schur, 1).T)
        schur_factor = cholesky_factor(schur)
        row_error = 1.0 - self.k.sum(axis=0)

        def solve(q: Floats) -> tuple[Floats, Floats]:
            dk = np.empty_like(q)
            for z in range(m):
                dk[z] = lapack.dpotrs(factors[z], q[z], lower=0)[0]
            dmu = lapack.dpotrs(schur_factor, row_error - dk.sum(axis=0), lower=0)[0]
            for z in range(m):
                dk[z] += lapack.dpotrs(factors[z], dmu, lower=0)[0]
            return dk, np.asarray(dmu)

        return solve

    def admit_rows(self, *, within: float, most: int) -> None:
        """Give a barrier term to rows with a_ij k_i > (1 - within) k_j.

        New multipliers start small, so that neither the dual residual nor the
        complementarity jumps.
        """
        keys, begin = near_active_pairs(self.k, self.closeness, within, most)
        barrier = float(self.rows.slack(self.k) @ self.y) / self.rows.count
        inflow = np.zeros((self.outputs.size, self.n))
        owner = np.repeat(np.arange(self.outputs.size), np.diff(self.rows.start))
        np.add.at(inflow, (owner, self.rows.target), self.y)
        y: list[Floats] = []
        grown = False
        for z, output in enumerate(self.outputs):
            old = self.y[self.rows.start[z] : self.rows.start[z + 1]]
            new = self.lists.missing(output, keys[begin[z] : begin[z + 1]])
            if new.size:
                grown = True
                i, j = np.divmod(new, self.n)
                slack = self.k[z, j] - self.closeness[i, j] * self.k[z, i]
                fresh = np.minimum(0.1 * barrier / slack, 0.02 * inflow[z, j])
                old = np.concatenate([old, fresh])[self.lists.add(output, new)]
            y.append(old)
        if grown:
            self.y = np.concatenate(y)
            self.rows = self.lists.rows(self.outputs)

    def exchange(self, candidates: Sequence[Candidate], keep: NDArray[np.bool_]) -> None:
        """Take in priced outputs and let go of idle ones, staying strictly feasible."""
        barrier = float(self.rows.slack(self.k) @ self.y) / self.rows.count
        share = min(1e-2, max(1e-4, barrier * self.rows.count / float((self.cost * self.k).sum())))
        columns = {int(z): self.k[q] for q, z in enumerate(self.outputs) if keep[q]}
        multipliers: dict[int, Floats] = {
            int(z): self.y[self.rows.start[q] : self.rows.start[q + 1]]
            for q, z in enumerate(self.outputs)
            if keep[q]
        }
        for candidate in candidates:
            columns[candidate.output] = share * candidate.column / candidate.column.max()
            multipliers[candidate.output] = candidate.y
        self._take(np.array(sorted(columns)))
        k = np.array([columns[int(z)] for z in self.outputs])
        k *= min(1.0, 0.999 / float(k.sum(axis=0).max()))
        k += (1.0 - k.sum(axis=0)) / self.outputs.size
        self.k = self._interior(k)
        floor = 1e-3 * barrier / self.rows.slack(self.k)
        y = []
        for z, output in enumerate(self.outputs):
            begin, end = self.rows.start[z], self.rows.start[z + 1]
            old = multipliers[int(output)]
            y.append(old if old.size == end - begin else 1e3 * floor[begin:end])
        self.y = np.maximum(np.concatenate(y), floor)

    def _interior(self, k: Floats) -> Floats:
        """`k` mixed with the flat channel just enough to be strictly private."""
        flat = 1.0 / k.shape[0]
        mix = 0.0
        while mix < 1.0:
            mixed = (1.0 - mix) * k + mix * flat
            if _strictly_private(mixed, self.closeness):
                return mixed
            mix = max(2.0 * mix, 1e-4)
        raise SolverError("no strictly private channel could be formed from the priced outputs")


@kernel
def _strictly_private(k: Floats, closeness: Floats) -> bool:
    outputs, n = k.shape
    for z in range(outputs):
        for j in range(n):
            for i in range(n):
                if i != j and k[z, j] <= closeness[j, i] * k[z, i]:
                    return False
    return True
