"""Losses: what a report at distance r from the truth costs.

A loss L does not decrease with the distance, or is any lower semicontinuous function that is
monotone between finitely many cuts (:meth:`Loss.piecewise`).  The solver's lower bound needs
linear functions below r L(r): the tangent where r L(r) is convex between `cuts` and its slope is
known, r times the smaller of L(a) and L(b) on [a, b] otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.units import Length

__all__ = ["Loss"]

Function: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss of the distance in metres, nondecreasing unless `rising` says otherwise.

    Parameters
    ----------
    value
        L(r), vectorised.
    slope
        The derivative of r L(r), which must be convex between cuts; None if unknown.
    cuts
        Distances where L jumps or bends.
    rising
        Whether L does not decrease; if not, it is monotone between its cuts.
    """

    value: Function
    slope: Function | None = None
    cuts: tuple[float, ...] = ()
    text: str = "a loss"
    rising: bool = True

    @classmethod
    def power(cls, exponent: float = 1.0) -> Loss:
        """L(r) = r^p in metres^p: the distance, its square, ..."""
        if not (np.isfinite(exponent) and exponent > 0):
            raise InvalidInput(f"the exponent of a loss must be finite and > 0; got {exponent!r}")
        return cls(
            partial(_power, exponent, 1.0),
            partial(_power, exponent, exponent + 1),
            text=f"r^{exponent:g}",
        )

    @classmethod
    def threshold(cls, distance: Length | str) -> Loss:
        """1 beyond the distance, 0 up to it."""
        limit = Length.positive(distance, name="distance")
        step = partial(_beyond, limit.m)
        return cls(step, step, (limit.m,), f"[r > {limit}]")

    @classmethod
    def of(
        cls,
        value: Callable[[FloatArray], FloatArray],
        *,
        cuts: tuple[float, ...] = (),
        text: str = "a loss",
    ) -> Loss:
        """Any nondecreasing callable, checked on a wide range of distances."""
        checked = partial(_checked, value)
        sample = checked(np.concatenate([[0.0], np.geomspace(1e-3, 1e7, 2001)]))
        if (np.diff(sample) < 0).any() or sample[0] < 0:
            raise InvalidInput("a loss must be >= 0 and must not decrease with the distance")
        if sample.max() == sample.min():
            raise InvalidInput("a loss must grow with the distance somewhere; got a constant")
        return cls(checked, None, tuple(float(c) for c in cuts), text)

    @classmethod
    def piecewise(
        cls,
        value: Callable[[FloatArray], FloatArray],
        *,
        cuts: tuple[float, ...],
        text: str = "a loss",
    ) -> Loss:
        """A loss >= 0 that may also fall: monotone between `cuts`, rising after the last.

        At a cut the lower of its two sides counts (L is lower semicontinuous).

        >>> import numpy as np
        >>> def forgiving(r):  # 100 to 200 m cost nothing
        ...     return np.where((r >= 100) & (r <= 200), 0.0, r)
        >>> Loss.piecewise(forgiving, cuts=(100.0, 200.0)).rising
        False
        """
        checked = partial(_checked, value)
        marks = tuple(sorted(float(c) for c in cuts))
        if not marks or marks[0] <= 0 or not np.isfinite(marks).all():
            raise InvalidInput("a piecewise loss must have cuts: finite distances > 0")
        edges = [0.0, *marks, max(1e7, 1e3 * marks[-1])]
        for low, high in itertools.pairwise(edges):
            sample = checked(low + (high - low) * np.linspace(1e-9, 1 - 1e-9, 257))
            if (sample < 0).any() or not np.isfinite(sample).all():
                raise InvalidInput("a loss must be finite and >= 0 at every distance")
            steps = np.diff(sample)
            if (steps < 0).any() and ((steps > 0).any() or high == edges[-1]):
                raise InvalidInput(
                    "a piecewise loss must be monotone between its cuts, and must not fall after"
                    " the last: give more cuts"
                )
        return cls(checked, None, marks, text, rising=False)


# Functions of the module, so that a mechanism with its loss can travel to other processes.


def _power(exponent: float, factor: float, r: FloatArray) -> FloatArray:
    return np.asarray(factor * np.power(r, exponent))


def _beyond(limit: float, r: FloatArray) -> FloatArray:
    return np.where(np.asarray(r) > limit, 1.0, 0.0)


def _checked(value: Function, r: FloatArray) -> FloatArray:
    """One number for every distance, also from a function of single numbers."""
    try:
        found = np.asarray(value(r), float)
        found = np.broadcast_to(found, np.shape(r)) if found.ndim == 0 else found
    except (TypeError, ValueError):
        found = np.vectorize(value, otypes=[float])(r)
    if found.shape != np.shape(r) or np.isnan(found).any():
        raise InvalidInput("a loss must give a number for every distance")
    return found
