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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.optimal.barrier.coupling import Coupling
from whereish.solvers.optimal.barrier.directions import (
    ALONE,
    Part,
    SharedRows,
    shares,
)
from whereish.solvers.optimal.barrier.entering import ENTRY_SLACK, Entry, admit
from whereish.solvers.optimal.barrier.newton import Rules, newton_step
from whereish.solvers.optimal.barrier.rows import Pairs, RowLists, feasible_multipliers
from whereish.solvers.optimal.barrier.systems import NewtonSystem, OfCores, Weighed
from whereish.threads import Workers

__all__ = ["Candidate", "InteriorPoint", "Measure", "Standing"]

_PARTS = 8  # of the outputs, each for one thread at a time: fixed, so that sums are, too
_WORTH_THREADS = 150_000  # nanoseconds of work, of which a row takes about six: less is over
# before another thread has woken up
_LARGEST_SHARE = 0.02  # part of a target's multipliers that one new row may take
_UNIT = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Standing:
    """How far an iterate has come: its cost and its complementarity."""

    cost: float
    complementarity: float

    @property
    def relative_complementarity(self) -> float:
        """Complementarity over cost: the gap that the central path would leave."""
        return self.complementarity / self.cost


@dataclass(frozen=True)
class Measure(Standing):
    """Where an iterate stands: also its dual bound."""

    lower: float
    pulled: FloatArray
    """G' y, (outputs, n)."""
    bound_duals: FloatArray
    """mu_x = min_z (c_z - G_z' y_z)_x less what rounding may have added; the bound is its sum."""


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

    def __init__(
        self,
        cost: FloatArray,
        lists: RowLists,
        outputs: NDArray[np.intp],
        team: Workers | None = None,
    ) -> None:
        """`team` are the threads that share the work; None is the caller's alone."""
        self.all_cost = cost
        self.team = team or Workers()
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
        self.factors = np.empty((outputs.size, self.n * (self.n + 1) // 2))
        self.coupling = Coupling.of(min(_PARTS, outputs.size), self.n)

    def _feasible_duals(self) -> tuple[FloatArray, FloatArray]:
        """Duals with c_z - mu - G_z' y_z = 0 and y > 0, for a constant mu below all costs."""
        level = float(self.cost.mean())

        def multipliers(z: int) -> FloatArray:
            return feasible_multipliers(self.cost[z] + level, self.rows.only(z))

        y = self.team.map(multipliers, range(self.outputs.size))
        return np.concatenate(y), np.full(self.n, -level)

    @property
    def _shared(self) -> SharedRows:
        """The rows with the outputs in `_PARTS`, begin <= z < end; for threads if it pays."""
        work = 6 * self.rows.size + self.outputs.size * self.n**2
        team = self.team if work >= _WORTH_THREADS else ALONE
        return SharedRows(self.rows, shares(self.outputs.size, _PARTS), team)

    def measure(self) -> Measure:
        """Cost, dual bound on the present outputs, and complementarity."""
        start, pairs = self.rows
        pulled = np.empty(self.k.shape)

        def measure(part: Part) -> tuple[float, float, FloatArray]:
            return measure_outputs(self.cost, self.k, self.s, self.y, start, pairs, part, pulled)

        cost, products, least = zip(*self._shared.map(measure), strict=True)
        duals = np.min(least, axis=0)
        lower = math.nextafter(math.fsum(duals), -math.inf)
        return Measure(math.fsum(cost), math.fsum(products), lower, pulled, duals)

    def step(self, at: Measure, *, corrections: int = 3) -> Standing:
        """Move along the corrected direction, as far as s and y stay positive."""
        relative = at.relative_complementarity
        share = 0.9 if relative > 0.1 else min(0.9995, max(0.95, 1.0 - relative))
        missing = 1.0 - self.k.sum(axis=0)
        system = NewtonSystem(self.coupling, missing, self.factors, Weighed.none(), OfCores.none())
        moved = newton_step(
            self._shared._replace(team=self.team),
            self.k,
            self.s,
            self.y,
            self.mu,
            system=system,
            dual_residual=self.cost - self.mu - at.pulled,
            rules=Rules(corrections, share),
        )
        self.k, self.s, self.y, self.mu = moved.k, moved.s, moved.y, moved.mu
        return Standing(float((self.cost * self.k).sum()), moved.products)

    def admit_rows(self, at: Standing, *, within: float, most: int) -> None:
        """Give a barrier term to rows with a_ij k_i > (1 - within) k_j; see `entering`."""
        barrier = at.complementarity / self.rows.size
        share = min(_LARGEST_SHARE, at.relative_complementarity)
        entry = Entry(within, most, barrier, share)
        found = admit(self._shared, self.k, self.closeness, s=self.s, y=self.y, entry=entry)
        if found is not None:
            self.rows, keys, self.s, self.y = found
            self.lists.replace(self.outputs, self.rows.start, keys)

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
        least = ENTRY_SLACK * np.abs(self.k[owner, self.rows.pairs.target])
        self.s = np.maximum(self.rows.slack(self.k), least)
        central = barrier / self.s
        y = []
        for z, output in enumerate(self.outputs):
            begin, end = self.rows.start[z], self.rows.start[z + 1]
            old = multipliers[int(output)]
            y.append(old if old.size == end - begin else central[begin:end])
        self.y = np.maximum(np.concatenate(y), 1e-3 * central)


@kernel
def measure_outputs(
    cost: FloatArray,
    k: FloatArray,
    s: FloatArray,
    y: FloatArray,
    start: IntArray,
    pairs: Pairs,
    outputs: tuple[int, int],
    pulled: FloatArray,
) -> tuple[float, float, FloatArray]:
    """Cost, sum of s y and min_z (c_z - G_z' y_z) of a range of outputs; writes G' y.

    The last is less what rounding may have added (see `Rows.rounding`); NaN where an entry is.
    """
    n = cost.shape[1]
    total, products = 0.0, 0.0
    duals, size, count = np.full(n, np.inf), np.empty(n), np.empty(n, np.int64)
    for z in range(outputs[0], outputs[1]):
        pulled[z] = 0.0
        size[:] = 0.0
        count[:] = 0
        for row in range(start[z], start[z + 1]):
            i, j = pairs.source[row], pairs.target[row]
            given = pairs.factor[row] * y[row]
            pulled[z, j] += y[row]
            pulled[z, i] -= given
            size[j] += y[row]
            size[i] += given
            count[j] += 1
            count[i] += 1
            products += s[row] * y[row]
        most = count.max()
        for x in range(n):
            total += cost[z, x] * k[z, x]
            off = (most + 8) * _UNIT * size[x] + 8 * _UNIT * cost[z, x]
            dual = cost[z, x] - pulled[z, x] - off
            duals[x] = dual if dual < duals[x] or np.isnan(dual) else duals[x]
    return total, products, duals
