"""Probability that circular noise falls into a polygon, edge by edge; rectangles of a grid.

For noise of survival function S(r) = P(|v| > r) and a uniform direction, the mass of
a polygon with the secret at the origin is a sum over its edges, counter-clockwise:

    mass = inside - (1 / 2 pi) sum over edges of  ∫ S(rho(theta)) d theta,

where rho(theta) is the distance to the edge and `inside` the share of all directions
in which the polygon surrounds the origin (1 within, 1/2 on an edge, 0 outside).

On an edge at signed distance h from the origin, with s along it, s = h sinh(u) turns
the integral into ∫ S(h cosh u) / cosh u du: smooth, also for edges that nearly touch
the origin.
Survival instead of distribution function keeps relative accuracy in the tail.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from whereish.arrays import FloatArray

__all__ = ["NODES", "WEIGHTS", "Survival", "edge_integrals", "grid_masses"]

Survival = Callable[[FloatArray], FloatArray]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def edge_integrals(
    survival: Survival,
    h: FloatArray,
    start: FloatArray,
    end: FloatArray,
) -> FloatArray:
    """∫ S(rho) d theta along edges at signed distance h, from `start` to `end` along them."""
    h, start, end = np.broadcast_arrays(h, start, end)
    through = h == 0  # seen from the origin, such an edge covers no angle
    distance = np.where(through, 1.0, np.abs(h))
    low, high = np.arcsinh(start / distance), np.arcsinh(end / distance)
    half, middle = (high - low) / 2, (high + low) / 2
    total = np.zeros(h.shape)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        stretched = np.cosh(middle + half * node)
        total += weight * survival(distance * stretched) / stretched
    return np.where(through, 0.0, np.sign(h) * half * total)


def grid_masses(survival: Survival, x_edges: FloatArray, y_edges: FloatArray) -> FloatArray:
    """Mass of every rectangle between consecutive edges; the secret is at the origin.

    Entry (i, j) belongs to [x_i, x_{i+1}] x [y_j, y_{j+1}].
    """
    x, y = np.asarray(x_edges, float), np.asarray(y_edges, float)
    upright = edge_integrals(survival, x[:, None], y[None, :-1], y[None, 1:])
    level = edge_integrals(survival, y[None, :], x[:-1, None], x[1:, None])
    around = (upright[1:] - upright[:-1]) + (level[:, 1:] - level[:, :-1])
    inside = np.outer(_surrounds(x), _surrounds(y))
    return np.asarray(inside - around / (2 * np.pi))


def _surrounds(edges: FloatArray) -> FloatArray:
    """1 where an interval holds zero, 1/2 where it ends there."""
    low, high = np.sign(edges[:-1]), np.sign(edges[1:])
    return np.where(low <= 0, (high - low) / 2, 0.0) * (high >= 0)
