"""Float noise: what must be corrected when doubles, not reals, are added to a place."""

from __future__ import annotations

import math

from whereish.errors import InvalidInput
from whereish.units import Epsilon, Length

__all__ = ["corrected_epsilon"]


def corrected_epsilon(
    epsilon: Epsilon | str, *, unit: Length | str, r_max: Length | str, digits: int
) -> Epsilon:
    """The level eps' at which float noise, rounded to a grid, keeps `epsilon` within `r_max`.

    For those who must add float noise: with angles of precision delta = 10^-digits,
    a grid of step `unit` = u and q = u / (r_max delta), noise of level eps' keeps eps
    between places and reports within r_max if q > 2 e^{eps' u} and

        eps' + (1/u) ln((q + 2 e^{eps' u}) / (q - 2 e^{eps' u})) <= eps

    (Bordenabe's thesis, Theorem 5.3).  The largest such eps' is returned, rounded
    down.  The mechanisms of this package need no such correction.

    Raises
    ------
    InvalidInput
        If no positive level suffices: use a coarser grid or more digits.

    Examples
    --------
    >>> import whereish as wh
    >>> wh.corrected_epsilon("0.01/m", unit="1 m", r_max="10 km", digits=9).per_m < 0.01
    True
    """
    eps, u = Epsilon.of(epsilon).per_m, Length.positive(unit, name="unit").m
    reach = Length.positive(r_max, name="r_max").m
    if not isinstance(digits, int) or not 1 <= digits <= 30:
        raise InvalidInput(f"digits must be a whole number from 1 to 30; got {digits!r}")
    q = u / (reach * 10.0**-digits)

    def kept(candidate: float) -> float:
        exponent = candidate * u
        slack = 2 * math.exp(exponent) / q if exponent < 700 else math.inf
        if slack >= 1:
            return math.inf
        return candidate + (math.log1p(slack) - math.log1p(-slack)) / u

    if kept(0.0) >= eps:
        raise InvalidInput(
            f"no noise level keeps {Epsilon(eps)} with {digits} digits at r_max = {Length(reach)}:"
            " take a larger grid unit, a smaller r_max, or more digits"
        )
    low, high = 0.0, eps
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if kept(middle) <= eps * (1 - 2.0**-50) else (low, middle)
    return Epsilon(low)
