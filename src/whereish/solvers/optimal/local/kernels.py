"""The compiled loops of the interior point on cores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.optimal.barrier.factors import call_on_matrix, factor_regularised
from whereish.solvers.optimal.barrier.rows import (
    Rows,
    assemble_normal_matrix,
    write_multipliers,
)
from whereish.solvers.optimal.local.cores import Cores, Links, Reach, absorb

__all__ = [
    "Pulled",
    "add_along_sums",
    "factor_cores",
    "lagging",
    "price_of_tails",
    "solve_cores",
    "violated",
    "write_of_cores",
]


class Pulled(NamedTuple):
    """G' y of every variable, and the sum of the absolute values that it adds up."""

    value: FloatArray
    size: FloatArray


@kernel
def factor_cores(
    potrf: int,
    potri: int,
    weight: FloatArray,
    rows: Rows,
    cores: Cores,
    spots: IntArray,
    outputs: tuple[int, int],
    inverses: FloatArray,
    out: FloatArray,
) -> bool:
    """Write H_z^{-1} of a range of outputs and their sum of E_z H_z^{-1} E_z'; whether all are.

    Of symmetric matrices, C-ordered, what is on and below the diagonal; output z has its own at
    spots[z] of `inverses`, and its rows have indices of its own variables.
    """
    out[:] = 0.0
    reach = cores.reach
    for z in range(outputs[0], outputs[1]):
        width = cores.start[z + 1] - cores.start[z]
        work = inverses[spots[z] : spots[z + 1]].reshape((width, width))
        assemble_normal_matrix(weight, rows.start[z], rows.start[z + 1], rows.pairs, work)
        if not factor_regularised(potrf, work) or call_on_matrix(potri, work) != 0:
            return False
        add_inverse(work, reach.start[z], reach.start[z + 1], cores.start[z], reach, out)
    return True


@kernel
def add_inverse(
    inverse: FloatArray, begin: int, end: int, offset: int, reach: Reach, out: FloatArray
) -> None:
    """Add E_z H_z^{-1} E_z' to the lower half of `out`; `inverse` has its lower half."""
    for one in range(begin, end):
        y, j, b = reach.place[one], reach.variable[one] - offset, reach.factor[one]
        for other in range(begin, one + 1):
            i = reach.variable[other] - offset
            value = inverse[j, i] if i <= j else inverse[i, j]
            out[y, reach.place[other]] += b * reach.factor[other] * value


@kernel
def write_of_cores(
    gesv: int,
    total: FloatArray,
    variables: IntArray,
    rows: Rows,
    outputs: tuple[int, int],
    out: FloatArray,
) -> bool:
    """`write_multipliers` for a range of outputs, each with its own variables."""
    for z in range(outputs[0], outputs[1]):
        mine, some = total[variables[z] : variables[z + 1]], (rows.start[z], rows.start[z + 1])
        if not write_multipliers(gesv, mine, some, rows.pairs, out):
            return False
    return True


@kernel
def solve_cores(
    inverses: FloatArray,
    spots: IntArray,
    cores: Cores,
    outputs: tuple[int, int],
    q: FloatArray,
    sums: FloatArray,
) -> None:
    """Overwrite q, of a range of outputs' variables, by H^{-1} q; add E times it to `sums`."""
    reach, offset = cores.reach, cores.start[outputs[0]]
    for z in range(outputs[0], outputs[1]):
        begin, end = cores.start[z] - offset, cores.start[z + 1] - offset
        q[begin:end] = times_inverse(inverses[spots[z] : spots[z + 1]], q[begin:end])
        for one in range(reach.start[z], reach.start[z + 1]):
            sums[reach.place[one]] += reach.factor[one] * q[reach.variable[one] - offset]


@kernel
def add_along_sums(
    inverses: FloatArray,
    spots: IntArray,
    cores: Cores,
    outputs: tuple[int, int],
    dmu: FloatArray,
    k: FloatArray,
) -> None:
    """Add H^{-1} E' dmu to k, of the variables of a range of outputs."""
    reach, offset = cores.reach, cores.start[outputs[0]]
    for z in range(outputs[0], outputs[1]):
        first, width = cores.start[z], cores.start[z + 1] - cores.start[z]
        right = np.zeros(width)
        for one in range(reach.start[z], reach.start[z + 1]):
            right[reach.variable[one] - first] += reach.factor[one] * dmu[reach.place[one]]
        moved = times_inverse(inverses[spots[z] : spots[z + 1]], right)
        for x in range(width):
            k[first - offset + x] += moved[x]


@kernel
def times_inverse(inverse: FloatArray, q: FloatArray) -> FloatArray:
    """H^{-1} q for a symmetric matrix of which the lower half is there."""
    width = q.size
    out = np.zeros(width)
    for j in range(width):
        total, right = 0.0, q[j]
        for i in range(j):
            value = inverse[j * width + i]
            total += value * q[i]
            out[i] += value * right
        out[j] += total + inverse[j * width + j] * right
    return out


@kernel
def violated(
    k: FloatArray, cores: Cores, closeness: FloatArray, tolerance: float
) -> list[tuple[int, int, int]]:
    """(output, source, target) of the row that every variable violates most, beyond a tolerance."""
    found = [(0, 0, 0)]
    for z in range(cores.start.size - 1):
        for target in range(cores.start[z], cores.start[z + 1]):
            most, asks, j = k[target] * (1.0 + tolerance), -1, cores.place[target]
            for source in range(cores.start[z], cores.start[z + 1]):
                if closeness[j, cores.place[source]] * k[source] > most and source != target:
                    most, asks = closeness[j, cores.place[source]] * k[source], source
            if asks >= 0:
                found.append((z, int(cores.place[asks]), int(j)))
    return found[1:]


@kernel
def lagging(
    k: FloatArray, cores: Cores, links: Links, closeness: FloatArray
) -> tuple[FloatArray, NDArray[np.int32]]:
    """By how much places that follow are below what privacy asks, and which place asks most."""
    outputs, n = links.parent.shape
    out, origin = np.zeros((outputs, n)), np.full((outputs, n), -1, np.int32)
    for z in range(outputs):
        for x in range(n):
            p = links.core[z, x]
            if p < 0 or links.parent[z, x] == x:
                continue
            own = links.factor[z, x] * k[cores.variable[z, p]]
            most = own
            for source in range(cores.start[z], cores.start[z + 1]):
                i = cores.place[source]
                if closeness[x, i] * k[source] > most:
                    most, origin[z, x] = closeness[x, i] * k[source], i
            out[z, x] = most - own
    return out, origin


@kernel
def price_of_tails(
    cost: FloatArray,
    mu: FloatArray,
    pulled: Pulled,
    cores: Cores,
    links: Links,
    closeness: FloatArray,
    near: NDArray[np.intp],
    slack: float,
) -> FloatArray:
    """mu + min_z (c_z - mu - G' y_z), y of the places that follow included; lowered for rounding.

    A place that gains takes what it gains from its child, as far as that one has it; what then is
    left of a cost is passed on to the parent.
    """
    outputs, n = cost.shape
    least = np.full(n, np.inf)
    reduced, size, child = np.empty(n), np.empty(n), np.empty(n, np.int32)
    for z in range(outputs):
        for x in range(n):
            reduced[x] = cost[z, x] - mu[x]
            size[x] = cost[z, x] + abs(mu[x])
        for v in range(cores.start[z], cores.start[z + 1]):
            x = cores.place[v]
            reduced[x] -= pulled.value[v]
            size[x] += pulled.size[v]
        absorb(reduced, size, links.parent[z], links.away[z], closeness, near, child)
        for x in range(n):
            p = links.parent[z, x]
            if p >= 0 and p != x and reduced[x] > 0.0:
                reduced[p] += closeness[x, p] * reduced[x]
                size[p] += closeness[x, p] * size[x]
                reduced[x] = 0.0
        for x in range(n):
            least[x] = min(least[x], reduced[x] - slack * size[x])
    out: FloatArray = mu + least
    return out
