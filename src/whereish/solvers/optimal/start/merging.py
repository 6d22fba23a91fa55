"""Places so close together that one row may serve them, and what that costs.

Places within a small diameter form groups.  Two programmes bracket the asked one:

* *above*: all places of a group share one row.  Between two groups that row must keep the
  smallest distance of any two of their places, so their metric is the closure of those; a
  channel that keeps it keeps the asked one.
* *below*: only the group's first place a is kept, with the asked metric.  Any private column has
  k_x >= e^{-d(x,a)} k_a, so the cost of x is at least e^{-d(x,a)} c_x on the row of a, and no
  private channel costs less than the optimum of this programme.

Both differ from the asked one by about the diameter, relatively; neither has the tiny distances
that exhaust the arithmetic of a solver.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.spanner import shortest_path_closure

__all__ = ["Merged", "merge"]


@dataclass(frozen=True)
class Merged:
    """Groups of near places, and the programmes above and below.

    Attributes
    ----------
    group : (n,) array
        Index of each place's group.
    first : array
        The first place of every group.
    above, below : ChannelProgramme
    """

    group: NDArray[np.intp]
    first: NDArray[np.intp]
    above: ChannelProgramme
    below: ChannelProgramme

    def lift(self, matrix: FloatArray) -> FloatArray:
        """The channel on all places of a channel on groups."""
        return np.ascontiguousarray(matrix[self.group])


def merge(programme: ChannelProgramme, diameter: float) -> Merged | None:
    """Groups of at most this diameter in nats; None where every place is its own group."""
    first, group = _groups(programme.metric, 0.5 * diameter)
    if first.size == programme.n:
        return None
    shared = np.zeros((len(programme.cost), first.size))
    np.add.at(shared.T, group, programme.cost.T)
    reduced = np.zeros_like(shared)
    to_first = programme.closeness[np.arange(programme.n), first[group]]
    np.add.at(reduced.T, group, (programme.cost * to_first).T)
    reduced *= 1.0 - (programme.n + 8) * float(np.finfo(float).eps)  # never rounded up
    nearest = np.full((first.size, first.size), np.inf)
    np.minimum.at(nearest, (group[:, None], group[None, :]), programme.metric)
    return Merged(
        group,
        first,
        ChannelProgramme(shared, shortest_path_closure(nearest)),
        ChannelProgramme(reduced, np.ascontiguousarray(programme.metric[np.ix_(first, first)])),
    )


@kernel
def _groups(metric: FloatArray, radius: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Every place joins the first group whose first place is within `radius`, or begins one."""
    n = metric.shape[0]
    first, group = np.zeros(n, np.intp), np.zeros(n, np.intp)
    count = 0
    for x in range(n):
        for g in range(count):
            if metric[x, first[g]] <= radius:
                group[x] = g
                break
        else:
            group[x] = count
            first[count] = x
            count += 1
    return first[:count].copy(), group
