"""Newton directions of rows with a barrier term, in parts of the outputs that threads share.

Predictor-corrector after Mehrotra (1992) with Gondzio's (1996) multiple centrality corrections.
Every direction takes two sections, between which the outputs are coupled: down, from targets of the
products s y to what is asked of k and to k's own part of the answer, and up, from the multipliers
of the sums to the moves of all rows.  Sums over outputs are sums of the parts, which are fixed, so
that results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.optimal.barrier.rows import Pairs, Rows
from whereish.threads import Workers

__all__ = [
    "ALONE",
    "AtRows",
    "Direction",
    "Moves",
    "NewtonSystem",
    "Part",
    "SharedRows",
    "Steps",
    "corrected_direction",
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


class Moves(NamedTuple):
    """How slacks and multipliers move, and the largest parts of them that it takes away."""

    ds: FloatArray
    dy: FloatArray
    fall_s: float
    fall_y: float


@dataclass(frozen=True)
class Direction:
    """A Newton direction with the steps that keep s and y nonnegative along it."""

    dk: FloatArray
    dmu: FloatArray
    moves: Moves
    steps: Steps


class NewtonSystem(Protocol):
    """H dk - A' dmu = q with A dk given, where H splits by output."""

    def free(self, q: FloatArray, part: Part) -> FloatArray:
        """Overwrite the rows of a part by H^{-1} q; A times them."""

    def couple(self, sums: FloatArray) -> FloatArray:
        """dmu, from A H^{-1} q of all outputs."""

    def follow(self, dmu: FloatArray, dk: FloatArray, part: Part) -> None:
        """Add H^{-1} A' dmu to the rows of a part."""


def shares(count: int, parts: int) -> list[Part]:
    """Ranges of about the same size, as many as there are parts or fewer, none of them empty."""
    bounds = [count * at // min(parts, count) for at in range(min(parts, count) + 1)]
    return list(pairwise(bounds))


class SharedRows(NamedTuple):
    """Rows whose outputs threads share, in parts."""

    rows: Rows
    parts: list[Part]
    team: Workers

    @classmethod
    def alone(cls, rows: Rows) -> SharedRows:
        """All of them in the thread of the caller."""
        return cls(rows, [(0, rows.start.size - 1)], ALONE)

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


def corrected_direction(
    rows: SharedRows,
    at: AtRows,
    *,
    system: NewtonSystem,
    dual_residual: FloatArray,
    corrections: int,
    least: float = 0.0,
) -> Direction:
    """Mehrotra's predictor-corrector direction with up to `corrections` of Gondzio's.

    The complementarity that it aims at is not below `least`.
    """
    complementarity = float(at.slack @ at.y)

    def along(write: Callable[[Part], None], memory: tuple[FloatArray, ...]) -> Direction:
        """The direction for targets that `write` fills in, a range of rows at a time."""
        start, pairs = rows.rows
        q, ds, dy = memory

        def down(part: Part) -> FloatArray:
            write(rows.rows_of(part))
            pull_of_targets(at, target, start, pairs, part, dual_residual, q)
            return system.free(q, part)

        def up(part: Part) -> tuple[float, float]:
            system.follow(dmu, q, part)
            return row_moves(at, target, start, pairs, part, q, ds, dy)

        dmu = system.couple(np.sum(rows.map(down), axis=0))
        fall_s, fall_y = (float(fall) for fall in np.max(rows.map(up), axis=0))
        steps = Steps(1.0 / max(1.0, fall_s), 1.0 / max(1.0, fall_y))
        return Direction(q, dmu, Moves(ds, dy, fall_s, fall_y), steps)

    target = np.empty(rows.size)
    shapes = dual_residual.shape, rows.size, rows.size
    # Two are in use at a time; memory that is new is memory that the system has yet to give.
    used, free = (tuple(np.empty(shape) for shape in shapes) for _ in range(2))
    predicted = along(lambda some: vanish_targets(at, some, target), free)
    ds, dy = predicted.moves.ds, predicted.moves.dy
    after = math.fsum(
        rows.map(lambda part: products_after(at, ds, dy, predicted.steps, rows.rows_of(part)))
    )
    centring = min(max((after / complementarity) ** 3, 1e-6), 1.0)
    aim = max(centring * complementarity, least) / rows.size
    best = along(lambda some: centre_targets(at, ds, dy, aim, some, target), used)
    for _ in range(corrections):
        if min(best.steps) > 0.95:
            break
        longer = Steps(*(min(1.0, 1.08 * step + 0.1) for step in best.steps))
        moves = best.moves
        corrected = along(
            lambda some: draw_in_targets(at, moves.ds, moves.dy, longer, aim, some, target),  # noqa: B023  (called at once)
            free,
        )
        if sum(corrected.steps) < sum(best.steps) + 0.02:
            break
        best, used, free = corrected, free, used
    return best


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
