"""The Newton systems of interior points, as kernels read them: H, A, and how they are factored.

H dk - A' dmu = q with A dk given, where H splits into the rows of k and A adds outputs up:

* outputs with a matrix each, H_z = G_z' diag(y/s) G_z, of which packed factors are kept;
* parts of outputs with cores: a row of k has the variables of several, whose inverses are kept;
* before the outputs, rows of weights of given columns, whose only constraint is lambda >= 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.lapack import address
from whereish.solvers.optimal.barrier.coupling import Coupling
from whereish.solvers.optimal.barrier.factors import (
    add_solutions,
    call_on_rows,
    factor_outputs,
    solve_outputs,
)
from whereish.solvers.optimal.barrier.rows import Pairs, Rows
from whereish.solvers.optimal.local.cores import Cores, Reach
from whereish.solvers.optimal.local.kernels import add_along_sums, factor_cores, solve_cores

__all__ = ["Lapack", "NewtonSystem", "OfCores", "Weighed", "factor_item", "follow", "free"]


class Lapack(NamedTuple):
    """Where its functions are in this process."""

    potrf: int
    potri: int
    tpsv: int
    syrk: int

    @classmethod
    def here(cls) -> Lapack:
        return cls(*map(address, ("dpotrf", "dpotri", "dtpsv", "dsyrk")))


class Weighed(NamedTuple):
    """Rows whose constraints are lambda >= 0 alone, for columns (count, n) that are combined.

    Those of row z are from bounds[z] to bounds[z + 1], the first constraints of all.
    """

    bounds: IntArray
    columns: FloatArray

    @classmethod
    def none(cls) -> Weighed:
        """There are none."""
        return cls(np.zeros(1, np.int64), np.empty((0, 0)))


class OfCores(NamedTuple):
    """H of outputs with cores, whose variables are a row of k for each part of `outputs`.

    `rows` are those of each output, with indices of its own variables; `parts` are ranges of the
    outputs whose inverses are made at once.
    """

    inverses: FloatArray
    spots: IntArray
    cores: Cores
    outputs: IntArray
    rows: Rows
    parts: IntArray

    @classmethod
    def none(cls) -> OfCores:
        """There are none."""
        whole, some, none = np.zeros(0, np.int64), np.zeros(0, np.int32), np.empty(0)
        cores = Cores(whole, some, some.reshape(0, 0), Reach(whole, some, some, none))
        parts = whole.reshape(0, 2)
        return cls(none, whole, cores, parts, Rows(whole, Pairs(some, some, none)), parts)


class NewtonSystem(NamedTuple):
    """Memory for H and S = A H^{-1} A', factored, and what A dk shall be.

    Attributes
    ----------
    coupling : of S, which is the sum of what items add to it.
    factors : packed, of outputs with a matrix each.
    """

    coupling: Coupling
    missing: FloatArray
    factors: FloatArray
    weighed: Weighed
    cores: OfCores


@kernel
def factor_item(
    lapack: Lapack,
    item: int,
    system: NewtonSystem,
    start: IntArray,
    pairs: Pairs,
    parts: IntArray,
    weight: FloatArray,
) -> bool:
    """Factor one item, and write what it adds to S; whether it has a factor."""
    weighed, cores, out = system.weighed, system.cores, system.coupling.parts[item]
    first = weighed.bounds.size - 1
    if cores.outputs.shape[0] > 0:
        some = (cores.parts[item, 0], cores.parts[item, 1])
        return factor_cores(
            lapack.potrf,
            lapack.potri,
            weight,
            cores.rows,
            cores.cores,
            cores.spots,
            some,
            cores.inverses,
            out,
        )
    if item < first:
        begin, end = weighed.bounds[item], weighed.bounds[item + 1]
        scaled = weighed.columns[begin:end] / np.sqrt(weight[begin:end]).reshape((end - begin, 1))
        call_on_rows(lapack.syrk, scaled, out)
        return True
    some = (parts[item, 0] - first, parts[item, 1] - first)
    return factor_outputs(
        lapack.potrf, lapack.potri, weight, start[first:], pairs, some, system.factors, out
    )


@kernel
def free(
    tpsv: int,
    system: NewtonSystem,
    weight: FloatArray,
    part: tuple[int, int],
    k: FloatArray,
    sums: FloatArray,
) -> None:
    """Overwrite the rows of a part by H^{-1} of them; A times that."""
    weighed, cores = system.weighed, system.cores
    first = weighed.bounds.size - 1
    sums[:] = 0.0
    if cores.outputs.shape[0] > 0:
        outputs = (cores.outputs[part[0], 0], cores.outputs[part[0], 1])
        solve_cores(cores.inverses, cores.spots, cores.cores, outputs, k[part[0]], sums)
    elif part[0] < first:
        begin, end = weighed.bounds[part[0]], weighed.bounds[part[0] + 1]
        for at in range(begin, end):
            k[part[0], at - begin] /= weight[at]
        add_rows(weighed.columns[begin:end], k[part[0]], sums)
    else:
        own = (part[0] - first, part[1] - first)
        solve_outputs(tpsv, system.factors, own, k[first:], sums)


@kernel
def follow(
    tpsv: int,
    system: NewtonSystem,
    weight: FloatArray,
    part: tuple[int, int],
    dmu: FloatArray,
    k: FloatArray,
) -> None:
    """Add H^{-1} A' dmu to the rows of a part."""
    weighed, cores = system.weighed, system.cores
    first = weighed.bounds.size - 1
    if cores.outputs.shape[0] > 0:
        outputs = (cores.outputs[part[0], 0], cores.outputs[part[0], 1])
        add_along_sums(cores.inverses, cores.spots, cores.cores, outputs, dmu, k[part[0]])
    elif part[0] < first:
        begin, end = weighed.bounds[part[0]], weighed.bounds[part[0] + 1]
        for at in range(begin, end):
            k[part[0], at - begin] += along(weighed.columns[at], dmu) / weight[at]
    else:
        add_solutions(tpsv, system.factors, (part[0] - first, part[1] - first), dmu, k[first:])


@kernel
def add_rows(rows: FloatArray, weight: FloatArray, sums: FloatArray) -> None:
    """Add weighted rows up."""
    for at in range(rows.shape[0]):
        for x in range(sums.size):
            sums[x] += weight[at] * rows[at, x]


@kernel
def along(row: FloatArray, other: FloatArray) -> float:
    """Their product, in four sums that the machine takes at once."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    whole = row.size - row.size % 4
    for x in range(0, whole, 4):
        one += row[x] * other[x]
        two += row[x + 1] * other[x + 1]
        three += row[x + 2] * other[x + 2]
        four += row[x + 3] * other[x + 3]
    total = (one + two) + (three + four)
    for x in range(whole, row.size):
        total += row[x] * other[x]
    return total
