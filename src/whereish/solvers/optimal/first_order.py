"""A first-order method for large n: ADMM on the edges of a spanner, all outputs at once.

With the rows of all outputs alike, G k_z >= 0 over the edges of a greedy spanner only, the
programme is

    minimise <C, X>   subject to   G X = S,  S >= 0,  X 1 = 1.

The alternating direction method of multipliers (Boyd et al. 2011, with
over-relaxation) needs one n x n factorisation for all outputs, and per iteration
one matrix product and one sweep over pairs times outputs.  In the sweep
S = max(V, 0) and the scaled multiplier U = max(-V, 0) are the two parts of one
array V, held in single precision: any y = rho U >= 0 gives a true lower bound, and
the upper bound comes from repaired columns, so rounding here costs nothing but
tightness.

What makes it fast on any places and priors:

* costs far from an output are capped: what is not reported there cannot matter, and one
  far corner would set the scale of all (the bound is taken with the true costs);
* rows weigh as much as the costs around them;
* it starts from the tight mechanism and its duals (`start.duals`), and takes the penalty
  from the ratio of the two;
* the bound is that of the mean of the multipliers over a round, which swing around their limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.optimal.barrier_rows import Pairs
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.start.duals import anchors, inward_flows, near_tight, tight_duals
from whereish.threads import in_threads

__all__ = ["FirstOrder", "Singles"]

Singles = NDArray[np.float32]
_RELAXATION = np.float32(1.9)
_PROXIMAL = 1e-6
_MOST_PARTS, _LEAST_WIDTH = 8, 200  # parts of the outputs; narrower ones are slower
_BALANCE = 6.0  # |U| / |S| to begin with; measured on 400 places of four kinds
_CAPPED_BEYOND = 10.0  # nats
_LEAST_WEIGHT = 1e-2
_WEIGHT_POWER = 0.75
_SAMPLE_PERIOD = 25  # sweeps between two multipliers of a mean


class _Weighted(NamedTuple):
    """The rows weight * k[target] >= factor * k[source], as the kernels read them."""

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    weight: NDArray[np.floating]
    factor: NDArray[np.floating]


def _both_ways(pairs: NDArray[np.intp], closeness: FloatArray) -> Pairs:
    """Both directions of every pair, ordered by target."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    source, target = both[np.lexsort((both[:, 0], both[:, 1]))].T
    return Pairs(source.astype(np.int32), target.astype(np.int32), closeness[source, target])


def _weights(programme: ChannelProgramme, cost: FloatArray, rows: Pairs) -> FloatArray:
    """Weights of the rows: a power of the mean cost around their ends."""
    near = programme.closeness
    around = near @ cost.mean(axis=0) / near.sum(axis=1)
    around = np.sqrt(around[rows.source] * around[rows.target])
    relative = around / max(float(around.mean()), np.finfo(float).tiny)
    return np.asarray(np.maximum(relative, _LEAST_WEIGHT) ** _WEIGHT_POWER)


def _normal_matrix(rows: _Weighted, n: int) -> FloatArray:
    """G' G."""
    i, j, w, a = rows
    out = np.zeros((n, n))
    np.add.at(out, (j, j), w * w)
    np.add.at(out, (i, i), a * a)
    np.add.at(out, (i, j), -w * a)
    np.add.at(out, (j, i), -w * a)
    return out


@dataclass(frozen=True)
class _Part:
    """Some of the outputs, for one thread at a time: the channel, V, G' |V| and the cost."""

    outputs: NDArray[np.intp]
    x: Singles
    v: Singles
    pulled: Singles
    cost: Singles


class FirstOrder:
    """The ADMM iterate on all outputs, in parts that threads share out.

    How many parts there are depends on the programme alone, so that results do not depend on
    the number of threads.
    """

    def __init__(self, programme: ChannelProgramme, pairs: NDArray[np.intp]) -> None:
        self.programme = programme
        self._true_rows = _both_ways(pairs, programme.closeness)
        self._anchors = anchors(programme)
        cost = self._capped()
        weight = _weights(programme, cost, self._true_rows).astype(np.float32)
        source, target, a = self._true_rows
        self.rows = _Weighted(source, target, weight.astype(np.float64), weight * a)
        self._single = self.rows._replace(weight=weight, factor=self.rows.factor.astype(np.float32))
        normal = _normal_matrix(self.rows, programme.n)
        self._proximal = np.float32(_PROXIMAL * float(np.diagonal(normal).mean()))
        normal[np.diag_indices_from(normal)] += float(self._proximal)
        self._inverse = np.linalg.inv(normal).astype(np.float32)
        self._cost = cost
        self._start()

    def _capped(self) -> FloatArray:
        """Costs, (outputs, n), of which those far from their output are cut."""
        near = self.programme.metric[self._anchors] <= _CAPPED_BEYOND
        most = np.where(near, self.programme.cost, 0.0).max(axis=0)
        return np.asarray(np.minimum(self.programme.cost, most))

    def _start(self) -> None:
        """X of the tight mechanism; V its slacks, less the flows of its duals over the penalty."""
        start, mu = near_tight(self.programme), tight_duals(self.programme)
        source, target, _ = self._true_rows
        begin = np.searchsorted(target, np.arange(self.programme.n + 1))

        def started(share: NDArray[np.intp]) -> tuple[Singles, Singles, float, float]:
            x = np.ascontiguousarray(start[:, share], np.float32)
            flows = np.empty((source.size, share.size), np.float32)
            for at, z in enumerate(share):
                reduced = self._cost[z] - mu
                centre = self._anchors[z]
                flow = inward_flows(reduced, self.programme.metric, centre, begin, self._true_rows)
                flows[:, at] = flow / self.rows.weight
            weight, factor = self._single.weight[:, None], self._single.factor[:, None]
            slack = np.maximum(weight * x[target] - factor * x[source], np.float32(0.0))
            v = np.where(flows > 0, -flows, slack)
            return x, v, float((flows**2).sum()), float((slack**2).sum())

        shares = _shares(np.arange(len(self._cost)))
        begun = in_threads(started, shares)
        ratio = sum(part[2] for part in begun) / max(sum(part[3] for part in begun), 1e-30)
        self.penalty = float(np.sqrt(ratio)) / _BALANCE
        if not 0.0 < self.penalty < np.inf:
            self.penalty = 5.0 * float(self._cost.mean())
        for _, v, _, _ in begun:
            v[v < 0] /= np.float32(self.penalty)
        self._parts = [
            self._part(share, x, v) for share, (x, v, _, _) in zip(shares, begun, strict=True)
        ]

    def _part(self, outputs: NDArray[np.intp], x: Singles, v: Singles) -> _Part:
        cost = np.ascontiguousarray(self._cost[outputs].T / self.penalty, np.float32)
        part = _Part(outputs, np.ascontiguousarray(x), np.ascontiguousarray(v), 0 * cost, cost)
        pull_absolute(part.v, self._single, part.pulled)
        return part

    @property
    def x(self) -> Singles:
        """The channel, (n, outputs), stochastic and nearly private."""
        return np.concatenate([part.x for part in self._parts], axis=1)

    def iterate(self, times: int) -> None:
        """`times` sweeps."""

        def solve(part: _Part) -> FloatArray:
            np.subtract(part.pulled, part.cost, out=part.pulled)
            np.add(part.pulled, self._proximal * part.x, out=part.pulled)
            np.matmul(self._inverse, part.pulled, out=part.x)
            return np.asarray(part.x.sum(axis=1, dtype=np.float64))

        def move(part: _Part) -> None:
            np.add(part.x, missing, out=part.x)
            sweep(part.x, part.v, self._single, _RELAXATION, part.pulled)

        outputs = sum(part.outputs.size for part in self._parts)
        for _ in range(times):
            sums = sum(in_threads(solve, self._parts), np.zeros(self.programme.n))
            missing = ((1.0 - sums) / outputs).astype(np.float32)[:, None]
            in_threads(move, self._parts)

    def round(self, times: int, *, over: Callable[[], bool] = lambda: False) -> float:
        """`times` sweeps, fewer if it is `over`; the best bound of the multipliers on the way."""
        total = [np.zeros(part.x.shape) for part in self._parts]
        samples = 0
        while samples * _SAMPLE_PERIOD < times and not (samples and over()):
            self.iterate(_SAMPLE_PERIOD)
            last = in_threads(lambda part: pull_negative(part.v, self.rows), self._parts)
            total = [mean + new for mean, new in zip(total, last, strict=True)]
            samples += 1
        mean = [one / samples for one in total]
        return max(self._bound(last), self._bound(mean))

    def _bound(self, pulled: list[FloatArray]) -> float:
        """The Lagrangian bound sum_x min_z (c_z - G' y_z)_x, with the true costs."""
        least = np.full(self.programme.n, np.inf)
        for part, pull in zip(self._parts, pulled, strict=True):
            reduced = self.programme.cost[part.outputs].T - self.penalty * pull
            least = np.minimum(least, reduced.min(axis=1))
        return float(least.sum())


def _shares(outputs: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Parts that depend on how many outputs there are alone."""
    return np.array_split(outputs, min(_MOST_PARTS, max(1, outputs.size // _LEAST_WIDTH)))


@kernel
def sweep(x: Singles, v: Singles, rows: _Weighted, relaxation: np.float32, pulled: Singles) -> None:
    """V <- relaxed G X - U, then pulled <- G' (S + U) = G' |V|."""
    zero, one = np.float32(0.0), np.float32(1.0)
    pulled[:] = zero
    for row in range(rows.source.size):
        i, j, w, a = rows.source[row], rows.target[row], rows.weight[row], rows.factor[row]
        for z in range(x.shape[1]):
            old = v[row, z]
            s = old if old > zero else zero
            # v - s = -U: the negative part stays.
            new = relaxation * (w * x[j, z] - a * x[i, z]) + (one - relaxation) * s + (old - s)
            v[row, z] = new
            size = abs(new)
            pulled[j, z] += w * size
            pulled[i, z] -= a * size


@kernel
def pull_absolute(v: Singles, rows: _Weighted, pulled: Singles) -> None:
    """Write G' |V|."""
    pulled[:] = np.float32(0.0)
    for row in range(rows.source.size):
        i, j, w, a = rows.source[row], rows.target[row], rows.weight[row], rows.factor[row]
        for z in range(v.shape[1]):
            size = abs(v[row, z])
            pulled[j, z] += w * size
            pulled[i, z] -= a * size


@kernel
def pull_negative(v: Singles, rows: _Weighted) -> FloatArray:
    """G' max(-V, 0) in double precision."""
    out = np.zeros((rows.target.max() + 1, v.shape[1]))
    for row in range(rows.source.size):
        i, j, w, a = rows.source[row], rows.target[row], rows.weight[row], rows.factor[row]
        for z in range(v.shape[1]):
            if v[row, z] < 0:
                out[j, z] -= w * v[row, z]
                out[i, z] += a * v[row, z]
    return out
