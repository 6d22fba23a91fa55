"""What keeps a map's squared error from settling: quantum, domain, reading of levels, frame.

``python -m benchmarks.map_suite settling [60 100 200] [name ...]`` prints the exact optimum on
lines (:mod:`whereish.studies.line_optimum`), then for each city how far the error of the
exponential mechanism at eps/2 changes from one size to the next,

* as built: prices rounded down to multiples of 22/65535 nats, half of one lost by each edge in
  the mean, so relatively more the finer the cells are;
* with prices in floating point;
* that, with nodes from edge to edge of the city (outermost ones on the border, half a share for
  each) instead of centres of cells;
* that, with means of 4 x 4 levels in a cell instead of the level at its centre;

and how far that of our law does, drawn and recommended, as built and with the same weights and
the prices that it had before they were rounded; on a map that gets a frame, without one too.  The
three cities take ten minutes of CPU at 60, 100 and 200 cells, a minute at 30, 50 and 100.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from numba import njit

from benchmarks.map_cities import CITIES, City, synthetic
from whereish.arrays import FloatArray, IntArray
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.maps.stencil import STENCILS, edge_integrals, edge_slices
from whereish.solvers.geodesic.graph_metric import HORIZON, GraphMetric
from whereish.studies.line_optimum import later_change, settling_table

__all__ = ["UnroundedLaw", "built_errors", "exponential_error", "readings", "settling"]

CHOSEN = ("gradient", "coast", "tracts, roughness 0.3")
_NATS = (12.0, 96.0)
_SUBSAMPLES = 4
_BORDER = 3
_LANES = 32
_FAR = 1e6
_NEAR = 20.0  # nats beyond which e^-d is left out


@njit(fastmath=True)  # type: ignore[untyped-decorator]
def _relax(D, c, other, price):
    """D[c] <- min(D[c], D[other] + price) in all lanes; whether one changed."""
    change = np.float32(0)
    for lane in range(_LANES):
        old = D[c, lane]
        new = min(old, D[other, lane] + price)
        change = max(change, old - new)
        D[c, lane] = new
    return change > 0


@njit(fastmath=True)  # type: ignore[untyped-decorator]
def _settle(D, edges, offsets, rows, cols):
    """Relax all edges, down and up in turn, until two sweeps change nothing."""
    pitch, quiet, down = cols + 2 * _BORDER, 0, True
    while quiet < 2:
        changed = False
        side, sign = (0, -1) if down else (1, 1)
        for a in range(rows):
            base = ((a if down else rows - 1 - a) + _BORDER) * pitch + _BORDER
            for b in range(cols):
                c = base + (b if down else cols - 1 - b)
                for k in range(len(offsets)):
                    changed |= _relax(D, c, c + sign * offsets[k], edges[side, c, k])
            for b in range(1, cols):
                c = base + (cols - 1 - b if down else b)
                changed |= _relax(D, c, c - sign * offsets[0], edges[1 - side, c, 0])
        down = not down
        quiet = 0 if changed else quiet + 1


@njit(fastmath=True)  # type: ignore[untyped-decorator]
def _products(edges, offsets, rows, cols, order, values):
    """sum_y values[y]·e^{-d(u, y)} for every node u, d in single precision."""
    pitch, sides = cols + 2 * _BORDER, values.shape[1]
    out = np.zeros((rows * cols, sides))
    D = np.empty(((rows + 2 * _BORDER) * pitch, _LANES), np.float32)
    sums, decay = np.zeros((sides, _LANES)), np.empty(_LANES, np.float32)
    for start in range(0, len(order), _LANES):
        D[:] = np.float32(_FAR)
        for lane in range(_LANES):
            u = order[min(start + lane, len(order) - 1)]
            D[(u // cols + _BORDER) * pitch + u % cols + _BORDER, lane] = 0
        _settle(D, edges, offsets, rows, cols)
        sums[:] = 0
        for y in range(rows * cols):
            c = (y // cols + _BORDER) * pitch + y % cols + _BORDER
            if D[c].min() > _NEAR:
                continue
            for lane in range(_LANES):
                decay[lane] = math.exp(-D[c, lane])
            for k in range(sides):
                for lane in range(_LANES):
                    sums[k, lane] += values[y, k] * decay[lane]
        for lane in range(min(_LANES, len(order) - start)):
            out[order[start + lane]] = sums[:, lane]
    return out


def _padded(prices: FloatArray) -> tuple[FloatArray, IntArray]:
    """Prices back and on from every node of a padded grid, and the steps' offsets there."""
    rows, cols, half = prices.shape
    steps, pitch = STENCILS[2 * half], cols + 2 * _BORDER
    edges = np.full((2, rows + 2 * _BORDER, pitch, half), _FAR, np.float32)
    inner = edges[:, _BORDER : _BORDER + rows, _BORDER : _BORDER + cols]
    for k, step in enumerate(steps):
        tail, head = edge_slices((rows, cols), step)
        inner[1][*tail, k] = inner[0][*head, k] = prices[*tail, k]
    return edges.reshape(2, -1, half), np.array([i * pitch + j for i, j in steps])


@dataclass(frozen=True, eq=False)
class UnroundedLaw:
    """w(y)·e^{-d(u, y)} / Z(u) on a square grid, with shortest paths in floating point.

    Attributes
    ----------
    prices : (rows, cols, neighbours/2), of the edges.
    weights, prior : over the nodes; the prior sums to 1.
    side : between nodes.
    """

    prices: FloatArray
    weights: FloatArray
    prior: FloatArray
    side: float

    @cached_property
    def _moments(self) -> FloatArray:
        """1, x, y and the square of their length at every node, from the middle."""
        rows, cols, _ = self.prices.shape
        i, j = np.divmod(np.arange(rows * cols), cols)
        x, y = (j - (cols - 1) / 2) * self.side, (i - (rows - 1) / 2) * self.side
        return np.column_stack([np.ones(rows * cols), x, y, x**2 + y**2])

    def _product(self, values: FloatArray) -> FloatArray:
        rows, cols, _ = self.prices.shape
        i, j = np.divmod(np.arange(rows * cols), cols)
        order = np.lexsort((j % 8, i % 4, j // 8, i // 4))  # neighbours settle together
        return np.asarray(_products(*_padded(self.prices), rows, cols, order, values))

    @cached_property
    def _reports(self) -> FloatArray:
        """Z and the moments of the reports, for every secret."""
        return self._product(self.weights[:, None] * self._moments)

    def drawn(self) -> float:
        """Squared error of the reports where they are drawn."""
        (_, x, y, square), (mass, to_x, to_y, far) = self._moments.T, self._reports.T
        return float(self.prior @ ((far - 2 * (x * to_x + y * to_y)) / mass + square))

    def moved(self) -> float:
        """Squared error of the reports moved to posterior means."""
        given = self.prior / self._reports[:, 0]
        mass, x, y = self._product(given[:, None] * self._moments[:, :3]).T
        reached = mass > 0  # what is far out in a frame is not
        gained = self.weights[reached] @ ((x**2 + y**2)[reached] / mass[reached])
        return float(self.prior @ self._moments[:, 3] - gained)


def exponential_error(levels: FloatArray, side: float, shares: FloatArray) -> float:
    """Squared error of eps(y)^2·e^{-d(u, y)/2} / Z(u) on a square grid, d unrounded.

    `shares` are the nodes' shares of the place, of secrets and of reports alike.
    """
    weights = (shares * levels**2).ravel() / float(levels.max()) ** 2
    prices = edge_integrals(levels, (side, side)) / 2
    return UnroundedLaw(prices, weights, shares.ravel() / shares.sum(), side).drawn()


def readings(city: City, n: int, nats: tuple[float, float]) -> dict[str, tuple[FloatArray, float]]:
    """Levels per side of the city and distance of nodes: at centres, from edge to edge, in mean."""
    low, high = nats

    def at(along: FloatArray, up: FloatArray) -> FloatArray:
        return np.asarray(low * (high / low) ** city(*np.meshgrid(along, up), n))

    centres, nodes = (np.arange(n) + 0.5) / n, np.linspace(0, 1, n)
    inside = ((np.arange(_SUBSAMPLES) + 0.5) / _SUBSAMPLES - 0.5) / n
    means = [at(centres + a, centres + b) for a in inside for b in inside]
    return {
        "centres": (at(centres, centres), 1 / n),
        "edge to edge": (at(nodes, nodes), 1 / (n - 1)),
        "means": (np.mean(means, axis=0), 1 / n),
    }


def _shares(n: int, edge_to_edge: bool) -> FloatArray:
    """The midpoint rule's, or the trapezoidal rule's."""
    along = np.ones(n)
    if edge_to_edge:
        along[[0, -1]] = 0.5
    return np.outer(along, along)


@contextmanager
def unrounded_prices() -> Iterator[None]:
    """Metrics remember in `asked` the prices that they rounded down."""
    usual = GraphMetric.from_prices.__func__  # type: ignore[attr-defined]

    def rounded(cls, prices, *, horizon=HORIZON, keep=1.0):
        metric = usual(cls, prices, horizon=horizon, keep=keep)
        object.__setattr__(metric, "asked", keep * prices)
        return metric

    with patch.object(GraphMetric, "from_prices", classmethod(rounded)):
        yield


def built_errors(asked: PrivacyMap, frame: int | None) -> tuple[int, FloatArray]:
    """The frame, and errors (as built, unrounded) x (as drawn, recommended) on a square map."""
    with unrounded_prices():
        mechanism = EikonalMechanism.build(
            asked, places="cells", prior=np.ones(asked.shape), frame=frame
        )
    built = mechanism.built
    rounded = mechanism.mse(), mechanism.mse(remap=mechanism.posterior_mean())
    weights, prior = built.law.weights.astype(np.float64), np.zeros(built.law.metric.cells)
    prior[built.secrets] = 1 / len(built.secrets)
    prices = built.law.metric.asked  # type: ignore[attr-defined]
    law = UnroundedLaw(prices, weights / weights.max(), prior, asked.sides[0])
    return built.frame, np.array([rounded, (law.drawn(), law.moved())])


def _say(name: str, errors: list[float]) -> None:
    first, second = ((b / a - 1) * 100 for a, b in pairwise(errors))
    print(
        f"  {name:<58} {first:+6.2f}% {second:+6.2f}%   {later_change(errors):.2f}",
        flush=True,
    )


def settling(sizes: tuple[int, ...], names: tuple[str, ...] = ()) -> None:
    """Print the exact lines, and a table for each of some cities."""
    settling_table()
    for city in CITIES:
        if not any(name in city for name in (names or CHOSEN)):
            continue
        print(f"{city}, {_NATS[0]:g} to {_NATS[1]:g} nats: changes of the error at {sizes} cells")
        found = {n: readings(CITIES[city], n, _NATS) for n in sizes}
        maps = [synthetic(city, n, _NATS) for n in sizes]
        as_built = [EikonalMechanism.exponential(asked).mse() for asked in maps]
        _say("exponential eps/2, as built", as_built)
        for name, words in (
            ("centres", "no quantum"),
            ("edge to edge", "no quantum, nodes from edge to edge"),
            ("means", "no quantum, means of cells"),
        ):
            errors = [
                exponential_error(*found[n][name], _shares(n, name == "edge to edge"))
                for n in sizes
            ]
            _say(f"exponential eps/2, {words}", errors)
        _say_built(maps, None)


def _say_built(maps: list[PrivacyMap], frame: int | None) -> None:
    built = [built_errors(asked, frame) for asked in maps]
    frames = [cells for cells, _ in built]
    framed = f"frame of {frames} cells" if any(frames) else "no frame"
    for k, law in enumerate(("as drawn", "recommended")):
        _say(f"ours, {law}, {framed}", [errors[0, k] for _, errors in built])
        _say("  no quantum", [errors[1, k] for _, errors in built])
    if any(frames):
        _say_built(maps, 0)
