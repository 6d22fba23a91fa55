"""The epsilon of a channel that costs what it may: a quality loss, or an accuracy.

Mechanisms are compared at equal quality loss (Bordenabe's thesis, sections 5.5 and 6.2.2).  The
expected loss of a family of channels is continuous in epsilon, so between an epsilon that costs
too much and one that costs too little there is one that costs exactly q; it is bracketed on
the logarithm of epsilon and found to 1e-9.  For the loss that the exponential channel is made from
the expected loss falls with epsilon (its derivative is minus half a variance), and for planar
Laplace over the cells of a grid too: on x + t v, clamped and moved to a cell's centre, both
coordinates move away from x as t grows.  There the root is the only one.

An accuracy (c, radius) asks that a report be within `radius` with probability c under the prior:
a loss of 1 beyond the radius, and q = 1 - c.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, SolverError
from whereish.mechanisms.channels.inputs import Loss, loss_matrix
from whereish.space.prior import as_prior
from whereish.space.sites import Sites
from whereish.units import LARGEST_EPSILON, SMALLEST_EPSILON, Epsilon, Length

__all__ = ["ACCURACY", "Target"]

ACCURACY = 1e-9
"""Relative error of a calibrated quality loss, at most."""

_STEP = 8.0  # factor between trials while bracketing
_BISECTIONS = 200


@dataclass(frozen=True)
class Target:
    """A wanted expected loss under a prior: its losses by secret and report, and its value."""

    losses: FloatArray
    prior: FloatArray
    value: float
    words: str

    @classmethod
    def of(
        cls,
        secrets: Sites,
        reports: Sites,
        *,
        prior: ArrayLike | None,
        loss: Loss,
        quality_loss: float | None,
        accuracy: tuple[float, Length | str] | None,
    ) -> Target:
        """From what a caller gives: one of `quality_loss` and `accuracy`."""
        if (quality_loss is None) == (accuracy is None):
            raise InvalidInput("give one of epsilon, quality_loss and accuracy")
        p = as_prior(prior, len(secrets))
        if quality_loss is not None:
            value = float(quality_loss)
            if not (math.isfinite(value) and value > 0):
                raise InvalidInput(f"quality_loss must be a finite number > 0; got {quality_loss}")
            return cls(loss_matrix(loss, secrets, reports), p, value, f"quality loss {value:g}")
        assert accuracy is not None
        chance, radius = float(accuracy[0]), Length.positive(accuracy[1], name="radius")
        if not 0 < chance < 1:
            raise InvalidInput(f"an accuracy must be (probability in (0, 1), radius); got {chance}")
        beyond = loss_matrix("euclidean", secrets, reports) > radius.m
        return cls(beyond.astype(np.float64), p, 1 - chance, f"{chance:g} within {radius}")

    def of_matrix(self, matrix: FloatArray) -> float:
        """The expected loss of a channel's matrix."""
        return float(self.prior @ (matrix * self.losses).sum(axis=1))

    def epsilon(self, matrix: Callable[[float], FloatArray], start: float) -> Epsilon:
        """The epsilon at which a family of channels has the wanted loss, near or far from `start`.

        Raises
        ------
        InvalidInput
            If no epsilon gives it; the message has the range that is reached.
        """
        seen: dict[float, float] = {}

        def excess(eps: float) -> float:
            seen[eps] = self.of_matrix(matrix(eps))
            return seen[eps] - self.value

        low = high = start
        while excess(low) < 0 and low > _STEP * SMALLEST_EPSILON and self._moves(seen):
            low /= _STEP
        while seen.get(high, 0.0) > self.value and high < LARGEST_EPSILON / _STEP:
            high *= _STEP
            excess(high)
        if not (seen[low] >= self.value >= seen[high]):
            raise InvalidInput(
                f"no epsilon gives {self.words}: the expected loss lies between"
                f" {min(seen.values()):.6g} and {max(seen.values()):.6g}"
            )
        for _ in range(_BISECTIONS):
            middle = math.sqrt(low * high)
            if not low < middle < high:
                break
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        best = min((low, high), key=lambda eps: abs(seen[eps] - self.value))
        if abs(seen[best] - self.value) > ACCURACY / 4 * self.value:
            raise SolverError(
                f"the expected loss jumps near {self.words}: from {seen[low]:.12g} to"
                f" {seen[high]:.12g}"
            )
        return Epsilon.per_metre(best)

    def _moves(self, seen: dict[float, float]) -> bool:
        """Whether the last trials still changed the loss: it may have reached its largest."""
        last = list(seen.values())[-3:]
        return len(last) < 3 or max(last) - min(last) > ACCURACY * max(last)
