"""The rows' part in Newton directions, for ranges of the outputs: targets, and moves of all rows.

`newton` puts them together for all outputs at once, `column` for one.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.optimal.barrier.rows import Pairs, Rows
from whereish.threads import Workers

__all__ = [
    "ALONE",
    "AtRows",
    "Part",
    "SharedRows",
    "Steps",
    "pull_of_targets",
    "row_moves",
    "shares",
]

_Result = TypeVar("_Result")
Part = tuple[int, int]
"""A range begin <= z < end of outputs."""
ALONE = Workers()
"""The thread of the caller."""


class AtRows(NamedTuple):
    """Slack, multiplier and G k - s of every row."""

    slack: FloatArray
    y: FloatArray
    residual: FloatArray


class Steps(NamedTuple):
    """Which parts of a direction are gone, by slacks and by multipliers."""

    primal: float
    dual: float


def shares(count: int, parts: int) -> list[Part]:
    """Ranges of about the same size, as many as there are parts or fewer, none of them empty."""
    bounds = [count * at // min(parts, count) for at in range(min(parts, count) + 1)]
    return list(pairwise(bounds))


class SharedRows(NamedTuple):
    """Rows whose outputs threads share, in parts."""

    rows: Rows
    parts: list[Part]
    team: Workers

    @property
    def size(self) -> int:
        """How many rows there are, over all outputs."""
        return self.rows.size

    def map(self, function: Callable[[Part], _Result]) -> list[_Result]:
        """The results for all parts, in their order."""
        return self.team.map(function, self.parts)

    def rows_of(self, part: Part) -> Part:
        """The rows of a part."""
        return int(self.rows.start[part[0]]), int(self.rows.start[part[1]])


@kernel
def weigh_rows(
    k: FloatArray,
    at: AtRows,
    start: IntArray,
    pairs: Pairs,
    outputs: tuple[int, int],
    weight: FloatArray,
) -> float:
    """Write y / s and the residual G k - s of a range of outputs; their sum of s y."""
    products = 0.0
    for z in range(outputs[0], outputs[1]):
        for row in range(start[z], start[z + 1]):
            weight[row] = at.y[row] / at.slack[row]
            slack = k[z, pairs.target[row]] - pairs.factor[row] * k[z, pairs.source[row]]
            at.residual[row] = slack - at.slack[row]
            products += at.slack[row] * at.y[row]
    return products


@kernel
def pull_of_targets(
    at: AtRows,
    target: FloatArray,
    start: IntArray,
    pairs: Pairs,
    outputs: tuple[int, int],
    residual: FloatArray,
    out: FloatArray,
) -> None:
    """Write G' ((target - y residual) / s) less the dual `residual`, for a range of outputs.

    That is what products s y that move by `target` ask of k.
    """
    for z in range(outputs[0], outputs[1]):
        out[z] = 0.0
        for row in range(start[z], start[z + 1]):
            y = (target[row] - at.y[row] * at.residual[row]) / at.slack[row]
            out[z, pairs.target[row]] += y
            out[z, pairs.source[row]] -= pairs.factor[row] * y
        for x in range(out.shape[1]):
            out[z, x] -= residual[z, x]


@kernel
def row_moves(
    at: AtRows,
    target: FloatArray,
    start: IntArray,
    pairs: Pairs,
    outputs: tuple[int, int],
    k: FloatArray,
    ds: FloatArray,
    dy: FloatArray,
) -> tuple[float, float]:
    """Write ds and dy of a range of outputs, and return max -ds/s and max -dy/y (NaN if one is)."""
    fall_s, fall_y = -np.inf, -np.inf
    for z in range(outputs[0], outputs[1]):
        for row in range(start[z], start[z + 1]):
            moved = k[z, pairs.target[row]] - pairs.factor[row] * k[z, pairs.source[row]]
            ds[row] = moved + at.residual[row]
            dy[row] = (target[row] - at.y[row] * ds[row]) / at.slack[row]
            fall = -ds[row] / at.slack[row]
            fall_s = fall if fall > fall_s or np.isnan(fall) else fall_s
            fall = -dy[row] / at.y[row]
            fall_y = fall if fall > fall_y or np.isnan(fall) else fall_y
    return fall_s, fall_y


@kernel
def products_after(
    at: AtRows, ds: FloatArray, dy: FloatArray, steps: Steps, rows: tuple[int, int]
) -> float:
    """Sum of (s + primal ds) (y + dual dy) over a range of rows."""
    total = 0.0
    for row in range(rows[0], rows[1]):
        total += (at.slack[row] + steps.primal * ds[row]) * (at.y[row] + steps.dual * dy[row])
    return total


@kernel
def vanish_targets(at: AtRows, rows: tuple[int, int], out: FloatArray) -> None:
    """Write -s y of a range of rows: the predictor's aim is zero."""
    for row in range(rows[0], rows[1]):
        out[row] = -at.slack[row] * at.y[row]


@kernel
def centre_targets(
    at: AtRows, ds: FloatArray, dy: FloatArray, aim: float, rows: tuple[int, int], out: FloatArray
) -> None:
    """Write aim - s y - ds dy of a range of rows (Mehrotra)."""
    for row in range(rows[0], rows[1]):
        out[row] = aim - at.slack[row] * at.y[row] - ds[row] * dy[row]


@kernel
def draw_in_targets(
    at: AtRows,
    ds: FloatArray,
    dy: FloatArray,
    steps: Steps,
    aim: float,
    rows: tuple[int, int],
    target: FloatArray,
) -> None:
    """Move targets so that outlying products come into [aim/10, 10 aim], by 10 aim at most.

    Of a range of rows, after Gondzio; products are those after the steps.
    """
    for row in range(rows[0], rows[1]):
        trial = (at.slack[row] + steps.primal * ds[row]) * (at.y[row] + steps.dual * dy[row])
        inside = min(max(trial, 0.1 * aim), 10.0 * aim)
        target[row] += max(inside - trial, -10.0 * aim)
