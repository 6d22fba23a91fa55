"""The exact optimum by generating outputs and constraints as they are needed.

An optimal channel uses few of the outputs that it could (28 of 100, 75 of 225 on
peaked priors).  The solve starts from those that the tight mechanism
h_z e^{-d(x,z)} keeps after Bayesian remapping, runs the structured interior
point on them, and lets `pricing` add outputs at checkpoints until it proves
that no absent one can help.  The bounds then hold for the full programme.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import SolverError
from whereish.solvers.optimal.barrier.rows import RowLists
from whereish.solvers.optimal.interior_point import InteriorPoint, Measure
from whereish.solvers.optimal.polish import Polish
from whereish.solvers.optimal.pricing import Pricer, PricingResult
from whereish.solvers.optimal.programme import ChannelProgramme, LpResult, Terms, relative_gap
from whereish.solvers.optimal.repair import complete
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.solvers.optimal.start.channels import spare_channel
from whereish.threads import Workers, workers

__all__ = ["solve_by_output_generation", "starting_outputs"]


CHECKPOINTS = (3e-2, 3e-3, 3e-4)
"""Relative complementarities at which absent outputs are priced and idle ones let go."""
BASE_DILATION = 1.1
"""The rows to start from: a spanner of the metric."""
ROW_PERIOD = 6
"""Iterations between two searches for near-active rows; violated ones enter at once."""
STARTING_SCALES = (0.9, 1.0, 1.1)
"""Multiples of the metric at which the tight mechanism's outputs are taken to begin with."""
POLISHED_AGAIN = 0.3
"""Part of the complementarity at which columns are recombined once more, where that is needed."""
MOST_ITERATIONS = 400
PATIENCE = 25
"""Iterations without progress of the bounds after which the solve counts as stalled."""


class _OutputGeneration:
    """The state of one solve."""

    def __init__(self, programme: ChannelProgramme, gap: float, team: Workers) -> None:
        self.programme, self.gap = programme, gap
        outputs, n = programme.cost.shape
        edges = greedy_spanner(programme.metric, BASE_DILATION).edges
        lists = RowLists(programme.closeness, edges, outputs)
        weight = programme.cost.mean(axis=0)
        weight = 0.5 * weight / float(weight.sum()) + 0.5 / n
        self.pricer = Pricer(programme.cost, lists, weight, team)
        self.point = InteriorPoint(programme.cost, lists, starting_outputs(programme), team)
        self.checkpoints = list(CHECKPOINTS)
        self.polish = Polish(programme, gap)
        self.spare = spare_channel(programme)
        self.polished = gap
        self.matrix = np.empty((n, outputs))
        self.upper = np.inf
        self.certified = 0.0  # costs are nonnegative
        self.last_certified_gap = 1.0
        self.restricted = -np.inf
        self.restricted_duals = np.zeros(n)
        self.team = team
        self.completed: Callable[[], FloatArray] | None = None
        """The channel of the last columns, which another thread may be at."""

    @property
    def absent(self) -> list[int]:
        """Outputs outside the programme at hand."""
        everything = np.arange(self.programme.cost.shape[0])
        return [int(z) for z in np.setdiff1d(everything, self.point.outputs)]

    def note(self, at: Measure) -> bool:
        """Keep the best restricted bound and channel; True if either improved.

        Far from the end a thread may complete the columns while others go on: that channel is
        looked at with the next.
        """
        better = self.take_completed()
        if at.lower > self.restricted:
            better = True
            self.restricted, self.restricted_duals = at.lower, at.bound_duals
        columns = np.zeros(self.matrix.shape)
        columns[:, self.point.outputs] = np.maximum(self.point.k, 0.0).T
        self.completed = self.team.later(partial(complete, self.programme, columns, self.spare))
        if at.relative_complementarity <= self.gap or not np.isfinite(self.upper):
            better = self.take_completed() or better
            if self._worth_polishing(at):
                better = self._take(self.polish.channel(columns)) or better
        return better

    def take_completed(self) -> bool:
        """Keep the channel of the last columns if it is the best; True if it is."""
        completed, self.completed = self.completed, None
        return completed is not None and self._take(completed())

    def _take(self, matrix: FloatArray) -> bool:
        upper = self.programme.value(matrix)
        if not upper < self.upper * (1.0 - 1e-12):
            return False
        self.matrix, self.upper = matrix, upper
        return True

    def _worth_polishing(self, at: Measure) -> bool:
        """Whether the columns are settled to the gap, but their sums are not mended as well."""
        settled = at.relative_complementarity <= self.polished
        if not settled or relative_gap(self.upper, at.cost) <= 0.5 * self.gap:
            return False
        self.polished = POLISHED_AGAIN * at.relative_complementarity
        return True

    def checkpoint(self, at: Measure) -> bool:
        """Price by the current duals and exchange outputs; True if the programme changed."""
        self.checkpoints.pop(0)
        tolerance = max(0.3 * self.gap, 1e-3 * at.relative_complementarity) * at.cost
        priced = self.pricer.price(self.point.mu, self.absent, tolerance)
        mass = self.point.k.max(axis=1)
        idle = max(0.3 * at.relative_complementarity, 1e-5) * float(mass.max())
        return self._exchange(at, priced, mass > idle)

    def certify(self, at: Measure) -> bool:
        """Extend the restricted bound to all outputs; True if the programme changed instead."""
        gap = relative_gap(self.upper, self.restricted)
        tolerance = max(0.3 * self.gap, 0.1 * gap) * at.cost
        priced = self.pricer.price(self.restricted_duals, self.absent, tolerance)
        self.last_certified_gap = gap
        if priced.candidates:
            return self._exchange(at, priced, np.ones(self.point.outputs.size, bool))
        self.certified = max(self.certified, self.restricted - priced.shortfall)
        return False

    def _exchange(self, at: Measure, priced: PricingResult, keep: NDArray[np.bool_]) -> bool:
        if not priced.candidates and keep.all():
            return False
        self.point.exchange(at, priced.candidates, keep)
        self.restricted = -np.inf
        return True

    def worth_certifying(self) -> bool:
        """Whether the restricted gap has closed enough since the last proof."""
        gap = relative_gap(self.upper, self.restricted)
        return gap < 0.8 * self.gap or gap < min(0.15 * self.last_certified_gap, 2e-2)

    def advance(self, at: Measure, iteration: int) -> None:
        """One Newton step, then rows that came near or are violated."""
        now = self.point.step(at)
        near = now.relative_complementarity > max(1e-3, 0.5 * self.gap)
        if near and iteration % ROW_PERIOD == ROW_PERIOD - 1:
            self.point.admit_rows(now, within=0.3, most=3)
        else:
            self.point.admit_rows(now, within=0.0, most=1)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")  # a stall ends the solve, checked
def solve_by_output_generation(programme: ChannelProgramme, terms: Terms) -> LpResult:
    """Solve to a certified relative gap, or as far as time and arithmetic allow."""
    with workers() as team:
        return _solved(_OutputGeneration(programme, terms.gap, team), terms)


def _solved(run: _OutputGeneration, terms: Terms) -> LpResult:
    status, idle, iteration = None, 0, 0
    while iteration < MOST_ITERATIONS and idle < PATIENCE:
        at = run.point.measure()
        idle = 0 if run.note(at) else idle + 1
        try:
            changed = _extend(run, at)
            status = terms.verdict(run.upper, run.certified, "interior point")
            if status is not None:
                break
            if not changed:
                run.advance(at, iteration)
        except SolverError:
            break  # the arithmetic is exhausted; what was certified so far stands
        iteration += 1
    run.take_completed()
    method = "interior point with output generation"
    return LpResult(run.upper, run.certified, run.matrix, status or "stalled", method, iteration)


def _extend(run: _OutputGeneration, at: Measure) -> bool:
    """Price absent outputs where it is due; True if the programme changed."""
    if run.checkpoints and at.relative_complementarity < run.checkpoints[0]:
        return run.checkpoint(at)
    return run.worth_certifying() and run.certify(at)


def starting_outputs(programme: ChannelProgramme) -> NDArray[np.intp]:
    """Outputs to which the Bayesian remap sends the columns e^{-d(., z)} of the tight mechanism."""
    return np.unique(
        [
            (programme.cost @ np.exp(-scale * programme.metric)).argmin(axis=0)
            for scale in STARTING_SCALES
        ]
    )
