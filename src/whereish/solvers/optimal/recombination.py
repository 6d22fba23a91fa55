"""Recombine private columns into the cheapest stochastic channel: a small master programme.

Given d-private columns q with outputs z_q, and a few outputs t whose columns are free, find

    minimise    sum_q lambda_q c_q . q  +  sum_t c_t . u_t
    subject to  sum_q lambda_q q + sum_t u_t = 1,   lambda >= 0,   G u_t >= 0.

Every such combination is private, since private columns form a cone.  The free columns take what
the others leave of the sums, so that a solution always exists (a constant column is private), and
a column may be used although the others do not complete it to one.

The interior point of `barrier.directions`: the free columns enter as the outputs do in
`interior_point`, each with its n x n matrix H_t = G' diag(y/s) G, the others with one number each,
whose only row is lambda >= 0, and the sums couple them through S = A diag(lambda/r) A' +
sum_t H_t^{-1}.  What its tolerance leaves of the equations is mended by `repair.complete`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import SolverError
from whereish.solvers.optimal.barrier.coupling import Coupling
from whereish.solvers.optimal.barrier.directions import ALONE, SharedRows, shares
from whereish.solvers.optimal.barrier.newton import Rules, newton_step
from whereish.solvers.optimal.barrier.rows import Pairs, Rows, feasible_multipliers
from whereish.solvers.optimal.barrier.systems import NewtonSystem, OfCores, Weighed
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.threads import Workers, workers

__all__ = ["Recombined", "free_rows", "recombine"]

_MOST_ITERATIONS = 60
_USED = 1e-4  # of the largest weight
_CORRECTIONS, _STEP = 3, 0.9
_WORTH_THREADS = 30_000  # numbers that a direction reads twice: less is over before a thread wakes
_CHUNKS = 4  # of the columns, each for one thread at a time: fixed, so that sums are, too
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
    scaled = np.ascontiguousarray(columns / columns.max(axis=1, keepdims=True))
    outputs, cheapest = programme.best_outputs(scaled.T)
    with workers() as team:
        point = _Master(scaled, cheapest, programme.cost[free], rows, team)
        weights, remains = point.solve(tolerance)
    combined = np.zeros(programme.cost.shape)
    np.add.at(combined, outputs, weights[:, None] * scaled)
    np.add.at(combined, free, remains)
    most = np.argsort(-weights, kind="stable")[: 2 * programme.n]
    used = scaled[most[weights[most] > _USED * float(weights.max())]]
    return Recombined(np.ascontiguousarray(combined.T), used)


class _Master:
    """Weights of the columns and free columns: rows of k, which zeros complete, with slacks.

    The first rows of k are chunks of the weights, each with rows lambda >= 0 alone; every free
    column has one of its own.
    """

    def __init__(
        self, columns: FloatArray, cheapest: FloatArray, free: FloatArray, rows: Rows, team: Workers
    ) -> None:
        self.scale = float(np.abs(cheapest).mean()) or 1.0
        self.columns, self.team = columns, team
        self.count, self.n = columns.shape
        self.free = len(free)
        cheapest, free = cheapest / self.scale, free / self.scale
        self.chunks = shares(self.count, _CHUNKS)
        self.width = max(self.n, *(end - begin for begin, end in self.chunks))
        self.cost = self._joined(cheapest, free)
        self.free_rows = _repeated(rows, self.free)
        self.rows = _with_weights(self.free_rows, self.chunks)
        weight = 0.5 / float(columns.sum(axis=0).max())
        each = np.full((self.free, self.n), 0.5 / self.free)
        self.k = self._joined(np.full(self.count, weight), each)
        self.s = self.rows.slack(self.k)
        level = float(free.mean())
        self.mu = np.full(self.n, -level)
        y = [feasible_multipliers(one + level, rows) for one in free]
        self.y = np.concatenate([cheapest - columns @ self.mu, *y])
        bounds = np.array([0, *(end for _, end in self.chunks)], np.int64)
        self.weighed = Weighed(bounds, columns)
        self.factors = np.empty((self.free, self.n * (self.n + 1) // 2))
        self.coupling = Coupling.of(len(self.chunks) + self.free, self.n)
        parts = shares(len(self.k), len(self.k))
        worth = (self.count + self.free * self.n) * self.n >= _WORTH_THREADS
        self.shared = SharedRows(self.rows, parts, team if worth else ALONE)

    def _joined(self, weights: FloatArray, free: FloatArray) -> FloatArray:
        """Weights and free columns in the rows of k."""
        k = np.zeros((len(self.chunks) + len(free), self.width))
        for row, (begin, end) in zip(k, self.chunks, strict=False):
            row[: end - begin] = weights[begin:end]
        k[len(self.chunks) :, : self.n] = free
        return k

    def split(self, k: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The weights, and the free columns as rows."""
        both = zip(k, self.chunks, strict=False)
        weights = np.concatenate([row[: end - begin] for row, (begin, end) in both])
        return weights, k[len(self.chunks) :, : self.n]

    @property
    def missing(self) -> FloatArray:
        """What the sums lack."""
        weights, free = self.split(self.k)
        return np.asarray(1.0 - weights @ self.columns - free.sum(axis=0))

    def solve(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """The weights of the columns and the free columns, to a relative complementarity."""
        apart = 1.0 - float(self.free_rows.pairs.factor.max())  # nearer places agree the better
        closed = max(_CLOSED * tolerance * apart, 1e-10)
        for _ in range(_MOST_ITERATIONS):
            value, products = float((self.cost * self.k).sum()), float(self.s @ self.y)
            missing = self.missing
            if np.abs(missing).max() < closed and products <= tolerance * value:
                break
            try:
                self._step(missing, least=0.3 * tolerance * value)
            except SolverError:
                break  # the arithmetic is exhausted; what is there is mended
        return self.split(self.k)

    def _step(self, missing: FloatArray, least: float) -> None:
        """Go as far as everything stays positive.

        The complementarity aimed at is never below `least`: far beyond the tolerance the matrices
        would be singular, and the sums could not be closed any more.
        """
        spread = self._joined(self.columns @ self.mu, np.tile(self.mu, (self.free, 1)))
        system = NewtonSystem(self.coupling, missing, self.factors, self.weighed, OfCores.none())
        moved = newton_step(
            self.shared,
            self.k,
            self.s,
            self.y,
            self.mu,
            system=system,
            dual_residual=self.cost - spread - self.rows.pull(self.y, self.width),
            rules=Rules(_CORRECTIONS, _STEP, least),
        )
        self.s, self.y, self.mu = moved.s, moved.y, moved.mu
        _, free = self.split(moved.k)
        self.k = self._joined(self.s[: self.count], free)  # weights are their own slacks


def _repeated(rows: Rows, times: int) -> Rows:
    """The same rows for so many outputs."""
    pairs = Pairs(*(np.tile(one, times) for one in rows.pairs))
    return Rows(rows.size * np.arange(times + 1), pairs)


def _with_weights(rows: Rows, chunks: list[tuple[int, int]]) -> Rows:
    """Rows of numbers that are >= 0, in chunks, and those of outputs after them."""
    own = np.concatenate([np.arange(end - begin, dtype=np.int32) for begin, end in chunks])
    source, target, factor = rows.pairs
    pairs = Pairs(
        np.append(own, source), np.append(own, target), np.append(np.zeros(own.size), factor)
    )
    ends = np.array([end for _, end in chunks], np.int64)
    return Rows(np.concatenate([[0], ends, own.size + rows.start[1:]]).astype(np.int64), pairs)
