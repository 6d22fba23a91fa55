"""Bounds and a channel before a solver begins on all places: a useful gap within seconds.

1. A bound: that of few places, and that of the tight mechanism's duals by passing on, the likelier
   one first.  Few places lose the square of how far others are from them, passing on loses where
   columns are wide.
2. Where there are many places and both leave much, sweeps over places near each output
   (`first_order.near`) give a better bound and columns.
3. A channel: bumps and all columns found are recombined.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.solvers.optimal.first_order.near import NearSweeps
from whereish.solvers.optimal.large_scale import solve_large
from whereish.solvers.optimal.local.solve import Neighbourhoods
from whereish.solvers.optimal.programme import (
    ChannelProgramme,
    LpResult,
    ProgressCallback,
    SolveProgress,
    Terms,
)
from whereish.solvers.optimal.repair import tight_matrix
from whereish.solvers.optimal.start.bumps import recombined_bumps
from whereish.solvers.optimal.start.channels import simple_solution
from whereish.solvers.optimal.start.coarse import coarsen, telling_places
from whereish.solvers.optimal.start.passing import early_duals

__all__ = ["ENOUGH", "FEW_SWEEPS", "USEFUL", "bound_of_few", "early_bracket", "from_below"]

FEW_SWEEPS = 250
"""For a first bound."""
USEFUL = 0.1
"""A gap above which a bound and a channel are sought at once, before a solver begins."""
MOST_TELLING, TELLING_GAP = 320, 3e-2
"""Places whose programme gives a bound before a solver begins on all, and how well it is solved."""
ENOUGH = 0.2
"""A gap of few places with which passing on is not tried, too."""
TELLING_WITHIN, TELLING_MASS_WITHIN = 0.5, 0.1
"""Nats: the mean distance to those places up to which their bound comes first, and that of what
costs up to which it comes at all."""
MANY = 600
"""Places beyond which a solver tells nothing for long, so that sweeps near outputs come first."""


def early_bracket(programme: ChannelProgramme, terms: Terms, simple: LpResult) -> LpResult:
    """`simple` with better bounds where its gap is not useful yet."""
    columns: list[FloatArray] = []
    near: NearSweeps | None = None
    for stage in _likelier_first(programme):
        enough = ENOUGH if columns else USEFUL
        if simple.gap <= max(enough, terms.gap) or (columns and terms.over):
            break
        if stage == "few places":
            lower, extended = bound_of_few(programme, terms)
            columns.append(extended)
        else:
            lower = math.fsum(early_duals(programme))
        simple = _raised(simple, lower)
        terms.tell(simple.upper, simple.lower, stage)
        if simple.gap > max(USEFUL, terms.gap) and programme.n > MANY and not terms.over:
            if Neighbourhoods(programme).are_small:
                break  # a solve on cores is as fast
            near = NearSweeps.of(programme)
            if near is not None:
                break
    if near is not None:
        for lower in near.bounds(over=lambda: terms.over):
            simple = _raised(simple, lower)
            terms.tell(simple.upper, simple.lower, "near sweeps")
        columns.append(near.columns())
    worth = near is not None or (programme.n <= MANY and tight_matrix(programme.closeness) is None)
    if simple.gap > USEFUL and not terms.over and worth:
        matrix = recombined_bumps(programme, *columns)
        upper = programme.value(matrix)
        if upper < simple.upper:
            simple = replace(simple, matrix=matrix, upper=upper)
        terms.tell(simple.upper, simple.lower, "bumps")
    return simple


def _likelier_first(programme: ChannelProgramme) -> tuple[str, ...]:
    """The bounds to take, that of few places only where they tell enough."""
    kept = _telling(programme)
    away, weight = programme.metric[kept].min(axis=0), programme.cost.mean(axis=0)
    if float(away.mean()) <= TELLING_WITHIN:
        return "few places", "passing on"
    tells = float(away @ weight) <= TELLING_MASS_WITHIN * float(weight.sum())
    return ("passing on", "few places") if tells else ("passing on",)


def _telling(programme: ChannelProgramme) -> NDArray[np.intp]:
    return telling_places(programme, min(MOST_TELLING, programme.n // 3))


def _raised(simple: LpResult, lower: float) -> LpResult:
    return replace(simple, lower=min(max(simple.lower, lower), simple.upper))


def bound_of_few(programme: ChannelProgramme, terms: Terms) -> tuple[float, FloatArray]:
    """The bound of few places by some sweeps, and the columns found there extended to all."""
    few = coarsen(programme, _telling(programme))
    start = simple_solution(few.below).matrix
    tell = from_below(terms, stage="few places")
    within = Terms(TELLING_GAP, terms.limit_s, tell, terms.start)
    found = solve_large(few.below, within, start=start, most_sweeps=FEW_SWEEPS)
    mean, _, _ = few.extensions(found.matrix, programme)
    return found.lower, np.ascontiguousarray(mean[:, mean.max(axis=0) > 0].T)


def from_below(terms: Terms, less: float = 0.0, stage: str | None = None) -> ProgressCallback:
    """Tells the bounds of a programme whose optimum is below the asked one's, but for `less`."""

    def tell(at: SolveProgress) -> None:
        terms.tell(np.inf, at.lower - less, stage or at.stage)

    return tell
