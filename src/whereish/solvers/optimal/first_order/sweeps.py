"""The compiled sweeps of the first-order method over rows times outputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.optimal.barrier.rows import Pairs

__all__ = [
    "Singles",
    "Weighted",
    "normal_matrix",
    "pull_absolute",
    "pull_multipliers",
    "sweep",
    "take_costs",
]

Singles = NDArray[np.float32]


class Weighted(NamedTuple):
    """The rows weight * k[target] >= factor * k[source], as the kernels read them."""

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    weight: Singles
    factor: Singles


@kernel
def normal_matrix(rows: Weighted, n: int) -> FloatArray:
    """G' G."""
    out = np.zeros((n, n))
    for row in range(rows.source.size):
        i, j = rows.source[row], rows.target[row]
        w, a = np.float64(rows.weight[row]), np.float64(rows.factor[row])
        out[j, j] += w * w
        out[i, i] += a * a
        out[i, j] -= w * a
        out[j, i] -= w * a
    return out


@kernel
def sweep(
    x: Singles, shift: Singles, v: Singles, rows: Weighted, relaxation: np.float32, pulled: Singles
) -> None:
    """X <- X + shift, V <- relaxed G X - U, then pulled <- G' (S + U) = G' |V|."""
    zero, one = np.float32(0.0), np.float32(1.0)
    pulled[:] = zero
    for place in range(x.shape[0]):
        for z in range(x.shape[1]):
            x[place, z] += shift[place]
    for row in range(rows.source.size):
        i, j, w, a = rows.source[row], rows.target[row], rows.weight[row], rows.factor[row]
        for z in range(x.shape[1]):
            old = v[row, z]
            s = old if old > zero else zero
            # v - s = -U: the negative part stays.
            new = relaxation * (w * x[j, z] - a * x[i, z]) + (one - relaxation) * s + (old - s)
            v[row, z] = new
            size = abs(new)
            pulled[j, z] += w * size
            pulled[i, z] -= a * size


@kernel
def take_costs(pulled: Singles, cost: Singles, proximal: np.float32, x: Singles) -> None:
    """pulled <- pulled - C + proximal X."""
    for place in range(x.shape[0]):
        for z in range(x.shape[1]):
            pulled[place, z] = (pulled[place, z] - cost[place, z]) + proximal * x[place, z]


@kernel
def pull_absolute(v: Singles, rows: Weighted, pulled: Singles) -> None:
    """Write G' |V|."""
    pulled[:] = np.float32(0.0)
    for row in range(rows.source.size):
        i, j, w, a = rows.source[row], rows.target[row], rows.weight[row], rows.factor[row]
        for z in range(v.shape[1]):
            size = abs(v[row, z])
            pulled[j, z] += w * size
            pulled[i, z] -= a * size


@kernel
def pull_multipliers(v: Singles, weight: Singles, pairs: Pairs) -> FloatArray:
    """G' y of the true rows in double precision, with y = weight * max(-V, 0) >= 0."""
    out = np.zeros((pairs.target.max() + 1, v.shape[1]))
    for row in range(pairs.source.size):
        i, j, w, a = pairs.source[row], pairs.target[row], weight[row], pairs.factor[row]
        for z in range(v.shape[1]):
            if v[row, z] < 0:
                y = -np.float64(w) * v[row, z]
                out[j, z] += y
                out[i, z] -= a * y
    return out
