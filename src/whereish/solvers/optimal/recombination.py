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
from whereish.solvers.optimal.barrier.directions import (
    AtRows,
    Part,
    SharedRows,
    corrected_direction,
)
from whereish.solvers.optimal.barrier.factors import OutputFactors
from whereish.solvers.optimal.barrier.rows import Pairs, Rows, feasible_multipliers
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.threads import Workers, workers

__all__ = ["Recombined", "free_rows", "recombine"]

_MOST_ITERATIONS = 60
_USED = 1e-4  # of the largest weight
_CORRECTIONS, _STEP = 3, 0.9
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
    scaled = columns / columns.max(axis=1, keepdims=True)
    losses = programme.cost @ scaled.T
    outputs, cheapest = losses.argmin(axis=0), losses.min(axis=0)
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
    """Weights of the columns and free columns, in one vector k, with slacks and multipliers."""

    def __init__(
        self, columns: FloatArray, cheapest: FloatArray, free: FloatArray, rows: Rows, team: Workers
    ) -> None:
        self.scale = float(np.abs(cheapest).mean()) or 1.0
        self.columns, self.team = columns, team
        self.count, self.n = columns.shape
        self.free = len(free)
        cheapest, free = cheapest / self.scale, free / self.scale
        self.cost = np.append(cheapest, free)
        self.free_rows = _repeated(rows, self.free)
        self.rows = _with_weights(self.free_rows, self.count, self.n)
        weight = 0.5 / float(columns.sum(axis=0).max())
        shares = np.full(self.free * self.n, 0.5 / self.free)
        self.k = np.append(np.full(self.count, weight), shares)
        self.s = self.rows.slack(self.k[None])
        level = float(free.mean())
        self.mu = np.full(self.n, -level)
        y = [feasible_multipliers(one + level, rows) for one in free]
        self.y = np.concatenate([cheapest - columns @ self.mu, *y])
        self.factors = OutputFactors(self.free, self.n)
        self.coupling = Coupling(_CHUNKS + self.free, self.n)

    @property
    def missing(self) -> FloatArray:
        """What the sums lack."""
        weights, free = self.split(self.k)
        return np.asarray(1.0 - weights @ self.columns - free.sum(axis=0))

    def split(self, k: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The weights, and the free columns as rows."""
        return k[: self.count], k[self.count :].reshape(self.free, self.n)

    def solve(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """The weights of the columns and the free columns, to a relative complementarity."""
        apart = 1.0 - float(self.free_rows.pairs.factor.max())  # nearer places agree the better
        closed = max(_CLOSED * tolerance * apart, 1e-10)
        for _ in range(_MOST_ITERATIONS):
            value, products = float(self.cost @ self.k), float(self.s @ self.y)
            if np.abs(self.missing).max() < closed and products <= tolerance * value:
                break
            try:
                self._step(least=0.3 * tolerance * value)
            except SolverError:
                break  # the arithmetic is exhausted; what is there is mended
        return self.split(self.k)

    def _step(self, least: float) -> None:
        """Go as far as everything stays positive.

        The complementarity aimed at is never below `least`: far beyond the tolerance the matrices
        would be singular, and the sums could not be closed any more.
        """
        pulled = self.rows.pull(self.y, self.k.size)[0]
        spread = np.append(self.columns @ self.mu, np.tile(self.mu, self.free))
        move = corrected_direction(
            SharedRows.alone(self.rows),
            AtRows(self.s, self.y, self.rows.slack(self.k[None]) - self.s),
            system=_Coupled(self),
            dual_residual=(self.cost - spread - pulled)[None],
            corrections=_CORRECTIONS,
            least=least,
        )
        primal, dual = (_STEP * step for step in move.steps)
        self.k = self.k + primal * move.dk[0]
        self.s, self.y = self.s + primal * move.moves.ds, self.y + dual * move.moves.dy
        self.k[: self.count] = self.s[: self.count]  # of which they are the slacks
        self.mu = self.mu + dual * move.dmu


class _Coupled:
    """The Newton system of a master programme: diag(r/lambda), H_t and S, factored."""

    def __init__(self, point: _Master) -> None:
        self._point, self._missing = point, point.missing
        self._ratio = point.s[: point.count] / point.y[: point.count]
        weight = point.y[point.count :] / point.s[point.count :]
        root = np.sqrt(self._ratio)[:, None]
        bounds = [point.count * at // _CHUNKS for at in range(_CHUNKS + 1)]

        def inverse(item: int) -> None:
            """The lower half at least of what a chunk of columns, or a free one, gives to S."""
            out = point.coupling.parts[item]
            if item >= _CHUNKS:
                t = item - _CHUNKS
                point.factors.factor(point.free_rows, weight, (t, t + 1), out)
            else:
                some = slice(bounds[item], bounds[item + 1])
                scaled = root[some] * point.columns[some]
                np.matmul(scaled.T, scaled, out=out)  # of one array: half the time of two

        # A free column takes about as long as all of the chunks: so those come last, to be shared.
        order = [*range(_CHUNKS, _CHUNKS + point.free), *range(_CHUNKS)]
        point.team.map(inverse, order)
        point.coupling.factor(point.team)

    def free(self, q: FloatArray, part: Part) -> FloatArray:
        weights, free = self._point.split(q[0])
        weights *= self._ratio
        sums = self._point.factors.solve(free, (0, self._point.free))
        return np.asarray(sums + weights @ self._point.columns)

    def couple(self, sums: FloatArray) -> FloatArray:
        return self._point.coupling.solve(self._missing - sums)

    def follow(self, dmu: FloatArray, dk: FloatArray, part: Part) -> None:
        weights, free = self._point.split(dk[0])
        weights += self._ratio * (self._point.columns @ dmu)
        self._point.factors.add_solutions(dmu, free, (0, self._point.free))


def _repeated(rows: Rows, times: int) -> Rows:
    """The same rows for so many outputs."""
    pairs = Pairs(*(np.tile(one, times) for one in rows.pairs))
    return Rows(rows.size * np.arange(times + 1), pairs)


def _with_weights(rows: Rows, count: int, n: int) -> Rows:
    """Rows of `count` numbers that are >= 0 and of the outputs' columns, all in one vector."""
    own = np.arange(count, dtype=np.int32)
    offset = count + n * np.repeat(np.arange(rows.start.size - 1), np.diff(rows.start))
    source, target = (np.append(own, one + offset) for one in rows.pairs[:2])
    pairs = Pairs(
        source.astype(np.int32),
        target.astype(np.int32),
        np.append(np.zeros(count), rows.pairs.factor),
    )
    return Rows(np.array([0, pairs.source.size], np.int64), pairs)
