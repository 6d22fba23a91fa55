"""The constraints that carry a barrier term, one ragged list per output.

For an output z the privacy constraints are k_j >= a_ij k_i with
a_ij = e^{-d(i,j)}, for all ordered pairs (source i, target j).  Of the n^2 rows
of an output only those that come near to equality matter.  `RowLists` remembers
which they are; `Rows` is the flat form in which the kernels read them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.threads import Workers

__all__ = [
    "AtRows",
    "Moves",
    "Pairs",
    "RowLists",
    "Rows",
    "SharedRows",
    "Steps",
    "assemble_normal_matrix",
    "feasible_multipliers",
    "near_active_pairs",
    "pull_back",
    "pull_of_targets",
    "pull_sizes",
    "row_moves",
    "slacks",
]


class Pairs(NamedTuple):
    """The rows k[target] >= factor * k[source], as the kernels read them."""

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    factor: NDArray[np.floating]


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


class Rows(NamedTuple):
    """The rows of several outputs: those from start[z] to start[z + 1] belong to output z."""

    start: IntArray
    pairs: Pairs

    @property
    def size(self) -> int:
        """How many rows there are, over all outputs."""
        return self.pairs.source.size

    def only(self, z: int) -> Rows:
        """The rows of one output."""
        part = slice(self.start[z], self.start[z + 1])
        source, target, factor = self.pairs
        pairs = Pairs(source[part], target[part], factor[part])
        return Rows(self.start[z : z + 2] - self.start[z], pairs)

    def slack(self, k: FloatArray) -> FloatArray:
        """G k: the slack k_j - a k_i of every row; `k` is (outputs, n)."""
        return slacks(k, self.start, self.pairs)

    def pull(self, y: FloatArray, n: int) -> FloatArray:
        """G' y, as an (outputs, n) array."""
        return pull_back(y, self.start, self.pairs, n)

    def rounding(self, y: FloatArray, n: int) -> FloatArray:
        """What rounding may have added to an entry of `pull` and two numbers besides, at most.

        An entry sums products of y >= 0 with a, itself off by an ulp: a sum of m numbers is off by
        less than m units of rounding of their absolute sum.
        """
        size, most = pull_sizes(y, self.start, self.pairs, n)
        return np.asarray((most + 8) * np.finfo(float).eps * size)


class SharedRows(NamedTuple):
    """Rows whose outputs are shared out to threads, in ranges begin <= z < end."""

    rows: Rows
    ranges: Workers[tuple[int, int]]

    @classmethod
    def alone(cls, rows: Rows) -> SharedRows:
        """All of them in the thread of the caller."""
        return cls(rows, Workers([[(0, rows.start.size - 1)]], None))

    @property
    def size(self) -> int:
        """How many rows there are, over all outputs."""
        return self.rows.size

    def pull_targets(self, at: AtRows, target: FloatArray, n: int) -> FloatArray:
        """G' ((target - y residual) / s): what products s y that move by `target` ask of k."""
        start, pairs = self.rows
        out = np.empty((start.size - 1, n))

        def pull(part: tuple[int, int]) -> None:
            pull_of_targets(at, target, start, pairs, part, out)

        self.ranges.map(pull)
        return out

    def moves(self, at: AtRows, target: FloatArray, dk: FloatArray) -> Moves:
        """ds = G dk + residual and dy = (target - y ds) / s of a direction dk."""
        start, pairs = self.rows
        ds, dy = np.empty(target.size), np.empty(target.size)

        def move(part: tuple[int, int]) -> tuple[float, float]:
            return row_moves(at, target, start, pairs, part, dk, ds, dy)

        fall_s, fall_y = np.max(self.ranges.map(move), axis=0)
        return Moves(ds, dy, float(fall_s), float(fall_y))

    def after(self, at: AtRows, moves: Moves, steps: Steps) -> float:
        """The sum of the products s y after a step."""

        def after(part: tuple[int, int]) -> float:
            return products_after(at, moves.ds, moves.dy, steps, self._rows_of(part))

        return math.fsum(self.ranges.map(after))

    def centred(self, at: AtRows, moves: Moves, aim: float) -> FloatArray:
        """How products s y shall move to be `aim`, after what is left of second order."""
        out = np.empty(self.size)

        def centre(part: tuple[int, int]) -> None:
            centre_targets(at, moves.ds, moves.dy, aim, self._rows_of(part), out)

        self.ranges.map(centre)
        return out

    def drawn_in(
        self, at: AtRows, moves: Moves, steps: Steps, aim: float, target: FloatArray
    ) -> FloatArray:
        """`target` with the products that would lie outside [aim/10, 10 aim] pulled into it."""
        out = np.empty(self.size)

        def draw_in(part: tuple[int, int]) -> None:
            ds, dy = moves.ds, moves.dy
            draw_in_targets(at, ds, dy, steps, aim, target, self._rows_of(part), out)

        self.ranges.map(draw_in)
        return out

    def _rows_of(self, part: tuple[int, int]) -> tuple[int, int]:
        """The rows of a range of outputs."""
        return int(self.rows.start[part[0]]), int(self.rows.start[part[1]])


class RowLists:
    """Sorted keys source * n + target of the rows in use, for every output."""

    def __init__(self, closeness: FloatArray, edges: NDArray[np.intp], outputs: int) -> None:
        self.closeness = closeness
        self.n = closeness.shape[0]
        both = np.concatenate([edges, edges[:, ::-1]])
        base = np.unique(both[:, 0].astype(np.int64) * self.n + both[:, 1])
        self.keys: list[IntArray] = [base] * outputs

    def rows(self, outputs: NDArray[np.intp]) -> Rows:
        """The flat rows of these outputs, in their order."""
        lists = [self.keys[z] for z in outputs]
        start = np.concatenate([[0], np.cumsum([keys.size for keys in lists])]).astype(np.int64)
        keys = np.concatenate(lists)
        source, target = np.divmod(keys, self.n)
        factor = self.closeness[source, target]
        return Rows(start, Pairs(source.astype(np.int32), target.astype(np.int32), factor))

    def missing(self, output: int, keys: IntArray) -> IntArray:
        """Those of `keys` that the output does not have yet."""
        present = self.keys[output]
        place = np.minimum(np.searchsorted(present, keys), present.size - 1)
        return np.asarray(keys[present[place] != keys])

    def add(self, output: int, new: IntArray) -> NDArray[np.intp]:
        """Take in keys that are missing; returns the order that sorts old + new."""
        joined = np.concatenate([self.keys[output], new])
        order = np.argsort(joined, kind="stable")
        self.keys[output] = joined[order]
        return order


def feasible_multipliers(total: FloatArray, rows: Rows) -> FloatArray:
    """Multipliers y > 0 of one output's rows with G' y = total, for total > 0.

    With y = u_target / (1 - a) the system for u has a column-dominant M-matrix,
    whose inverse is nonnegative.
    """
    n, (source, target, a) = total.size, rows.pairs
    matrix = np.zeros((n, n))
    np.add.at(matrix, (target, target), 1.0 / (1.0 - a))
    np.add.at(matrix, (source, target), -a / (1.0 - a))
    u = np.linalg.solve(matrix, total)
    return np.asarray(u[target] / (1.0 - a))


@kernel
def slacks(k: FloatArray, start: IntArray, pairs: Pairs) -> FloatArray:
    """k[target] - factor * k[source] of every row."""
    out = np.empty(pairs.source.size)
    for z in range(k.shape[0]):
        for row in range(start[z], start[z + 1]):
            out[row] = k[z, pairs.target[row]] - pairs.factor[row] * k[z, pairs.source[row]]
    return out


@kernel
def pull_back(y: FloatArray, start: IntArray, pairs: Pairs, n: int) -> FloatArray:
    """The transpose of `slacks` applied to one number per row."""
    out = np.zeros((start.size - 1, n))
    for z in range(start.size - 1):
        for row in range(start[z], start[z + 1]):
            out[z, pairs.target[row]] += y[row]
            out[z, pairs.source[row]] -= pairs.factor[row] * y[row]
    return out


@kernel
def pull_of_targets(
    at: AtRows,
    target: FloatArray,
    start: IntArray,
    pairs: Pairs,
    outputs: tuple[int, int],
    out: FloatArray,
) -> None:
    """`pull_back` of (target - y residual) / s, for a range of outputs."""
    for z in range(outputs[0], outputs[1]):
        out[z] = 0.0
        for row in range(start[z], start[z + 1]):
            y = (target[row] - at.y[row] * at.residual[row]) / at.slack[row]
            out[z, pairs.target[row]] += y
            out[z, pairs.source[row]] -= pairs.factor[row] * y


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
    target: FloatArray,
    rows: tuple[int, int],
    out: FloatArray,
) -> None:
    """Write targets that pull outlying products into [aim/10, 10 aim], by 10 aim at most (Gondzio).

    Of a range of rows; products are those after the steps.
    """
    for row in range(rows[0], rows[1]):
        trial = (at.slack[row] + steps.primal * ds[row]) * (at.y[row] + steps.dual * dy[row])
        inside = min(max(trial, 0.1 * aim), 10.0 * aim)
        out[row] = target[row] + max(inside - trial, -10.0 * aim)


@kernel
def pull_sizes(y: FloatArray, start: IntArray, pairs: Pairs, n: int) -> tuple[FloatArray, int]:
    """Absolute sums of what `pull_back` adds up, and the most numbers in one of them."""
    out = np.zeros((start.size - 1, n))
    most, count = 0, np.zeros(n, np.int64)
    for z in range(start.size - 1):
        count[:] = 0
        for row in range(start[z], start[z + 1]):
            i, j = pairs.source[row], pairs.target[row]
            out[z, j] += y[row]
            out[z, i] += pairs.factor[row] * y[row]
            count[j] += 1
            count[i] += 1
        most = max(most, count.max())
    return out, most


@kernel
def assemble_normal_matrix(
    weight: FloatArray, begin: int, end: int, pairs: Pairs, out: FloatArray
) -> None:
    """Write the lower and upper half of G_z' diag(weight) G_z into `out`."""
    out[:] = 0.0
    for row in range(begin, end):
        i, j, w = pairs.source[row], pairs.target[row], weight[row]
        aw = pairs.factor[row] * w
        out[j, j] += w
        out[i, i] += pairs.factor[row] * aw
        out[i, j] -= aw
        out[j, i] -= aw


@kernel
def near_active_pairs(
    k: FloatArray, closeness: FloatArray, within: float, most: int
) -> tuple[IntArray, IntArray]:
    """Rows with a_ij k_i > (1 - within) k_j: at most `most` per (output, target), tightest first.

    Returns the row keys source * n + target, and where each output's begin.
    """
    outputs, n = k.shape
    found = np.empty(outputs * n * most, np.int64)
    begin = np.zeros(outputs + 1, np.int64)
    value, origin = np.zeros(most), np.zeros(most, np.int64)
    count = 0
    for z in range(outputs):
        for j in range(n):
            value[:] = k[z, j] * (1.0 - within)
            origin[:] = -1
            for i in range(n):
                candidate = closeness[j, i] * k[z, i]
                if candidate > value[most - 1] and i != j:
                    place = most - 1
                    while place > 0 and candidate > value[place - 1]:
                        value[place] = value[place - 1]
                        origin[place] = origin[place - 1]
                        place -= 1
                    value[place] = candidate
                    origin[place] = i
            for place in range(most):
                if origin[place] >= 0:
                    found[count] = origin[place] * n + j
                    count += 1
        begin[z + 1] = count
    return found[:count].copy(), begin
