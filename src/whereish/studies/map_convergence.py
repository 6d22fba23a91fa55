"""The discrete eikonal mechanism becomes the continuous one as its cells shrink.

On constant levels the continuous mechanism is planar Laplace.  The law of the middle cell
is set beside the exact probabilities of the cells under planar Laplace noise, in total
variation.  With a fixed stencil the discrete metric tends to a norm with a polygon for
its circle, and the law to the Laplace law of that norm, c·e^{-|v|_stencil}; its distance
from planar Laplace is what remains, and it shrinks with more neighbours.

Geodesic distances are compared with closed forms: eps·|v| on constant levels, and on levels
linear in x the rays of Snell's law with eps·sin(angle) = p,

    y = (p/b)·(arcosh(e/p) - arcosh(a/p)),    e = a + b·x,
    T = (e·sqrt(e^2 - p^2) + p^2·arcosh(e/p)) / (2b), from a to e.

Fast marching tends to them; the stencil's metric is at most its computed factor times them,
and at least 1 times but for the rounding down to quanta (which, with the reserve of the
certificate, is also what the finest laws lack).  Run with
``python -m whereish.studies.map_convergence [figure.png]``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from whereish.arrays import FloatArray
from whereish.privacy.maps.stencil import STENCILS, edge_integrals, stencil_factor
from whereish.solvers.cells.mass import grid_masses
from whereish.solvers.eikonal.cells import law_on_cells
from whereish.solvers.geodesic.fast_marching import fast_marching
from whereish.solvers.geodesic.graph_metric import GraphMetric
from whereish.studies.figures import figure, run_program, save, say

__all__ = [
    "DistanceError",
    "LawError",
    "Levels",
    "distance_error",
    "distance_table",
    "law_error",
    "law_table",
    "orders",
    "stencil_limit",
]

Levels = Literal["constant", "linear"]

DOMAIN = 16.0
"""Side of the square of the laws, at level 1: e^-8 of the noise's tail is outside."""

LINEAR = (0.4, 0.03)
"""a and b of the levels a + b·x, on a square of side `LENGTH`."""

CONSTANT = 0.7
LENGTH = 20.0
_PARTS = 12  # per side of a cell, for the masses of the polygon's law
_HALVINGS = 60


@dataclass(frozen=True)
class LawError:
    """Total variation of the middle cell's law from planar Laplace and from its own limit."""

    side: float
    to_laplace: float
    to_limit: float


@dataclass(frozen=True)
class DistanceError:
    """Largest error of fast marching, in nats; least and largest ratio of the stencil's metric."""

    side: float
    marching: float
    least: float
    largest: float


def law_error(cells: int, *, neighbours: int = 32) -> LawError:
    """The law on `cells` x `cells` (an odd number) of the square, constant level 1."""
    side = DOMAIN / cells
    built = law_on_cells(np.ones((cells, cells)), (side, side), neighbours=neighbours)
    middle = built.secrets[[cells // 2 * cells + cells // 2]]
    law = built.law
    masses = (law.weights * law.table[law.metric.distances(middle)[0]]).astype(np.float64)
    found = (masses / masses.sum()).reshape(law.metric.shape)
    size = law.metric.shape[0]
    edges: FloatArray = (np.arange(size + 1.0) - size / 2) * side
    laplace = grid_masses(lambda r: (1 + r) * np.exp(-r), edges, edges)
    limit = _polygon_masses(size, side, neighbours)
    return LawError(side, _variation(found, laplace), _variation(found, limit))


def stencil_limit(neighbours: int) -> float:
    """Total variation between planar Laplace and the Laplace law of the stencil's norm.

    In a direction of norm n per length the two densities are e^{-r}/(2 pi) and
    c·e^{-n·r}; c makes the second one's mass, the mean of 2 pi·c/n^2 over directions, 1.
    """
    angles = (np.arange(20_000) + 0.5) * (2 * math.pi / 20_000)
    norm = _stencil_norm(np.cos(angles), np.sin(angles), neighbours)
    constant = 1 / (2 * math.pi * np.mean(norm**-2.0))
    radii = (np.arange(4_000) + 0.5) * (24 / 4_000)
    total = 0.0
    for n in np.unique(np.round(norm, 6)):
        share = np.mean(np.abs(norm - n) <= 5e-7)
        gap = np.abs(np.exp(-radii) / (2 * math.pi) - constant * np.exp(-n * radii))
        total += share * float((gap * radii).sum())
    return 0.5 * total * 2 * math.pi * (24 / 4_000)


def distance_error(cells: int, levels: Levels, *, neighbours: int = 32) -> DistanceError:
    """Distances from a corner of a square of `cells` x `cells` centres to all that are known."""
    side = LENGTH / (cells - 1)
    x = np.arange(cells) * side
    if levels == "constant":
        eps = np.full((cells, cells), CONSTANT)
        exact = CONSTANT * np.hypot(*np.meshgrid(x, x))
    else:
        eps = np.tile(LINEAR[0] + LINEAR[1] * x, (cells, 1))
        exact = _linear_distances(*np.meshgrid(x, x))
    marched = fast_marching(eps, (0, 0), side, side)
    metric = GraphMetric.from_prices(edge_integrals(eps, (side, side), neighbours=neighbours))
    graph = metric.distances(np.array([0]))[0].reshape(cells, cells) * metric.quantum
    known = np.isfinite(exact) & (exact > 0)
    ratio = graph[known] / exact[known]
    error = float(np.abs(marched[known] - exact[known]).max())
    return DistanceError(side, error, float(ratio.min()), float(ratio.max()))


def orders(sides: Sequence[float], errors: Sequence[float]) -> FloatArray:
    """The observed order between consecutive sides: ln of errors over ln of sides."""
    return np.asarray(np.diff(np.log(errors)) / np.diff(np.log(sides)))


def _linear_distances(x: FloatArray, y: FloatArray) -> FloatArray:
    """Distances from (0, 0) on levels linear in x; NaN where no ray runs to the right only."""
    a, b = LINEAR
    e = a + b * x
    low, high = np.zeros_like(x), np.full_like(x, a)
    for _ in range(_HALVINGS):
        p = (low + high) / 2
        reach = p / b * (np.arccosh(e / p) - np.arccosh(a / p))
        low, high = np.where(reach <= y, p, low), np.where(reach <= y, high, p)
    p = np.maximum((low + high) / 2, 1e-12)

    def primitive(e: FloatArray) -> FloatArray:
        root = np.sqrt(np.maximum(e * e - p * p, 0.0))
        return np.asarray((e * root + p * p * np.arccosh(np.maximum(e / p, 1.0))) / (2 * b))

    farthest = a / b * np.arccosh(e / a)
    return np.where(y < farthest, primitive(e) - primitive(np.full_like(e, a)), np.nan)


def _stencil_norm(x: FloatArray, y: FloatArray, neighbours: int) -> FloatArray:
    """The norm of a vector as the shortest sum of steps: the largest of the cones' slopes."""
    steps = [(j, i) for i, j in STENCILS[neighbours]]
    steps += [(-j, -i) for j, i in steps]
    steps.sort(key=lambda step: math.atan2(step[1], step[0]))
    norm = np.zeros(np.broadcast_shapes(np.shape(x), np.shape(y)))
    for u, v in zip(steps, [*steps[1:], steps[0]], strict=True):
        gradient = np.linalg.solve(np.array([u, v], float), [math.hypot(*u), math.hypot(*v)])
        norm = np.maximum(norm, gradient[0] * x + gradient[1] * y)
    return norm


def _polygon_masses(size: int, side: float, neighbours: int) -> FloatArray:
    """Masses of the Laplace law of the stencil's norm on the cells around the middle one."""
    angles = (np.arange(20_000) + 0.5) * (2 * math.pi / 20_000)
    norm = _stencil_norm(np.cos(angles), np.sin(angles), neighbours)
    constant = 1 / (2 * math.pi * np.mean(norm**-2.0))
    fine = (np.arange(size * _PARTS) + 0.5) * side / _PARTS - size * side / 2
    out = np.empty((size, size))
    for row in range(size):
        y = fine[row * _PARTS : (row + 1) * _PARTS]
        density = constant * np.exp(-_stencil_norm(fine[None], y[:, None], neighbours))
        out[row] = density.sum(axis=0).reshape(size, _PARTS).sum(axis=1)
    return out * (side / _PARTS) ** 2


def _variation(found: FloatArray, exact: FloatArray) -> float:
    """Total variation; what `exact` has outside the grid counts, too."""
    return float(0.5 * (np.abs(found - exact).sum() + max(0.0, 1.0 - exact.sum())))


def law_table(neighbours: int, sizes: Sequence[int] = (17, 33, 65, 129)) -> list[LawError]:
    """Print the errors of the law as the cells shrink."""
    say(f"law at constant level, {neighbours} neighbours: total variation")
    say(f"{'h':>8} {'to Laplace':>11} {'to its limit':>13} {'order':>6}")
    rows = [law_error(cells, neighbours=neighbours) for cells in sizes]
    observed = orders([row.side for row in rows], [row.to_limit for row in rows])
    for row, order in zip(rows, ["", *(f"{order:.2f}" for order in observed)], strict=True):
        say(f"{row.side:8.4f} {row.to_laplace:11.5f} {row.to_limit:13.5f} {order:>6}")
    say(f"{'0':>8} {stencil_limit(neighbours):11.5f} {0:13.5f}\n")
    return rows


def distance_table(
    levels: Levels, sizes: Sequence[int] = (41, 81, 161, 321), *, neighbours: int = 32
) -> list[DistanceError]:
    """Print the errors of the distances as the cells shrink."""
    say(f"geodesics, {levels} levels: fast marching, and {neighbours} neighbours")
    say(f"{'h':>8} {'marching':>11} {'order':>6} {'stencil/exact':>20}")
    rows = [distance_error(cells, levels, neighbours=neighbours) for cells in sizes]
    observed = orders([row.side for row in rows], [row.marching for row in rows])
    for row, order in zip(rows, ["", *(f"{order:.2f}" for order in observed)], strict=True):
        span = f"{row.least:.5f} to {row.largest:.5f}"
        say(f"{row.side:8.4f} {row.marching:11.2e} {order:>6} {span:>20}")
    say(f"  computed factor of the stencil: {stencil_factor(neighbours, (1.0, 1.0)):.5f}\n")
    return rows


def main(path: str = "map_convergence.png") -> None:
    """Print the errors and orders, and draw them."""
    axes = figure("side of a cell", "error: total variation, or nats")
    for neighbours, colour in ((16, "C1"), (32, "C0")):
        laws = law_table(neighbours)
        sides = [row.side for row in laws]
        to_laplace, to_limit = [row.to_laplace for row in laws], [row.to_limit for row in laws]
        axes.loglog(sides, to_laplace, "o-", color=colour, label=f"law, {neighbours} neighbours")
        axes.loglog(sides, to_limit, "o--", color=colour, label="  to the stencil's own limit")
    for levels, style in zip(get_args(Levels), ("s-", "^-"), strict=True):
        found = distance_table(levels)
        sides, errors = [row.side for row in found], [row.marching for row in found]
        axes.loglog(sides, errors, style, color="C2", label=f"fast marching, {levels} levels")
    axes.legend(frameon=False, fontsize=8)
    save(axes, path)


if __name__ == "__main__":
    run_program(main)
