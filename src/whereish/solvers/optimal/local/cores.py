"""The places of every output that are variables of their own, and those that follow one.

Far from its output a column of an optimal channel is tight: a place x there carries no more than
privacy forces, k_x = e^{-d(x,p)} k_p for some place p on the way to the output, since every report
there costs more than it saves.  So output z has a *core* N_z of places near it, and every place
beyond follows a *parent* in the core:

    k_x = t_x k_p(x),   t_x = e^{-d(x,p(x))}.

That keeps one row of privacy for x, as an equation, and leaves the others out.  A place that gains
by what it carries, since c_zx < mu_x, is tight from above instead, k_x = e^{d(x,i)} k_i with a
place i near it that costs, its *child* (`absorb`); i follows its own parent.  With E_z the matrix
that extends a core's entries to all places (ones on the core), output z has the costs E_z' c_z and
enters the sums by E_z k_z.

In the dual programme a place beyond the core passes what it costs on to its parent, or what it
gains to its child: those are the multipliers of the rows that were kept.  Whatever is passed, any
y >= 0 gives a true bound (`kernels.price_of_tails`), so that the choice of parents and children
costs tightness at worst.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.optimal.programme import ChannelProgramme

__all__ = ["Cores", "Links", "Reach", "absorb", "covering", "flat_cores", "links"]

_LEAST_COVER = 3
"""Outputs in whose cores every place is, at least."""
_DETOUR = 0.9
"""What a step of the way from a parent to the output counts against one to the parent."""
_LACKING = 5.0
"""Nats: what a child counts as farther that has not enough to give."""
_CHAINED = 0.13
"""Closeness (two nats) up to which a child may take in its turn what it lacks."""
_OUT_OF_REACH = 30.0
"""Nats from its output beyond which a column is left to the closure of columns."""


class Reach(NamedTuple):
    """E of all outputs: entry of `place` = factor * variable; of output z from start[z] on."""

    start: IntArray
    place: NDArray[np.int32]
    variable: NDArray[np.int32]
    factor: FloatArray


class Cores(NamedTuple):
    """The variables of all outputs in one list, by output and place."""

    start: IntArray
    place: NDArray[np.int32]
    variable: NDArray[np.int32]
    """(outputs, n): the variable of a place in a core, or -1."""
    reach: Reach

    def spread(self, k: FloatArray, n: int) -> FloatArray:
        """The columns on all places, (n, outputs)."""
        return spread_columns(k, self.reach, n)

    def sums(self, k: FloatArray, n: int) -> FloatArray:
        """sum_z E_z k_z."""
        reach = self.reach
        return _sums(reach.place, reach.factor * k[reach.variable], n)

    def gather(self, per_place: FloatArray) -> FloatArray:
        """E_z' mu of every output; the same mu for all."""
        reach = self.reach
        values = reach.factor * per_place[reach.place]
        return _sums(reach.variable, values, self.place.size)

    def gathered_costs(self, cost: FloatArray) -> FloatArray:
        """E_z' c_z of every output."""
        reach = self.reach
        owner = np.repeat(np.arange(self.start.size - 1), np.diff(reach.start))
        values = reach.factor * cost[owner, reach.place]
        return _sums(reach.variable, values, self.place.size)


class Links(NamedTuple):
    """How the places of every output follow, (outputs, n) each."""

    core: NDArray[np.int32]
    """The place of the core that it follows: itself inside, -1 out of reach."""
    factor: FloatArray
    """What it carries of that place's entry."""
    parent: NDArray[np.int32]
    """The place of the core that it is tight to from below; itself inside."""
    away: FloatArray
    """Nats from the middle of the output."""
    child: NDArray[np.int32]
    """The place that it is tight to from above, or -1: where it gains by what it carries."""


def _sums(where: NDArray[np.int32], values: FloatArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(where, values, minlength=size), np.float64)


def covering(away: FloatArray, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Cores with the middles of their outputs, and every place in a few of them.

    No core is one place alone: it would have no rows, however far away all others are.
    """
    nearest = np.argsort(away, axis=0, kind="stable")[:_LEAST_COVER]
    inside = inside | (away == 0.0)
    inside[nearest, np.arange(away.shape[1])] = True
    two = np.argsort(away, axis=1, kind="stable")[:, :2]
    inside[np.arange(len(away))[:, None], two] = True
    return inside


def links(
    programme: ChannelProgramme,
    away: FloatArray,
    inside: NDArray[np.bool_],
    mu: FloatArray,
    near: NDArray[np.intp],
) -> Links:
    """How places follow where the sums are worth `mu`; see `absorb` for `near`."""
    parent = _parents(inside, programme.metric, away)
    return _links(programme.cost, mu, parent, away, programme.closeness, near)


@kernel
def _parents(inside: NDArray[np.bool_], metric: FloatArray, away: FloatArray) -> NDArray[np.int32]:
    outputs, n = inside.shape
    parent = np.full((outputs, n), -1, np.int32)
    for z in range(outputs):
        members = np.flatnonzero(inside[z])
        for x in range(n):
            if inside[z, x]:
                parent[z, x] = x
            elif away[z, x] <= _OUT_OF_REACH:
                shortest = np.inf
                for i in members:
                    length = metric[x, i] + _DETOUR * away[z, i]
                    if length < shortest:
                        shortest = length
                        parent[z, x] = i
    return parent


@kernel
def _links(
    cost: FloatArray,
    mu: FloatArray,
    parent: NDArray[np.int32],
    away: FloatArray,
    closeness: FloatArray,
    near: NDArray[np.intp],
) -> Links:
    outputs, n = parent.shape
    child = np.full((outputs, n), -1, np.int32)
    core, factor = parent.copy(), np.zeros((outputs, n))
    reduced, size = np.empty(n), np.empty(n)
    for z in range(outputs):
        for x in range(n):
            reduced[x] = 0.0 if parent[z, x] == x else cost[z, x] - mu[x]
        absorb(reduced, size, parent[z], away[z], closeness, near, child[z])
        for x in range(n):
            p = parent[z, x]
            if p >= 0:
                factor[z, x] = 1.0 if p == x else closeness[x, p]
        for x in np.argsort(-away[z]):
            i = child[z, x]
            if i >= 0 and parent[z, x] >= 0 and core[z, i] >= 0:
                core[z, x] = core[z, i]
                factor[z, x] = factor[z, i] / closeness[x, i]
    return Links(core, factor, parent, away, child)


@kernel
def absorb(
    reduced: FloatArray,
    size: FloatArray,
    parent: NDArray[np.int32],
    away: FloatArray,
    closeness: FloatArray,
    near: NDArray[np.intp],
    child: NDArray[np.int32],
) -> None:
    """Places beyond a core that gain (reduced < 0) take it from places near them that cost.

    The row k_i >= a k_x with multiplier y moves y from i to a y at x.  Of the places `near` x that
    are farther from the output, i is one for which that costs the core least, if possible one that
    has enough; what it lacks it takes in its turn.  `child` is i, and -1 elsewhere.
    """
    for x in np.argsort(away):
        child[x] = -1
        if parent[x] == x or reduced[x] >= 0.0:
            continue
        best, i = np.inf, -1
        for other in near[x]:
            if parent[other] == other:
                continue
            has = reduced[other] * closeness[x, other] >= -reduced[x]
            if has or (away[other] > away[x] and closeness[x, other] > _CHAINED):
                loss = -2.0 * np.log(closeness[x, other]) - away[other]
                if not has:
                    loss += _LACKING
                if loss < best:
                    best, i = loss, other
        if i >= 0:
            child[x] = i
            y = -reduced[x] / closeness[x, i]
            reduced[x] = 0.0
            reduced[i] -= y
            size[i] += y
            continue
        for other in near[x]:
            if parent[other] != other and reduced[other] > 0.0:
                y = min(-reduced[x] / closeness[x, other], reduced[other])
                reduced[x] += closeness[x, other] * y
                reduced[other] -= y
                size[other] += y


@kernel
def flat_cores(links: Links) -> Cores:
    """The lists of variables and of what they reach."""
    core, factor = links.core, links.factor
    outputs, n = core.shape
    mine = np.full((outputs, n), -1, np.int32)
    start = np.zeros(outputs + 1, np.int64)
    reached = np.zeros(outputs + 1, np.int64)
    count = 0
    for z in range(outputs):
        reached[z + 1] = reached[z]
        for x in range(n):
            if links.parent[z, x] == x:
                mine[z, x] = count
                count += 1
            if core[z, x] >= 0:
                reached[z + 1] += 1
        start[z + 1] = count
    place = np.empty(count, np.int32)
    total = reached[outputs]
    where, variable = np.empty(total, np.int32), np.empty(total, np.int32)
    share = np.empty(total)
    at = 0
    for z in range(outputs):
        for x in range(n):
            if links.parent[z, x] == x:
                place[mine[z, x]] = x
            if core[z, x] >= 0:
                where[at], variable[at] = x, mine[z, core[z, x]]
                share[at] = factor[z, x]
                at += 1
    return Cores(start, place, mine, Reach(reached, where, variable, share))


@kernel
def spread_columns(k: FloatArray, reach: Reach, n: int) -> FloatArray:
    """E_z k_z of every output, (n, outputs)."""
    outputs = reach.start.size - 1
    out = np.zeros((n, outputs))
    for z in range(outputs):
        for at in range(reach.start[z], reach.start[z + 1]):
            out[reach.place[at], z] = reach.factor[at] * k[reach.variable[at]]
    return out
