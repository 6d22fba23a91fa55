"""Certified channels for many places: the first-order method, then repair and recombination.

The first-order iterate is not private.  Its closed columns, those of a few earlier
iterates and the bumps e^{-d(., z)} of the tight mechanism are private; their
cheapest combination is the channel.  The bound is the Lagrangian one of the
near-neighbour rows, which are some of the programme's own.
"""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray
from whereish.solvers.optimal.first_order import FirstOrder, near_pairs
from whereish.solvers.optimal.programme import ChannelProgramme, LpResult, Terms
from whereish.solvers.optimal.recombination import recombine
from whereish.solvers.optimal.repair import close_upward, complete

__all__ = ["solve_large"]


NEIGHBOURS = 36
"""Rows: every secret with its nearest others, of which about two thirds have nothing between."""
ROUND = 250
"""Sweeps between two evaluations of the bound."""
MOST_SWEEPS = 8000
SNAPSHOTS = 3
_USED = 1e-3


class _LargeScale:
    """The state of one solve."""

    def __init__(self, programme: ChannelProgramme) -> None:
        self.programme = programme
        self.method = FirstOrder(programme, near_pairs(programme.metric, NEIGHBOURS))
        self.snapshots: list[FloatArray] = []
        self.lower = 0.0  # costs are nonnegative
        self.matrix = programme.merged(np.full((programme.n, 1), 1.0) @ _best_constant(programme))
        self.upper = programme.value(self.matrix)

    def round(self, sweeps: int) -> None:
        """Sweep, then take the bound and a snapshot of the private columns."""
        self.method.iterate(sweeps)
        self.lower = max(self.lower, self.method.bound())
        matrix = np.maximum(self.method.x, 0.0).astype(np.float64)
        used = matrix.max(axis=0) > _USED * float(matrix.max())
        closed = close_upward(np.ascontiguousarray(matrix[:, used]), self.programme.closeness)
        self.snapshots = [*self.snapshots, closed.T][-SNAPSHOTS:]

    def recombine(self) -> None:
        """The cheapest channel from the snapshots and the tight mechanism's bumps."""
        columns = np.concatenate([self.programme.closeness, *self.snapshots])
        matrix = complete(self.programme, np.maximum(recombine(self.programme, columns), 0.0))
        value = self.programme.value(matrix)
        if value < self.upper:
            self.matrix, self.upper = matrix, value


def solve_large(
    programme: ChannelProgramme, terms: Terms, *, most_sweeps: int = MOST_SWEEPS
) -> LpResult:
    """Solve to a certified gap as far as the near-neighbour rows and time allow."""
    run = _LargeScale(programme)
    status, sweeps, due = None, 0, 4 * ROUND
    while status is None and sweeps < most_sweeps:
        before = run.lower
        run.round(ROUND)
        sweeps += ROUND
        settled = run.lower - before < 1e-5 * run.lower
        if sweeps >= due or terms.over or settled or sweeps >= most_sweeps:
            run.recombine()
            due = 2 * sweeps
        status = terms.verdict(run.upper, run.lower, "first order")
        if settled:
            break
    method = "first order with recombination"
    return LpResult(run.upper, run.lower, run.matrix, status or "stalled", method, sweeps)


def _best_constant(programme: ChannelProgramme) -> FloatArray:
    """The one-row channel that always reports the cheapest output."""
    row = np.zeros((1, programme.cost.shape[0]))
    row[0, int(programme.cost.sum(axis=1).argmin())] = 1.0
    return row
