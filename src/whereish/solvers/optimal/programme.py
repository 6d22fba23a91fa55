"""What the solvers of the optimal-channel programme take, report and return."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.threads import in_ranges, in_threads

__all__ = ["Bounds", "ChannelProgramme", "LpResult", "ProgressCallback", "SolveProgress", "Terms"]


_CHUNK = 256
"""Columns whose costs are taken at once, by one thread."""


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

    @cached_property
    def bump_costs(self) -> FloatArray:
        """Of every bump e^{-d(., x)} at every output, (outputs, n)."""
        return self.cost @ self.closeness

    def value(self, matrix: FloatArray) -> float:
        """Expected loss of a channel K, (n, outputs)."""
        return float((self.cost.T * matrix).sum())

    def merged(self, matrix: FloatArray) -> FloatArray:
        """The channel after the Bayesian remap: every column moved to its cheapest output.

        A sum of private columns is private, so this keeps the promise and never
        raises the loss.
        """
        matrix = np.ascontiguousarray(matrix, np.float64)
        merged = np.zeros((self.n, self.cost.shape[0]))
        best, _ = self.best_outputs(matrix)

        def add(rows: tuple[int, int]) -> None:
            add_columns(matrix, best, rows, merged)

        in_ranges(add, self.n, work=2.0 * matrix.size)
        return merged

    def best_outputs(self, columns: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
        """The cheapest output of every column, (n, columns), and what it costs there."""
        best, least = np.zeros(columns.shape[1], np.intp), np.zeros(columns.shape[1])

        def choose(begin: int) -> None:
            some = slice(begin, begin + _CHUNK)
            costs = self.cost @ columns[:, some]
            best[some], least[some] = costs.argmin(axis=0), costs.min(axis=0)

        in_threads(choose, range(0, columns.shape[1], _CHUNK))
        return best, least


@dataclass(frozen=True)
class Bounds:
    """The cost of a private channel, and what no private channel can beat.

    Attributes
    ----------
    upper : cost of a channel that is at hand.
    lower : a certified bound on the cost of every private channel.
    """

    upper: float
    lower: float

    @property
    def gap(self) -> float:
        """(upper - lower) / upper, zero where both vanish."""
        return relative_gap(self.upper, self.lower)


@dataclass(frozen=True)
class SolveProgress(Bounds):
    """A moment of a solve: the best certified bounds over all stages so far."""

    seconds: float
    stage: str


ProgressCallback = Callable[[SolveProgress], None]


@dataclass(frozen=True)
class LpResult(Bounds):
    """A channel with its cost and a bound that no private channel can beat.

    Attributes
    ----------
    upper, lower : float
        Cost of `matrix`, and the dual bound.
    matrix : (n, outputs) array
        Private and row-stochastic up to rounding.
    status : str
        "optimal" (the gap asked for was reached), "time limit" or "stalled".
    """

    matrix: FloatArray
    status: str
    method: str
    iterations: int


def relative_gap(upper: float, lower: float) -> float:
    """(upper - lower) / upper, in [0, inf]."""
    if upper <= lower:
        return 0.0
    return (upper - lower) / upper if upper > 0 else float("inf")


@dataclass
class Terms:
    """When a solve ends, and what is called with its progress."""

    gap: float
    limit_s: float | None = None
    progress: ProgressCallback | None = None
    start: float = field(default_factory=time.monotonic)
    _best: tuple[float, float] = (np.inf, 0.0)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    @property
    def over(self) -> bool:
        """Whether the time limit has passed."""
        return self.limit_s is not None and self.seconds >= self.limit_s

    @property
    def known_gap(self) -> float:
        """The gap of the best bounds so far."""
        return relative_gap(*self._best) if self._best[0] < np.inf else 1.0

    def take(self, upper: float, lower: float) -> None:
        """Take in these bounds, to be told with the next."""
        self._best = min(self._best[0], upper), max(self._best[1], lower)

    def tell(self, upper: float, lower: float, stage: str) -> None:
        """Take in these bounds, and tell the best of both as soon as there is a channel."""
        self.take(upper, lower)
        if self.progress is not None and self._best[0] < np.inf:
            self.progress(SolveProgress(*self._best, self.seconds, stage))

    def verdict(self, upper: float, lower: float, stage: str) -> str | None:
        """Tell these bounds; "optimal" or "time limit" where the solve may end, else None."""
        self.tell(upper, lower, stage)
        if relative_gap(upper, lower) <= self.gap:
            return "optimal"
        return "time limit" if self.over else None


@kernel
def add_columns(
    columns: FloatArray, to: NDArray[np.intp], rows: tuple[int, int], out: FloatArray
) -> None:
    """Add a range of rows of every column to the one of `out` that it is sent to."""
    for x in range(rows[0], rows[1]):
        for z in range(columns.shape[1]):
            out[x, to[z]] += columns[x, z]
