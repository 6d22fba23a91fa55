"""Squared errors and posterior means of a spline law, over places between its nodes.

Means are taken by the Gauss-Legendre rule with 2 x 2 points in each quarter of the square around a
node: quarters may have weights of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.splines.blocks import Block, around
from whereish.solvers.splines.weights import spline_weights

__all__ = ["Nodes", "posterior_moments", "squared_distances"]

_POINTS: FloatArray = np.array([-1.0, -1.0, 1.0, 1.0]) / 4 + np.array([-1, 1, -1, 1]) / 48**0.5
_QUARTER: IntArray = np.add.outer([0, 0, 2, 2], [0, 0, 1, 1]).ravel()
"""The quarter of each of the 16 points: south-west, south-east, north-west, north-east."""
_FAR = -18.0  # ln of masses so small that no mean shows them


@kernel
def _masses_at(A: Any, E: Any, here: int, cells: Any, v: Any, h: Any, w: Any) -> None:
    """Masses at a point around a node, with the weights v along its column, h along its row."""
    for k in range(LANES):
        w[k] = np.float32(0.0)
    for r in range(3):
        for s in range(3):
            cell, share = cells[3 * r + s], v[r] * h[s]
            for k in range(LANES):
                w[k] += share * (A[cell, k] - A[here, k])
    for k in range(LANES):
        w[k] = np.exp(w[k]) * E[here, k]


@kernel
def _points(block: Any, shape: Any, rule: Any, places: Any, w: Any) -> Any:
    """Node, number and place of the 16 points around each node; `w` has the masses at the latest.

    Nodes none of whose masses is worth a sum are left out.
    """
    A, E, top = block
    weights, offsets = rule
    cells = np.empty(9, np.int64)
    for here in range(len(places)):
        if top[here] < _FAR:
            continue
        around(here // shape[1], here % shape[1], shape, cells)
        for point in range(16):
            a, b = point // 4, point % 4
            _masses_at(A, E, here, cells, weights[a], weights[b], w)
            yield here, point, places[here, 0] + offsets[b, 0], places[here, 1] + offsets[a, 1]


@kernel
def _add_distances(block: Any, shape: Any, rule: Any, places: Any, to: Any, out: Any) -> None:
    w = np.empty(LANES, np.float32)
    for here, point, x, y in _points(block, shape, rule, places, w):
        mass, total = 0.0, 0.0
        for k in range(len(to)):
            mass += w[k]
            total += w[k] * ((to[k, 0] - x) ** 2 + (to[k, 1] - y) ** 2)
        out[here, point, 0] += mass
        out[here, point, 1] += total


@kernel
def _add_posteriors(block: Any, shape: Any, rule: Any, places: Any, scale: Any, out: Any) -> None:
    w = np.empty(LANES, np.float32)
    for here, point, x, y in _points(block, shape, rule, places, w):
        for k in range(len(out)):
            p = scale[here, point] * w[k]
            out[k, 0] += p
            out[k, 1] += p * x
            out[k, 2] += p * y


class Nodes(NamedTuple):
    """Where laws stand: rows and columns, height and width of a square, (nodes, 2) places."""

    shape: tuple[int, int]
    cell: tuple[float, float]
    places: FloatArray


def squared_distances(
    blocks: Iterator[tuple[IntArray, Block]], nodes: Nodes, reports: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(nodes, 4) E |reports[Y] - u|^2 over each quarter, and (nodes, 16) sums of masses.

    `reports` are where every report is told to be; quarters are in the order south-west,
    south-east, north-west, north-east.
    """
    shape, cell, places = nodes
    out = np.zeros((len(places), 16, 2))
    rule = _rule(cell)
    for index, block in blocks:
        _add_distances(block, shape, rule, places, np.ascontiguousarray(reports[index]), out)
    mass, total = out[..., 0], out[..., 1]
    errors = (total / mass).reshape(-1, 2, 2, 2, 2).mean(axis=(2, 4))
    return errors.reshape(-1, 4), mass


def posterior_moments(
    blocks: Iterator[tuple[IntArray, Block]],
    nodes: Nodes,
    prior: FloatArray,
    masses: FloatArray,
    count: int,
) -> FloatArray:
    """(count, 3) weight and moments of the secrets' places given each report, up to a factor.

    `prior` is over the quarters; `masses` are the sums that :func:`squared_distances` found.
    """
    shape, cell, places = nodes
    rule = _rule(cell)
    scale = prior[:, _QUARTER] / (4.0 * masses)
    out = np.zeros((count, 3))
    for index, block in blocks:
        part = np.zeros((len(index), 3))
        _add_posteriors(block, shape, rule, places, scale, part)
        out[index] = part
    return out


def _rule(cell: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """Spline weights at the four points of an axis, and these points in metres (x, y)."""
    height, width = cell
    return spline_weights(_POINTS), np.column_stack([_POINTS * width, _POINTS * height])
