"""l-privacy of a density from a bound on its steepness, and from samples.

If |grad ln F| <= s everywhere then |ln F(u) - ln F(v)| <= s |u - v|, so F keeps t * l as soon as
s d <= t l(d) at every distance d that the region has.  Samples refute from below.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from whereish.arrays import FloatArray
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.domains import Domain, FinitePlaces
from whereish.solvers.noise.pairs import NoiseRatio

__all__ = ["largest_lipschitz_ratio"]

_SIDE = 41  # sampled vectors along each axis
_DIRECTIONS, _LENGTHS = 24, 12
_ROUND = 2.0**-40


def largest_lipschitz_ratio(
    logs: Callable[[FloatArray], FloatArray],
    slope: float,
    reach: float,
    ell: Distinguishability,
    domain: Domain,
) -> NoiseRatio:
    """Enclose the least t such that F keeps t * l on the domain."""
    if isinstance(domain, FinitePlaces):
        apart = domain.differences
        levels = ell(np.hypot(apart[:, 0], apart[:, 1]))
        with np.errstate(divide="ignore"):
            upper = float((slope * np.hypot(apart[:, 0], apart[:, 1]) / levels).max(initial=0.0))
    else:
        promise = domain.within(ell)
        if math.isinf(promise.decay):
            return NoiseRatio(0.0, 0.0)
        upper = slope / promise.decay if promise.decay > 0 else math.inf
        apart = _differences(promise, reach)
        levels = promise(np.hypot(apart[:, 0], apart[:, 1]))
    lower, witness = _sampled(logs, reach, apart, levels)
    exact = slope == getattr(ell, "slopes", (None,))[0] and upper == 1.0
    return NoiseRatio(lower, upper if exact else upper * (1 + _ROUND), witness)


def _differences(promise: Distinguishability, reach: float) -> FloatArray:
    """Vectors of many directions, as long as l's bends and some lengths in between."""
    last = promise.starts[-1] or reach / 4
    bends = np.array([start for start in promise.starts if start > 0][:_LENGTHS])
    lengths = np.unique(np.concatenate([bends, last * np.arange(1, _LENGTHS + 1) / _LENGTHS]))
    angles = math.pi * np.arange(_DIRECTIONS) / _DIRECTIONS
    rays = np.column_stack([np.cos(angles), np.sin(angles)])
    found = (lengths[:, None, None] * rays[None]).reshape(-1, 2)
    # A length that rounds beyond a jump would be compared with the level after it.
    return np.asarray(found * (1 - 2.0**-50))


def _sampled(
    logs: Callable[[FloatArray], FloatArray], reach: float, apart: FloatArray, levels: FloatArray
) -> tuple[float, tuple[tuple[float, float], tuple[float, float]] | None]:
    axis = np.linspace(-reach / 2, reach / 2, _SIDE)
    u = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    here = logs(u)
    best, witness = 0.0, None
    for w, level in zip(apart, levels.tolist(), strict=True):
        if not math.isfinite(level):
            continue
        change = np.abs(here - logs(u - w))
        at = int(change.argmax())
        size = float(change[at]) - _ROUND * (1 + float(abs(here[at])))
        ratio = size / level if level > 0 else (math.inf if size > 0 else 0.0)
        if ratio > best:
            (a, b), (c, d) = u[at].tolist(), (u[at] - w).tolist()
            best, witness = ratio, ((a, b), (c, d))
    return best, witness
