"""Integrals over lattice squares and triangles: masses, and expected losses of smooth losses.

Tensor Gauss-Legendre on every piece.  A loss of |v| is smooth but at the vector 0, so pieces that
touch it are written as v = s * (edge point), which makes |v| smooth again (Duffy).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from whereish.arrays import FloatArray
from whereish.solvers.noise.lattice import LatticeLogs

__all__ = ["cells_integral", "triangles_integral"]

_ORDER = 14
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_ORDER)
_UNIT, _SHARE = (_NODES + 1) / 2, _WEIGHTS / 2
_FEW = np.polynomial.legendre.leggauss(8)
_FEW_UNIT, _FEW_SHARE = (_FEW[0] + 1) / 2, _FEW[1] / 2

Loss = Callable[[FloatArray], FloatArray]


def cells_integral(table: LatticeLogs, loss: Loss) -> float:
    """∫ loss(|v|) F(v) dv for constant cells, v in steps, in the table's scale."""
    density = np.exp(table.padded(table.rings))
    a, b = (size // 2 for size in density.shape)
    x, y = np.arange(-a, a + 1)[:, None], np.arange(-b, b + 1)[None]
    moments = np.zeros(density.shape)
    for s, ws in zip(_NODES / 2, _SHARE, strict=True):
        for t, wt in zip(_NODES / 2, _SHARE, strict=True):
            moments += ws * wt * loss(np.hypot(x + s, y + t))
    # The middle cell: eight triangles (0, 1/2) x slopes up to 1, alike.
    edge = np.hypot(0.5, 0.5 * _UNIT)
    radii = _UNIT[:, None] * edge[None]
    weights = _SHARE[:, None] * _UNIT[:, None] * _SHARE[None] * 0.25
    moments[a, b] = 8 * float((weights * loss(radii)).sum())
    return float((density * moments).sum())


def triangles_integral(table: LatticeLogs, loss: Loss | None = None) -> float:
    """∫ loss(|v|) F(v) dv for the linear reading, v in steps, in the table's scale.

    Without a loss, the mass.
    """
    g = table.padded(table.rings)
    a, b = (size // 2 for size in g.shape)
    i = np.arange(-a, a)[:, None] + 0.0
    j = np.arange(-b, b)[None] + 0.0
    low, high = g[:-1, :-1], g[1:, 1:]
    total = 0.0
    for middle, step in ((g[1:, :-1], (1.0, 0.0)), (g[:-1, 1:], (0.0, 1.0))):
        # Every triangle from its corner nearest to 0, so that |v| is smooth in s.
        corners = [(low, (0.0, 0.0)), (middle, step), (high, (1.0, 1.0))]
        if loss is None:
            total += float(_triangles(i, j, corners[0], corners[1], corners[2], None).sum())
            continue
        sizes = np.stack([np.hypot(i + dx, j + dy) for _, (dx, dy) in corners])
        first = sizes.argmin(axis=0)
        for k in range(3):
            apex, one, two = (corners[(k + n) % 3] for n in range(3))
            part = _triangles(i, j, apex, one, two, loss)
            total += float(part[first == k].sum())
    return total


_Corner = tuple[FloatArray, tuple[float, float]]


def _triangles(
    i: FloatArray, j: FloatArray, apex: _Corner, one: _Corner, two: _Corner, loss: Loss | None
) -> FloatArray:
    values = np.zeros(apex[0].shape)
    nodes, shares = (_UNIT, _SHARE) if loss is not None else (_FEW_UNIT, _FEW_SHARE)
    for s, ws in zip(nodes, shares, strict=True):
        for t, wt in zip(nodes, shares, strict=True):
            weights = (1 - s, s * (1 - t), s * t)
            log, x, y = 0.0, i, j
            for (g, (dx, dy)), w in zip((apex, one, two), weights, strict=True):
                log, x, y = log + w * g, x + w * dx, y + w * dy
            worth = 1.0 if loss is None else loss(np.hypot(x, y))
            values += ws * wt * s * np.exp(log) * worth
    return values
