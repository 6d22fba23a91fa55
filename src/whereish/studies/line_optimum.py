r"""The best mechanism on a line of cells, with its proof, and how its error settles.

Secrets are the centres x_i of n cells of a line, spread evenly; t_i is their place in nats, so that
a channel must keep |t_i - t_j|.  The tight law

    P(y | i) = w_y·e^{-|t_i - t_y|},    w_y = (tanh(left/2) + tanh(right/2)) / 2,

left and right the nats to the neighbours of y (infinite beyond the ends), on constant levels the
truncated geometric mechanism, is followed by posterior means m_y.  That no channel has less squared
error is proven in numbers, without a solver: multipliers mu with E mu = b, E = e^{-|t - t'|} and
b_y = sum_i p_i e^{-|t_i - t_y|} (x_i - m_y)^2, bound every channel from below by sum mu if

    sum_i (p_i (x_i - z)^2 - mu_i) k_i >= 0

for every report z and every column k that keeps the metric.  The least such sum is found exactly,
from one end to the other, since from one secret to the next a column is at best at one of its two
extremes.  Reports z are checked s apart; in between, a quadratic is above its chord less s^2/4
times its leading coefficient, so that sum mu - s^2/4 is a bound whatever is reported.

**Order.**  On constant levels, lengths in nats, W nats wide, cells of h: let F(y) be
(1/W)·int e^{-|u - y|} (u - m_y)^2 du.  The limit's error is (F(0) + F(W) + int F) / 2: atoms at
both ends, and a density.  With w_y = tanh(h/2) inside and (1 + tanh(h/2))/2 at the ends, cells have

    ((1 - tanh(h/2))·(F(h/2) + F(W - h/2)) + 2 tanh(h/2)·sum_y F(y)) / 2 + O(h^2),

sums over centres being midpoint rules.  F'(0) = F(0) (m_y is a minimiser, so only e^{-|u - y|}
moves), hence (1 - h/2)·F(h/2) = F(0) + O(h^2): that the outermost centres lie half a cell inside,
and that they get the outermost cells' reports on top of the atoms, cancel.  **The optimum settles
with order 2.**  Reports as they are drawn, m_y = y, lack that: there
F'(0) = F(0) - (2/W)·int u e^{-u} du, which leaves a first-order term (:func:`drawn_slope`),

    -(1 - (1 + W) e^{-W}) / W  per nat of h.

A step between levels keeps order 2 where it lies on a border of cells, or where cells have the mean
of their levels, since prices between centres are then exact.  Where levels are read at centres, the
step moves by up to half a cell, one way at one size and the other way at the next: the optimum
itself has a first-order term of either sign, and no mechanism that is near it settles sooner.

In the plane there is another: levels are interpolated between centres, so a step is a ramp one cell
wide, and who walks along its cheap side walks half a cell beside it.  Two places on the dear side
of a straight step between two columns of cells are e·h nats farther apart than in the limit, e the
cheap level (the ways to it and back are half a cell longer each): the promise itself has order 1.

Run with ``python -m whereish.studies.line_optimum``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray
from whereish.studies.figures import say

__all__ = [
    "Line",
    "LineOptimum",
    "constant_line",
    "drawn_slope",
    "later_change",
    "line_optimum",
    "settling_table",
    "step_changes",
    "stepped_line",
]

SIZES = (60, 100, 200)
WIDTHS = (3.0, 12.0, 48.0)
STEP = 4.0
_PARTS = 64  # of the least distance of two centres: reports at which a bound is checked
_POSITIONS = 12
_SEED = 20


@dataclass(frozen=True, eq=False)
class Line:
    """Secrets along a line: where they are in nats, and in lengths (0 to 1)."""

    nats: FloatArray
    places: FloatArray


@dataclass(frozen=True)
class LineOptimum:
    """Squared errors under a uniform prior, in squares of the line's length.

    Attributes
    ----------
    error : of the tight law moved to posterior means.
    lower_bound : no channel that keeps the metric has less, whatever it reports.
    drawn : of the tight law's reports where they are drawn.
    half : of the exponential mechanism at half the metric, weights and reports on the same centres.
    """

    error: float
    lower_bound: float
    drawn: float
    half: float


def constant_line(width: float, cells: int) -> Line:
    """`cells` of one level, `width` nats from end to end."""
    return stepped_line(width, cells, ratio=1.0)


def stepped_line(
    width: float, cells: int, *, at: float = 0.5, ratio: float = STEP, averaged: bool = False
) -> Line:
    """Two levels, the second `ratio` times the first, with a step at `at` of the line.

    A cell has the level of its centre, or the mean of its levels if `averaged`; levels between
    centres are linear.  The line of the limit is `width` nats from end to end.
    """
    places = (np.arange(cells) + 0.5) / cells
    first = np.clip(at * cells - np.arange(cells), 0, 1) if averaged else 1.0 * (places < at)
    levels = (first + (1 - first) * ratio) * (width / (at + (1 - at) * ratio))
    prices = (levels[1:] + levels[:-1]) / (2 * cells)
    return Line(np.concatenate([[0.0], np.cumsum(prices)]), places)


def line_optimum(line: Line) -> LineOptimum:
    """The least squared error on a line, with a bound that proves it."""
    t, x = line.nats, line.places
    prior = 1 / len(x)
    gaps = np.diff(t)
    sides = np.tanh(np.concatenate([[math.inf], gaps, [math.inf]]) / 2)
    decay = np.exp(-np.abs(t[:, None] - t))
    weights = (sides[1:] + sides[:-1]) / 2
    means = (x @ decay) / decay.sum(axis=0)
    costs = prior * ((x[:, None] - means) ** 2 * decay).sum(axis=0)
    drawn = prior * ((x[:, None] - x) ** 2 * decay).sum(axis=0)
    root = np.sqrt(decay)
    half = prior * ((x[:, None] - x) ** 2 * root).sum(axis=1) / root.sum(axis=1)
    error = float(costs @ weights)
    multipliers = np.linalg.solve(decay, costs)
    return LineOptimum(
        error, _proven(line, multipliers, prior, error), float(drawn @ weights), float(half.sum())
    )


def _proven(line: Line, multipliers: FloatArray, prior: float, error: float) -> float:
    """A lower bound for every channel, from multipliers that need not be feasible."""
    x = line.places
    spacing = float(np.diff(x).min()) / _PARTS
    reports = np.linspace(x[0], x[-1], math.ceil((x[-1] - x[0]) / spacing) + 1)
    slack = 0.0
    while _least_column(line, multipliers - slack * prior, prior, reports) < 0:
        slack = max(4 * slack, 1e-12 * error)
    return float(multipliers.sum()) - slack - float(reports[1] - reports[0]) ** 2 / 4


def _least_column(line: Line, multipliers: FloatArray, prior: float, reports: FloatArray) -> float:
    """The least of sum_i (p (x_i - z)^2 - mu_i) k_i over reports z and columns k with k_n = 1."""
    steps = np.exp(-np.diff(line.nats))
    value = np.zeros(len(reports))
    for i, place in enumerate(line.places):
        if i:
            value = np.where(value >= 0, value * steps[i - 1], value / steps[i - 1])
        value = value + prior * (place - reports) ** 2 - multipliers[i]
    return float(value.min())


def drawn_slope(width: float) -> float:
    """d error / d h of the tight law as drawn at h = 0, constant levels; lengths in nats."""
    return -(1 - (1 + width) * math.exp(-width)) / width


def later_change(errors: Sequence[float]) -> float:
    """How much the last error differs from the one before, over the change before that.

    At 60, 100 and 200 cells order p has (100^-p - 200^-p) / (60^-p - 100^-p): 0.75 for p = 1,
    0.42 for p = 2.
    """
    coarse, middle, fine = errors
    return abs(fine - middle) / max(abs(middle - coarse), 1e-15)


def settling_table(sizes: tuple[int, ...] = SIZES) -> None:
    """Print how the optimum settles on lines of three widths."""
    say(f"the best possible mechanism on a line of {sizes} cells: later change over the earlier")
    say(f"  (order 1: {_power(sizes, 1):.2f}, order 2: {_power(sizes, 2):.2f})")
    for width in WIDTHS:
        _say_row(f"{width:3g} nats, constant", width, [constant_line(width, n) for n in sizes])
        steps = [stepped_line(width, n) for n in sizes]
        _say_row(f"{width:3g} nats, step {STEP:g}:1 on a border of cells", width, steps)
        for name, averaged in (("read at centres", False), ("mean of each cell", True)):
            found = step_changes(width, sizes, averaged=averaged)
            say(
                f"  {width:3g} nats, step at {len(found)} places, {name}: optimum"
                f" {found[0]:.2f} to {found[-1]:.2f}, median {np.median(found):.2f},"
                f" {sum(change > 0.5 for change in found)} above 0.5"
            )


def step_changes(
    width: float, sizes: tuple[int, ...] = SIZES, *, averaged: bool = False
) -> list[float]:
    """The optimum's later changes with a step at twelve places that a seed draws, in order."""
    return sorted(
        later_change(
            [line_optimum(stepped_line(width, n, at=at, averaged=averaged)).error for n in sizes]
        )
        for at in np.random.default_rng(_SEED).uniform(0.2, 0.8, _POSITIONS).tolist()
    )


def _say_row(name: str, width: float, lines: list[Line]) -> None:
    rows = [line_optimum(line) for line in lines]
    errors = ", ".join(f"{row.error * width**2:.5f}" for row in rows)
    gap = max(1 - row.lower_bound / row.error for row in rows)
    optimum, drawn, half = (
        later_change([getattr(row, kind) for row in rows]) for kind in ("error", "drawn", "half")
    )
    say(
        f"  {name}: optimum {errors} nats^2 (proven to {gap:.0e}),"
        f" {optimum:.2f}; its law as drawn {drawn:.2f}, exponential eps/2 {half:.2f}"
    )


def _power(sizes: tuple[int, ...], order: float) -> float:
    return later_change([n**-order for n in sizes])


if __name__ == "__main__":
    settling_table()
