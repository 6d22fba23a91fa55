"""The constraints that carry a barrier term, one ragged list per output.

For an output z the privacy constraints are k_j >= a_ij k_i with
a_ij = e^{-d(i,j)}, for all ordered pairs (source i, target j).  Of the n^2 rows
of an output only those that come near to equality matter.  `RowLists` remembers
which they are; `Rows` is the flat form in which the kernels read them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel, lazy_intrinsic
from whereish.errors import SolverError
from whereish.solvers.lapack import address

__all__ = [
    "NO_MULTIPLIERS",
    "Pairs",
    "RowLists",
    "Rows",
    "assemble_normal_matrix",
    "feasible_multipliers",
    "pull_back",
    "pull_sizes",
    "slacks",
    "write_multipliers",
]

NO_MULTIPLIERS = "the multipliers to begin from are not finite"
call_on_system: Callable[[int, FloatArray, NDArray[np.int32], FloatArray], int] = lazy_intrinsic(
    "whereish.compiled.lapack_calls", "call_on_system"
)


class Pairs(NamedTuple):
    """The rows k[target] >= factor * k[source], as the kernels read them."""

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    factor: NDArray[np.floating]


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

    def replace(self, outputs: NDArray[np.intp], start: IntArray, keys: IntArray) -> None:
        """Take other sorted keys for these outputs: those from start[z] to start[z + 1]."""
        for z, output in enumerate(outputs):
            self.keys[output] = keys[start[z] : start[z + 1]]

    def add(self, output: int, new: IntArray) -> NDArray[np.intp]:
        """Take in keys that are missing; returns the order that sorts old + new."""
        joined = np.concatenate([self.keys[output], new])
        order = np.argsort(joined, kind="stable")
        self.keys[output] = joined[order]
        return order


def feasible_multipliers(total: FloatArray, rows: Rows) -> FloatArray:
    """Multipliers y > 0 of one output's rows with G' y = total, for total > 0; see below."""
    y = np.empty(rows.size)
    if not write_multipliers(address("dgesv"), total, (0, rows.size), rows.pairs, y):
        raise SolverError(NO_MULTIPLIERS)
    return y


@kernel
def write_multipliers(
    gesv: int, total: FloatArray, rows: tuple[int, int], pairs: Pairs, out: FloatArray
) -> bool:
    """Write multipliers y > 0 of a range of rows with G' y = total > 0; whether there were any.

    With y = u_target / (1 - a) the system for u has a column-dominant M-matrix,
    whose inverse is nonnegative.
    """
    n = total.size
    transposed, u, pivots = np.zeros((n, n)), total.copy(), np.empty(n, np.int32)
    for row in range(rows[0], rows[1]):
        i, j, a = pairs.source[row], pairs.target[row], pairs.factor[row]
        transposed[j, j] += 1.0 / (1.0 - a)
        transposed[j, i] -= a / (1.0 - a)
    if call_on_system(gesv, transposed, pivots, u) != 0:
        return False
    for row in range(rows[0], rows[1]):
        out[row] = u[pairs.target[row]] / (1.0 - pairs.factor[row])
    return True


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
