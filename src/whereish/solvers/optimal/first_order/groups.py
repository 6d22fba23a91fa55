"""Outputs in groups that lie near each other, so that one scaling can serve a group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray

__all__ = ["LANES", "near_groups"]

LANES = 16
"""Groups have a multiple of this many outputs, which suits the machine, but for one."""


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
