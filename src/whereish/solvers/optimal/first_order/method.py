"""A first-order method for large n: ADMM on the edges of a spanner, all outputs at once.

With the rows of all outputs alike, G k_z >= 0 over the edges of a greedy spanner only, the
programme is

    minimise <C, X>   subject to   G X = S,  S >= 0,  X 1 = 1.

The alternating direction method of multipliers (Boyd et al. 2011, with over-relaxation) needs one
n x n factorisation for a group of outputs, and per iteration one matrix product and one sweep over
rows times outputs.  In the sweep S = max(V, 0) and the scaled multiplier U = max(-V, 0) are the two
parts of one array V, held in single precision: any y >= 0 gives a true lower bound, and
the upper bound comes from repaired columns, so rounding here costs nothing but
tightness.

What makes it fast on any places and priors:

* outputs that lie near each other form a group, and in a group every row has its own weight: a
  power of how large its multipliers are against its slacks.  A column falls by orders of magnitude
  away from its output, so that no one weight suits a row for all outputs.  The weights are taken
  from the start and renewed after 250, 500, 1000 ... sweeps;
* the sums X 1 = 1 couple the groups through T = sum over outputs of (G' G)^{-1}, solved exactly;
* costs far from an output are capped: what is not reported there cannot matter, and one
  far corner would set the scale of all (the bound is taken with the true costs);
* it starts from the tight mechanism and its duals (`start.duals`), and takes the penalty
  from the ratio of the two;
* the bound is that of the mean of the multipliers over a round, which swing around their limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.solvers.lapack import cholesky, cholesky_inverse
from whereish.solvers.optimal.first_order.groups import Near, both_ways, groups_within
from whereish.solvers.optimal.first_order.section import Laid, Scaled, sweep_all
from whereish.solvers.optimal.first_order.sweeps import (
    Singles,
    Weighted,
    normal_matrix,
    pull_absolute,
    pull_multipliers,
)
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.start.duals import anchors, inward_flows, near_tight, tight_duals
from whereish.threads import allowed_threads, in_threads, workers

__all__ = ["FirstOrder", "Singles"]

_RELAXATION = np.float32(1.9)
_PROXIMAL = 1e-6
_BALANCE, _LATER_BALANCE = 6.0, 4.0  # |U| / |S| to begin with, and when weights are renewed
_POWER, _LATER_POWER = 0.25, 0.35  # of multipliers over slacks; 1/2 would make both alike
_FLOOR = 0.01  # of the mean multiplier and slack, added to those of a row
_LARGEST_WEIGHT = 100.0
_FIRST_RENEWAL = 250
_CAPPED_BEYOND = 10.0  # nats
_SAMPLE_PERIOD = 25  # sweeps between two multipliers of a mean
_SAMPLES_AT_MOST = 64  # of a mean, with a few steps more for rounding's sake
_WORTH_THREADS = 80_000  # half nanoseconds of a sweep: about one for an entry of a row,
_OF_PRODUCTS = 0.05  # and this part of one for one of a product; less, and threads wait more


@dataclass(frozen=True)
class _Group:
    """Some of the outputs, for one thread at a time: how they are scaled, and where they stand."""

    outputs: NDArray[np.intp]
    near: Near
    rows: Weighted
    x: Singles
    v: Singles


class _Unscaled(NamedTuple):
    """A group's outputs, columns, slacks and multipliers in units of the programme."""

    outputs: NDArray[np.intp]
    near: Near
    x: Singles
    slack: Singles
    multiplier: Singles

    @property
    def sizes(self) -> tuple[FloatArray, FloatArray]:
        """Root mean squares of every row's multipliers and slacks over the outputs."""
        found = (self.multiplier, self.slack)
        y, s = (np.sqrt(np.einsum("rz,rz->r", one, one) / one.shape[1]) for one in found)
        return y.astype(np.float64), s.astype(np.float64)


class FirstOrder:
    """The ADMM iterate on all outputs, in groups that threads share out.

    Which groups there are depends on the programme alone, so that results do not depend on
    the number of threads.

    Attributes
    ----------
    duals : (n,) array
        mu of the best bound so far, which is its sum; to begin with, that of no privacy.
    sums_duals : (n,) array
        The multipliers of the sums, their mean over the last round.
    """

    def __init__(
        self, programme: ChannelProgramme, pairs: NDArray[np.intp], reach: float = np.inf
    ) -> None:
        """Columns are zero, and rows free, beyond `reach` nats from every output of a group."""
        self.programme, self.reach = programme, reach
        self.rows = both_ways(pairs, programme.closeness)
        self._anchors = anchors(programme)
        self._cost = self._capped()
        self._sweeps, self._renewal = 0, _FIRST_RENEWAL
        self.duals = programme.cost.min(axis=0)
        self.sums_duals = self.duals
        self._scale(self._start(), _POWER, _BALANCE)
        ends = np.concatenate([self.rows.source, self.rows.target])
        self._most_rows = int(np.bincount(ends).max())
        self._largest, self._summed = 0.0, np.zeros(programme.n)
        self._note_largest()
        self._improve([self._pulled(group) for group in self._groups])

    def _capped(self) -> FloatArray:
        """Costs, (outputs, n), of which those far from their output are cut.

        A place that is far from all outputs but its own has none to cut by, and keeps its costs.
        """
        cost = self.programme.cost
        near = self.programme.metric[self._anchors] <= _CAPPED_BEYOND
        most = np.where(near, cost, 0.0).max(axis=0)
        return np.asarray(np.minimum(cost, np.where(most > 0, most, cost.max(axis=0))))

    def _start(self) -> list[_Unscaled]:
        """X of the tight mechanism with its slacks and the flows of its duals."""
        start, mu = near_tight(self.programme), tight_duals(self.programme)
        begin = np.searchsorted(self.rows.target, np.arange(self.programme.n + 1))

        def started(group: tuple[NDArray[np.intp], Near]) -> _Unscaled:
            outputs, near = group
            source, target, a = near.pairs
            x = np.ascontiguousarray(start[np.ix_(near.places, outputs)], np.float32)
            flows = np.empty((source.size, outputs.size), np.float32)
            for at, z in enumerate(outputs):
                reduced, centre = self._cost[z] - mu, self._anchors[z]
                flows[:, at] = inward_flows(
                    reduced, self.programme.metric, centre, begin, self.rows
                )[near.rows]
            slack = x[target] - a.astype(np.float32)[:, None] * x[source]
            slack = np.where(flows > 0, np.float32(0.0), np.maximum(slack, np.float32(0.0)))
            return _Unscaled(outputs, near, x, slack, flows)

        groups = groups_within(self.programme.metric, self._anchors, self.rows, self.reach)
        return in_threads(started, groups)

    def _scale(self, groups: list[_Unscaled], power: float, balance: float) -> None:
        """Weights, penalty and factorisations for where the groups stand."""
        sizes = [group.sizes for group in groups]
        weights = _weights(sizes, power)
        shares = [group.outputs.size for group in groups]
        parts = list(zip(sizes, weights, shares, strict=True))
        duals = sum(k * float(((y / w) ** 2).sum()) for (y, _), w, k in parts)
        slacks = sum(k * float(((s * w) ** 2).sum()) for (_, s), w, k in parts)
        self.penalty = float(np.sqrt(duals / max(slacks, 1e-30))) / balance
        if not 0.0 < self.penalty < np.inf:
            self.penalty = 5.0 * float(self._cost.mean())
        found = in_threads(lambda both: self._scaled(*both), zip(groups, weights, strict=True))
        total = np.zeros(self.programme.metric.shape)
        for group, (_, _, inverse) in zip(groups, found, strict=True):
            total[np.ix_(group.near.places, group.near.places)] += group.outputs.size * inverse
        self._coupling = np.asarray(np.linalg.inv(total), np.float64)
        pairs = zip(groups, found, strict=True)
        self._laid = Laid.of([(group.near.places, one[1], one[0]) for group, one in pairs])
        self._groups = []
        for g, group in enumerate(groups):
            laid = self._laid.group(g)
            self._groups.append(_Group(group.outputs, group.near, laid.rows, laid.x, laid.v))

    def _scaled(self, group: _Unscaled, weight: FloatArray) -> tuple[Scaled, float, FloatArray]:
        """The group's arrays, its proximal term, and its inverse in double precision."""
        near = group.near
        source, target, a = near.pairs
        w = weight.astype(np.float32)
        rows = Weighted(source, target, w, (w * a).astype(np.float32))
        normal = normal_matrix(rows, near.places.size)
        proximal = _PROXIMAL * float(np.diagonal(normal).mean())
        normal[np.diag_indices_from(normal)] += proximal
        inverse = _inverse(normal)
        v = group.slack * w[:, None]
        v -= group.multiplier / (w[:, None] * np.float32(self.penalty))
        mine = self._cost[np.ix_(group.outputs, near.places)]
        cost = np.ascontiguousarray(mine.T / self.penalty, np.float32)
        pulled = np.empty_like(cost)
        pull_absolute(v, rows, pulled)
        single = inverse.astype(np.float32)
        return Scaled(rows, single, group.x, v, pulled, cost), proximal, inverse

    def _unscaled(self, group: _Group) -> _Unscaled:
        w, zero = group.rows.weight[:, None], np.float32(0.0)
        slack = np.asarray(np.maximum(group.v, zero) / w, np.float32)
        multiplier = np.maximum(-group.v, zero) * (w * np.float32(self.penalty))
        return _Unscaled(group.outputs, group.near, group.x, slack, multiplier)

    @property
    def _threads(self) -> int:
        """Among which the groups are shared: where a sweep is soon over, one."""
        work = sum(
            group.x.shape[1] * (group.rows.source.size + _OF_PRODUCTS * group.x.shape[0] ** 2)
            for group in self._groups
        )
        return min(allowed_threads(), len(self._groups)) if work >= _WORTH_THREADS else 1

    @property
    def x(self) -> Singles:
        """The channel, (n, outputs), stochastic and nearly private."""
        out = np.zeros((self.programme.n, len(self._cost)), np.float32)
        for group in self._groups:
            out[np.ix_(group.near.places, group.outputs)] = group.x
        return out

    def iterate(self, times: int) -> None:
        """`times` sweeps."""
        with workers(threads=self._threads) as team:
            moved = sweep_all(team, self._laid, self._coupling, times, _RELAXATION)
        self._summed += self.penalty * moved

    def round(self, times: int, *, over: Callable[[], bool] = lambda: False) -> float:
        """`times` sweeps, fewer if it is `over`; the best bound so far."""
        if self._sweeps >= self._renewal:
            self._scale(in_threads(self._unscaled, self._groups), _LATER_POWER, _LATER_BALANCE)
            self._renewal *= 2
        total = [np.zeros(group.x.shape) for group in self._groups]
        samples, self._largest, self._summed = 0, 0.0, np.zeros(self.programme.n)
        times = min(times, (_SAMPLES_AT_MOST - 8) * _SAMPLE_PERIOD)
        while samples * _SAMPLE_PERIOD < times and not (samples and over()):
            self.iterate(_SAMPLE_PERIOD)
            last = in_threads(self._pulled, self._groups)
            self._note_largest()
            total = [mean + new for mean, new in zip(total, last, strict=True)]
            samples += 1
        self._sweeps += samples * _SAMPLE_PERIOD
        self.sums_duals = self._summed / (samples * _SAMPLE_PERIOD)
        self._mean = [one / samples for one in total]
        self._improve(last)
        self._improve(self._mean)
        return math.fsum(self.duals)

    def _pulled(self, group: _Group) -> FloatArray:
        return pull_multipliers(group.v, group.rows.weight, group.near.pairs)

    def _improve(self, pulled: list[FloatArray]) -> None:
        """Take mu_x = min_z (c_z - G' y_z)_x if its sum, the Lagrangian bound, is the best so far.

        The costs are the true ones, and mu is lowered by what rounding may have added: y is what
        it is (products of two singles are doubles), an entry of G' y sums at most D products of
        a <= 1, itself off by an ulp, with multipliers below the largest, and a mean adds the rest.
        """
        least = np.full(self.programme.n, np.inf)
        for group, pull in zip(self._groups, pulled, strict=True):
            reduced = self.programme.cost[group.outputs].T.copy()
            reduced[group.near.places] -= self.penalty * pull
            least = np.minimum(least, reduced.min(axis=1))
        least -= self._rounded
        if math.fsum(least) > math.fsum(self.duals):
            self.duals = least

    @property
    def _rounded(self) -> FloatArray:
        """What rounding may have added to an entry of c - G' y, for every place."""
        summed = self._most_rows * self.penalty * self._largest
        steps = self._most_rows + _SAMPLES_AT_MOST
        eps = float(np.finfo(float).eps)
        return np.asarray(steps * eps * (self.programme.cost.max(axis=0) + summed))

    def reduced_costs(self) -> FloatArray:
        """c_z - G' y_z of the mean multipliers of the last round, (outputs, n), never above."""
        reduced = self.programme.cost - self._rounded
        for group, pull in zip(self._groups, self._mean, strict=True):
            reduced[np.ix_(group.outputs, group.near.places)] -= self.penalty * pull.T
        return reduced

    def _note_largest(self) -> None:
        """The largest y / penalty of any row since it was last forgotten."""

        def least(group: _Group) -> float:
            return float((group.v * group.rows.weight[:, None]).min())

        self._largest = max(self._largest, -min(in_threads(least, self._groups)))


def _inverse(matrix: FloatArray) -> FloatArray:
    """Of a positive matrix, by Cholesky where that works: half the time of a general one."""
    factor = np.array(matrix, order="F")
    if cholesky(factor) != 0 or cholesky_inverse(factor) != 0:
        return np.asarray(np.linalg.inv(matrix), np.float64)
    upper = np.triu(factor)
    return np.asarray(upper + np.triu(factor, 1).T)


def _weights(sizes: list[tuple[FloatArray, FloatArray]], power: float) -> list[FloatArray]:
    """Weights of the rows in every group: a power of multipliers over slacks."""
    means = np.sqrt(np.mean([[np.mean(y**2), np.mean(s**2)] for y, s in sizes], axis=0))
    tiny = np.finfo(np.float32).tiny
    floor_y, floor_s = np.maximum(_FLOOR * means, tiny)
    found = []
    for y, s in sizes:
        logs = power * (np.log(y + floor_y) - np.log(s + floor_s))
        logs -= logs.mean()
        most = np.log(_LARGEST_WEIGHT)
        found.append(np.exp(np.clip(logs, -most, most)))
    return found
