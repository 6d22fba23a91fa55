"""Which sums Z the weights of a law should aim at, where a map is a few nats wide.

Weights for Z = 1 (:mod:`~whereish.solvers.eikonal.weights`) give everybody a law of the same mass.
Where little can be told apart, that is precise in the middle of the map and poor far out, when
reports are moved to their posterior means; the best possible channel for a prior
(:mod:`whereish.mechanisms.maps.optimal`) gives some of the middle's precision away.  Sums

    b(u) = (e(u) / mean of e)^theta,

e(u) the squared error of u's moved reports, put more weight around those who fare worse than the
mean.  The slope of ln b is paid for like any other of ln Z, and where eps is high it costs little
of an edge.  The promise does not depend on b: whatever law results is certified as it is.  But
what is gained under one prior may be lost under another (2% and 5% on Paris, for uniform places and
by its density), so sums are 1 where no prior is given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.solvers.eikonal.certify import CertifiedLaw
from whereish.solvers.eikonal.squared_error import errors_of, judged

__all__ = ["Judgement", "finer_aim", "judgement"]

_THETA = 0.2
"""On coasts and tracts of 3 nats moved reports have the least error at 0.2 to 0.4, and drawn ones
fare the worse the larger it is."""

_NARROW = 0.8  # moving reports leaves less of their error: the map is a few nats wide
_SAMPLED = 20  # rows, and columns, of secrets whose error is computed; it is smooth
_MOST = 2.0  # of b, and half of it at least


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a round's law is worth, and what the next one should aim at.

    Attributes
    ----------
    error : its squared error; only comparisons matter.
    aim : sums for the next weights, per cell; None for 1.
    """

    error: float
    aim: FloatArray | None


def judgement(
    law: CertifiedLaw, secrets: IntArray, places: FloatArray, prior: FloatArray | None = None
) -> Judgement:
    """Of a law whose `secrets` fill a rectangle; `places` of all cells, `prior` over the former."""
    found = judged(law, secrets, places, prior)
    if prior is None or found.moved >= _NARROW * found.drawn:
        return Judgement(found.error, None)
    return Judgement(found.error, _aimed_sums(law, secrets, places, found.reports))


def _aimed_sums(
    law: CertifiedLaw, secrets: IntArray, places: FloatArray, reports: FloatArray
) -> FloatArray:
    """b per cell: between sampled secrets bilinear, around the secrets' rectangle constant."""
    columns = law.metric.shape[1]
    i, j = _spread_over(secrets // columns), _spread_over(secrets % columns)
    cells = (i[:, None] * columns + j).ravel()
    errors = errors_of(law.metric, law.weights.astype(np.float64), cells, places, reports)
    whole = _bilinear(errors.reshape(len(i), len(j)), i, j, law.metric.shape)
    mean = float(whole.ravel()[secrets].mean())
    return np.clip((whole.ravel() / mean) ** _THETA, 1 / _MOST, _MOST)


def finer_aim(aim: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """The sums of every other cell, between their centres, for all cells of a grid of `shape`."""
    rows, columns = (shape[0] + 1) // 2, (shape[1] + 1) // 2
    at = np.arange(0.5, 2 * max(rows, columns), 2, dtype=np.float64)
    return _bilinear(aim.reshape(rows, columns), at[:rows], at[:columns], shape).ravel()


def _spread_over(index: IntArray) -> IntArray:
    """About `_SAMPLED` of the indices from the least to the largest, both among them."""
    few = np.linspace(index.min(), index.max(), _SAMPLED).round()
    return np.asarray(np.unique(few).astype(np.int64))


def _bilinear(
    values: FloatArray,
    rows: IntArray | FloatArray,
    columns: IntArray | FloatArray,
    shape: tuple[int, int],
) -> FloatArray:
    """Values at some rows and columns, interpolated at all of a grid, constant beyond them."""
    wide = np.array([np.interp(np.arange(shape[1]), columns, row) for row in values])
    return np.array([np.interp(np.arange(shape[0]), rows, column) for column in wide.T]).T
