"""Tightness on all radii: P(|v| > q) <= rho(q) for a function rho that tends to 0.

Theorem 8 of ElSalamouny and Gambs (2018) takes noise that is bounded by M and rho-tight.  A
function is met in two steps.

*Certificate* (:func:`largest_excess`).  The survival S(q) = P(|v| > q) and rho do not increase, so
S(a) <= rho(b) covers all radii of [a, b]; intervals are halved until it holds, or until one is so
short that S exceeds rho there.  Beyond the declared reach rho falls by at most `rate` nats per
metre, and the radial ends in an exponential of slope s, for which

    S(q) = S(e) (1 + s q)/(1 + s e) exp(-s (q - e)),

so S(q)/rho(q) is largest at e or, for rate < s, at q = 1/(s - rate) - 1/s if that is beyond e.

*Solution* (:func:`tight_radial`).  Limits at finitely many radii are a relaxation, so its lower
bound holds for rho.  Where its radial exceeds rho the worst radius is added, until none does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from whereish.errors import InvalidInput, SolverError
from whereish.privacy.distinguishability import Distinguishability
from whereish.solvers.radial.log_linear import LogLinear
from whereish.solvers.radial.optimum import RadialOptimum
from whereish.units import Length

__all__ = ["Excess", "Tail", "largest_excess", "tight_radial"]

_FIRST = 64  # intervals to begin with, in equal ratios
_SHORTEST = 1e-6  # relative: below this an interval counts as one radius
_ROUNDS = 24
_SLACK = 2e-3  # by which limits are undercut, so that neighbouring radii hold too
_MARGIN = 1e-12


@dataclass(frozen=True, eq=False)
class Tail:
    """rho: an upper bound of P(|v| > q) for every radius q in metres.

    Parameters
    ----------
    function
        rho(q), nonincreasing, with values in [0, 1] and limit 0.
    reach
        From this radius on, in metres, `rate` speaks.
    rate
        Nats per metre by which rho falls at most beyond `reach`.

    >>> rho = Tail.power("2 km", 3.0)
    >>> rho.function(1000.0), rho.function(4000.0)
    (1.0, 0.125)
    """

    function: Callable[[float], float]
    reach: float
    rate: float
    text: str = "rho"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.reach) and self.reach > 0):
            raise InvalidInput(f"the reach of a tail must be a length > 0; got {self.reach!r}")
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise InvalidInput(
                "a tail must tend to 0: give the rate > 0, in nats per metre, at which it falls at"
                f" most beyond its reach; got {self.rate!r}"
            )
        values = [self(q) for q in np.geomspace(self.reach * 1e-9, self.reach, 400)]
        if values[0] < 1:
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
        return value

    @classmethod
    def of(cls, function: Callable[[float], float], *, reach: Length | str, rate: float) -> Tail:
        """Any nonincreasing function of the radius in metres."""
        return cls(function, Length.positive(reach, name="reach").m, float(rate), "a function")

    @classmethod
    def exponential(cls, scale: Length | str, *, factor: float = 2.0) -> Tail:
        """min(1, factor exp(-q / scale)), factor > 1.

        With a factor of 1 it would fall from radius 0 on, like q, where a density has S(q) above
        1 - c q^2: nothing is so tight.
        """
        unit = Length.positive(scale, name="scale").m
        if not (math.isfinite(factor) and factor > 1):
            raise InvalidInput(f"the factor of a tail must be a finite number > 1; got {factor!r}")
        reach = unit * (30 + math.log(factor))
        return cls(
            lambda q: min(1.0, factor * math.exp(-q / unit)),
            reach,
            1 / unit,
            f"{factor:g} exp(-q / {Length(unit)})",
        )

    @classmethod
    def power(cls, scale: Length | str, exponent: float) -> Tail:
        """min(1, (scale / q)^exponent)."""
        unit = Length.positive(scale, name="scale").m
        if not (math.isfinite(exponent) and exponent > 0):
            raise InvalidInput(f"the exponent of a tail must be finite and > 0; got {exponent!r}")
        reach = 1e4 * unit
        return cls(
            lambda q: min(1.0, (unit / q) ** exponent) if q > 0 else 1.0,
            reach,
            exponent / reach,
            f"({Length(unit)} / q)^{exponent:g}",
        )


@dataclass(frozen=True)
class Excess:
    """The largest S(q) / rho(q) found, and where; `holds` if S <= rho on all radii, proven."""

    ratio: float
    radius: float
    holds: bool


def largest_excess(radial: LogLinear, tail: Tail) -> Excess:
    """Whether P(|v| > q) <= rho(q) for all radii, and where not."""
    last = float(radial.edges[-1] if radial.bounded else radial.edges[-2])
    end = max(tail.reach, last)
    edges = np.concatenate([[0.0], np.geomspace(end * 1e-6, end, _FIRST)])
    worst = Excess(0.0, 0.0, True)
    todo = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    while todo:
        a, b = todo.pop()
        held = min(float(radial.survival(a)) * (1 + _MARGIN), 1.0)
        if held <= tail(b):
            ratio, where = held / max(tail(b), 1e-300), b
            if ratio > worst.ratio and worst.holds:
                worst = Excess(ratio, where, True)
            continue
        if b - a <= _SHORTEST * b:
            ratio = held / tail(b) if tail(b) > 0 else math.inf
            if worst.holds or ratio > worst.ratio:
                worst = Excess(ratio, b, False)
            if len(todo) > 10_000:
                break
            continue
        middle = (a + b) / 2
        todo += [(a, middle), (middle, b)]
        if not worst.holds and held / max(tail(b), 1e-300) <= worst.ratio:
            todo = todo[:-2]  # nothing worse can be inside
    beyond = _beyond(radial, tail, end)
    return beyond if not beyond.holds and (worst.holds or beyond.ratio > worst.ratio) else worst


def _beyond(radial: LogLinear, tail: Tail, end: float) -> Excess:
    """S / rho beyond `end`, where the radial is one exponential and rho falls at most by rate."""
    if radial.bounded:
        return Excess(0.0, end, True)
    s = radial.slope
    limit = tail(end)
    if limit == 0 or tail.rate >= s:
        return Excess(math.inf, math.inf, False)
    top = max(1 / (s - tail.rate) - 1 / s, end)
    growth = (1 + s * top) / (1 + s * end) * math.exp(-(s - tail.rate) * (top - end))
    ratio = float(radial.survival(end)) / limit * growth * (1 + _MARGIN)
    return Excess(ratio, top, ratio <= 1)


def tight_radial(
    solve: Callable[[tuple[tuple[float, float], ...]], RadialOptimum],
    tail: Tail,
    ell: Distinguishability,
) -> RadialOptimum:
    """The optimum under rho on all radii, from solutions with limits at finitely many.

    `solve` takes pairs (radius, limit).  The lower bound is that of the true limits at the
    radii that were needed.
    """
    if tail.rate >= ell.decay:
        raise InvalidInput(
            f"no noise that keeps {ell} is known to stay below {tail.text}: beyond its reach it may"
            f" fall by {tail.rate:.4g} nats per metre, and noise by less than {ell.decay:.4g}"
        )
    radii: list[float] = []
    slack, found = 0.0, solve(())
    for _ in range(_ROUNDS):
        excess = largest_excess(found.radial, tail)
        if excess.holds:
            break
        if not math.isfinite(excess.ratio) or not math.isfinite(excess.radius):
            raise InvalidInput(
                f"no noise that keeps {ell} stays below {tail.text}: it leaves nothing at large"
                " radii, where such noise has some probability"
            )
        near = [q for q in radii if abs(q - excess.radius) <= 1e-3 * q]
        if near:  # the radius is there already: undercut the limits
            slack = max(2 * slack, _SLACK)
        else:
            radii.append(excess.radius)
        found = solve(tuple((q, tail(q) * (1 - slack)) for q in sorted(radii)))
    else:
        raise SolverError(f"the tail {tail.text} is not met on all radii after {_ROUNDS} solutions")
    if radii and slack:
        true = solve(tuple((q, tail(q)) for q in sorted(radii)))
        found = replace(found, lower_bound=true.lower_bound)
    return found
