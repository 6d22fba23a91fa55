"""A day of a smart meter, reported whole under d_inf.

A trace is a tuple of 48 half-hour averages in watts.  d_inf protects what happens in the
house at any and all times by its power: with eps per watt, two days that never differ by
more than w watts are at most e^{eps w} times as likely as each other, whatever the number of
half-hours in which they differ.  At 0.1 per watt that is e per 10 W: what a lamp or a
standby does all day is blurred, while the kettle stays visible
(Chatzikokolakis et al., PETS 2013, on smart meters).

Noise of the norm d_inf (:class:`~whereish.mechanisms.records.cube_geometric.CubeGeometric`) is set
beside independent Truncated Geometric noise at eps/48 per half-hour, which keeps the same.
Run with ``python -m whereish.studies.smart_meters [figure.png]``.
"""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np

from whereish.arrays import FloatArray
from whereish.mechanisms.records.cube_geometric import CubeGeometric
from whereish.mechanisms.records.geometric import TruncatedGeometric
from whereish.privacy.tuples import Records
from whereish.randomness import Randomness
from whereish.space.values import Values
from whereish.studies.figures import figure, save, say

__all__ = ["LEVELS", "TRACE", "errors", "trace"]

TRACE = Records(Values(1, 6000), 48)
"""Half-hour averages of 0..6000 W."""

LEVELS = (0.1, 0.5)
"""eps per watt."""


def trace() -> FloatArray:
    """A made-up day: standby and fridge, breakfast, a wash at noon, cooking, the evening."""
    hours = np.arange(TRACE.size) / 2
    watts = 120 + 60 * (np.arange(TRACE.size) % 3 == 0)
    for start, end, power in (
        (6.5, 8, 1400),
        (7, 7.5, 1300),
        (11.5, 13.5, 1900),
        (17.5, 19.5, 2600),
        (18, 19, 1500),
        (19.5, 23, 450),
    ):
        watts = watts + power * ((hours >= start) & (hours < end))
    return np.asarray(watts, dtype=np.float64)


def errors(epsilon: float, *, days: int, rng: Randomness | None = None) -> tuple[float, float]:
    """Mean absolute error per reading: noise of d_inf, and independent noise at eps/n."""
    truth = np.tile(trace(), (days, 1))
    together = CubeGeometric(TRACE, epsilon).report(truth, rng=rng).coordinates
    each = TruncatedGeometric(TRACE.values, Fraction(epsilon) / TRACE.size)
    apart = each.report(truth.reshape(-1, 1), rng=rng).coordinates.reshape(truth.shape)
    return float(np.abs(together - truth).mean()), float(np.abs(apart - truth).mean())


def main(path: str = "smart_meters.png", *, rng: Randomness | None = None) -> None:
    """Report one day at both levels, and draw it beside the truth."""
    hours = np.arange(TRACE.size) / 2
    axes = figure("hour of the day", "power (W)")
    axes.step(hours, trace(), where="post", color="k", linewidth=2, label="truth", zorder=3)
    for epsilon, colour in zip(LEVELS, ("C1", "C0"), strict=True):
        mechanism = CubeGeometric(TRACE, epsilon)
        noisy = mechanism.report(trace(), rng=rng).coordinates[0]
        together, apart = errors(epsilon, days=500, rng=rng)
        say(
            f"eps = {epsilon}/W: mean error {together:.0f} W; independent noise {apart:.0f} W;"
            f" keeps {mechanism.guarantee.metric.description}"
        )
        axes.step(hours, noisy, where="post", color=colour, label=f"reported, eps = {epsilon}/W")
    axes.set_xlim(0, 23.5)
    axes.legend(loc="upper left", frameon=False)
    save(axes, path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
