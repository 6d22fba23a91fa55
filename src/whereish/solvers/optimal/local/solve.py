"""The optimal channel by interior points on cores that are enlarged until the gap is closed.

A round solves the programme on the cores at hand, from the beginning: that takes some ten to thirty
steps of a few hundredths of a second.  Its duals give a bound for the asked programme, its columns,
closed and recombined, a channel.  If the gap is still open, places that follow but would have to
carry much more join the cores, violated rows enter, and the signs of what places gain by following
are taken from the new duals.  Where places that hardly matter by themselves lie between others in
the plane, following them up and down a tree is not enough for a bound: then what mu itself is worth
is found by transportation problems (`transport`).  Rounds that do not halve the gap are the last,
but for a gap that is nearly there.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import SolverError
from whereish.solvers.optimal.local.cores import covering, links
from whereish.solvers.optimal.local.kernels import lagging, violated
from whereish.solvers.optimal.local.point import LocalPoint
from whereish.solvers.optimal.local.transport import lowered_duals
from whereish.solvers.optimal.polish import Polish
from whereish.solvers.optimal.programme import ChannelProgramme, LpResult, Terms, relative_gap
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.solvers.optimal.start.channels import strictly_private
from whereish.solvers.optimal.start.duals import anchors, tight_duals
from whereish.solvers.optimal.start.passing import paid_duals
from whereish.threads import Workers, workers

__all__ = ["Neighbourhoods", "solve_local"]

RADII = (12.0, 10.0, 8.0)
"""Nats around an output that may be its core, widest first."""
CHEAP, WORTH = 0.004, 0.02
"""Mean of (core / places)^3 up to which a wider radius is taken, and the narrowest worth it."""
MOST_WORK = 1e9
"""Sum of core^3 over the outputs: about a second for a step."""
LITTLE_WORK = 1e8
"""The same of cores with which a solve takes seconds."""
NEIGHBOURS = 24
"""Places near a place, of which some may take over what it gains."""
AIM, JOINED, VIOLATED = 0.2, 0.1, 0.2
"""Of the gap: complementarity to stop at, loss of what lags behind, and violation of rows."""
MOST_STEPS, MOST_ROUNDS = 60, 6
CLOSE = 3.0
"""The multiple of the gap below which rounds go on as long as they gain anything."""
LOOK, USEFUL, LONG = 0.05, 0.1, 600
"""Relative complementarity at which to look, if the known gap is above, beyond so many places."""
NAME = "interior point on cores"


class Neighbourhoods:
    """Which places each output lies near to, and how wide cores may be.

    Attributes
    ----------
    anchors : (outputs,) array
        A place in the middle of every output's core.
    best : (n,) array
        The output that serves a bump around each place best.
    away : (outputs, n) array
        Nats from the nearest place whose bump an output serves.
    """

    def __init__(self, programme: ChannelProgramme) -> None:
        self.anchors = anchors(programme)
        self.best = programme.bump_costs.argmin(axis=0)
        self.away = programme.metric[self.anchors].copy()
        np.minimum.at(self.away, self.best, programme.metric)

    @property
    def radius(self) -> float | None:
        """The radius of cores, or None where even narrow ones hold too many places."""
        for radius in RADII:
            if self._is_worth(radius, CHEAP):
                return radius
        return RADII[-1] if self._is_worth(RADII[-1], WORTH) else None

    @property
    def are_small(self) -> bool:
        """Whether even the widest cores take next to no time, as on roads."""
        cubes = (self.away <= RADII[0]).sum(axis=1).astype(np.float64) ** 3
        return bool(cubes.sum() <= LITTLE_WORK)

    def _is_worth(self, radius: float, share: float) -> bool:
        cubes = (self.away <= radius).sum(axis=1).astype(np.float64) ** 3
        n = float(self.away.shape[1])
        return bool(cubes.mean() <= share * n**3 and cubes.sum() <= MOST_WORK)


class _Local:
    """The state of one solve."""

    def __init__(
        self,
        programme: ChannelProgramme,
        gap: float,
        start: FloatArray,
        around: Neighbourhoods,
        team: Workers | None = None,
    ) -> None:
        self.programme, self.gap, self.around = programme, gap, around
        self.team = team or Workers()
        edges = self.team.later(lambda: greedy_spanner(programme.metric, 1.0 + gap).edges)
        self.polish = Polish(programme, gap, team)
        self.near = np.argsort(programme.metric, axis=1, kind="stable")[:, 1 : NEIGHBOURS + 1]
        inside = covering(around.away, around.away <= (around.radius or RADII[-1]))
        self.links = links(programme, around.away, inside, tight_duals(programme), self.near)
        self.start = self._started()
        pairs = edges()
        both = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64)
        self.base = np.unique(both[:, 0] * programme.n + both[:, 1])
        self.extra = [np.empty(0, np.int64) for _ in programme.cost]
        self.matrix, self.upper, self.lower = start, programme.value(start), 0.0
        self.looked = False

    def _started(self) -> FloatArray:
        """A strictly private channel in which every output has a share."""
        bumps, at = strictly_private(self.programme.metric), self.around.anchors
        count = np.bincount(at, minlength=self.programme.n)
        share = np.where(count > 0, 0.5 / np.maximum(count, 1), 0.0)
        out = bumps[:, at] * share[at]
        np.add.at(out.T, self.around.best, (bumps * (1.0 - share * count)).T)
        return out

    def _keys(self) -> list[IntArray]:
        """The rows of every core: a spanner's, those to and from its middle, and what entered."""
        n = self.programme.n
        source, target = np.divmod(self.base, n)
        out = []
        for middle, parent, extra in zip(
            self.around.anchors, self.links.parent, self.extra, strict=True
        ):
            inside = parent == np.arange(n)
            others = np.flatnonzero(inside)
            others = others[others != middle]
            star = np.concatenate([middle * n + others, others * n + middle])
            base = self.base[inside[source] & inside[target]]
            out.append(np.unique(np.concatenate([base, star, extra])))
        return out

    def round(self, terms: Terms) -> None:
        """Solve on the cores at hand; the bound, and a channel of the columns if one is needed."""
        point = LocalPoint(self.programme, self.links, self._keys(), self.start, self.near)
        for _ in range(MOST_STEPS):
            if terms.over or point.complementarity <= AIM * self.gap * point.value:
                break
            if point.complementarity <= LOOK * point.value and self._is_due(terms):
                self._look(point, terms)
            try:
                point.step()
            except SolverError:
                break  # the arithmetic is exhausted; the bound of what is there is as true
        self.point = point
        bound = math.fsum(point.bound())
        if np.isfinite(bound):
            self.lower = max(self.lower, bound)
            if self._is_open:
                self._recombine(point)
            if self._is_open and math.fsum(point.mu) > self.lower:
                self._transport(point, terms)

    def _is_due(self, terms: Terms) -> bool:
        """Whether what is known halfway is worth telling: rounds of many places take long."""
        due = not self.looked and self.programme.n > LONG and terms.known_gap > USEFUL
        self.looked = True
        return due

    def _look(self, point: LocalPoint, terms: Terms) -> None:
        """The bound of mu by payments, and a channel of the columns, halfway."""
        mu = self.team.later(partial(paid_duals, self.programme, point.mu))
        self._recombine(point)
        self.lower = max(self.lower, math.fsum(mu()))
        terms.tell(self.upper, self.lower, NAME)

    @property
    def _is_open(self) -> bool:
        return relative_gap(self.upper, self.lower) > self.gap

    def _transport(self, point: LocalPoint, terms: Terms) -> None:
        """The bound of mu itself, whatever multipliers the places that follow were given."""
        programme = self.programme
        mu = lowered_duals(programme.cost, point.mu, programme.closeness, over=lambda: terms.over)
        if mu is not None:
            self.lower = max(self.lower, math.fsum(mu))

    def _recombine(self, point: LocalPoint) -> None:
        """The cheapest channel from the columns, closed, and the best so far."""
        matrix = self.polish.channel(point.columns(), self.matrix)
        value = self.programme.value(matrix)
        if value < self.upper:
            self.matrix, self.upper = matrix, value

    def enlarge(self) -> None:
        """Places that lag behind join the cores, violated rows enter, and signs are renewed."""
        programme, point, n = self.programme, self.point, self.programme.n
        places = np.arange(n)
        lag, origin = lagging(point.k, point.cores, self.links, programme.closeness)
        joins = _largest(
            lag * np.maximum(programme.cost - point.mu, 0.0), JOINED * self.gap * point.value
        )
        rows = violated(point.k, point.cores, programme.closeness, VIOLATED * self.gap)
        output, source, target = np.array(rows, np.int64).reshape(-1, 3).T
        for z, extra in enumerate(self.extra):
            x = np.flatnonzero(joins[z] & (origin[z] >= 0))
            p, o = self.links.parent[z, x].astype(np.int64), origin[z, x].astype(np.int64)
            mine = output == z
            added = [p * n + x, x * n + p, o * n + x, source[mine] * n + target[mine]]
            self.extra[z] = np.unique(np.concatenate([extra, *added]))
        inside = joins | (self.links.parent == places)
        self.links = links(programme, self.around.away, inside, point.mu, self.near)


def _largest(lost: FloatArray, tolerated: float) -> NDArray[np.bool_]:
    """The largest entries, without which the sum of the others is at most what is tolerated."""
    order = np.argsort(-lost, axis=None, kind="stable")
    sums = np.cumsum(lost.ravel()[order])
    count = np.count_nonzero(sums[-1] - sums > tolerated) + (sums[-1] > tolerated)
    out = np.zeros(lost.size, np.bool_)
    out[order[:count]] = True
    return out.reshape(lost.shape)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")  # a stall ends a round, checked
def solve_local(
    programme: ChannelProgramme, terms: Terms, start: FloatArray, around: Neighbourhoods
) -> LpResult:
    """Solve to a certified relative gap, or until rounds do not halve it any more.

    `start` is a private channel to improve upon, (n, outputs).
    """
    with workers() as team:
        return _solved(_Local(programme, terms.gap, start, around, team), terms)


def _solved(run: _Local, terms: Terms) -> LpResult:
    status, rounds, before = None, 0, 1.0
    while status is None and rounds < MOST_ROUNDS:
        if rounds:
            run.enlarge()
        run.round(terms)
        rounds += 1
        status = terms.verdict(run.upper, run.lower, NAME)
        gap = relative_gap(run.upper, run.lower)
        if gap > (0.5 if gap > CLOSE * terms.gap else 0.9) * before:
            break
        before = gap
    return LpResult(run.upper, run.lower, run.matrix, status or "stalled", NAME, rounds)
