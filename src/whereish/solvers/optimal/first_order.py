"""A first-order method for large n: ADMM on near-neighbour constraints, all outputs at once.

With the rows of all outputs alike, G k_z >= 0 over near-neighbour pairs only, the
programme is

    minimise <C, X>   subject to   G X = S,  S >= 0,  X 1 = 1.

The alternating direction method of multipliers (Boyd et al. 2011, with
over-relaxation) needs one n x n factorisation for all outputs, and per iteration
one matrix product and one sweep over pairs times outputs.  In the sweep
S = max(V, 0) and the scaled multiplier U = max(-V, 0) are the two parts of one
array V, held in single precision: any y = rho U >= 0 gives a true lower bound, and
the upper bound comes from repaired columns, so rounding here costs nothing but
tightness.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.optimal.barrier_rows import Pairs
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.threads import in_threads

__all__ = ["FirstOrder", "near_pairs"]

Singles = NDArray[np.float32]
_RELAXATION = np.float32(1.6)
_PROXIMAL = 1e-6
_JOINING_DILATION = 1.2
_MOST_PARTS, _LEAST_WIDTH = 8, 400  # parts of the outputs; narrower ones are slower
_PENALTY = 5.0  # times the mean cost; measured on 400 and 1000 places


def near_pairs(metric: FloatArray, neighbours: int) -> NDArray[np.intp]:
    """Pairs i < j among the `neighbours` nearest of either, with no third point between them.

    The edges of a spanner join clusters whose points are each other's nearest.
    """
    n = metric.shape[0]
    nearest = np.argsort(metric, axis=1, kind="stable")[:, 1 : neighbours + 1]
    rows = np.repeat(np.arange(n), nearest.shape[1])
    pairs = np.sort(np.stack([rows, nearest.ravel()], axis=1), axis=1)
    joining = greedy_spanner(metric, _JOINING_DILATION).edges
    pairs = np.unique(np.concatenate([pairs, joining]), axis=0)
    return pairs[_nothing_between(metric, pairs)]


@kernel
def _nothing_between(metric: FloatArray, pairs: NDArray[np.intp]) -> NDArray[np.bool_]:
    clear = np.ones(len(pairs), np.bool_)
    for p in range(len(pairs)):
        i, j = pairs[p, 0], pairs[p, 1]
        length = metric[i, j]
        for via in range(metric.shape[0]):
            if via not in (i, j) and metric[i, via] + metric[via, j] <= length * (1 + 1e-9):
                clear[p] = False
                break
    return clear


def _both_ways(pairs: NDArray[np.intp], closeness: FloatArray) -> Pairs:
    """Both directions of every pair, ordered by target."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    source, target = both[np.lexsort((both[:, 0], both[:, 1]))].T
    return Pairs(source.astype(np.int32), target.astype(np.int32), closeness[source, target])


def _normal_matrix(rows: Pairs, n: int) -> FloatArray:
    """G' G."""
    i, j, a = rows
    out = np.zeros((n, n))
    np.add.at(out, (j, j), 1.0)
    np.add.at(out, (i, i), a * a)
    np.add.at(out, (i, j), -a)
    np.add.at(out, (j, i), -a)
    return out


@dataclass(frozen=True)
class _Part:
    """Some of the outputs, for one thread at a time: the channel, V, G' |V| and the cost."""

    x: Singles
    v: Singles
    pulled: Singles
    cost: Singles

    @classmethod
    def started(cls, cost: Singles, outputs: int, rows: Pairs) -> _Part:
        """The uniform channel on these outputs, of so many in all."""
        n, width = cost.shape
        start = (1.0 - rows.factor) / np.float32(outputs)
        v = np.repeat(start[:, None], width, axis=1)
        part = cls(np.full((n, width), 1.0 / outputs, np.float32), v, np.empty_like(cost), cost)
        pull_absolute(part.v, rows, part.pulled)
        return part


class FirstOrder:
    """The ADMM iterate on all outputs, in parts that threads share out.

    How many parts there are depends on the programme alone, so that results do not depend on
    the number of threads.
    """

    def __init__(self, programme: ChannelProgramme, pairs: NDArray[np.intp]) -> None:
        self.programme = programme
        self.rows = _both_ways(pairs, programme.closeness)
        self._single = self.rows._replace(factor=self.rows.factor.astype(np.float32))
        self.penalty = _PENALTY * float(programme.cost.mean())
        outputs = programme.cost.shape[0]
        scaled = (programme.cost.T / self.penalty).astype(np.float32)
        count = min(_MOST_PARTS, max(1, outputs // _LEAST_WIDTH))
        self._parts = [
            _Part.started(np.ascontiguousarray(cost), outputs, self._single)
            for cost in np.array_split(scaled, count, axis=1)
        ]
        self._inverse = self._inverted()

    @property
    def x(self) -> Singles:
        """The channel, (n, outputs), stochastic and nearly private."""
        return np.concatenate([part.x for part in self._parts], axis=1)

    def _inverted(self) -> Singles:
        normal = _normal_matrix(self.rows, self.programme.n)
        normal += _PROXIMAL * np.eye(self.programme.n)
        return np.linalg.inv(normal).astype(np.float32)

    def iterate(self, times: int) -> None:
        """`times` sweeps."""

        def solve(part: _Part) -> FloatArray:
            np.subtract(part.pulled, part.cost, out=part.pulled)
            np.add(part.pulled, np.float32(_PROXIMAL) * part.x, out=part.pulled)
            np.matmul(self._inverse, part.pulled, out=part.x)
            return np.asarray(part.x.sum(axis=1, dtype=np.float64))

        def move(part: _Part) -> None:
            np.add(part.x, missing, out=part.x)
            sweep(part.x, part.v, self._single, _RELAXATION, part.pulled)

        outputs = self.programme.cost.shape[0]
        for _ in range(times):
            sums = sum(in_threads(solve, self._parts), np.zeros(self.programme.n))
            missing = ((1.0 - sums) / outputs).astype(np.float32)[:, None]
            in_threads(move, self._parts)

    def bound(self) -> float:
        """The Lagrangian bound sum_x min_z (c_z - G' y_z)_x of y = penalty * max(-V, 0)."""
        pulled = np.concatenate(
            in_threads(lambda part: pull_negative(part.v, self.rows), self._parts), axis=1
        )
        return float((self.programme.cost.T - self.penalty * pulled).min(axis=1).sum())


@kernel
def sweep(x: Singles, v: Singles, rows: Pairs, relaxation: np.float32, pulled: Singles) -> None:
    """V <- relaxed G X - U, then pulled <- G' (S + U) = G' |V|."""
    zero, one = np.float32(0.0), np.float32(1.0)
    pulled[:] = zero
    for row in range(rows.source.size):
        i, j, a = rows.source[row], rows.target[row], rows.factor[row]
        for z in range(x.shape[1]):
            old = v[row, z]
            s = old if old > zero else zero
            # v - s = -U: the negative part stays.
            new = relaxation * (x[j, z] - a * x[i, z]) + (one - relaxation) * s + (old - s)
            v[row, z] = new
            size = abs(new)
            pulled[j, z] += size
            pulled[i, z] -= a * size


@kernel
def pull_absolute(v: Singles, rows: Pairs, pulled: Singles) -> None:
    """Write G' |V|."""
    pulled[:] = np.float32(0.0)
    for row in range(rows.source.size):
        i, j, a = rows.source[row], rows.target[row], rows.factor[row]
        for z in range(v.shape[1]):
            size = abs(v[row, z])
            pulled[j, z] += size
            pulled[i, z] -= a * size


@kernel
def pull_negative(v: Singles, rows: Pairs) -> FloatArray:
    """G' max(-V, 0) in double precision."""
    out = np.zeros((rows.target.max() + 1, v.shape[1]))
    for row in range(rows.source.size):
        i, j, a = rows.source[row], rows.target[row], rows.factor[row]
        for z in range(v.shape[1]):
            if v[row, z] < 0:
                out[j, z] -= v[row, z]
                out[i, z] += a * v[row, z]
    return out
