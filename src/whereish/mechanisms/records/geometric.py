"""Geometric noise on q*Z and on q*[0..k]: exact rational laws, sampled with integers.

With a = e^{-eps q}, two-sided geometric noise is P(N = n) = (1-a)/(1+a) a^|n| steps.
Truncated to q*[0..k] (what falls outside goes to the end it passed)

    P(z | x) = a^{|x-z|/q} (1-a)/(1+a)    for 0 < z < qk,
    P(z | x) = a^{|x-z|/q} / (1+a)        for z = 0 and z = qk.

Neighbouring rows differ by the factor a or 1/a in every column, so the mechanism keeps
eps |x - x'| tightly.  It is universally optimal there: for every prior and monotone gain
no eps-private channel gives a consumer who remaps more (Ghosh, Roughgarden, Sundararajan,
STOC 2009; for uniformly sensitive queries and their metrics, Chatzikokolakis et al.,
PETS 2013, section 4).

e^{-eps q} is not rational: `ratio` is the least multiple of 2^-64 above it, so the promise
holds as it stands, and all probabilities are fractions.  Sampling follows from
P(N >= n) = P(N <= -n) = T_n = a^n / (1+a): one bit for the side, and
:class:`~whereish.sampling.thresholds.Thresholds` for the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Composable
from whereish.mechanisms.records.consumer import consumer_utility
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.metric import Metric, rounded_up
from whereish.privacy.norms import Manhattan
from whereish.privacy.tuples import ValueDistance
from whereish.randomness import Randomness, secure
from whereish.sampling.thresholds import Thresholds, exp_minus_up, level, log_inverse_up
from whereish.space.points import Points, checked_coordinates
from whereish.space.values import Multiples, Values, rational

__all__ = ["GeometricNoise", "TruncatedGeometric", "TwoSidedGeometric"]

NUMERICS: Final = "exact: a rational law, sampled with integers"

_LONGEST_TABLE = 2**22
_GUARD = 256
_SIDE, _REST = np.uint64(63), np.uint64(2**63 - 1)


@dataclass(frozen=True)
class GeometricNoise:
    """Integers N with P(N = n) = (1-a)/(1+a) a^|n|, for a rational ratio a in (0, 1).

    With `clamp` = k, |N| is cut to k: all that noise on [0..k] can show.
    """

    ratio: Fraction
    clamp: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.ratio < 1:
            raise InvalidInput(f"the ratio must be between 0 and 1, exclusive; got {self.ratio}")
        # T_n falls below 2^-64 after about 64 ln 2 / (1 - a) steps.
        length = min(self.clamp or math.inf, 64 * math.log(2) / float(1 - self.ratio))
        if length > _LONGEST_TABLE:
            raise InvalidInput(
                f"e^-(epsilon * step) must be below 1 - 1e-5 on a universe this large; got"
                f" 1 - {float(1 - self.ratio):.1e}: declare a coarser step"
            )

    @cached_property
    def thresholds(self) -> Thresholds:
        """T_n = a^n / (1+a), by fixed-point enclosures that settle the first 64 bits."""
        a, b = self.ratio.numerator, self.ratio.denominator
        low = high = 1 << _GUARD
        table: list[int] = []
        while (not table or table[-1] > 0) and len(table) != self.clamp:
            low, high = low * a // b, -(-high * a // b)
            floor, ceiling = (power * b // (a + b) >> (_GUARD - 64) for power in (low, high + 1))
            table.append(floor if floor == ceiling else self._prefix(len(table) + 1, 64))
        return Thresholds(np.array(table, np.uint64), self._prefix, self.clamp)

    def _prefix(self, n: int, bits: int) -> int:
        a, b = self.ratio.numerator, self.ratio.denominator
        return int((a**n << bits) // (b ** (n - 1) * (a + b)))

    def draw(self, count: int, rng: Randomness) -> IntArray:
        """`count` independent integers."""
        words = rng.words(count)
        size = self.thresholds.counts(words & _REST, rng)
        return np.where(words >> _SIDE == 1, size, -size)

    def within(self, steps: int) -> float:
        """P(|N| <= steps)."""
        return 1 - 2 * self.beyond(steps)

    def beyond(self, steps: int) -> float:
        """P(N > steps) = a^{steps+1} / (1+a)."""
        if steps < 0:
            return 1 - self.beyond(-steps - 1)
        log = math.log1p(-float(1 - self.ratio))
        return math.exp((steps + 1) * log) / (1 + float(self.ratio))


class _Geometric(Composable):
    """What the plain and the truncated mechanism share."""

    ratio: Fraction
    epsilon: float

    def _set_level(self, epsilon: Fraction | float, step: Fraction) -> None:
        exact = level(epsilon)
        object.__setattr__(self, "epsilon", rounded_up(exact))
        object.__setattr__(self, "ratio", exp_minus_up(exact * step))

    def _set_ratio(self, ratio: Fraction | str, step: Fraction) -> None:
        fraction = rational(ratio, name="the ratio")
        if not 0 < fraction < 1:
            raise InvalidInput(f"the ratio must be between 0 and 1, exclusive; got {ratio}")
        object.__setattr__(self, "ratio", fraction)
        object.__setattr__(self, "epsilon", log_inverse_up(fraction, step))

    def _guarantee(self, metric: Metric, name: str) -> Guarantee:
        return Guarantee(self.epsilon * metric, Basis.THEOREM, name, NUMERICS)


@dataclass(frozen=True, init=False)
class TwoSidedGeometric(_Geometric):
    """Geometric noise on all multiples of a step q.

    Contract: keeps ``eps * Manhattan()``, that is eps |x - x'|, tightly up to 2^-64.

    Raises
    ------
    InvalidInput
        If the step or epsilon is not > 0.

    Examples
    --------
    >>> import whereish as wh
    >>> noise = wh.TwoSidedGeometric(1, 0.5)
    >>> noise.report([[10]], rng=wh.SeededRandomness(1))
    Points(1 in the multiples of 1, reproducible)
    """

    lattice: Multiples
    ratio: Fraction
    epsilon: float

    def __init__(self, step: Fraction | float | str, epsilon: Fraction | float) -> None:
        object.__setattr__(self, "lattice", Multiples(step))
        self._set_level(epsilon, self.lattice.step)
        _ = self.noise  # refuses a level that is too small

    @property
    def space(self) -> Multiples:
        """The multiples of q."""
        return self.lattice

    @property
    def guarantee(self) -> Guarantee:
        """``eps * Manhattan()`` on one coordinate."""
        return self._guarantee(Manhattan(), "two-sided geometric noise (Ghosh et al. 2009)")

    @cached_property
    def noise(self) -> GeometricNoise:
        """The noise, in steps."""
        return GeometricNoise(self.ratio)

    def report(self, secrets: Points | ArrayLike, *, rng: Randomness | None = None) -> Points:
        """One independent report for each secret."""
        source = secure(rng)
        index = self.lattice.indices(checked_coordinates(secrets, self.lattice))
        noisy = index + self.noise.draw(len(index), source)[:, None]
        return Points.trusted(
            self.lattice.at(noisy), self.lattice, reproducible=source.reproducible
        )

    def usefulness(self, radius: Fraction | float) -> float:
        """P(|report - secret| <= radius), the same for every secret."""
        return self.noise.within(_whole_steps(radius, self.lattice.step))


@dataclass(frozen=True, init=False)
class TruncatedGeometric(_Geometric):
    """The Truncated Geometric mechanism on q*[0..k].

    Contract: keeps ``eps * ValueDistance(values)``, tightly up to the 2^-64 of `ratio`.

    Parameters
    ----------
    values
        The universe of secrets and reports, without null.
    epsilon
        Nats per unit of value: a double or a fraction, taken exactly.

    Raises
    ------
    InvalidInput
        If the values have null, or epsilon is not > 0.

    Examples
    --------
    >>> half = TruncatedGeometric.with_ratio(Values(1, 2), "1/2")
    >>> [str(p) for p in half.fractions()[1]]
    ['1/3', '1/3', '1/3']
    """

    values: Values
    ratio: Fraction
    epsilon: float

    def __init__(self, values: Values, epsilon: Fraction | float) -> None:
        self._set_values(values)
        self._set_level(epsilon, values.step)
        _ = self.noise  # refuses a level that is too small

    @classmethod
    def with_ratio(cls, values: Values, ratio: Fraction | str) -> Self:
        """The mechanism whose neighbouring rows differ by exactly `ratio` = e^{-eps q}."""
        mechanism = object.__new__(cls)
        mechanism._set_values(values)
        mechanism._set_ratio(ratio, values.step)
        _ = mechanism.noise
        return mechanism

    def _set_values(self, values: Values) -> None:
        refuse_null(values)
        object.__setattr__(self, "values", values)

    @property
    def space(self) -> Values:
        """The universe."""
        return self.values

    @property
    def guarantee(self) -> Guarantee:
        """``eps * |v - v'|``."""
        return self._guarantee(
            ValueDistance(self.values), "Truncated Geometric (Ghosh et al. 2009)"
        )

    @cached_property
    def noise(self) -> GeometricNoise:
        """The noise before truncation, in steps."""
        return GeometricNoise(self.ratio, self.values.top)

    def fractions(self) -> list[list[Fraction]]:
        """The channel exactly: row x, column z."""
        top, a = self.values.top, self.ratio
        power = [a**n / (1 + a) for n in range(top + 1)]
        inner = 1 - a
        return [
            [power[abs(x - z)] * (1 if z in (0, top) else inner) for z in range(top + 1)]
            for x in range(top + 1)
        ]

    @property
    def matrix(self) -> FloatArray:
        """Row x, column z: the probability of report z given secret x, to rounding."""
        index = np.arange(self.values.top + 1)
        a = float(self.ratio)
        matrix = np.exp(np.abs(index[:, None] - index) * math.log1p(-float(1 - self.ratio)))
        matrix[:, 1:-1] *= float(1 - self.ratio)
        return np.asarray(matrix / (1 + a))

    def report(self, secrets: Points | ArrayLike, *, rng: Randomness | None = None) -> Points:
        """One independent report for each secret."""
        source = secure(rng)
        index = self.values.indices(checked_coordinates(secrets, self.values))
        noisy = self.perturbed(index, source)
        return Points.trusted(self.values.at(noisy), self.values, reproducible=source.reproducible)

    def perturbed(self, indices: IntArray, rng: Randomness) -> IntArray:
        """Reports as indices 0..k, for secrets given as such."""
        noise = self.noise.draw(indices.size, rng).reshape(indices.shape)
        return np.asarray(np.clip(indices + noise, 0, self.values.top))

    def usefulness(self, radius: Fraction | float) -> float:
        """The least P(|report - secret| <= radius) over all secrets.

        A secret is missed upwards only if more than `radius` is left above it, and
        downwards likewise; the worst secret has as much as possible on both sides.
        """
        steps = _whole_steps(radius, self.values.step)
        sides = 2 if 2 * (steps + 1) <= self.values.top else int(steps < self.values.top)
        return 1 - sides * self.noise.beyond(steps)

    def is_useful(self, radius: Fraction | float, delta: float) -> bool:
        """(alpha, delta)-usefulness: within `radius` = alpha with probability >= 1 - delta."""
        if not 0 <= delta <= 1:
            raise InvalidInput(f"delta must be a probability; got {delta!r}")
        return self.usefulness(radius) >= 1 - delta

    def utility(self, prior: ArrayLike, gain: ArrayLike) -> float:
        """U(H, prior, gain): what a consumer gains who remaps as is best for them."""
        return consumer_utility(self.matrix, prior, gain)


def refuse_null(values: Values) -> None:
    """Geometric noise moves a value by steps, and null has no neighbours."""
    if values.null:
        raise InvalidInput("geometric noise has no null to report: declare Values(..., null=False)")


def _whole_steps(radius: Fraction | float, step: Fraction) -> int:
    if not radius >= 0 or math.isinf(radius):
        raise InvalidInput(f"the radius must be a finite number >= 0; got {radius!r}")
    return math.floor(Fraction(radius) / step)
