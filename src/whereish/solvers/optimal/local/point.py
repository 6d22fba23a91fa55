"""The interior point of `interior_point` on cores: all outputs at once, each with few variables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import SolverError
from whereish.solvers.lapack import address
from whereish.solvers.optimal.barrier.coupling import Coupling
from whereish.solvers.optimal.barrier.directions import Part, SharedRows, shares
from whereish.solvers.optimal.barrier.newton import Rules, newton_step
from whereish.solvers.optimal.barrier.rows import NO_MULTIPLIERS, Pairs, Rows
from whereish.solvers.optimal.barrier.systems import NewtonSystem, OfCores, Weighed
from whereish.solvers.optimal.local.cores import Cores, Links, flat_cores
from whereish.solvers.optimal.local.kernels import (
    Pulled,
    price_of_tails,
    write_of_cores,
)
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.threads import allowed_threads, in_threads, workers

_LEAST_LEVEL = 0.1  # of the mean loss: what a place without cost counts as
_PARTS = 8
"""Of the outputs, each for one thread at a time: fixed, so that sums are, too."""
_LARGER = 2
"""Of those that make one for directions, which take less time than factors."""


class _Padded:
    """The variables of each part of the outputs in a row of its own, so that threads share rows.

    Attributes
    ----------
    rows : Rows
        Those of every part, with indices of its own variables.
    """

    def __init__(self, rows: Rows, parts: list[Part], begins: IntArray, cores: Cores) -> None:
        """`begins` are the first rows of all outputs."""
        self.outputs = [
            (some[0][0], some[-1][1])
            for some in (parts[at : at + _LARGER] for at in range(0, len(parts), _LARGER))
        ]
        bounds = np.append([begin for begin, _ in self.outputs], parts[-1][1])
        first, start = cores.start[bounds], begins[bounds]
        counts = np.diff(first)
        self.shape = len(counts), int(counts.max())
        self.parts = shares(len(counts), len(counts))
        shift = np.arange(len(counts)) * self.shape[1] - first[:-1]
        self._spot = np.arange(first[-1]) + np.repeat(shift, counts)
        offset = np.repeat(first[:-1], np.diff(start)).astype(np.int32)
        pairs = Pairs(rows.pairs.source - offset, rows.pairs.target - offset, rows.pairs.factor)
        self.rows = Rows(start, pairs)

    def pad(self, flat: FloatArray) -> FloatArray:
        """One number for each variable, in rows that zeros complete."""
        out = np.zeros(self.shape)
        out.ravel()[self._spot] = flat
        return out

    def flat(self, padded: FloatArray) -> FloatArray:
        """The same without those zeros."""
        return np.asarray(padded.ravel()[self._spot])


class LocalPoint:
    """The iterate (k, y, mu) on the cores' variables.

    Attributes
    ----------
    k : (variables,) array
        Entries of the columns on their cores.
    s, y : arrays
        Slack and multiplier of every row, positive.
    mu : (n,) array
        Multipliers of the row sums.
    """

    def __init__(
        self,
        programme: ChannelProgramme,
        links: Links,
        keys: list[IntArray],
        start: FloatArray,
        near: NDArray[np.intp],
    ) -> None:
        """`keys` are the rows source * n + target of every output; `start` is strictly private."""
        self.programme, self.links, self.near = programme, links, near
        self.cores: Cores = flat_cores(links)
        self.cost = self.cores.gathered_costs(programme.cost)
        self._lay_out(keys)
        owner = np.repeat(np.arange(len(keys)), np.diff(self.cores.start))
        self.k = np.ascontiguousarray(start[self.cores.place, owner])
        self.s = self._slack(self.k)
        self.y, self.mu = self._feasible_duals(start)

    def _lay_out(self, keys: list[IntArray]) -> None:
        sizes = [one.size for one in keys]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        owner = np.repeat(np.arange(len(keys)), sizes)
        i, j = np.divmod(np.concatenate(keys), self.programme.n)
        index, closeness = self.cores.variable, self.programme.closeness
        pairs = Pairs(index[owner, i], index[owner, j], closeness[i, j])
        self.rows = Rows(np.array([0, pairs.source.size], np.int64), pairs)
        offset = self.cores.start[owner].astype(np.int32)
        local = Pairs(pairs.source - offset, pairs.target - offset, pairs.factor)
        self._local = Rows(start, local)
        self._parts = shares(len(keys), _PARTS)
        self._padded = _Padded(self.rows, self._parts, start, self.cores)
        self._coupling = Coupling.of(len(self._parts), self.programme.n)
        self._spots = np.concatenate([[0], np.cumsum(np.diff(self.cores.start) ** 2)])
        self._inverses = np.empty(int(self._spots[-1]))

    def _feasible_duals(self, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Duals with E'(c - mu) = G' y and y > 0, mu minus what each place loses at the start."""
        lost = (start * self.programme.cost.T).sum(axis=1)
        level = np.maximum(lost, _LEAST_LEVEL * lost.mean())
        total = self.cost + self.cores.gather(level)
        y, rows, gesv = np.empty(self.rows.size), self._local, address("dgesv")

        def write(part: Part) -> bool:
            return write_of_cores(gesv, total, self.cores.start, rows, part, y)

        if not all(in_threads(write, self._parts)):
            raise SolverError(NO_MULTIPLIERS)
        return y, -level

    def _slack(self, k: FloatArray) -> FloatArray:
        return self.rows.slack(k[None])

    @property
    def value(self) -> float:
        return float(self.cost @ self.k)

    @property
    def complementarity(self) -> float:
        return float(self.s @ self.y)

    def bound(self) -> FloatArray:
        """mu of a bound for the asked programme, its sum, lowered by what rounding may have added.

        An entry sums its rows' products, what follows it and its own cost; each sum of m numbers
        is off by less than m units of rounding of their absolute sum.
        """
        source, target, a = self.rows.pairs
        pulled = self.rows.pull(self.y, self.k.size)[0]
        size = np.bincount(target, self.y, minlength=self.k.size)
        size = size + np.bincount(source, a * self.y, minlength=self.k.size)
        ends = np.bincount(np.concatenate([source, target]), minlength=self.k.size)
        slack = (float(ends.max()) + 2.0 * self.programme.n) * float(np.finfo(float).eps)
        programme = self.programme
        return price_of_tails(
            programme.cost,
            self.mu,
            Pulled(pulled, np.asarray(size, np.float64)),
            self.cores,
            self.links,
            programme.closeness,
            self.near,
            slack,
        )

    def columns(self) -> FloatArray:
        return self.cores.spread(np.maximum(self.k, 0.0), self.programme.n)

    def step(self, *, corrections: int = 3) -> tuple[float, float]:
        padded, relative = self._padded, self.complementarity / self.value
        dual_residual = self.cost - self.cores.gather(self.mu) - self.rows.pull(self.y, self.k.size)
        missing = 1.0 - self.cores.sums(self.k, self.programme.n)
        outputs, parts = (np.array(some, np.int64) for some in (padded.outputs, self._parts))
        of_cores = OfCores(self._inverses, self._spots, self.cores, outputs, self._local, parts)
        share = 0.9 if relative > 0.1 else min(0.9995, max(0.95, 1.0 - relative))
        with workers(threads=min(allowed_threads(), len(self._parts))) as team:
            moved = newton_step(
                SharedRows(padded.rows, padded.parts, team),
                padded.pad(self.k),
                self.s,
                self.y,
                self.mu,
                system=NewtonSystem(
                    self._coupling, missing, np.empty((0, 0)), Weighed.none(), of_cores
                ),
                dual_residual=padded.pad(dual_residual[0]),
                rules=Rules(corrections, share),
            )
        self.k = padded.flat(moved.k)
        self.s, self.y, self.mu = moved.s, moved.y, moved.mu
        return moved.steps
