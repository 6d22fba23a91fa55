"""Noise functions given by a callable and a bound on its steepness."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.circularised import Noise
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.domains import DomainLike, domain_of
from whereish.solvers.noise.lipschitz import largest_lipschitz_ratio
from whereish.solvers.noise.pairs import NoiseRatio
from whereish.solvers.radial.loss import Loss

__all__ = ["SmoothNoise"]

_FALLEN = 40.0  # nats by which a callable must have fallen at its reach
_MOST_DIRECTIONS = 2**14


@dataclass(frozen=True, eq=False)
class SmoothNoise(Noise):
    """Noise with a density given by a callable and a bound on its steepness.

    Parameters
    ----------
    function
        F > 0 up to its norm, of an (n, 2) array of vectors in metres.
    bound
        An upper bound on |grad ln F| everywhere, per metre: taken at its word, and refuted where
        samples show otherwise.
    reach
        The radius in metres at which F has fallen to nothing.

    Examples
    --------
    >>> import numpy as np
    >>> import whereish as wh
    >>> def stretched(v):
    ...     return np.exp(-0.01 * np.hypot(v[:, 0], 2 * v[:, 1]))
    >>> noise = wh.NoiseFunction.of(stretched, bound="0.02/m", reach="9 km")
    >>> noise.certify(wh.Distinguishability.linear("0.02/m")).holds
    True
    """

    function: Callable[[FloatArray], ArrayLike] = field(repr=False)
    bound: float
    reach: float

    def __post_init__(self) -> None:
        angles = np.linspace(0, 2 * math.pi, 64, endpoint=False)
        edge = self._logs(self.reach * np.column_stack([np.cos(angles), np.sin(angles)]))
        middle = float(self._logs(np.zeros((1, 2)))[0])
        if edge.max() > middle - _FALLEN:
            raise InvalidInput(
                f"at its reach a noise function must have fallen by {_FALLEN:g} nats; it fell by"
                f" {middle - float(edge.max()):.3g}: give a larger reach"
            )

    def _logs(self, vectors: FloatArray) -> FloatArray:
        values = np.asarray(self.function(vectors), float)
        if values.shape != (len(vectors),):
            raise InvalidInput("a noise function must give one number for each vector")
        if not np.isfinite(values).all() or (values <= 0).any():
            raise InvalidInput("a noise function must be finite and > 0 at every vector")
        return np.asarray(np.log(values))

    @property
    def extent(self) -> float:
        """The radius in metres beyond which nothing of weight is left."""
        return self.reach

    @cached_property
    def norm(self) -> float:
        """∫ F."""
        return self._integral(Loss(np.ones_like))

    def __call__(self, vectors: ArrayLike) -> FloatArray:
        """F at vectors in metres, per square metre."""
        v = np.asarray(vectors, float)
        return np.asarray(np.exp(self._logs(v.reshape(-1, 2))).reshape(v.shape[:-1]) / self.norm)

    def ratio(self, keeps: Distinguishability, on: DomainLike = None) -> NoiseRatio:
        """Bounds on the least t for which F keeps t * l: the bound above, samples below."""
        return largest_lipschitz_ratio(self._logs, self.bound, self.reach, keeps, domain_of(on))

    def regulated(self) -> SmoothNoise:
        """Itself: a bounded slope makes F continuous, and no null set matters."""
        return self

    def expected_loss(self, loss: Loss | Callable[[FloatArray], FloatArray]) -> float:
        """The expected loss of the report's distance in metres."""
        return self.radial_loss(loss if isinstance(loss, Loss) else Loss.of(loss))

    def radial(self, radius: float) -> float:
        """The mean density over directions at a radius in metres, per square metre."""
        return self._mean(float(radius)) / self.norm

    def radial_loss(self, loss: Loss) -> float:
        """The expected loss, integrated over circles."""
        return self._integral(loss) / self.norm

    def _mean(self, radius: float) -> float:
        """By the trapezoidal rule, with twice as many directions until it no longer changes."""
        before, count = math.inf, 64
        while count <= _MOST_DIRECTIONS:
            angles = 2 * math.pi * np.arange(count) / count
            circle = radius * np.column_stack([np.cos(angles), np.sin(angles)])
            mean = float(np.exp(self._logs(circle)).mean())
            if abs(mean - before) <= 1e-13 * mean:
                break
            before, count = mean, 2 * count
        return mean

    def _integral(self, loss: Loss) -> float:
        nodes, weights = np.polynomial.legendre.leggauss(16)
        edges = np.linspace(0, self.reach, 129)
        edges = np.unique([*edges, *(cut for cut in loss.cuts if cut < self.reach)])
        total = 0.0
        for low, high in itertools.pairwise(edges.tolist()):
            radii = (low + high) / 2 + (high - low) / 2 * nodes
            means = np.array([self._mean(float(r)) for r in radii])
            total += float((weights * (high - low) / 2 * radii * loss.value(radii) * means).sum())
        return 2 * math.pi * total
