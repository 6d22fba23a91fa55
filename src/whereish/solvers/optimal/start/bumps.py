"""The cheapest channel of bumps e^{-d(., z)}: as good as the tight mechanism where that is none.

Scattered places have no tight mechanism (h = M^{-1} 1 has negative entries), and what replaces it
is often far from the optimum.  The bumps' cheapest combination, with one free column to complete
the sums, always exists.
"""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.recombination import free_rows, recombine
from whereish.solvers.optimal.repair import complete
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.solvers.optimal.start.merging import merge

__all__ = ["recombined_bumps"]

_NEAR = 0.1
"""Nats: bumps also have the rows of nearer places made one, which the sums could not tell apart."""
_DILATION = 1.05
"""Of the spanner on which the free column is kept private, by that much more than is asked."""
_TOLERANCE = 2e-2


def recombined_bumps(programme: ChannelProgramme, *others: FloatArray) -> FloatArray:
    """A private channel, (n, outputs), of bumps, `others`, (count, n), and one free column."""
    columns = [programme.closeness, *others]
    merged = merge(programme, _NEAR)
    if merged is not None:
        columns.append(merged.above.closeness[:, merged.group])
    spanner = greedy_spanner(programme.metric, _DILATION)
    found = recombine(
        programme,
        np.concatenate(columns),
        rows=free_rows(programme.closeness, spanner.edges, spanner.dilation),
        free=np.array([programme.cost.sum(axis=1).argmin()]),
        tolerance=_TOLERANCE,
    )
    return complete(programme, np.maximum(found.matrix, 0.0))
