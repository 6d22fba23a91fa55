"""A private channel from nearly private columns: closed, then recombined with a few free ones.

`repair.complete` mends the sums of closed columns by one factor and one constant column, which is
all that is needed where sums are right to a small part of 1 - e^{-d}.  Where places are very near
to each other they are not, and the cheapest combination of the closed columns, of the tight
mechanism's bumps and of free columns is far better.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from whereish.arrays import FloatArray
from whereish.solvers.optimal.barrier.rows import Rows
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.recombination import free_rows, recombine
from whereish.solvers.optimal.repair import Spare, close_upward, complete
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.solvers.optimal.start.channels import spare_channel
from whereish.threads import Workers

__all__ = ["Polish"]

DILATION = 1.05
"""Of the spanner on which free columns are kept private, by that much more than is asked."""
MOST_FREE, FREE_WORK = 4, 3e8
"""Outputs with a free column: as many as keep the work of a step, n^3 each, below this."""
USED = 1e-4
"""Of the largest entry: columns below are not worth closing."""


class Polish:
    """Channels of a programme to about a fiftieth of a gap."""

    def __init__(
        self, programme: ChannelProgramme, gap: float, team: Workers | None = None
    ) -> None:
        """Of a `team` others make what is needed in any case, while the caller goes on."""
        self.programme = programme
        self.tolerance = min(0.02 * gap, 1e-3)
        self._later = (team or Workers()).later(self._made)

    def _made(self) -> tuple[Spare, Rows]:
        spanner = greedy_spanner(self.programme.metric, DILATION)
        rows = free_rows(self.programme.closeness, spanner.edges, spanner.dilation)
        return spare_channel(self.programme), rows

    @cached_property
    def _needed(self) -> tuple[Spare, Rows]:
        """What completes a channel, and the rows of free columns."""
        return self._later()

    def channel(
        self, matrix: FloatArray, *others: FloatArray, beside: Sequence[FloatArray] = ()
    ) -> FloatArray:
        """The best private channel of the columns of `matrix`, (n, outputs), closed upward.

        `others` are channels whose columns are private already; those `beside` are closed, too.
        """
        programme, (spare, rows) = self.programme, self._needed
        closed = np.concatenate([self._closed(one) for one in (matrix, *beside)])
        private = [other[:, other.max(axis=0) > 0].T for other in others]
        count = int(np.clip(FREE_WORK / programme.n**3, 1, MOST_FREE))
        found = recombine(
            programme,
            np.concatenate([closed, programme.closeness, *private]),
            rows=rows,
            free=np.argsort(-matrix.sum(axis=0), kind="stable")[:count],
            tolerance=self.tolerance,
        )
        return complete(programme, np.maximum(found.matrix, 0.0), spare)

    def _closed(self, matrix: FloatArray) -> FloatArray:
        """The columns in use, closed upward, (columns, n)."""
        used = matrix[:, matrix.max(axis=0) > USED * float(matrix.max())]
        return close_upward(np.ascontiguousarray(used), self.programme.closeness).T
