"""Tightness on all radii: P(|v| > q) <= rho(q) for a function rho that tends to 0.

Theorem 8 of ElSalamouny and Gambs (2018) is about noise that is bounded by M and rho-tight.  Such
a function is met in two steps.

*Certificate* (:func:`largest_excess`).  The survival S(q) = P(|v| > q) and rho do not increase, so
S(a) <= rho(b) covers all radii of [a, b].  Intervals are halved until that holds, or until S is
above rho at one of their ends.  Beyond the declared reach rho falls by at most `rate` nats a metre,
and the radial ends in an exponential of slope s, for which

    S(q) = S(e) (1 + s q) / (1 + s e) exp(-s (q - e)),

so that S(q) / rho(q) is largest at e, or at q = 1/(s - rate) - 1/s if that is beyond e.

*Solution* (:func:`tight_radial`).  Limits at finitely many radii are a relaxation, and their lower
bound is one for rho.  Where a solution exceeds rho the worst radii are added with their limits,
and those that are there already are undercut by as much as rho was exceeded around them.

*Empty spaces.*  Let s be the infimum of l(d)/d.  By chains of steps R(r + q) >= c R(r) exp(-s' q)
for every s' > s, and for s' = s where l(d) - s d stays bounded, as it does for finitely many
pieces, once q is a multiple of the right step; so S(q) >= c' q exp(-s q), and nothing is below a
rho that falls by s or more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, SolverError
from whereish.privacy.distinguishability import Distinguishability
from whereish.solvers.radial.log_linear import LogLinear
from whereish.solvers.radial.optimum import RadialOptimum
from whereish.units import Length

__all__ = ["Excess", "Tail", "largest_excess", "tight_radial"]

Limits: TypeAlias = tuple[tuple[float, float], ...]

_FIRST = 256  # intervals to begin with, in equal ratios
_SHORTEST = 1e-10  # relative: such an interval, if it is not decided, counts as an excess
_COARSE = 0.01  # relative: shorter intervals with an excess at an end are not halved again
_ROUNDS = 30
_NEAR = 0.02  # relative: an excess this close to a limit undercuts it
_MARGIN = 1e-12  # relative error of S
_UNDER = 1e-4
_SMALL = 0.05  # excesses below this share of the largest may go with it
_ONE = 1e-7  # rho this close to 1 asks nothing
_BEGIN = 1e-4  # limits on smaller radii than where rho is 1 - this are put there


@dataclass(frozen=True, eq=False)
class Tail:
    """rho: an upper bound of P(|v| > q) for every radius q in metres.

    Parameters
    ----------
    function
        rho(q): nonincreasing, 1 at 0, with values in [0, 1] and limit 0.  Values within 1e-7 of 1
        count as 1.
    reach
        From this radius on, in metres, the rates speak.
    rate
        Nats per metre by which rho falls at most beyond `reach`.
    text
        How messages call it.
    least_rate
        Nats per metre by which it falls at least in the long run, if known.

    >>> rho = Tail.power("2 km", 3.0)
    >>> rho(1000.0), rho(4000.0)
    (1.0, 0.125)
    """

    function: Callable[[float], float]
    reach: float
    rate: float
    text: str = "rho"
    least_rate: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.reach) and self.reach > 0):
            raise InvalidInput(f"the reach of a tail must be a length > 0; got {self.reach!r}")
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise InvalidInput(
                "a tail must tend to 0: give the rate > 0, in nats per metre, at which it falls at"
                f" most beyond its reach; got {self.rate!r}"
            )
        values = [self(q) for q in np.geomspace(self.reach * 1e-9, self.reach, 400)]
        if values[0] < 1 - 1e-6:
            raise InvalidInput(
                "a tail must be 1 at the radius 0, since every report of a density is beyond it;"
                f" got {values[0]:.6g}: the space of such noise is empty"
            )
        if any(b > a for a, b in itertools.pairwise(values)):
            raise InvalidInput(
                "a tail must not increase with the radius: give its running minimum, which is"
                " the same condition"
            )

    def __call__(self, radius: float) -> float:
        """rho at a radius in metres."""
        value = float(self.function(float(radius)))
        if not 0 <= value <= 1:
            raise InvalidInput("a tail must be a probability at every radius")
        return 1.0 if value > 1 - _ONE else value

    @cached_property
    def begin(self) -> float:
        """About where rho has fallen a little below 1."""
        low, high = 0.0, self.reach
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self(middle) > 1 - _BEGIN else (low, middle)
        return high

    @classmethod
    def of(cls, function: Callable[[float], float], *, reach: Length | str, rate: float) -> Tail:
        """Any nonincreasing function of the radius in metres."""
        return cls(function, Length.positive(reach, name="reach").m, float(rate), "this tail")

    @classmethod
    def exponential(cls, scale: Length | str, *, factor: float = 2.0) -> Tail:
        """min(1, factor exp(-q / scale)), factor > 1.

        With a factor of 1 it would fall like q from radius 0 on, where a density has S(q) above
        1 - c q^2: nothing is so tight.
        """
        unit = Length.positive(scale, name="scale").m
        if not (math.isfinite(factor) and factor > 1):
            raise InvalidInput(f"the factor of a tail must be a finite number > 1; got {factor!r}")
        return cls(
            lambda q: min(1.0, factor * math.exp(-q / unit)),
            unit * (30 + math.log(factor)),
            1 / unit,
            f"{factor:g} exp(-q / {Length(unit)})",
            1 / unit,
        )

    @classmethod
    def power(cls, scale: Length | str, exponent: float) -> Tail:
        """min(1, (scale / q)^exponent)."""
        unit = Length.positive(scale, name="scale").m
        if not (math.isfinite(exponent) and exponent > 0):
            raise InvalidInput(f"the exponent of a tail must be finite and > 0; got {exponent!r}")
        reach = 1e4 * unit
        return cls(
            lambda q: 1.0 if q <= unit else (unit / q) ** exponent,
            reach,
            exponent / reach,
            f"({Length(unit)} / q)^{exponent:g}",
        )


@dataclass(frozen=True)
class Excess:
    """Where S(q) exceeds rho(q).

    Attributes
    ----------
    holds
        Whether S <= rho is proven on all radii, up to 1e-12 of S.
    ratio, radius
        The largest S(q) / rho(q) at the radii looked at, and where.
    peaks
        The worst radius of every stretch of excesses, and by how much S exceeds rho there, as a
        share of rho or of 1 - rho, whichever is smaller.  An excess that is only beyond the reach
        of the tail counts there.
    """

    holds: bool
    ratio: float
    radius: float
    peaks: Limits = field(default=(), repr=False)


def largest_excess(radial: LogLinear, tail: Tail) -> Excess:
    """Whether P(|v| > q) <= rho(q) for all radii, and where not."""
    last = float(radial.edges[-1] if radial.bounded else radial.edges[-2])
    end = max(tail.reach, last)
    first = np.concatenate([[0.0], np.geomspace(end * 1e-6, end, _FIRST)]).tolist()
    held = {q: _held(radial, q) for q in first}
    rho = {q: tail(q) for q in first}
    todo, undecided = list(itertools.pairwise(first)), set[float]()
    while todo:
        a, b = todo.pop()
        if held[a] <= rho[b]:
            continue
        middle, over = (a + b) / 2, held[a] > rho[a] or held[b] > rho[b]
        if b - a <= (_COARSE if over else _SHORTEST) * b or middle in (a, b):
            undecided |= set() if over else {b}
            continue
        held[middle], rho[middle] = _held(radial, middle), tail(middle)
        todo += [(a, middle), (middle, b)]
    radii = sorted(held)
    shares = [max(_share(held[q], rho[q]), _MARGIN if q in undecided else -math.inf) for q in radii]
    peaks = list(_peaks(np.array(radii), np.array(shares)))
    worst = max(radii, key=lambda q: _quotient(held[q], rho[q]))
    ratio = _quotient(held[worst], rho[worst])
    top, beyond = _beyond(radial, tail, end)
    if beyond > 1 and not peaks:  # what is in reach may mend it
        peaks.append((end, beyond - 1))
    ratio, worst = max((ratio, worst), (beyond, top))
    return Excess(not peaks, ratio, worst, tuple(peaks))


def _held(radial: LogLinear, radius: float) -> float:
    """S, rounded up."""
    return min(float(radial.survival(radius)) * (1 + _MARGIN), 1.0)


def _quotient(held: float, limit: float) -> float:
    if limit > 0:
        return held / limit
    return math.inf if held > 0 else 0.0


def _share(held: float, limit: float) -> float:
    """By how much S is above rho, relative to what is left of rho or of 1 - rho."""
    over, least = held - limit, min(limit, 1 - limit)
    if least > 0:
        return over / least
    return math.inf if over > 0 else over


def _peaks(radii: FloatArray, shares: FloatArray) -> Iterator[tuple[float, float]]:
    """The worst of each stretch of excesses, and of each of its parts of half an octave."""
    over = np.flatnonzero(shares > 0)
    for stretch in np.split(over, np.flatnonzero(np.diff(over) > 1) + 1):
        part = np.floor(2 * np.log2(np.maximum(radii[stretch], 1e-300))).astype(int)
        for one in np.unique(part):
            inside = stretch[part == one]
            k = inside[shares[inside].argmax()]
            yield float(radii[k]), float(shares[k])


def _beyond(radial: LogLinear, tail: Tail, end: float) -> tuple[float, float]:
    """The worst radius beyond `end`, where the radial is an exponential, and its ratio."""
    if radial.bounded:
        return end, 0.0
    s = radial.slope
    if tail.rate >= s:
        return math.inf, math.inf
    top = max(1 / (s - tail.rate) - 1 / s, end)
    growth = (1 + s * top) / (1 + s * end) * math.exp(-(s - tail.rate) * (top - end))
    return top, _quotient(_held(radial, end) * growth * (1 + _MARGIN), tail(end))


def tight_radial(
    solve: Callable[[Limits], RadialOptimum], tail: Tail, ell: Distinguishability
) -> RadialOptimum:
    """The optimum under rho on all radii, from solutions with limits at finitely many.

    `solve` takes pairs (radius, limit).  The lower bound is that of the limits rho(q) at the
    radii that were needed.

    Raises
    ------
    InvalidInput
        If no noise is so tight, or none can be shown to be.
    SolverError
        If the solutions do not settle.
    """
    _check_rates(tail, ell)
    limits: dict[float, float] = {}
    found = solve(())
    lower, undercut = found.lower_bound, False
    for _ in range(_ROUNDS):
        excess = largest_excess(found.radial, tail)
        if excess.holds:
            break
        if math.isinf(excess.ratio):
            raise InvalidInput(
                f"no noise that keeps {ell} stays below {tail.text}: it is 0 at radii where such"
                " noise has some probability; loosen the tail"
            )
        undercut |= _tightened(limits, excess, tail)
        found = _solved(solve, limits, tail)
        if not undercut:
            lower = max(lower, found.lower_bound)
    else:
        raise SolverError(f"{tail.text} is not met on all radii after {_ROUNDS} solutions")
    if undercut:
        lower = max(lower, solve(tuple((q, tail(q)) for q in sorted(limits))).lower_bound)
    return replace(found, lower_bound=lower)


def _tightened(limits: dict[float, float], excess: Excess, tail: Tail) -> bool:
    """Add the worst radii to the limits; whether one was there already and is undercut."""
    most = max(share for _, share in excess.peaks)
    added, again = dict[float, float](), dict[float, float]()
    for peak, share in excess.peaks:
        radius = max(peak, tail.begin)
        near = min(limits, key=lambda q: abs(q - radius), default=math.inf)
        if abs(near - radius) <= _NEAR * radius:
            again[near] = max(share, again.get(near, 0.0))
        elif share > _SMALL * most:
            added[radius] = tail(radius)
    for radius, share in again.items():
        limits[radius] = _lower(limits[radius], share * (1 + _UNDER) + _UNDER)
    limits.update(added)
    return bool(again)


def _lower(limit: float, share: float) -> float:
    """A limit with its rest, or that of 1, changed by a share."""
    return limit / (1 + share) if limit <= 0.5 else 1 - (1 - limit) * (1 + share)


def _solved(
    solve: Callable[[Limits], RadialOptimum], limits: dict[float, float], tail: Tail
) -> RadialOptimum:
    try:
        return solve(tuple(sorted(limits.items())))
    except InvalidInput:
        solve(tuple((q, tail(q)) for q in sorted(limits)))  # if these are empty, that is why
        raise SolverError(
            f"noise below {tail.text} on all radii leaves so little room that none was found:"
            " loosen the tail a little"
        ) from None


def _check_rates(tail: Tail, ell: Distinguishability) -> None:
    if tail.least_rate >= ell.decay:
        raise InvalidInput(
            f"no noise that keeps {ell} stays below {tail.text}: it falls by"
            f" {tail.least_rate:.4g} nats per metre, and such noise by less than {ell.decay:.4g} in"
            " the long run; give a larger scale"
        )
    if tail.rate >= ell.decay:
        raise InvalidInput(
            f"no noise that keeps {ell} can be shown to stay below {tail.text}: beyond its reach it"
            f" may fall by {tail.rate:.4g} nats per metre, and such noise falls by less than"
            f" {ell.decay:.4g}; give a smaller rate, with a larger reach if need be"
        )
