"""Sums and exponentials of 64 numbers side by side, in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from whereish.compiled import kernel
from whereish.solvers.geodesic.lanes import LANES

__all__ = ["exponentials", "total"]


@kernel
def total(p: Any, q: Any) -> float:
    """The sum of 64 numbers, pairwise."""
    for k in range(8):
        q[k] = ((p[k] + p[k + 8]) + (p[k + 16] + p[k + 24])) + (
            (p[k + 32] + p[k + 40]) + (p[k + 48] + p[k + 56])
        )
    total = 0.0
    for k in range(8):
        total += np.float64(q[k])
    return total


@kernel
def exponentials(w: Any, halvings: int) -> None:
    """w <- exp(w·2^halvings), for |w| <= 1/4: Taylor to degree 6, then squared."""
    one = np.float32(1.0)
    for k in range(LANES):
        x = w[k]
        p = np.float32(1 / 24) + x * (np.float32(1 / 120) + x * np.float32(1 / 720))
        w[k] = one + x * (one + x * (np.float32(0.5) + x * (np.float32(1 / 6) + x * p)))
    for _ in range(halvings):
        for k in range(LANES):
            w[k] = w[k] * w[k]
