"""A programme on few of the places whose optimum is nearly that of all, and never above it.

Of a private column, a place x that is left out carries at least k_x >= e^{-d(x,a)} k_a, whatever
place a is kept.  So with c_zx e^{-d(x,a)} moved to the row of a, and the sum of x let go, the
programme on the kept places is a relaxation: no private channel costs less than its optimum.  The
a may be another one for every output.  Far from its output a column is tight towards it, so the
kept place on the way to the output loses nothing; what is lost is the sum of x, which is short of
one by the square of the distance to the kept places (on a line with kept places 2r apart, tight
columns sum to 1 / cosh r in the middle).

A channel on the kept places extends to all by k_x = max_a e^{-d(x,a)} k_a, by
k_x = min_a e^{d(x,a)} k_a, and by the geometric mean of both: all three are private, and
`polish` combines them into a channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.repair import close_upward
from whereish.solvers.optimal.start.duals import anchors
from whereish.solvers.optimal.start.undominated import undominated
from whereish.threads import in_ranges

__all__ = ["Coarse", "coarsen", "spread_places", "telling_places"]

_DETOUR = 0.9
"""What a step from a kept place to the output counts against one to the kept place."""
_OF_SUMS = 0.5
"""Of the mean cost: what the sum of a place counts as beside its own."""
_ROUNDINGS = 8
"""Of a product with e^{-d}, in units of rounding; sums add one for each place."""


@dataclass(frozen=True)
class Coarse:
    """The programme on the kept places.

    Attributes
    ----------
    kept : (m,) array
        The places, sorted.
    below : ChannelProgramme
        Its optimum less `let_go` is at most that of the programme on all places.
    outputs : array
        The outputs of the programme that `below` has.
    let_go : float
        What the outputs left out may have been better in all.
    """

    kept: NDArray[np.intp]
    below: ChannelProgramme
    outputs: NDArray[np.intp]
    let_go: float

    def extensions(
        self, matrix: FloatArray, programme: ChannelProgramme
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Private columns on all places of a channel on the kept ones, each (n, outputs).

        The geometric mean, the least and the most; `programme` is that on all places.
        """
        used = np.flatnonzero(matrix.max(axis=0) > 0)
        private = close_upward(np.ascontiguousarray(matrix[:, used]), self.below.closeness)
        near = np.ascontiguousarray(programme.closeness[:, self.kept])
        least, most = _extended(private, near)
        out = np.zeros((3, programme.n, len(programme.cost)))
        out[:, :, self.outputs[used]] = np.sqrt(least * most), least, most
        return out[0], out[1], out[2]


def spread_places(
    metric: FloatArray, first: int, *, radius: float = 0.0, most: int | None = None
) -> NDArray[np.intp]:
    """Places such that all others are within `radius` of one, or the `most` farthest apart."""
    kept, away = [first], metric[first].copy()
    while away.max() > radius and (most is None or len(kept) < most):
        kept.append(int(away.argmax()))
        away = np.minimum(away, metric[kept[-1]])
    return np.sort(np.array(kept))


def telling_places(programme: ChannelProgramme, most: int) -> NDArray[np.intp]:
    """At most so many places that tell most of the optimum.

    A place x that is left out loses w_x (1 - e^{-d}) of its mean cost w_x, d from the kept places,
    and its sum besides: each next place is the one that would lose most.
    """
    weight = programme.cost.mean(axis=0)
    weight = weight + _OF_SUMS * weight.mean()
    kept = [int(weight.argmax())]
    away = programme.metric[kept[0]].copy()
    while len(kept) < min(most, programme.n):
        kept.append(int((weight * -np.expm1(-away)).argmax()))
        away = np.minimum(away, programme.metric[kept[-1]])
    return np.sort(np.unique(kept))


def coarsen(
    programme: ChannelProgramme, kept: NDArray[np.intp], tolerated: FloatArray | None = None
) -> Coarse:
    """The programme on the `kept` places, with outputs that another one nearly beats left out.

    `tolerated` is by how much a report of each secret may cost less with an output left out.
    """
    n = programme.n
    middle, cost = anchors(programme), np.zeros((len(programme.cost), kept.size))

    def move(some: tuple[int, int]) -> None:
        _move(programme.cost, programme.metric, programme.closeness, kept, middle, some, cost)

    in_ranges(move, len(cost), work=cost.size * n)
    cost *= 1.0 - (n + _ROUNDINGS) * float(np.finfo(float).eps)
    outputs = undominated(cost, tolerated)
    let_go = 0.0 if tolerated is None else float(tolerated.sum()) * (1.0 + 1e-9)
    below = ChannelProgramme(
        np.ascontiguousarray(cost[outputs]),
        np.ascontiguousarray(programme.metric[np.ix_(kept, kept)]),
    )
    return Coarse(kept, below, outputs, let_go)


@kernel
def _move(
    cost: FloatArray,
    metric: FloatArray,
    closeness: FloatArray,
    kept: NDArray[np.intp],
    middle: NDArray[np.intp],
    outputs: tuple[int, int],
    out: FloatArray,
) -> None:
    """Add the costs on the kept places: others' at the kept place on the way to the output."""
    for z in range(outputs[0], outputs[1]):
        for x in range(cost.shape[1]):
            shortest, at = np.inf, 0
            for i in range(kept.size):
                a = kept[i]
                length = metric[x, a] + _DETOUR * metric[a, middle[z]]
                if length < shortest:
                    shortest, at = length, i
            out[z, at] += cost[z, x] * closeness[x, kept[at]]


@kernel
def _extended(columns: FloatArray, near: FloatArray) -> tuple[FloatArray, FloatArray]:
    """max_a e^{-d(x,a)} k_a and min_a e^{d(x,a)} k_a of all places x; `near` is (n, kept)."""
    n, outputs = near.shape[0], columns.shape[1]
    least, most = np.zeros((n, outputs)), np.full((n, outputs), np.inf)
    for x in range(n):
        for a in range(columns.shape[0]):
            factor = near[x, a]
            for z in range(outputs):
                least[x, z] = max(least[x, z], factor * columns[a, z])
                if factor > 0.0:
                    most[x, z] = min(most[x, z], columns[a, z] / factor)
    return least, most
