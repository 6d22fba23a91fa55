"""Sixty-four searches side by side: the vector operations of the geodesic sweeps.

A batch keeps, for every cell, the distances from 64 sources next to each other
(64 lanes of 16 bits).  numba has no vector type, and its automatic vectoriser
spends ten times the arithmetic on bookkeeping, so the innermost operations
are written as vectors of LLVM's intermediate language
(:mod:`whereish.solvers.geodesic.lane_code`).

* :func:`relax`: lanewise  D[c] <- min(D[c], D[c + s·off_k] + w_k)  over k, with
  saturating addition, so that LIMIT = 2^16 - 1 is "at least the horizon";
* :func:`accumulate`: lanewise  acc_r <- acc_r + v_r[c]·2^(-rate·D[c])  in single
  precision (relative error below 2e-6, by reduction to [-1/2, 1/2] and a
  polynomial of degree 6);
* :func:`weighed`: the sum over the lanes of  s·2^(-rate·D[c]), likewise.
"""

from __future__ import annotations

from whereish.compiled import lazy_intrinsic

__all__ = ["LANES", "LIMIT", "accumulate", "relax", "weighed"]

LANES = 64
"""Sources per batch."""

LIMIT = 65535
"""The largest distance, in quanta: everything farther saturates here."""

relax = lazy_intrinsic("whereish.solvers.geodesic.lane_code", "relax")
accumulate = lazy_intrinsic("whereish.solvers.geodesic.lane_code", "accumulate")
weighed = lazy_intrinsic("whereish.solvers.geodesic.lane_code", "weighed")
