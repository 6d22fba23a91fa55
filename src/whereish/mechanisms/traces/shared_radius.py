"""Noise of which several reports share a hidden radius: less is paid for all of them together.

What a trace promises is about all of its places at once: each may move by up to t, at s t in all.
Independent noise of level e at m of them keeps m e t, and nothing less; but a secret that the m
reports share can take up a common move.  With d_i the distance of report r_i from its place x_i,

    p(r_1 .. r_m | x)  ~  integral over R >= 0 of  e^{-s R} prod_i e^{-e max(d_i - R, 0)}:

R is drawn once for m reports, with a density as Z(R)^m e^{-s R}; then each report on its own, with
a density as e^{-e max(d - R, 0)}, whose integral Z(R) does not depend on the place, on a plane or
on a sphere: uniform within R, and planar Laplace noise beyond.

Theorem.  The first j of the m reports keep min(j e, s) d_inf on their places; when they are made,
and what else is reported, may depend on all that was reported before.
Proof.  Given R, each factor changes by at most e^{e t} where its place moves by t: j e.  Further,
the density of the first j of them is the integral of e^{-s R} Z(R)^{m - j} prod_{i <= j} e^{-e
max(d_i - R, 0)}.  Let x' move each place by at most t, so that d'_i <= d_i + t, and put R = R' - t:
max(d_i - R, 0) >= max(d'_i - R', 0), and Z grows with R.  So the density is at most e^{s t} times
the same integral for x' over R' >= t.  QED

So a block of m reports costs e at each of them until s is paid, and nothing from there on.  One
place alone is told by e at most, as with independent noise of level e.

What it gains: with s = 2 m e / 5 and m = 32, the mean error of a report is 3.57 / e and the budget
of all of them 0.71 of what independent planar Laplace noise of the same mean error costs, than
which no independent noise costs less (ElSalamouny, Gambs, 2018, Theorem 9).  One place alone is
then told by 1.78 times as much as by such noise: that is the price.  (m = 4: 0.78 and 1.96;
s = m e / 2 and m = 32: 0.74 and 1.48.)  The proof is that of the sparse vector technique
(:mod:`~whereish.mechanisms.traces.sparse_test`); m = 1 and s = e is planar Laplace noise, and e
infinite the K-norm noise of Hardt and Talwar (STOC 2010) for d_inf: 2/3 of the budget for large m,
but one place is told by all of s.

How it is drawn, with lengths in units of 1/e: Z(R) is as R^2 + 2 R + 2 on a plane, so R is a
mixture of Gamma laws with rational weights; and e^{-max(d - R, 0)} is the integral of e^{-W} over
W >= 0 with d <= R + W, so a report is uniform in a disk of the hidden radius R + W, of which W is
Gamma(1), (2) or (3), as R^2 : 2 R : 2.  On the sphere a cap of radius q has the area pi q^2
sinc^2(q / 2a), so a whole block of radii is accepted with the product of the sinc^2.  All of it
is computed with real numbers of which ever more bits are drawn, as in
:mod:`~whereish.mechanisms.noise.rounded`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from whereish.arrays import FloatArray
from whereish.mechanisms.base import Mechanism
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.mechanisms.traces.noisy_test import level_on
from whereish.randomness import Randomness
from whereish.sampling.lazy_uniform import ARB_LOCK, LazyUniform
from whereish.space.sphere import RADIUS_M, Sphere

if TYPE_CHECKING:
    from flint import arb

    from whereish.mechanisms.traces.transcript import Shared, Surface

__all__ = [
    "ALONE",
    "RATIO",
    "SIZES",
    "Law",
    "SharedRadius",
    "block_size",
    "can_share",
    "is_local",
    "law",
    "level_over_laplace",
    "sharing_pays",
]

ALONE: Final = 4
"""Reports at the beginning of a trace with noise of their own: of few places nothing is shared."""
RATIO: Final = Fraction(2, 5)
"""s over m e: two fifths of a block pay for all of it.

Less would save little more, and tell more of one place alone.
"""
SIZES: Final = (4, 8, 16, 32)
"""Reports of the first blocks; the last of them repeats."""
_NODES: Final = 4001  # of the integral over R: off by less than 1e-6
_LEAST_RATE: Final = 1000.0  # e times the sphere's radius: below, few blocks would be accepted


def block_size(number: int) -> int:
    """Reports of the block of this number."""
    return SIZES[min(number, len(SIZES) - 1)]


def can_share(noise: Mechanism) -> bool:
    """Whether reports of this family can share a radius: the Laplace noise of plane and globe."""
    return type(noise) in (PlanarLaplace, GlobeLaplace)


def is_local(space: Surface, level: float) -> bool:
    """Whether noise of this level is small on the space, so that blocks are accepted."""
    return not isinstance(space, Sphere) or level * RADIUS_M >= _LEAST_RATE


class Law:
    """The distance of one report from its place, in units of 1/e, for blocks of `reports`."""

    def __init__(self, reports: int) -> None:
        rate = float(RATIO * reports)
        top = (2 * reports + 12 * math.sqrt(2 * reports) + 40) / rate
        at = np.linspace(0.0, top, _NODES)
        whole = at * at + 2 * at + 2
        chance = np.exp(reports * np.log(whole) - rate * at - reports * math.log(2 * reports))
        chance[[0, -1]] /= 2
        self._at, self._chance, self._area = at, chance / chance.sum(), whole / 2

    def beyond(self, radius: float) -> float:
        """Probability of a larger distance."""
        at = self._at
        near = at * at / 2 - radius * radius / 2 + at + 1
        far = (radius + 1) * np.exp(-np.maximum(radius - at, 0.0))
        return float(self._chance @ (np.where(radius < at, near, far) / self._area))

    def quantile(self, confidence: float) -> float:
        """The distance that is not exceeded with this probability."""
        low, high = 0.0, 1.0
        while self.beyond(high) > 1 - confidence:
            high *= 2
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (middle, high) if self.beyond(middle) > 1 - confidence else (low, middle)
        return high

    @cached_property
    def mean(self) -> float:
        """Of the distance."""
        at = self._at
        return float(self._chance @ ((at**3 / 3 + at**2 + 2 * at + 2) / self._area))

    @cached_property
    def square(self) -> float:
        """Mean square of the distance."""
        at = self._at
        return float(self._chance @ ((at**4 / 4 + at**3 + 3 * at**2 + 6 * at + 6) / self._area))


@cache
def law(reports: int) -> Law:
    """The law for blocks of this size."""
    return Law(reports)


@cache
def level_over_laplace(reports: int, confidence: float) -> float:
    """e over the level of planar Laplace noise that is within the same radius as surely."""
    from scipy.special import gammaincinv

    return law(reports).quantile(confidence) / float(gammaincinv(2.0, confidence))


@cache
def sharing_pays(confidence: float) -> bool:
    """Whether blocks cost less than noise of its own, as accurate with this probability.

    Few reports are near their places where the noise is flat, so not for small ones.
    """
    return all(RATIO * level_over_laplace(reports, confidence) < 0.95 for reports in SIZES)


@cache
def _gamma_weights(reports: int, ratio: Fraction) -> list[int]:
    """Integers as the chances that R is Gamma(k + 1) over s / e, k = 0 .. 2 m.

    (R^2 + 2 R + 2)^m e^{-s R} is the sum of c_k R^k e^{-s R}, and R^k e^{-s R} has the integral
    k! / s^{k + 1}.
    """
    coefficients = [1]
    for _ in range(reports):
        grown = [0] * (len(coefficients) + 2)
        for k, c in enumerate(coefficients):
            for more, factor in enumerate((2, 2, 1)):
                grown[k + more] += factor * c
        coefficients = grown
    rate, most = ratio * reports, 2 * reports
    above, below = rate.numerator, rate.denominator
    return [
        c * math.factorial(k) * below**k * above ** (most - k) for k, c in enumerate(coefficients)
    ]


class SharedRadius:
    """One block: its hidden radii, and the reports that are drawn with them.

    Contract: the first j reports keep ``min(j e, s) * d_inf`` (over a plane's stretch).
    """

    def __init__(self, shared: Shared, noise: Mechanism, rng: Randomness) -> None:
        assert isinstance(noise, PlanarLaplace | GlobeLaplace)
        self._shared, self._noise, self._rng = shared, noise, rng
        self._level = level_on(noise.space, shared.each)
        self._rate = shared.ratio * shared.reports
        self._known: tuple[list[LazyUniform], arb] | None = None  # R of these uniforms
        while True:
            self._common = self._uniforms(1 + self._pick_gamma())
            self._own = [self._pick_own() for _ in range(shared.reports)]
            if not isinstance(noise, GlobeLaplace) or self._accepted():
                break

    def report(self, secret: FloatArray, index: int) -> FloatArray:
        """The report of this index in the block, of a place: the node of its cell."""
        from flint import ctx

        place = self._uniforms(2)
        while True:
            with ARB_LOCK, ctx.workprec(self._common[0].bits + 128):
                balls = self._moved(secret, self._hidden_radius(index), *place)
                floors = [ball.floor().unique_fmpz() for ball in balls or ()]
                if floors and all(floor is not None for floor in floors):
                    column, row = (int(floor) for floor in floors)
                    return np.array(self._noise._node((column, row)))
            place = self._extended(place)
            self._extend_hidden()

    def _uniforms(self, count: int) -> list[LazyUniform]:
        return [LazyUniform(int(word)) for word in self._rng.words(count)]

    def _extended(self, uniforms: Iterable[LazyUniform]) -> list[LazyUniform]:
        return [uniform.extended(self._rng) for uniform in uniforms]

    def _extend_hidden(self) -> None:
        self._common = self._extended(self._common)
        self._own = [self._extended(own) for own in self._own]

    def _pick_gamma(self) -> int:
        """k with its exact chance: a uniform integer below the sum of the weights."""
        weights = _gamma_weights(self._shared.reports, self._shared.ratio)
        total = sum(weights)
        bits = total.bit_length()
        while True:
            words = self._rng.words(-(-bits // 64))
            drawn = int.from_bytes(words.astype("<u8").tobytes(), "little") & ((1 << bits) - 1)
            if drawn < total:
                break
        for k, weight in enumerate(weights):
            if drawn < weight:
                return k
            drawn -= weight
        raise AssertionError

    def _pick_own(self) -> list[LazyUniform]:
        """One, two or three uniforms whose exponential numbers are W, as R^2 : 2 R : 2."""
        from flint import ctx

        (chance,) = self._uniforms(1)
        while True:
            with ARB_LOCK, ctx.workprec(self._common[0].bits + 128):
                radius = self._common_radius()
                first, second = radius * radius, radius * radius + 2 * radius
                at = chance.ball() * (second + 2)
                if at < first:
                    return self._as_known(1)
                if at > first and at < second:
                    return self._as_known(2)
                if at > second:
                    return self._as_known(3)
            chance = chance.extended(self._rng)
            self._common = self._extended(self._common)

    def _as_known(self, count: int) -> list[LazyUniform]:
        """New uniforms, known to as many bits as those of R."""
        found = self._uniforms(count)
        while found[0].bits < self._common[0].bits:
            found = self._extended(found)
        return found

    def _accepted(self) -> bool:
        """Whether the radii of a plane are taken for the sphere's, with the product of sinc^2."""
        from flint import arb, ctx

        (chance,) = self._uniforms(1)
        while True:
            with ARB_LOCK, ctx.workprec(self._common[0].bits + 128):
                share = arb(1)
                for index in range(self._shared.reports):
                    half_angle = self._hidden_radius(index) / (2 * arb(RADIUS_M))
                    if half_angle < arb.pi() / 2:
                        share *= half_angle.sinc() ** 2
                    elif half_angle > arb.pi() / 2:
                        share /= half_angle**2
                    else:
                        share = arb(0.5, 0.5)
                        break
                if chance.ball() < share:
                    return True
                if chance.ball() > share:
                    return False
            chance = chance.extended(self._rng)
            self._extend_hidden()

    def _common_radius(self) -> arb:
        """R, in units of 1/e."""
        from flint import arb

        if self._known is None or self._known[0] is not self._common:
            product = arb(1)
            for uniform in self._common:
                product *= uniform.ball()
            radius = -product.log() * self._rate.denominator / self._rate.numerator
            self._known = self._common, radius
        return self._known[1]

    def _hidden_radius(self, index: int) -> arb:
        """R + W of one report, in metres of the space."""
        from flint import arb

        product = arb(1)
        for uniform in self._own[index]:
            product *= uniform.ball()
        return (self._common_radius() - product.log()) / arb(self._level)

    def _moved(
        self, secret: FloatArray, radius: arb, area: LazyUniform, angle: LazyUniform
    ) -> list[arb] | None:
        """Balls around the cell coordinates of a uniform point within `radius` of the secret."""
        from flint import arb

        root = area.ball().sqrt()
        if isinstance(self._noise, PlanarLaplace):
            return self._noise._moved_balls(secret, radius * root, angle)
        half_angle = radius / (2 * arb(RADIUS_M))
        if half_angle < arb.pi() / 2:
            root *= half_angle.sin()
        elif not half_angle > arb.pi() / 2:
            return None
        return self._noise._moved_balls(secret, 2 * root.asin(), angle)
