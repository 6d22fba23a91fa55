"""What noise functions share, and the circles that Theorem 5 makes of them.

See :mod:`whereish.mechanisms.noise.function` for the theorems.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.noise.circular import CircularNoise
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.domains import DomainLike, FinitePlaces, domain_of
from whereish.solvers.noise.pairs import NoiseRatio
from whereish.solvers.radial.log_linear import from_table
from whereish.solvers.radial.loss import Loss
from whereish.space.plane import Plane
from whereish.units import Length

__all__ = ["CircularisedNoise", "Noise"]

_FALLEN = 40.0  # nats at which a radial's table may end


class Noise(ABC):
    """What tables and callables share."""

    @abstractmethod
    def ratio(self, keeps: Distinguishability, on: DomainLike = None) -> NoiseRatio:
        """Bounds on the least t for which F keeps t * l on a region."""

    def certify(self, keeps: Distinguishability, on: DomainLike = None) -> NoiseRatio:
        """The ratio, if it proves that F keeps l; `NotPrivate` with two vectors otherwise."""
        found = self.ratio(keeps, on)
        if found.holds:
            return found
        where = domain_of(on).description
        if found.witness is None or not found.refuted:
            raise NotPrivate(
                f"this noise is not proven to keep {keeps} on {where}: it needs between"
                f" {found.lower:.9g} and {found.upper:.9g} times as much; take a finer table"
            )
        (a, b), (c, d) = found.witness
        raise NotPrivate(
            f"this noise does not keep {keeps} on {where}: the vectors ({a:.9g}, {b:.9g}) m and"
            f" ({c:.9g}, {d:.9g}) m differ by {found.lower:.12g} times what it allows"
        )

    @abstractmethod
    def radial(self, radius: float) -> float:
        """The mean density over directions at a radius in metres, per square metre."""

    @abstractmethod
    def radial_loss(self, loss: Loss) -> float:
        """The expected loss, integrated over circles."""

    @property
    @abstractmethod
    def extent(self) -> float:
        """The radius in metres beyond which nothing of weight is left."""

    def circularised(self) -> CircularisedNoise:
        """The circular noise of Theorem 5: R(r) is the mean of F over directions."""
        return CircularisedNoise(self)


@dataclass(frozen=True, eq=False)
class CircularisedNoise:
    """Circular noise with the radial R(r) = mean over directions of another noise."""

    source: Noise

    def __call__(self, radius: ArrayLike) -> FloatArray:
        """R at radii in metres, per square metre."""
        radii = np.asarray(radius, float)
        return np.array([self.source.radial(r) for r in radii.ravel()]).reshape(radii.shape)

    def ratio(self, keeps: Distinguishability, on: DomainLike = None) -> NoiseRatio:
        """At most what the source needs, on a disk or the plane (Theorem 5)."""
        domain = domain_of(on)
        if isinstance(domain, FinitePlaces):
            raise InvalidInput(
                "Theorem 5 needs differences in every direction: circles keep l on a disk or the"
                " plane; check the result of .noise(...) on places with .certified(l, on=places)"
            )
        found = self.source.ratio(keeps, domain)
        return replace(found, lower=0.0, witness=None)

    def expected_loss(self, loss: Loss | Callable[[FloatArray], FloatArray]) -> float:
        """∫ L(r) 2 pi r R(r) dr: that of the source."""
        return self.source.radial_loss(loss if isinstance(loss, Loss) else Loss.of(loss))

    def noise(
        self,
        keeps: Distinguishability,
        *,
        spacing: Length | str,
        resolution: Length | str = "1 m",
        plane: Plane | None = None,
    ) -> CircularNoise:
        """A mechanism: R at multiples of `spacing`, log-linear in between, certified anew.

        At jumps of l that are multiples of `spacing` the interpolant keeps what R keeps.
        """
        apart = Length.positive(spacing, name="spacing").m
        count = max(math.ceil(self.source.extent / apart), 2)
        radii = apart * np.arange(count + 1)
        values = self(radii)
        kept = values > values.max() * math.exp(-_FALLEN)
        last = max(int(np.flatnonzero(kept)[-1]) + 1, 2)
        return CircularNoise(
            from_table(radii[:last], values[:last]), keeps=keeps, resolution=resolution, plane=plane
        )
