"""A bound and columns in seconds: sweeps in which every output has the places near it alone.

Away from its output a column falls by e^{-d}, so that rows far away hardly matter to where the
method goes: with columns cut at some nats a sweep of a thousand places costs a few milliseconds
instead of fifty.  What is cut is a relaxation, and its multipliers are none of a bound by
themselves: a place without cost, far from an output, lacks what the sums ask of it.  So the mean
multipliers of a round are taken as payments that were made, and what is lacking then is paid by the
rule of `start.passing`: far from an output costs are large, and there is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from whereish.arrays import FloatArray
from whereish.solvers.optimal.first_order.groups import both_ways, groups_within
from whereish.solvers.optimal.first_order.method import FirstOrder
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.repair import close_upward
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.solvers.optimal.start.duals import anchors
from whereish.solvers.optimal.start.passing import paid_duals

__all__ = ["NearSweeps"]

DILATION = 1.03
"""Of the spanner whose edges are the rows."""
REACHES = (np.inf, 16.0, 12.0, 8.0)
"""Nats around the outputs of a group, widest first."""
CHEAP, MOST = 1.6e7, 3e7
"""Work of a sweep up to which a wider reach is taken, and the most of the narrowest."""
OF_PRODUCTS = 0.04
"""What places squared times outputs count as, beside rows times outputs, in the work of a sweep."""
WORK, LEAST_SWEEPS, MOST_SWEEPS = 1.1e10, 300, 1400
"""Of all sweeps: some seven seconds; and bounds of their number."""
ROUNDS = ((0.25, False), (0.25, True), (0.5, True))
"""Parts of the sweeps, each with weights of its own, and whether a bound is taken after them."""
USED = 1e-2
"""Of the largest entry: columns below are left out."""


class NearSweeps:
    """Sweeps of one programme within a reach."""

    def __init__(self, method: FirstOrder, sweeps: int) -> None:
        self.method, self.sweeps = method, sweeps

    @classmethod
    def of(cls, programme: ChannelProgramme) -> NearSweeps | None:
        """With the widest reach whose sweeps are cheap; None where there is none."""
        edges = greedy_spanner(programme.metric, DILATION).edges
        middles, rows = anchors(programme), both_ways(edges, programme.closeness)
        for reach in REACHES:
            groups = groups_within(programme.metric, middles, rows, reach)
            size = sum(
                outputs.size * (near.rows.size + OF_PRODUCTS * near.places.size**2)
                for outputs, near in groups
            )
            if size <= CHEAP or (reach == REACHES[-1] and size <= MOST):
                sweeps = int(np.clip(WORK / size, LEAST_SWEEPS, MOST_SWEEPS))
                return cls(FirstOrder(programme, edges, reach), sweeps)
        return None

    def bounds(self, over: Callable[[], bool] = lambda: False) -> Iterator[float]:
        """Sweep, and what no private channel can beat, again and again until it is `over`."""
        for part, told in ROUNDS:
            self.method.round(int(part * self.sweeps), over=over)
            if told or over():
                yield self.bound()
            if over():
                return

    def bound(self) -> float:
        """The sum of what places can pay for of the multipliers of the sums."""
        method = self.method
        mu = paid_duals(method.programme, method.sums_duals, method.reduced_costs())
        return math.fsum(mu)

    def columns(self) -> FloatArray:
        """The columns in use, closed upward, (columns, n)."""
        x = self.method.x
        used = np.maximum(x[:, x.max(axis=0) > USED * float(x.max())], 0.0).astype(np.float64)
        return close_upward(np.ascontiguousarray(used), self.method.programme.closeness).T
