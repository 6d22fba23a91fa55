"""Certified channels for many places: the first-order method, then repair and recombination.

The first-order iterate is not private.  Its closed columns, those of a few earlier
iterates, the bumps e^{-d(., z)} of the tight mechanism and the columns of the best channel
so far are private; their cheapest combination, with a few free columns, is the next channel.  The
bound is the Lagrangian
one of a spanner's rows, which are some of the programme's own: leaving out the others costs about
as much as the spanner's mean dilation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.solvers.optimal.first_order.method import FirstOrder, Singles
from whereish.solvers.optimal.programme import ChannelProgramme, LpResult, Terms, relative_gap
from whereish.solvers.optimal.recombination import free_rows, recombine
from whereish.solvers.optimal.repair import close_upward, complete
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.solvers.optimal.start.channels import best_start
from whereish.solvers.optimal.start.merging import merge

__all__ = ["solve_large"]


LEAST_DILATION, MOST_DILATION = 1.003, 1.03
"""Of the spanner whose edges are the rows; its mean dilation is a quarter of that."""
ROUND = 250
"""Sweeps between two evaluations of the bound."""
FIRST_ROUNDS = (50, 50, 75, 75)
"""Sweeps of the first rounds, so that a bound is told early."""
USEFUL = 0.15
"""A gap above which, after a few rounds, the columns at hand are recombined at once, roughly."""
USELESS = 0.4
"""One above which that happens after the first round already."""
HOPELESS_AFTER, FAR = 1000, 8.0
"""Sweeps, and the multiple of the gap, at which a solve that may be given up is."""
STILL = 3
"""Rounds without progress of the bound that end a solve."""
MOST_SWEEPS = 8000
SNAPSHOTS, MANY = 2, 1200
"""Iterates whose columns are recombined; only the last beyond so many places."""
FREE_DILATION = 1.05
"""Of the spanner on which free columns are kept private, by that much more than is asked."""
MOST_FREE, FREE_WORK = 4, 3e8
"""Outputs with a free column: as many as keep the work of a step, n^3 each, below this."""
NEAR = 0.1
"""Nats: columns are also taken with the rows of nearer places made one, which noise would split."""
_USED, _USED_IN_A_HURRY = 1e-3, 1e-2
_HURRIED = 2e-2


class _LargeScale:
    """The state of one solve."""

    def __init__(self, programme: ChannelProgramme, gap: float, start: FloatArray | None) -> None:
        self.programme = programme
        self.tolerance = min(0.02 * gap, 1e-3)
        dilation = min(max(1.0 + 0.5 * gap, LEAST_DILATION), MOST_DILATION)
        self.method = FirstOrder(programme, greedy_spanner(programme.metric, dilation).edges)
        self.snapshots: list[Singles] = []
        self.merged = merge(programme, NEAR)
        free = greedy_spanner(programme.metric, FREE_DILATION)
        self.free_rows = free_rows(programme.closeness, free.edges, free.dilation)
        self.kept = [programme.closeness]
        if self.merged is not None:
            self.kept.append(self.merged.above.closeness[:, self.merged.group])
        self.lower = 0.0  # costs are nonnegative
        self.matrix = best_start(programme) if start is None else start
        self.upper = programme.value(self.matrix)

    def round(self, sweeps: int, over: Callable[[], bool]) -> None:
        """Sweep, then take the bound and a snapshot of the columns in use."""
        self.lower = max(self.lower, self.method.round(sweeps, over=over))
        x = self.method.x
        used = x[:, x.max(axis=0) > _USED * float(x.max())]
        kept = SNAPSHOTS if self.programme.n <= MANY else 1
        self.snapshots = [*self.snapshots, used][-kept:]

    def hurry(self) -> None:
        """A channel from the last columns alone, where the simple ones are far from the bound."""
        snapshot = self.snapshots[-1]
        used = snapshot[:, snapshot.max(axis=0) > _USED_IN_A_HURRY * float(snapshot.max())]
        found = recombine(
            self.programme,
            self._private(np.ascontiguousarray(used)),
            rows=self.free_rows,
            free=self._free()[:1],
            tolerance=_HURRIED,
        )
        self._take(found.matrix)

    def recombine(self) -> None:
        """The cheapest channel from the snapshots, the best so far and the columns kept.

        Those are the tight mechanism's bumps to begin with, then what the last programme used.
        """
        best = self.matrix[:, self.matrix.max(axis=0) > 0].T
        private = (self._private(snapshot) for snapshot in self.snapshots)
        columns = np.concatenate([*self.kept, best, *private])
        found = recombine(
            self.programme,
            columns,
            rows=self.free_rows,
            free=self._free(),
            tolerance=self.tolerance,
        )
        self.kept = [found.used]
        self._take(found.matrix)

    def _take(self, found: FloatArray) -> None:
        """The nearest private channel, if it is the best so far."""
        matrix = complete(self.programme, np.maximum(found, 0.0))
        value = self.programme.value(matrix)
        if value < self.upper:
            self.matrix, self.upper = matrix, value

    def _free(self) -> NDArray[np.intp]:
        """The output that serves a constant column best, and those reported most."""
        constant = self.programme.cost.sum(axis=1).argmin()
        reported = np.argsort(-self.method.x.mean(axis=0), kind="stable")
        count = int(np.clip(FREE_WORK / self.programme.n**3, 1, MOST_FREE))
        return np.concatenate([[constant], reported[reported != constant]])[:count]

    def _private(self, snapshot: Singles) -> FloatArray:
        """The closed columns, also with the rows of near places made one; (columns, n)."""
        columns = np.maximum(snapshot, 0.0).astype(np.float64)
        closed = [close_upward(columns, self.programme.closeness).T]
        if self.merged is not None:
            group, above = self.merged.group, self.merged.above
            means = np.zeros((above.n, columns.shape[1]))
            np.add.at(means, group, columns)
            means /= np.bincount(group)[:, None]
            closed.append(self.merged.lift(close_upward(means, above.closeness)).T)
        return np.concatenate(closed)


def solve_large(
    programme: ChannelProgramme,
    terms: Terms,
    *,
    most_sweeps: int = MOST_SWEEPS,
    start: FloatArray | None = None,
    may_give_up: bool = False,
) -> LpResult:
    """Solve to a certified gap as far as the spanner's rows and time allow.

    `start` is a private channel to improve upon, (n, outputs); `may_give_up` ends a solve that is
    still far from the gap after `HOPELESS_AFTER` sweeps.
    """
    run = _LargeScale(programme, terms.gap, start)
    status, rounds, sweeps, due, still = None, 0, 0, 2 * ROUND, 0
    while status is None and sweeps < most_sweeps:
        before = run.lower
        times = FIRST_ROUNDS[rounds] if rounds < len(FIRST_ROUNDS) else ROUND
        run.round(times, over=lambda: terms.over)
        rounds, sweeps = rounds + 1, sweeps + times
        still = still + 1 if run.lower - before < 1e-5 * run.lower else 0
        settled = still == STILL
        if sweeps >= due or terms.over or settled or sweeps >= most_sweeps:
            run.recombine()
            due = sweeps + 2 * ROUND
        elif rounds <= 2 and min(relative_gap(run.upper, run.lower), terms.known_gap) > (
            USELESS if rounds == 1 else USEFUL
        ):
            run.hurry()
        status = terms.verdict(run.upper, run.lower, "first order")
        far = sweeps >= HOPELESS_AFTER and relative_gap(run.upper, run.lower) > FAR * terms.gap
        if settled or (may_give_up and far):
            break
    method = "first order with recombination"
    return LpResult(run.upper, run.lower, run.matrix, status or "stalled", method, sweeps)
