"""A certified law on continuous places, rounded at random to a centre around them.

A place x between four centres is rounded to one of them with bilinear probabilities, so
that P(y | x) is bilinear there; the promise is |grad ln P(y | x)| <= eps(x) at every
place and for every report y.  Three things take of the noise's precision, and each is
taken no further than it must:

* A bilinear law rises by at most 1 + eps·h over a cell: the prices of the edges are those
  that :mod:`~whereish.solvers.eikonal.rounding_norm` leaves.
* A law ∝ e^{-d} has a tip at its report, from which it falls along both axes at once, by
  sqrt 2 times the slope of either: sqrt 2 / (1 + eps·h) times what is allowed.  Where that
  is more than the lowering of the map takes anyway, the tip is cut off: masses go with
  max(d, `CORE`), the same for all cells within a tenth of a nat.  On a map hardly wider than
  that nothing but the flat part would be left, so there the map is lowered instead.
* eps varies within a square, and its edges are shared by looser neighbours.  Where the
  bound of :mod:`~whereish.solvers.eikonal.bilinear.bound` exceeds, the map in use is lowered,
  and all is solved again.

The bound itself is evaluated for every report and every square.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, least_around
from whereish.errors import InvalidInput, SolverError
from whereish.privacy.maps.stencil import edge_integrals
from whereish.solvers.eikonal.bilinear.bound import corner_levels, square_factors
from whereish.solvers.eikonal.bilinear.gradients import largest_gradients
from whereish.solvers.eikonal.cells import (
    LEAST_PRICE,
    BuiltLaw,
    Search,
    framed_law,
    least_price,
)
from whereish.solvers.eikonal.certify import edge_factors, worst_edge
from whereish.solvers.eikonal.rounding_norm import axis_levels, directed_levels, longest_side
from whereish.threads import one_blas_thread

__all__ = ["CORE", "gradient_factors", "law_on_places", "prices_on_places"]

CORE = 0.1
"""Distance within which a law is flat, where the tip must be cut off."""

_SPREAD = 4.0  # times CORE: a map must reach that far from a corner for its tips to be cut off
_LOWERED = 0.5  # of the least price: so far a map may be lowered
_ROUNDS = 40
_MARGIN = 0.998  # of the room that the largest gradient leaves
_BLUR = 8  # cells
# Where paths around both sides of a bump meet, the law rises along both axes at once.  Lowering
# the map there moves the place; lowering all of it does not.
_SPIKE = 1.1
_LOCAL_ROUNDS = 3  # for such spikes; for more,
_LAST_LOCAL_ROUNDS = 20
_HARMLESS_TIP = 1.05
_STEEPEST = 1.1  # times the least level around: beyond, an edge cannot be had at its own price


@one_blas_thread()
def law_on_places(eps: FloatArray, cell: tuple[float, float], **search: Unpack[Search]) -> BuiltLaw:
    """A law whose bilinear interpolation keeps |grad ln P(y | x)| <= eps(x) everywhere.

    The parameters are those of :func:`~whereish.solvers.eikonal.cells.law_on_cells`, with 32
    neighbours by default.
    """
    shape = (eps.shape[0], eps.shape[1])
    levels = np.minimum(eps, _STEEPEST * least_around(eps))
    _check_resolution(eps, cell)
    tip = math.sqrt(2.0) / (1.0 + float(eps.min()) * longest_side(cell, shape))
    for number in range(1, _ROUNDS + 1):
        # Single precision keeps the saved file small; rounding is downwards.
        used = _single(axis_levels(levels, cell))
        if least_price(used, cell) < _LOWERED * LEAST_PRICE:
            raise InvalidInput(
                "levels that change this much cannot be kept on continuous places with such cells:"
                f" the map would be lowered to {float((levels / eps).min()):.2g} of what was asked"
                " for; use larger cells or a smoother map"
            )
        built = framed_law(used, cell, prices_on_places, **search)
        if eps.size == 1:
            return replace(built, gradient_factor=0.0)
        if tip > _HARMLESS_TIP and 1 not in shape and _reach(built) > _SPREAD * CORE:
            built = _without_tip(built)
        factors = gradient_factors(built, eps, cell)
        worst = float(factors.max())
        if worst <= 1.0:
            return replace(built, gradient_factor=worst)
        if number > (_LOCAL_ROUNDS if worst <= _SPIKE else _LAST_LOCAL_ROUNDS):
            levels = levels * (_MARGIN / worst)
        else:
            levels = levels * _smooth_below(_around_centres(_MARGIN / factors, shape))
    raise SolverError("lowering the privacy map for continuous places did not settle")


def prices_on_places(levels: FloatArray, cell: tuple[float, float], neighbours: int) -> FloatArray:
    """Edge prices from the levels along an axis, each direction at its own."""
    directed = directed_levels(levels, cell, neighbours)
    return edge_integrals(directed, cell, neighbours=neighbours)


def gradient_factors(built: BuiltLaw, eps: FloatArray, cell: tuple[float, float]) -> FloatArray:
    """Bounds of |grad ln P| / eps on every square between four centres of the map.

    What cannot be bounded (a law that overflowed) counts as infinite, never as nothing.
    """
    law, frame = built.law, built.frame
    slopes = largest_gradients(law.metric, law.weights, law.sums, cell, core=law.core, frame=frame)
    found = square_factors(slopes, corner_levels(eps), cell)
    return np.where(np.isnan(found), np.inf, found)


def _check_resolution(eps: FloatArray, cell: tuple[float, float]) -> None:
    """Refuse cells whose prices, less what rounding takes, would be eaten by the quantum."""
    price = least_price(eps, cell)
    if math.isinf(price):
        return
    # Along the longer side, `ratio` times the shorter, rounding leaves ln(1 + price·ratio)/ratio.
    ratio = longest_side(cell, eps.shape) * float(eps.min()) / price
    least = math.expm1(LEAST_PRICE * ratio) / ratio
    if price < least:
        raise InvalidInput(
            f"cell side x smallest epsilon must be at least {least:.4g} for continuous places (the"
            f" shorter side); got {price:.4g}: use larger cells"
        )


def _reach(built: BuiltLaw) -> float:
    """The largest distance in use between a corner of the map and another cell of it."""
    metric = built.metric_on_map
    return float(metric.distances(np.zeros(1, np.int64)).max()) * metric.quantum


def _without_tip(built: BuiltLaw) -> BuiltLaw:
    """The same weights with masses that are flat within `CORE`."""
    law = replace(built.law, core=int(CORE / built.law.metric.quantum))
    sums, sweeps = law.metric.exact_sums(law.weights, law.table, built.secrets)
    factor, worst = worst_edge(edge_factors(law.metric, sums, built.promised), law.metric)
    flat = replace(law, sums=sums, sweeps=sweeps, factor=factor, worst=worst)
    return replace(built, law=flat)


def _around_centres(squares: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """The least value of the squares around each centre."""
    i, j = (min(count - 1, 1) for count in shape)
    wide = np.pad(squares, ((i, i), (j, j)), constant_values=np.inf)
    rows, cols = shape
    blocks = [wide[a : a + rows, b : b + cols] for a in range(i + 1) for b in range(j + 1)]
    return np.asarray(np.min(blocks, axis=0))


def _smooth_below(room: FloatArray) -> FloatArray:
    """A smooth field that is nowhere above min(room, 1).

    Least value within eight cells, then a blur that reaches no farther: an average of
    values that are all below.  Smooth, because a sharp edge in the map would itself have
    to be lowered.
    """
    from scipy.ndimage import gaussian_filter, minimum_filter

    least = minimum_filter(np.minimum(room, 1.0), size=2 * _BLUR + 1, mode="nearest")
    return np.asarray(gaussian_filter(least, _BLUR / 2, radius=_BLUR, mode="nearest"))


def _single(values: FloatArray) -> FloatArray:
    low: NDArray[np.float32] = values.astype(np.float32)
    low = np.where(low.astype(np.float64) > values, np.nextafter(low, np.float32(0)), low)
    return low.astype(np.float64)
