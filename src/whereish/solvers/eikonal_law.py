"""From a map to a certified law: the whole way, on plain arrays.

Two promises are built (they differ in what a secret is):

* :func:`law_on_cells`: secrets are cells; all neighbouring cells keep the line
  integral of eps between their centres.
* :func:`law_on_places`: secrets are continuous places between the centres, rounded
  at random to one of the four centres around them; |grad ln P(y | x)| <= eps(x)
  holds at every place.  A bilinear law cannot rise faster than 1 + eps·h over a
  cell, so the map in use is ln(1 + eps·h)/h over the stencil's factor, eps the
  least level around; where the gradient still exceeds, it is lowered further.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from whereish.errors import InvalidInput, SolverError
from whereish.solvers.frame import frame_width, framed
from whereish.solvers.geodesics import HORIZON, LARGEST_MAP, GraphMetric
from whereish.solvers.gradients import largest_gradients
from whereish.solvers.integer_law import decay_table, integer_weights
from whereish.solvers.lanes import LIMIT
from whereish.solvers.lowering import (
    CertifiedLaw,
    certify,
    edge_factors,
    worst_edge,
)
from whereish.solvers.stencil import edge_integrals, stencil_factor

__all__ = [
    "BuiltLaw",
    "exponential_law",
    "gradient_factors",
    "law_on_cells",
    "law_on_places",
]

Floats = NDArray[np.float64]
Progress = Callable[[int, float], None]

_FEWEST_QUANTA = 24  # per edge: rounding down then costs at most 4%
_GRADIENT_ROUNDS = 40
_MARGIN = 0.998  # of the room that the largest gradient leaves
_BLUR = 4  # cells


@dataclass(frozen=True, eq=False)
class BuiltLaw:
    """A certified law, its map in use and its frame.

    Attributes
    ----------
    law : masses and certificate, on the framed grid.
    used : (rows, cols) the map in use, before any lowering of single edges.
    frame : cells added on every side.
    promised : edge prices that the law keeps, on the framed grid.
    gradient_factor : largest |grad ln P|/eps on continuous places; None on cells.
    """

    law: CertifiedLaw
    used: Floats
    frame: int
    promised: Floats
    gradient_factor: float | None = None

    @cached_property
    def secrets(self) -> NDArray[np.int64]:
        """Flat indices of the map's cells in the framed grid, in the map's order."""
        return inner_cells(self.used.shape, self.frame)


def inner_cells(shape: tuple[int, ...], frame: int) -> NDArray[np.int64]:
    """Flat indices of the unframed cells in the framed grid."""
    rows, cols = shape
    i, j = np.divmod(np.arange(rows * cols), cols)
    return np.asarray((i + frame) * (cols + 2 * frame) + j + frame, np.int64)


def check_resolution(eps: Floats, cell: tuple[float, float]) -> None:
    """Refuse cells so small that the quantum would eat their prices."""
    sides = [side for side, count in zip(cell, eps.shape, strict=True) if count > 1]
    least = _FEWEST_QUANTA * HORIZON / LIMIT
    if sides and float(eps.min()) * min(sides) < least:
        raise InvalidInput(
            f"a cell must cost at least {least:.3g} (its side times the lowest level);"
            f" got {float(eps.min()) * min(sides):.3g}: use larger cells"
        )


def law_on_cells(
    eps: Floats,
    cell: tuple[float, float],
    *,
    neighbours: int = 16,
    frame: int | None = None,
    progress: Progress | None = None,
) -> BuiltLaw:
    """A law that keeps the line integrals of `eps` between neighbouring centres.

    Parameters
    ----------
    eps : (rows, cols) levels at the centres.
    cell : height and width of a cell.
    frame : cells of frame; None takes as many as the border needs, or none where that is
        more than a quarter of the map's side or the framed grid would be too large.
    """
    check_resolution(eps, cell)
    if frame is None:
        frame = frame_width(eps, cell)
        rows, cols = eps.shape
        # A map of few nats would drown in its frame, and most reports fall outside.
        too_wide = frame > min(rows, cols) // 4
        if too_wide or (rows + 2 * frame) * (cols + 2 * frame) > LARGEST_MAP:
            frame = 0
    wide = framed(eps, cell, frame)
    promised = edge_integrals(wide, cell, neighbours=neighbours)
    secrets = np.zeros(wide.size, np.bool_)
    secrets[inner_cells(eps.shape, frame)] = True
    law = certify(wide, cell, promised, secrets.reshape(wide.shape), progress=progress)
    return BuiltLaw(law, eps, frame, promised)


def exponential_law(eps: Floats, cell: tuple[float, float], *, neighbours: int = 16) -> BuiltLaw:
    """The exponential mechanism at half the map, normalised: private whatever its weights.

    P(y | u) = A·eps(y)^2·e^{-d(u,y)/2} / Z(u): an edge at half its price is always kept.
    The baseline (elastic metrics are built this way).
    """
    check_resolution(eps, cell)
    promised = edge_integrals(eps, cell, neighbours=neighbours)
    metric = GraphMetric.from_prices(promised, keep=0.5)
    base = (eps**2).ravel() / float((eps**2).max())
    weights = integer_weights(base, float(metric.product(base).max()))
    weights = np.maximum(weights, np.uint64(1))
    sums, sweeps = metric.exact_sums(weights, decay_table(metric.quantum))
    factor, worst = worst_edge(edge_factors(metric, sums, promised), metric)
    law = CertifiedLaw(metric, weights, sums, factor, worst, 1, 1, 0, sweeps)
    return BuiltLaw(law, eps, 0, promised)


def least_around(eps: Floats) -> Floats:
    """The least level of a square between four centres, per square (interval in 1-D)."""
    i, j = (min(count - 1, 1) for count in eps.shape)
    rows, cols = eps.shape
    blocks = [eps[a : rows - i + a, b : cols - j + b] for a in range(i + 1) for b in range(j + 1)]
    return np.asarray(np.min(blocks, axis=0))


def _spread_to_centres(squares: Floats, shape: tuple[int, int]) -> Floats:
    """The least value of the squares around each centre."""
    i, j = (min(count - 1, 1) for count in shape)
    wide = np.pad(squares, ((i, i), (j, j)), constant_values=np.inf)
    rows, cols = shape
    blocks = [wide[a : a + rows, b : b + cols] for a in range(i + 1) for b in range(j + 1)]
    return np.asarray(np.min(blocks, axis=0))


def gradient_factors(built: BuiltLaw, eps: Floats, cell: tuple[float, float]) -> Floats:
    """Largest |grad ln P| / (least eps) on every square between four centres."""
    law, frame = built.law, built.frame
    slopes = largest_gradients(law.metric, law.weights, law.sums, cell)
    # Squares of a framed grid start `frame` cells earlier; only those among secrets count.
    squares = least_around(eps)
    rows, cols = squares.shape
    return np.asarray(slopes[frame : frame + rows, frame : frame + cols] / squares)


def law_on_places(
    eps: Floats,
    cell: tuple[float, float],
    *,
    neighbours: int = 32,
    frame: int | None = None,
    progress: Progress | None = None,
) -> BuiltLaw:
    """A law whose bilinear interpolation keeps |grad ln P(y | x)| <= eps(x) everywhere."""
    check_resolution(eps, cell)
    shape = (eps.shape[0], eps.shape[1])
    least = _spread_to_centres(least_around(eps), shape)
    side = max(side for side, n in zip(cell, shape, strict=True) if n > 1 or eps.size == 1)
    bend = stencil_factor(neighbours, cell, shape)
    # Single precision keeps the saved file small; rounding is downwards.
    used = _single(np.log1p(least * side) / (side * bend))
    for _ in range(_GRADIENT_ROUNDS):
        built = law_on_cells(used, cell, neighbours=neighbours, frame=frame, progress=progress)
        if eps.size == 1:
            return replace(built, gradient_factor=0.0)
        factors = gradient_factors(built, eps, cell)
        worst = float(np.nanmax(factors))
        if worst <= 1.0:
            return replace(built, gradient_factor=worst)
        used = _single(used * _smooth_below(_spread_to_centres(_MARGIN / factors, shape)))
    raise SolverError("lowering the privacy map for continuous places did not settle")


def _smooth_below(room: Floats) -> Floats:
    """A smooth field that is nowhere above min(room, 1).

    Least value within four cells, then a blur that reaches no farther: an average of
    values that are all below.  Smooth, because a sharp edge in the map would itself have
    to be lowered.
    """
    from scipy.ndimage import gaussian_filter, minimum_filter

    least = minimum_filter(np.minimum(room, 1.0), size=2 * _BLUR + 1, mode="nearest")
    return np.asarray(gaussian_filter(least, _BLUR / 2, radius=_BLUR, mode="nearest"))


def _single(values: Floats) -> Floats:
    low = values.astype(np.float32)
    low = np.where(low.astype(np.float64) > values, np.nextafter(low, np.float32(0)), low)
    return low.astype(np.float64)
