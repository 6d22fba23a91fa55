"""Outputs in groups that lie near each other, so that one scaling can serve a group.

Where columns fall fast, a group needs no columns on places far from all its outputs.  Then it has
those within reach alone, and the rows between them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.solvers.optimal.barrier.rows import Pairs

__all__ = ["LANES", "Near", "both_ways", "groups_within", "near_groups"]

LANES = 16
"""Groups have a multiple of this many outputs, which suits the machine, but for one."""
_MOST_GROUPS, _LEAST_WIDTH = 16, 48  # narrower groups suit better, but their sweeps are slower


class Near(NamedTuple):
    """The places that a group has columns on, and the rows between those."""

    places: NDArray[np.intp]
    rows: NDArray[np.intp]
    """Indices into all rows."""
    pairs: Pairs
    """The rows, with places numbered within the group."""


def both_ways(pairs: NDArray[np.intp], closeness: FloatArray) -> Pairs:
    """Both directions of every pair, ordered by target."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    source, target = both[np.lexsort((both[:, 0], both[:, 1]))].T
    return Pairs(source.astype(np.int32), target.astype(np.int32), closeness[source, target])


def groups_within(
    metric: FloatArray, anchors: NDArray[np.intp], rows: Pairs, reach: float
) -> list[tuple[NDArray[np.intp], Near]]:
    """Groups of outputs with the places within `reach` nats of one of them.

    Every place is in the group that is nearest to it, however far that is.  The groups with most
    work come first, so that threads have alike.
    """
    width = max(_LEAST_WIDTH, LANES * -(-anchors.size // (_MOST_GROUPS * LANES)))
    width = min(width, LANES * -(-anchors.size // (2 * LANES)))  # two at least, for two threads
    groups = near_groups(metric, anchors, width)
    away = np.stack([metric[anchors[outputs]].min(axis=0) for outputs in groups])
    inside = away <= reach
    inside[away.argmin(axis=0), np.arange(len(metric))] = True
    found = []
    for outputs, mine in zip(groups, inside, strict=True):
        kept = np.flatnonzero(mine[rows.source] & mine[rows.target])
        index = (np.cumsum(mine) - 1).astype(np.int32)
        source, target = index[rows.source[kept]], index[rows.target[kept]]
        near = Near(np.flatnonzero(mine), kept, Pairs(source, target, rows.factor[kept]))
        found.append((outputs, near))
    return sorted(found, key=lambda group: -group[0].size * group[1].rows.size)


def near_groups(metric: FloatArray, anchors: NDArray[np.intp], most: int) -> list[NDArray[np.intp]]:
    """Groups of at most `most` outputs each, by halving between two that lie far apart.

    Parameters
    ----------
    metric
        Distances of all secrets.
    anchors
        The secret around which each output lies.
    """
    done: list[NDArray[np.intp]] = []
    left = [np.arange(anchors.size)]
    while left:
        group = left.pop()
        if group.size <= most:
            done.append(np.sort(group))
            continue
        at = anchors[group]
        one = at[int(metric[at[0], at].argmax())]
        other = at[int(metric[one, at].argmax())]
        order = np.argsort(metric[one, at] - metric[other, at], kind="stable")
        half = max(1, group.size // (2 * LANES)) * LANES
        left += [group[order[half:]], group[order[:half]]]
    return done
