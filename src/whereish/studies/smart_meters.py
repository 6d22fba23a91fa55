"""Smart meters under d_inf: five minutes as in Bordenabe's thesis, and a whole day.

A trace is a tuple of readings in watts.  d_inf protects what happens in the house at any and
all times by its power: with eps per watt, two traces that never differ by more than w watts are
at most e^{eps w} times as likely as each other, whatever the number of readings in which they
differ.  At 0.1 per watt that is e per 10 W: what a lamp or a standby does is blurred, while the
kettle stays visible (Chatzikokolakis et al., PETS 2013, on smart meters).

**Five minutes**, a reading every 10 s, at 0.1 and 0.5 per watt.  Laplace noise on each reading
alone (here its form on whole watts, the Truncated Geometric) keeps eps per watt of *one*
reading; of the trace it keeps eps d_1, so that for d_inf its level is 30 eps.  Two mechanisms
keep eps d_inf itself: noise of that norm
(:class:`~whereish.mechanisms.records.cube_geometric.CubeGeometric`), and noise on each reading
at eps/30.  Whether a trace remains recognisable is a number: the correlation of report and
truth, and how often the likeliest of 20 candidates is the true one.  Candidates are other
households, or the same one with a lamp of 10 W going on and off: there eps d_inf allows
e / (19 + e) = 12.5% at 0.1 per watt on average over them, and no attack does better.

**A day** of 48 half-hour averages is the second example, with the same mechanisms.

Run with ``python -m whereish.studies.smart_meters [figure.png]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whereish.arrays import FloatArray
from whereish.mechanisms.records.cube_geometric import CubeGeometric
from whereish.mechanisms.records.geometric import TruncatedGeometric
from whereish.privacy.tuples import Records
from whereish.randomness import Randomness
from whereish.space.values import Values
from whereish.studies.figures import figure, run_program, save, say

__all__ = [
    "LEVELS",
    "MINUTES",
    "TRACE",
    "Recognised",
    "errors",
    "five_minutes",
    "households",
    "lamps",
    "recognised",
    "trace",
]

MINUTES = Records(Values(1, 6000), 30)
"""A reading of 0..6000 W every 10 s for 5 minutes."""

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


def five_minutes() -> FloatArray:
    """A made-up five minutes: the fridge stops, a kettle boils, somebody puts the light on."""
    second = 10 * np.arange(MINUTES.size)
    watts = 150 + 90 * (second < 110) + 2000 * ((second >= 60) & (second < 190))
    return np.asarray(watts + 40 * (second >= 220), dtype=np.float64)


def households(count: int, rng: np.random.Generator) -> FloatArray:
    """Other five minutes: a base load and up to three appliances that go on and off."""
    traces = np.tile(rng.integers(80, 400, (count, 1)), MINUTES.size).astype(np.float64)
    at = np.arange(MINUTES.size)
    for _ in range(3):
        start, length = rng.integers(0, 30, (count, 1)), rng.integers(1, 30, (count, 1))
        power = rng.choice([0, 60, 700, 1200, 2000], (count, 1))
        traces += power * ((at >= start) & (at < start + length))
    return traces


def lamps(count: int, rng: np.random.Generator) -> FloatArray:
    """The same five minutes with a lamp of 10 W that goes on and off at other times."""
    return five_minutes() + 10.0 * rng.integers(0, 2, (count, MINUTES.size))


@dataclass(frozen=True)
class Recognised:
    """How recognisable reports of a trace are, for three ways to add noise.

    Correlations with the truth, and shares of reports whose likeliest candidate is the truth:
    of noise on each reading at eps, of noise of d_inf at eps, and of each reading at eps/n.
    """

    correlation: tuple[float, float, float]
    identified: tuple[float, float, float]


def recognised(
    epsilon: float, candidates: FloatArray, *, times: int, rng: Randomness | None = None
) -> Recognised:
    """Report all candidates in turn, and let an adversary choose the likeliest of each report.

    The likeliest is the nearest in d_1 for independent noise (but for the ends of the scale),
    and in d_inf for the noise of that norm; ties are broken by chance, as an even share.
    """
    which = np.arange(times) % len(candidates)
    truth = candidates[which]
    reports = (
        _each(truth, Fraction(epsilon), rng),
        CubeGeometric(MINUTES, epsilon).report(truth, rng=rng).coordinates,
        _each(truth, Fraction(epsilon) / MINUTES.size, rng),
    )
    found = []
    for seen, over in zip(reports, ("sum", "max", "sum"), strict=True):
        gaps = np.abs(seen[:, None, :] - candidates[None])
        far = gaps.sum(axis=2) if over == "sum" else gaps.max(axis=2)
        least = far == far.min(axis=1, keepdims=True)
        found.append(float((least[np.arange(times), which] / least.sum(axis=1)).mean()))
    alike = [_correlation(seen, truth) for seen in reports]
    return Recognised((alike[0], alike[1], alike[2]), (found[0], found[1], found[2]))


def _correlation(seen: FloatArray, truth: FloatArray) -> float:
    """Mean correlation of reports with what they report; constant traces have none."""
    a, b = (x - x.mean(axis=1, keepdims=True) for x in (seen, truth))
    norms = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    known = norms > 0
    return float(((a * b).sum(axis=1)[known] / norms[known]).mean())


def _each(truth: FloatArray, epsilon: Fraction, rng: Randomness | None) -> FloatArray:
    """Independent noise on each reading."""
    each = TruncatedGeometric(MINUTES.values, epsilon)
    flat = each.report(truth.reshape(-1, 1), rng=rng).coordinates
    return np.asarray(flat.reshape(truth.shape))


def errors(epsilon: float, *, days: int, rng: Randomness | None = None) -> tuple[float, float]:
    """Mean absolute error per reading: noise of d_inf, and independent noise at eps/n."""
    truth = np.tile(trace(), (days, 1))
    together = CubeGeometric(TRACE, epsilon).report(truth, rng=rng).coordinates
    each = TruncatedGeometric(TRACE.values, Fraction(epsilon) / TRACE.size)
    apart = each.report(truth.reshape(-1, 1), rng=rng).coordinates.reshape(truth.shape)
    return float(np.abs(together - truth).mean()), float(np.abs(apart - truth).mean())


def main(path: str = "smart_meters.png", *, rng: Randomness | None = None) -> None:
    """Five minutes in numbers; then one day at both levels, drawn beside the truth."""
    public = np.random.default_rng(6)
    for epsilon in LEVELS:
        sets = (("households", households), ("lamps", lamps))
        for name, others in sets:
            candidates = np.vstack([five_minutes(), others(19, public)])
            seen = recognised(epsilon, candidates, times=2000, rng=rng)
            say(
                f"5 minutes, eps = {epsilon}/W, 20 {name}: identified"
                f" {seen.identified[0]:.0%} with eps on each reading (30 eps for d_inf),"
                f" {seen.identified[1]:.1%} with noise of d_inf, {seen.identified[2]:.1%} with"
                f" eps/30 on each; correlation {seen.correlation[0]:.2f},"
                f" {seen.correlation[1]:.2f}, {seen.correlation[2]:.2f}"
            )
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
    run_program(main)
