"""How well a matrix keeps a metric: the largest log-ratio per distance, enclosed.

For a matrix k (row x, column z) and distances d the least t such that

    k_xz <= exp(t d(x, x')) k_x'z   for all x, x', z

is t = max (ln k_xz - ln k_x'z) / d(x, x').  Doubles find the candidates; each
candidate is then enclosed in ball arithmetic, and all other triples are covered by
the doubles' error bound, so that `upper` is a true upper bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.errors import InvalidInput
from whereish.threads import in_ranges

__all__ = ["LargestRatio", "largest_ratio", "pair_leakage", "pairwise_differences"]

Weights: TypeAlias = NDArray[Any]  # doubles or integers
_LOG_ERROR = 2.0**-50  # times 1 + |ln k|: conversion to double, logarithm and subtraction
_MOST_CANDIDATES = 4096


@dataclass(frozen=True)
class LargestRatio:
    """The least factor lies in [lower, upper]; `triple` = (x, x', z) attains it."""

    lower: float
    upper: float
    triple: tuple[int, int, int] | None


def largest_ratio(
    matrix: Weights,
    distances: FloatArray,
    *,
    distance_error: float | FloatArray = 0.0,
    row_error: float = 0.0,
) -> LargestRatio:
    """Enclose the least t such that `matrix` keeps t * distances.

    Parameters
    ----------
    matrix
        Nonnegative numbers, doubles or integers, taken as exact.  Rows need not sum to 1
        but must have one common sum for the answer to speak of probabilities.
    distances
        Nonnegative, infinity allowed, taken as exact up to the relative `distance_error`.
    row_error
        How far the logarithms of two rows' sums may be apart.
    """
    k, d = np.asarray(matrix), np.asarray(distances, dtype=np.float64)
    if k.ndim != 2 or d.shape != (len(k), len(k)):
        raise InvalidInput(
            f"the matrix must have one row per secret and distances be square; got {k.shape}"
            f" and {d.shape}"
        )
    if not np.isfinite(k.astype(float)).all() or (k < 0).any():
        raise InvalidInput("the matrix must have finite entries >= 0")
    if np.isnan(d).any() or (d < 0).any():
        raise InvalidInput("distances must be numbers >= 0")
    impossible = _one_sided_zero(k, d)
    if impossible is not None:
        return LargestRatio(math.inf, math.inf, impossible)
    with np.errstate(divide="ignore"):
        logs = np.log(k.astype(np.float64))
    logs[k == 0] = 0.0  # whole zero columns (within finite distances) never differ
    slack = 2 * _LOG_ERROR * (1 + float(np.abs(logs).max(initial=0.0)))
    differences, columns = pairwise_differences(np.ascontiguousarray(logs), d)
    apart = (d > 0) & np.isfinite(d)
    for x, y in np.argwhere((d == 0) & ~np.eye(len(k), dtype=bool)):
        if (k[x] != k[y]).any():
            z = int(np.argmax(k[x] != k[y]))
            return LargestRatio(math.inf, math.inf, (int(x), int(y), z))
    if not apart.any():
        return LargestRatio(0.0, 0.0, None)
    error = np.broadcast_to(np.asarray(distance_error, dtype=np.float64), d.shape)
    upper = np.zeros_like(d)
    room = np.maximum(1 - error[apart] - 2.0**-50, 0.0)
    with np.errstate(divide="ignore"):
        upper[apart] = (differences[apart] + slack) / (d[apart] * room)
    found = _refined(k, d, upper, columns, error)
    if row_error == 0.0:
        return found
    nearest = float((d[apart] * room).min())
    widened = row_error / nearest if nearest > 0 else math.inf
    return LargestRatio(max(found.lower - widened, 0.0), found.upper + widened, found.triple)


def pair_leakage(matrix: Weights) -> FloatArray:
    """The least symmetric distances that `matrix` keeps, rounded up; infinite across supports.

    Entry (x, x') is max_z |ln k_xz - ln k_x'z| over the reports of either.
    """
    k = np.asarray(matrix)
    zero = k == 0
    with np.errstate(divide="ignore"):
        logs = np.where(zero, 0.0, np.log(k.astype(np.float64)))
    slack = 2 * _LOG_ERROR * (1 + float(np.abs(logs).max(initial=0.0)))
    support = (~zero).astype(np.float64)
    apart = support @ zero.astype(np.float64).T > 0
    differences, _ = pairwise_differences(
        np.ascontiguousarray(logs), np.where(apart | apart.T, np.inf, 1.0)
    )
    leakage = np.where(apart | apart.T, np.inf, np.maximum(differences, differences.T))
    leakage = leakage * (1 + 2.0**-40) + 4 * slack
    _, group = np.unique(k, axis=0, return_inverse=True)
    leakage[group.ravel()[:, None] == group.ravel()] = 0.0
    np.fill_diagonal(leakage, 0.0)
    return np.asarray(leakage)


def _one_sided_zero(k: Weights, d: FloatArray) -> tuple[int, int, int] | None:
    """A report that one secret can produce and another, at finite distance, cannot."""
    zero = k == 0
    for z in np.flatnonzero(zero.any(axis=0) & ~zero.all(axis=0)):
        possible, missing = np.flatnonzero(~zero[:, z]), np.flatnonzero(zero[:, z])
        finite = np.argwhere(np.isfinite(d[np.ix_(possible, missing)]))
        if len(finite):
            return int(possible[finite[0][0]]), int(missing[finite[0][1]]), int(z)
    return None


def pairwise_differences(logs: FloatArray, d: FloatArray) -> tuple[FloatArray, IntArray]:
    """For each ordered pair the largest ln k_xz - ln k_x'z and its z."""
    n, m = logs.shape
    largest, where = np.zeros((n, n)), np.zeros((n, n), np.int64)

    def write(rows: tuple[int, int]) -> None:
        write_differences(logs, d, rows, largest, where)

    in_ranges(write, n, work=0.6 * n * n * m)
    return largest, where


@kernel
def write_differences(
    logs: FloatArray, d: FloatArray, rows: tuple[int, int], largest: FloatArray, where: IntArray
) -> None:
    """Write what `pairwise_differences` finds for a range of rows."""
    n, m = logs.shape
    for x in range(rows[0], rows[1]):
        for y in range(n):
            if x == y or d[x, y] == np.inf:
                continue
            best, at = 0.0, 0
            for z in range(m):
                difference = logs[x, z] - logs[y, z]
                if difference > best:
                    best, at = difference, z
            largest[x, y], where[x, y] = best, at


def _refined(
    k: Weights,
    d: FloatArray,
    upper: FloatArray,
    columns: IntArray,
    distance_error: FloatArray,
) -> LargestRatio:
    """Enclose the best candidates in balls; the others keep the doubles' bound."""
    order = np.argsort(upper, axis=None)[::-1]
    lower, worst, bound = 0.0, None, 0.0
    for rank, flat in enumerate(order):
        x, y = (int(i) for i in np.unravel_index(flat, upper.shape))
        if upper[x, y] <= lower or rank >= _MOST_CANDIDATES:
            bound = max(bound, float(upper[x, y]))
            break
        low, high = _enclosed(k, d[x, y], x, y, int(columns[x, y]), float(distance_error[x, y]))
        # Another column may lie within the doubles' error of this one: keep the wider bound.
        tight = _sole_maximum(k, x, y, int(columns[x, y]))
        bound = max(bound, high if tight else float(upper[x, y]))
        if low > lower:
            lower, worst = low, (x, y, int(columns[x, y]))
    return LargestRatio(lower, max(bound, lower), worst)


def _sole_maximum(k: Weights, x: int, y: int, z: int) -> bool:
    """Whether no other column comes close to z in ln k_xz - ln k_yz."""
    positive = k[x] > 0
    logs = np.log(k[x][positive].astype(float)) - np.log(k[y][positive].astype(float))
    best = math.log(k[x, z]) - math.log(k[y, z])
    return int((logs >= best - 1e-9 * (1 + abs(best))).sum()) == 1


def _enclosed(
    k: Weights,
    distance: float,
    x: int,
    y: int,
    z: int,
    distance_error: float,
) -> tuple[float, float]:
    """Outward-rounded doubles around (ln k_xz - ln k_yz) / d."""
    from flint import arb

    top, bottom = k[x, z].item(), k[y, z].item()
    if top <= bottom:
        return 0.0, 0.0
    length = arb(float(distance), float(distance) * distance_error)
    ball = (arb(top).log() - arb(bottom).log()) / length
    low, high = float(ball.lower()), float(ball.upper())
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
