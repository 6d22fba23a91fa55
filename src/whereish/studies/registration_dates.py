"""The earliest registration date of a group, by what the metric protects.

Dates are days 0..5000 since a public day, one per person.  The query is the minimum.

- Hamming (differential privacy): each person's date may be anything at all.  The minimum
  is 5000-sensitive, so the noise is thousands of days wide: no use.
- Manhattan d_1 with radius 5: dates within five days of the true one must be as hard to tell
  apart, and farther ones less so.  The minimum is 1-sensitive: days of noise.

Both are at level ln 2: e^level = 2 per person changed, or per five days in total
(Bordenabe's thesis, chapter 4).  Run with ``python -m whereish.studies.registration_dates
[figure.png]``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whereish.arrays import FloatArray
from whereish.privacy.metric import Metric
from whereish.privacy.tuples import Records
from whereish.queries.answer import answer
from whereish.queries.percentile import Minimum
from whereish.randomness import Randomness
from whereish.space.values import Values
from whereish.studies.figures import figure, run_program, save, say

__all__ = ["DAYS", "RADIUS_DAYS", "Notion", "notions", "registrations", "usefulness"]

DAYS = Values(1, 5000)
RADIUS_DAYS = 5
PEOPLE = 400


@dataclass(frozen=True)
class Notion:
    """A metric, and the level per unit of it."""

    name: str
    metric: Metric
    epsilon: Fraction


def registrations(people: int = PEOPLE, *, seed: int) -> FloatArray:
    """Made-up dates: an office that opened on day 1200 and grew."""
    random = np.random.default_rng(seed)
    return np.floor(1200 + 3800 * random.beta(2, 1, people)).clip(0, DAYS.top)


def notions(level: float = math.log(2), people: int = PEOPLE) -> tuple[Notion, Notion]:
    """The same level per person, and per five days."""
    records, exact = Records(DAYS, people), Fraction(level)
    return (
        Notion(f"Manhattan, radius {RADIUS_DAYS} days", records.manhattan, exact / RADIUS_DAYS),
        Notion("Hamming", records.hamming, exact),
    )


def usefulness(notion: Notion, radii: FloatArray) -> FloatArray:
    """P(answer within the radius), for each radius in days; the worst database counts."""
    mechanism = Minimum().mechanism(notion.metric, notion.epsilon)
    return np.array([mechanism.usefulness(float(radius)) for radius in radii])


def main(path: str = "registration_dates.png", *, rng: Randomness | None = None) -> None:
    """Answer once under each notion, tabulate the usefulness, draw the curves."""
    dates = registrations(seed=1)
    for notion in notions():
        reply = answer(Minimum(), dates, notion.metric, notion.epsilon, rng=rng)
        share = usefulness(notion, np.array([30.0]))[0]
        optimal = "universally optimal" if reply.universally_optimal else "not universally optimal"
        say(
            f"{notion.name}: true {dates.min():.0f}, answer {reply.value:.0f}; within 30 days with"
            f" probability {share:.4f}; {optimal}"
        )
    axes = figure("distance from the true date (days)", "probability of an answer within it")
    radii = np.arange(0, 101.0)
    for times, style in ((1, "-"), (2, "--"), (4, ":")):
        for notion, colour in zip(notions(times * math.log(2)), ("C0", "C3"), strict=True):
            label = f"{notion.name}, level {f'{times} ' if times > 1 else ''}ln 2"
            axes.plot(radii, usefulness(notion, radii), style, color=colour, label=label)
    axes.axvline(30, color="0.8", zorder=0)
    axes.set_ylim(0, 1.02)
    axes.legend(loc="center right", frameon=False)
    save(axes, path)


if __name__ == "__main__":
    run_program(main)
