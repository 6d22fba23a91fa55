"""Which of nine cells, and whether a draw is kept: the two exact choices of a spline law.

Both compare a uniform with numbers of the place that the doubles name: spline weights, and the
quotient of the geometric by the arithmetic mean of nine masses.  Doubles decide with a bound on
their error; fractions and balls decide what they leave open, with more bits of the uniform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.randomness import Randomness
from whereish.sampling.lazy_uniform import ARB_LOCK, LazyUniform
from whereish.solvers.splines.weights import around, spline_weights
from whereish.space.raster import Raster

__all__ = [
    "KEPT",
    "OPEN",
    "REJECTED",
    "Around",
    "Nine",
    "attempts_for",
    "chosen_cell",
    "chosen_cells",
    "coin",
    "coins",
    "doubt",
    "exact_cells",
    "exact_coin",
    "exact_weights",
    "nine_around",
    "one_around",
    "surprises",
]

REJECTED, KEPT, OPEN = 0, 1, 2
_SLACK = 2.0**-44  # relative: logarithms, exponentials and sums of nine
_MOST_BITS = 4096
_RESIDUAL = 2.0**-40
_LARGEST = 2**16  # attempts of padded draws


@dataclass(frozen=True, eq=False)
class Nine:
    """The nine cells around places: (n, 3) rows and columns, their weights, an error of these."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    down: FloatArray
    across: FloatArray
    error: FloatArray

    def cells(self, columns: int) -> NDArray[np.intp]:
        """(n, 9) flat indices, row by row."""
        flat = self.rows[:, :, None] * columns + self.columns[:, None, :]
        return np.asarray(flat.reshape(len(flat), 9), np.intp)

    def of(self, index: NDArray[np.intp]) -> Nine:
        """The same for some of the places, in any order."""
        parts = self.rows, self.columns, self.down, self.across, self.error
        return Nine(*(part[index] for part in parts))  # type: ignore[arg-type]

    @property
    def weights(self) -> FloatArray:
        """(n, 9) weights."""
        both = self.down[:, :, None] * self.across[:, None, :]
        return np.asarray(both.reshape(len(both), 9))


def nine_around(raster: Raster, coordinates: FloatArray) -> Nine:
    """The cells around each place, the outermost repeated; places outside take the closest."""
    (x, y), (width, height) = raster.origin, raster.cell
    q = np.clip((coordinates[:, 1] - y) / height, 0.0, raster.rows)
    p = np.clip((coordinates[:, 0] - x) / width, 0.0, raster.columns)
    i = np.minimum(q.astype(np.intp), raster.rows - 1)
    j = np.minimum(p.astype(np.intp), raster.columns - 1)
    return Nine(
        around(i, raster.rows),
        around(j, raster.columns),
        spline_weights(q - i - 0.5),
        spline_weights(p - j - 0.5),
        2.0**-49 * (p + q + 2.0),
    )


class Around(NamedTuple):
    """One place: the row and column of its cell, offsets from the middle, an error of weights."""

    row: int
    column: int
    down: float
    across: float
    error: float


def one_around(raster: Raster, place: tuple[float, float]) -> Around:
    """As :func:`nine_around` for one place."""
    (x, y), (width, height) = raster.origin, raster.cell
    q = min(max((place[1] - y) / height, 0.0), float(raster.rows))
    p = min(max((place[0] - x) / width, 0.0), float(raster.columns))
    i, j = min(int(q), raster.rows - 1), min(int(p), raster.columns - 1)
    return Around(i, j, q - i - 0.5, p - j - 0.5, 2.0**-49 * (p + q + 2.0))


def exact_weights(raster: Raster, place: FloatArray, axis: int) -> tuple[list[int], list[Fraction]]:
    """The three cells around one place along an axis (0: rows), and their weights, exactly."""
    side, origin = raster.cell[1 - axis], raster.origin[1 - axis]
    count = raster.shape[axis]
    q = (Fraction(float(place[1 - axis])) - Fraction(origin)) / Fraction(side)
    q = min(max(q, Fraction(0)), Fraction(count))
    i = min(math.floor(q), count - 1)
    t = q - i - Fraction(1, 2)
    half = Fraction(1, 2)
    weights = [(half - t) ** 2 / 2, Fraction(3, 4) - t * t, (half + t) ** 2 / 2]
    return [min(max(i + step, 0), count - 1) for step in (-1, 0, 1)], weights


def exact_cells(raster: Raster, place: FloatArray) -> NDArray[np.intp]:
    """(9,) flat indices of the cells around one place, exactly.

    A place next to a border may be on its other side once it is divided by the side of a cell:
    :func:`nine_around` then has weights that are right within its error, but of other cells.
    """
    (rows, _), (columns, _) = (exact_weights(raster, place, axis) for axis in (0, 1))
    return np.array([row * raster.columns + column for row in rows for column in columns], np.intp)


def chosen_cells(
    raster: Raster,
    coordinates: FloatArray,
    nine: Nine,
    words: NDArray[np.uint64],
    source: Randomness,
) -> NDArray[np.intp]:
    """One of the nine cells for each place, drawn by its weights; `words` are (n, 2)."""
    picked = []
    for axis, (cells, weights) in enumerate(((nine.rows, nine.down), (nine.columns, nine.across))):
        v = words[:, axis] * 2.0**-64
        first, second = weights[:, 0], weights[:, 0] + weights[:, 1]
        which = (v >= first).astype(np.intp) + (v >= second)
        chosen = cells[np.arange(len(cells)), which]
        sure = np.minimum(np.abs(v - first), np.abs(v - second)) > nine.error
        for row in np.flatnonzero(~sure):
            uniform = LazyUniform(int(words[row, axis]))
            chosen[row] = _exact_cell(raster, coordinates[row], axis, uniform, source)
        picked.append(chosen)
    return np.asarray(picked[0] * raster.columns + picked[1], np.intp)


def chosen_cell(
    raster: Raster, place: tuple[float, float], around: Around, words: list[int], source: Randomness
) -> int:
    """As :func:`chosen_cells` for one place."""
    picked = []
    for axis, (own, t) in enumerate(((around.row, around.down), (around.column, around.across))):
        v = words[axis] * 2.0**-64
        first = 0.5 * ((0.5 - t) * (0.5 - t))
        second = first + (0.75 - t * t)
        if min(abs(v - first), abs(v - second)) > around.error:
            step = (v >= first) + (v >= second) - 1
            picked.append(min(max(own + step, 0), raster.shape[axis] - 1))
        else:
            uniform = LazyUniform(words[axis])
            picked.append(_exact_cell(raster, np.array(place), axis, uniform, source))
    return picked[0] * raster.columns + picked[1]


def _exact_cell(
    raster: Raster, place: FloatArray, axis: int, uniform: LazyUniform, source: Randomness
) -> int:
    cells, weights = exact_weights(raster, place, axis)
    bounds = [weights[0], weights[0] + weights[1]]
    while True:
        low = Fraction(uniform.prefix, 2**uniform.bits)
        high = Fraction(uniform.prefix + 1, 2**uniform.bits)
        if all(high <= bound or low >= bound for bound in bounds):
            return cells[sum(low >= bound for bound in bounds)]
        uniform = uniform.extended(source)


def exact_coin(
    raster: Raster,
    place: FloatArray,
    masses: list[tuple[int, int]],
    word: int,
    source: Randomness,
) -> bool:
    """Whether a uniform, of which `word` is known, is below the geometric over arithmetic mean.

    `masses` are P(y | c) of the nine cells (:func:`exact_cells`), as numerators and denominators,
    row by row.
    """
    from flint import arb, ctx, fmpq, fmpz

    (_, down), (_, across) = (exact_weights(raster, place, axis) for axis in (0, 1))
    weights = [d * a for d in down for a in across]
    uniform = LazyUniform(word)
    while True:
        with ARB_LOCK, ctx.workprec(uniform.bits + 128):
            mean, total = arb(0), arb(0)
            for weight, (top, bottom) in zip(weights, masses, strict=True):
                share = arb(fmpq(weight.numerator, weight.denominator))
                mass = arb(fmpz(top)) / arb(fmpz(bottom))
                mean += share * mass.log()
                total += share * mass
            margin = mean.exp() / total - uniform.ball()
            if margin > 0:
                return True
            if margin < 0:
                return False
        uniform = uniform.extended(source)
        if uniform.bits > _MOST_BITS:  # equal masses: the chance is 1, and a uniform is below it
            return True


@kernel
def coin(logs: Any, weights: Any, surprise: float, error: float) -> int:
    """Kept or not, or open, for nine logarithms of masses; `surprise` is -ln of the uniform.

    `error` bounds that of a weight along an axis.
    """
    top, low = -math.inf, math.inf
    for k in range(9):
        top, low = max(top, logs[k]), min(low, logs[k])
    mean, total = 0.0, 0.0
    for k in range(9):
        mean += weights[k] * (logs[k] - top)
        total += weights[k] * math.exp(logs[k] - top)
    need = math.log(total) - mean
    room = (1.0 + top - low) * (_SLACK + 64.0 * math.exp(top - low) * error)
    room += doubt(surprise)
    if surprise > need + room:
        return KEPT
    # Nothing is known of a uniform whose bits are all zero but that it is small.
    return REJECTED if surprise < need - room and surprise < 30.0 else OPEN


@kernel
def doubt(surprise: float) -> float:
    """How far -ln of a uniform may be below that of the middle of its interval."""
    return min(1.0, 2.0**-62 * math.exp(min(surprise, 50.0)) + 2.0**-52)


@kernel
def coins(values: Any, shares: Any, surprise: Any, errors: Any, status: Any) -> None:
    """The coin of every attempt (second axis) of every place (first axis) into `status`."""
    for p in range(status.shape[0]):
        for k in range(status.shape[1]):
            status[p, k] = coin(values[p, k], shares[p], surprise[p, k], errors[p])


def surprises(words: NDArray[np.uint64]) -> FloatArray:
    """-ln of the middle of each uniform's interval."""
    middle = (words.astype(np.float64) + 0.5) * 2.0**-64
    return np.asarray(-np.log(np.minimum(middle, 1.0)))


def attempts_for(acceptance: float | None) -> int:
    """Draws for each place that is padded: all rejected with probability below 2^-40."""
    accepted = acceptance or 0.0
    if accepted >= 1.0:
        return 1
    rejected = math.log1p(-max(accepted, 1e-12))
    return min(_LARGEST, math.ceil(math.log(_RESIDUAL) / rejected))
