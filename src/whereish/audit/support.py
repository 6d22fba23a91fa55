"""Support audit: whether this very output can have come from that input.

The textbook planar Laplace sampler draws two doubles of 53 bits, turns one into a
radius through Lambert W and the other into an angle, and adds.  From a candidate
secret only some doubles are reachable; if a reported double is not among them, the
candidate is excluded for certain, whatever epsilon says.
:class:`TextbookPlanarLaplace` is that sampler with its attack: near the radius and
the angle that the candidate would need, it tries every pair of uniforms.

For a mechanism on a lattice the same question is answered by a witness: uniform bits
that make the real sampler, run from the candidate, report that very cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.results import JsonResult
from whereish.space.points import Points
from whereish.units import Epsilon

__all__ = ["HasSupport", "SupportAudit", "TextbookPlanarLaplace", "support"]

_STEPS = 2.0**53


@runtime_checkable
class HasSupport(Protocol):
    """A sampler that can tell which outputs it can reach from where."""

    def reaches(self, reports: FloatArray, secrets: FloatArray) -> NDArray[np.bool_]:
        """Whether each report is a possible output for its secret."""


@dataclass(frozen=True)
class SupportAudit(JsonResult):
    """Which reports are possible outputs for the candidate secrets."""

    possible: NDArray[np.bool_]

    @property
    def excluded(self) -> int:
        """How many candidates are excluded for certain."""
        return int((~self.possible).sum())

    def __repr__(self) -> str:
        return f"SupportAudit({self.excluded} of {self.possible.size} candidates excluded)"


def support(
    sampler: HasSupport, reports: Points | ArrayLike, candidates: Points | ArrayLike
) -> SupportAudit:
    """Try to exclude each candidate secret by its report alone."""
    if not isinstance(sampler, HasSupport):
        raise InvalidInput(
            f"{type(sampler).__name__} cannot tell which outputs it reaches; a support audit needs"
            " a method reaches(reports, secrets)"
        )
    z, x = (np.asarray(places, float).reshape(-1, 2) for places in (reports, candidates))
    return SupportAudit(sampler.reaches(z, np.broadcast_to(x, z.shape)))


@dataclass(frozen=True)
class TextbookPlanarLaplace:
    """The naive sampler, with raw doubles: for comparison and attack, never for use."""

    epsilon: Epsilon

    def _radius(self, p: FloatArray) -> FloatArray:
        from scipy.special import lambertw

        return -(lambertw((p - 1) / math.e, -1).real + 1) / self.epsilon.per_m

    def sample(self, secrets: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Noisy doubles, as published tools compute them."""
        radius = self._radius(generator.random(len(secrets)))
        angle = 2 * math.pi * generator.random(len(secrets))
        noise = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        return np.asarray(secrets + noise)

    def reaches(self, reports: FloatArray, secrets: FloatArray) -> NDArray[np.bool_]:
        """Whether any pair of 53-bit uniforms gives exactly these doubles."""
        return np.array([self._reaches(z, x) for z, x in zip(reports, secrets, strict=True)], bool)

    def _reaches(self, z: FloatArray, x: FloatArray) -> bool:
        eps = self.epsilon.per_m
        offset = z.astype(np.longdouble) - x.astype(np.longdouble)
        radius = float(np.hypot(*offset))
        angle = np.arctan2(offset[1], offset[0]) % (2 * np.longdouble(math.pi))
        # Roundings of the two sums and products move the report by at most this much.
        slack = float(np.spacing(np.abs(z)).sum() + np.spacing(np.abs(offset.astype(float))).sum())
        mass = float(-np.expm1(-eps * radius) - eps * radius * math.exp(-eps * radius))
        density = eps**2 * radius * math.exp(-eps * radius)
        near_p = _window(mass * _STEPS, (slack + 8 * np.spacing(radius)) * density * _STEPS)
        turn = float(angle / (2 * np.longdouble(math.pi)) * np.longdouble(_STEPS))
        near_t = _window(turn, slack / max(radius, slack) / (2 * math.pi) * _STEPS)
        radii = self._radius(near_p[(near_p >= 0) & (near_p < _STEPS)] / _STEPS)
        angles = 2 * math.pi * (np.mod(near_t, _STEPS) / _STEPS)
        on_x = x[0] + np.multiply.outer(radii, np.cos(angles)) == z[0]
        on_y = x[1] + np.multiply.outer(radii, np.sin(angles)) == z[1]
        return bool((on_x & on_y).any())


def _window(centre: float, half_width: float) -> FloatArray:
    """The integers around `centre`, a few more than the errors ask for."""
    reach = math.ceil(half_width) + 8
    return math.floor(centre) + np.arange(-reach, reach + 1, dtype=np.float64)
