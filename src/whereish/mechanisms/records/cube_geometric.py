"""Geometric noise for d_inf: one report of a whole record, such as a meter's trace.

On q*Z^n let P(v) be proportional to a^{|v|_inf} with a = e^{-eps q}, v counted in steps.
By the triangle inequality of d_inf this keeps eps * d_inf.  Independent noise on each of
the n entries keeps it only at eps/n each, with about twice the error.

Since a^{|v|} = (1-a) sum_{r >= |v|} a^r, the law is a mixture of uniform cubes: draw r with
weight (2r+1)^n a^r, the volume of the cube times a^r, then each entry uniform in -r..r.
Both steps are exact in integers: the total weight is a fraction,

    sum_r (2r+1)^n a^r = sum_j B(n, j) a^j / (1-a)^{n+1},

with the Eulerian numbers of type B, B(n, j) = (2j+1) B(n-1, j) + (2n-2j+1) B(n-1, j-1).
Clamping into the universe is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import IntArray
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Composable
from whereish.mechanisms.records.geometric import NUMERICS, refuse_null
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.metric import rounded_up
from whereish.privacy.tuples import Records
from whereish.randomness import Randomness, secure
from whereish.sampling.thresholds import Thresholds, exp_minus_up, level, uniform_below
from whereish.space.points import Points, checked_coordinates

__all__ = ["CubeGeometric", "CubeRadius"]

_LONGEST_TABLE = 2**16


@dataclass(frozen=True)
class CubeRadius:
    """Radii r >= 0 with P(r) proportional to (2r+1)^n a^r.

    >>> CubeRadius(1, Fraction(1, 2)).total
    Fraction(6, 1)
    """

    dimension: int
    ratio: Fraction

    @cached_property
    def total(self) -> Fraction:
        """The sum of all weights."""
        row = [1]
        for n in range(1, self.dimension + 1):
            below = [0, *row, 0]
            row = [
                (2 * j + 1) * below[j + 1] + (2 * n - 2 * j + 1) * below[j] for j in range(n + 1)
            ]
        numerator = Fraction(0)
        for coefficient in reversed(row):
            numerator = numerator * self.ratio + coefficient
        return numerator / (1 - self.ratio) ** (self.dimension + 1)

    @cached_property
    def thresholds(self) -> Thresholds:
        """T_r = P(radius >= r), r = 1, 2, ..."""
        table: list[int] = []
        for floor, ceiling in self._tails(64, self._guard):
            table.append(floor if floor == ceiling else self._prefix(len(table) + 1, 64))
            if table[-1] == 0:
                break
        return Thresholds(np.array(table, np.uint64), self._prefix)

    def _tails(self, bits: int, guard: int) -> Iterator[tuple[int, int]]:
        """Bounds on floor(2^bits T_r) for r = 1, 2, ...; the powers of a are enclosed."""
        a, b = self.ratio.numerator, self.ratio.denominator
        scale = guard + bits
        top, bottom = self.total.numerator, self.total.denominator
        low = high = 1 << scale
        below_low = below_high = 0
        radius = 0
        while True:
            weight = (2 * radius + 1) ** self.dimension
            below_low, below_high = below_low + weight * low, below_high + weight * high
            radius += 1
            low, high = low * a // b, -(-high * a // b)
            # T = 1 - below / total, in units of 2^-bits
            yield (
                max(((top << scale) - below_high * bottom) // (top << guard), 0),
                max(((top << scale) - below_low * bottom) // (top << guard), 0),
            )

    def _prefix(self, n: int, bits: int) -> int:
        guard = self._guard
        while True:
            floor, ceiling = next(islice(self._tails(bits, guard), n - 1, None))
            if floor == ceiling:
                return floor
            guard *= 2

    @property
    def _guard(self) -> int:
        # Where T_r reaches 2^-64, a^r is about e^{-1.6 n - 60}; its error counts (2r+1)^n times.
        return 256 + 8 * self.dimension

    def draw(self, count: int, rng: Randomness) -> IntArray:
        """`count` independent radii."""
        return self.thresholds.counts(rng.words(count), rng)


@dataclass(frozen=True, init=False)
class CubeGeometric(Composable):
    """Reports of whole records that keep ``eps * records.maximum`` (d_inf), tightly.

    Contract: keeps ``eps * records.maximum`` (d_inf), tightly.

    Parameters
    ----------
    records
        The universe of the entries, without null, and how many there are.
    epsilon
        Nats per unit of the largest change, taken exactly.

    Raises
    ------
    InvalidInput
        If the values have null, or epsilon times their step is too small.

    Examples
    --------
    >>> import whereish as wh
    >>> mechanism = wh.CubeGeometric(wh.Records(wh.Values(1, 10), 2), 0.5)
    >>> mechanism.guarantee.metric.description
    "0.5 * maximum over 2 entries of |v - v'|"
    >>> report = mechanism.report([[3, 7]]).coordinates
    >>> report.shape, bool((report >= 0).all() and (report <= 10).all())
    ((1, 2), True)
    """

    records: Records
    ratio: Fraction
    epsilon: float

    def __init__(self, records: Records, epsilon: Fraction | float) -> None:
        refuse_null(records.values)
        exact = level(epsilon)
        per_step = exact * records.values.step
        if (2 * records.size + 64) / per_step > _LONGEST_TABLE:
            raise InvalidInput(
                "epsilon * step must be above (2 * size + 64) / 2^16, so that the noise spans fewer"
                f" than 2^16 steps; got {float(per_step):.3g}: declare a coarser step"
            )
        object.__setattr__(self, "records", records)
        object.__setattr__(self, "epsilon", rounded_up(exact))
        object.__setattr__(self, "ratio", exp_minus_up(per_step))

    @cached_property
    def radius(self) -> CubeRadius:
        """The radius of the cube, in steps."""
        return CubeRadius(self.records.size, self.ratio)

    @property
    def guarantee(self) -> Guarantee:
        """``eps * d_inf``."""
        source = "geometric noise of the norm d_inf (its triangle inequality)"
        return Guarantee(self.epsilon * self.records.maximum, Basis.THEOREM, source, NUMERICS)

    @property
    def space(self) -> Records:
        """The records."""
        return self.records

    def report(self, secrets: Points | ArrayLike, *, rng: Randomness | None = None) -> Points:
        """One independent report for each record."""
        source, values = secure(rng), self.records.values
        index = values.indices(checked_coordinates(secrets, self.records))
        noisy = np.clip(index + self.noise(len(index), source), 0, values.top)
        return Points.trusted(values.at(noisy), self.records, reproducible=source.reproducible)

    def usefulness(self, radius: Fraction | float) -> float:
        """A probability with which, at least, no entry of a report is off by more than `radius`.

        P(|v|_inf <= m) = sum_{j <= m} ((2j+1)^n - (2j-1)^n) a^j over the sum of all; clamping
        into the universe only brings entries closer.
        """
        steps = int(Fraction(radius) / self.records.values.step)
        if steps < 0:
            return 0.0
        n, a = self.records.size, self.ratio
        held, power, below = Fraction(0), Fraction(1), 0
        for j in range(steps + 1):
            cube = (2 * j + 1) ** n
            held, power, below = held + (cube - below) * power, power * a, cube
        return float(held / (self.radius.total * (1 - a)))

    def noise(self, count: int, rng: Randomness) -> IntArray:
        """Noise for `count` records, in steps, before clamping."""
        radii = self.radius.draw(count, rng)[:, None]
        spans = np.broadcast_to(2 * radii + 1, (count, self.records.size))
        return uniform_below(spans, rng) - radii
