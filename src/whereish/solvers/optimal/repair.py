"""From nearly private columns to a channel that is private on every row.

*Closure.*  The least d-private majorant of a column k is
k_x <- max_x' e^{-d(x,x')} k_x', by the triangle inequality.

*Completion.*  Closed columns have row sums s_x that differ from 1.  With a
factor theta the deficit u = 1 - theta * s is itself a d-private column as long as

    theta <= (1 - a_xx') / (s_x' - a_xx' s_x)   wherever the denominator is positive,

and then theta * K plus the column u is private and stochastic.  Where
M = e^{-d} has M^{-1} u >= 0 the deficit is split into bumps h_z e^{-d(., z)}, which
the Bayesian remap can send to different outputs.

*A spare channel.*  A deficit in one column costs as much as no information does, which on steep
metrics is thousands of times the optimum.  Let B be a channel that keeps only (1 - b) d.  Then u_x
B_xz is private as soon as u keeps b d, which asks of theta the same with a^b in place of a.  That
theta is farther from 1, but what is missing costs little more than the optimum does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.threads import in_ranges, one_blas_thread

__all__ = ["Spare", "close_upward", "complete", "tight_matrix"]

_INSIDE = 1.0 - 1e-13  # theta stays inside its bound by more than rounding


@dataclass(frozen=True)
class Spare:
    """A channel that leaves a part b of every distance, and e^{-b d}.

    Attributes
    ----------
    matrix : (n, outputs) array
        Keeps (1 - b) d.
    closeness : (n, n) array
        e^{-b d}.
    """

    matrix: FloatArray
    closeness: FloatArray


def close_upward(columns: FloatArray, closeness: FloatArray) -> FloatArray:
    """The least private majorant of every column; `columns` is (n, outputs)."""
    n, outputs = columns.shape
    closed = np.zeros((n, outputs))

    def close(rows: tuple[int, int]) -> None:
        close_rows(columns, closeness, rows, closed)

    in_ranges(close, n, work=0.2 * n * n * outputs)
    return closed


@kernel
def close_rows(
    columns: FloatArray, closeness: FloatArray, rows: tuple[int, int], closed: FloatArray
) -> None:
    """Write a range of rows of the majorants."""
    n, outputs = columns.shape
    for x in range(rows[0], rows[1]):
        most = np.zeros(outputs)  # of nobody else's memory, so that machines take several at once
        for other in range(n):
            a = closeness[x, other]
            for z in range(outputs):
                candidate = a * columns[other, z]
                most[z] = candidate if candidate > most[z] else most[z]
        closed[x] = most


def complete(
    programme: ChannelProgramme, matrix: FloatArray, spare: Spare | None = None
) -> FloatArray:
    """A private channel near a nonnegative `matrix`, (n, outputs), after the Bayesian remap.

    What the sums lack goes to one output, or to a `spare` channel where that costs less.
    """
    used = np.flatnonzero(matrix.max(axis=0) > 0)
    closed = close_upward(np.ascontiguousarray(matrix[:, used]), programme.closeness)
    sums = closed.sum(axis=1)
    # Every column goes where it is best, what is completed and what completes it on their own.
    closed = programme.merged(closed)
    theta = _largest_share(sums, programme.closeness)
    deficit = np.maximum(1.0 - theta * sums, 0.0)
    found = theta * closed
    found[:, int((programme.cost @ deficit).argmin())] += deficit
    if spare is None:
        return found
    theta = _largest_share(sums, spare.closeness)
    filled = programme.merged(np.maximum(1.0 - theta * sums, 0.0)[:, None] * spare.matrix)
    filled += theta * closed
    return min(found, filled, key=programme.value)


def _largest_share(sums: FloatArray, closeness: FloatArray) -> float:
    theta = min(1.0 / float(sums.max()), largest_share(sums, closeness))
    return theta * _INSIDE


@kernel
def largest_share(sums: FloatArray, closeness: FloatArray) -> float:
    """min (1 - a_xx') / (s_x' - a_xx' s_x) over pairs where both are positive."""
    least = np.inf
    for x in range(sums.size):
        for other in range(sums.size):
            a = closeness[x, other]
            denominator = sums[other] - a * sums[x]
            if denominator > 0.0 and 1.0 - a > 0.0:
                least = min(least, (1.0 - a) / denominator)
    return least


@one_blas_thread()
def tight_matrix(closeness: FloatArray) -> FloatArray | None:
    """h_z e^{-d(x,z)} with h = M^{-1} 1, which makes every row tight; None unless h >= 0.

    Chatzikokolakis, Andrés, Bordenabe and Palamidessi (PETS 2013) call such
    constraint-tight mechanisms; remapped, they are within a few percent of optimal.
    """
    try:
        h = np.linalg.solve(closeness, np.ones(closeness.shape[0]))
    except np.linalg.LinAlgError:
        return None
    if not h.min() >= 0:
        return None
    return closeness * h
