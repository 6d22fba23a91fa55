"""What the solvers of the optimal-channel programme take, report and return."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from whereish.arrays import FloatArray

__all__ = ["ChannelProgramme", "Clock", "LpResult", "Progress", "ProgressCallback"]


@dataclass(frozen=True)
class ChannelProgramme:
    """min sum_xz cost_zx K_xz over row-stochastic K with K_xz <= e^{d(x,x')} K_x'z.

    Attributes
    ----------
    cost : (outputs, n) array
        prior_x * loss(x, z), nonnegative; one row per output z.
    metric : (n, n) array
        d, a metric with positive distances between different secrets.
    """

    cost: FloatArray
    metric: FloatArray

    @property
    def n(self) -> int:
        """Number of secrets."""
        return int(self.cost.shape[1])

    @cached_property
    def closeness(self) -> FloatArray:
        """a = e^{-d}, so that privacy reads K_jz >= a_ij K_iz."""
        return np.exp(-self.metric)

    def value(self, matrix: FloatArray) -> float:
        """Expected loss of a channel K, (n, outputs)."""
        return float((self.cost.T * matrix).sum())

    def merged(self, matrix: FloatArray) -> FloatArray:
        """The channel after the Bayesian remap: every column moved to its cheapest output.

        A sum of private columns is private, so this keeps the promise and never
        raises the loss.
        """
        best = (self.cost @ matrix).argmin(axis=0)
        merged = np.zeros((self.cost.shape[0], self.n))
        np.add.at(merged, best, matrix.T)
        return np.ascontiguousarray(merged.T)


@dataclass(frozen=True)
class Progress:
    """A moment of a solve: certified bounds so far."""

    upper: float
    lower: float
    seconds: float
    stage: str

    @property
    def gap(self) -> float:
        """(upper - lower) / upper."""
        return relative_gap(self.upper, self.lower)


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True)
class LpResult:
    """A channel with its cost and a bound that no private channel can beat.

    Attributes
    ----------
    matrix : (n, outputs) array
        Private and row-stochastic up to rounding.
    upper, lower : float
        Cost of `matrix`, and the dual bound.
    status : str
        "optimal" (the gap asked for was reached), "time limit" or "stalled".
    """

    matrix: FloatArray
    upper: float
    lower: float
    status: str
    method: str
    iterations: int

    @property
    def gap(self) -> float:
        """(upper - lower) / upper, zero where both vanish."""
        return relative_gap(self.upper, self.lower)


def relative_gap(upper: float, lower: float) -> float:
    """(upper - lower) / upper, in [0, inf]."""
    if upper <= lower:
        return 0.0
    return (upper - lower) / upper if upper > 0 else float("inf")


@dataclass
class Clock:
    """Tells how long a solve has run and whether its time is over."""

    limit: float | None = None
    start: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    @property
    def over(self) -> bool:
        """Whether the limit has passed."""
        return self.limit is not None and self.seconds >= self.limit
