"""Recombine private columns into the cheapest stochastic channel: a small master programme.

Given d-private columns q with outputs z_q, and a few outputs t whose columns are free, find

    minimise    sum_q lambda_q c_q . q  +  sum_t c_t . u_t
    subject to  sum_q lambda_q q + sum_t u_t = 1,   lambda >= 0,   G u_t >= 0.

Every such combination is private, since private columns form a cone.  The free columns take what
the others leave of the sums, so that a solution always exists (a constant column is private), and
a column may be used although the others do not complete it to one.

A primal-dual interior point (Mehrotra 1992): the free columns enter as the outputs do in
`interior_point`, each with its n x n matrix H_t = G' diag(y/s) G, the others with one number each,
and the sums couple them through S = A diag(lambda/r) A' + sum_t H_t^{-1}.  What its tolerance
leaves of the equations is mended by `repair.complete`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import SolverError
from whereish.solvers.lapack import cholesky_inverse, cholesky_solve
from whereish.solvers.optimal.barrier.rows import (
    Pairs,
    Rows,
    assemble_normal_matrix,
    feasible_multipliers,
)
from whereish.solvers.optimal.interior_point import cholesky_factor
from whereish.solvers.optimal.programme import ChannelProgramme

__all__ = ["Recombined", "free_rows", "recombine"]

_MOST_ITERATIONS = 60
_USED = 1e-4  # of the largest weight
_CLOSED = 1e-2  # of the tolerance: what the sums may lack where two places are e^-1 apart


def free_rows(closeness: FloatArray, edges: NDArray[np.intp], dilation: float) -> Rows:
    """Rows that make one column private on all pairs: a spanner's, strengthened by its dilation."""
    both = np.concatenate([edges, edges[:, ::-1]])
    source, target = both.T.astype(np.int32)
    pairs = Pairs(source, target, closeness[source, target] ** (1.0 / dilation))
    return Rows(np.array([0, source.size], np.int64), pairs)


@dataclass(frozen=True)
class Recombined:
    """The channel, (n, outputs), and those of the columns that it uses most, (count, n)."""

    matrix: FloatArray
    used: FloatArray


def recombine(
    programme: ChannelProgramme,
    columns: FloatArray,
    *,
    rows: Rows,
    free: NDArray[np.intp],
    tolerance: float = 1e-5,
) -> Recombined:
    """The cheapest channel of private `columns`, (count, n), and free ones.

    Every column is first sent to the output that serves it best; `rows` keep a free one private.
    """
    scaled = columns / columns.max(axis=1, keepdims=True)
    losses = programme.cost @ scaled.T
    outputs, cheapest = losses.argmin(axis=0), losses.min(axis=0)
    point = _Master(scaled.T, cheapest, programme.cost[free], rows)
    weights, remains = point.solve(tolerance)
    combined = np.zeros(programme.cost.shape)
    np.add.at(combined, outputs, weights[:, None] * scaled)
    np.add.at(combined, free, remains)
    most = np.argsort(-weights, kind="stable")[: 2 * programme.n]
    used = scaled[most[weights[most] > _USED * float(weights.max())]]
    return Recombined(np.ascontiguousarray(combined.T), used)


@dataclass(frozen=True)
class _Move:
    """A direction of all variables."""

    x: FloatArray
    r: FloatArray
    u: FloatArray
    s: FloatArray
    y: FloatArray
    mu: FloatArray


class _Master:
    """Weights x with reduced costs r, free columns u with slacks s and multipliers y."""

    def __init__(self, A: FloatArray, c: FloatArray, free: FloatArray, rows: Rows) -> None:
        self.scale = float(np.abs(c).mean()) or 1.0
        self.A, self.c, self.free, self.rows = A, c / self.scale, free / self.scale, rows
        n, count = A.shape
        self.x = np.full(count, 0.5 / float(A.sum(axis=1).max()))
        self.u = np.full((len(free), n), 0.5 / len(free))
        self.s = self._slack(self.u)
        level = float(self.free.mean())
        self.y = np.stack([feasible_multipliers(one + level, rows) for one in self.free])
        self.mu = np.full(n, -level)
        self.r = self.c - self.A.T @ self.mu

    def _slack(self, u: FloatArray) -> FloatArray:
        return np.stack([self.rows.slack(one[None]) for one in u])

    def _pull(self, y: FloatArray) -> FloatArray:
        n = self.mu.size
        return np.concatenate([self.rows.pull(one, n) for one in y])

    def solve(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """The weights of the columns and the free columns, to a relative complementarity."""
        apart = 1.0 - float(self.rows.pairs.factor.max())  # nearer places must agree the better
        closed = max(_CLOSED * tolerance * apart, 1e-10)
        for _ in range(_MOST_ITERATIONS):
            missing = 1.0 - self.A @ self.x - self.u.sum(axis=0)
            value = float(self.c @ self.x) + float((self.free * self.u).sum())
            products = float(self.x @ self.r) + float((self.s * self.y).sum())
            if np.abs(missing).max() < closed and products <= tolerance * value:
                break
            try:
                self._step(missing, products, least=0.3 * tolerance * value)
            except SolverError:
                break  # the arithmetic is exhausted; what is there is mended
        return self.x, self.u

    def _step(self, missing: FloatArray, products: float, least: float) -> None:
        """Predict, centre and correct, and go as far as everything stays positive.

        The complementarity aimed at is never below `least`: far beyond the tolerance the matrices
        would be singular, and the sums could not be closed any more.
        """
        count = self.x.size + self.s.size
        ratio, weight = self.x / self.r, self.y / self.s
        scaled = self.A * np.sqrt(ratio)
        schur = scaled @ scaled.T  # of one array, which takes half the time of a general product
        factors = []
        for one in weight:
            work = np.empty(schur.shape, order="F")
            assemble_normal_matrix(one, 0, self.rows.size, self.rows.pairs, work)
            factors.append(cholesky_factor(work))
            inverse = factors[-1].copy(order="F")
            if cholesky_inverse(inverse) != 0:
                raise SolverError("the recombination of columns met a singular matrix")
            schur += np.triu(inverse) + np.triu(inverse, 1).T
        factor = cholesky_factor(np.asfortranarray(schur))
        reduced = self.c - self.A.T @ self.mu - self.r
        residual = self.free - self.mu - self._pull(self.y)
        rows_off = self._slack(self.u) - self.s

        def direction(of_x: FloatArray, of_s: FloatArray) -> _Move:
            """For x dr + r dx = of_x and s dy + y ds = of_s."""
            # dx = ratio (A' dmu - reduced) + of_x / r
            free_x = of_x / self.r - ratio * reduced
            q = self._pull((of_s - self.y * rows_off) / self.s) - residual
            free_u = np.stack([cholesky_solve(f, one) for f, one in zip(factors, q, strict=True)])
            dmu = cholesky_solve(factor, missing - self.A @ free_x - free_u.sum(axis=0))
            pulled = self.A.T @ dmu
            du = free_u + np.stack([cholesky_solve(f, dmu) for f in factors])
            ds = self._slack(du) + rows_off
            return _Move(
                free_x + ratio * pulled,
                reduced - pulled,
                du,
                ds,
                (of_s - self.y * ds) / self.s,
                dmu,
            )

        first = direction(-self.x * self.r, -self.s * self.y)
        primal, dual = self._longest(first)
        after = float((self.x + primal * first.x) @ (self.r + dual * first.r))
        after += float(((self.s + primal * first.s) * (self.y + dual * first.y)).sum())
        aim = max(min(max((after / products) ** 3, 1e-6), 1.0) * products, least) / count
        move = direction(
            aim - self.x * self.r - first.x * first.r, aim - self.s * self.y - first.s * first.y
        )
        primal, dual = (0.99 * step for step in self._longest(move))
        self.x = self.x + primal * move.x
        self.u, self.s = self.u + primal * move.u, self.s + primal * move.s
        self.r, self.y = self.r + dual * move.r, self.y + dual * move.y
        self.mu = self.mu + dual * move.mu

    def _longest(self, move: _Move) -> tuple[float, float]:
        """The longest steps of the primal and of the dual variables, at most 1."""
        primal = max(1.0, float((-move.x / self.x).max()), float((-move.s / self.s).max()))
        dual = max(1.0, float((-move.r / self.r).max()), float((-move.y / self.y).max()))
        return 1.0 / primal, 1.0 / dual
