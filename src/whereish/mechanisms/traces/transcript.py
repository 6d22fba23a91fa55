"""What a trace has made public: planned steps, reports, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.space.plane import Plane
from whereish.space.sphere import Sphere
from whereish.units import Epsilon, Length

__all__ = ["Guard", "Plan", "Reported", "Shared", "Surface", "Transcript", "checked_times"]

Surface: TypeAlias = Plane | Sphere
"""Spaces of places: those with two coordinates."""


@dataclass(frozen=True)
class Guard:
    """A look in a run of looks that pays when it opens and when it fails.

    See :mod:`whereish.mechanisms.traces.sparse_test`.  `opened`: the run is open already.
    """

    opening: Epsilon
    failing: Epsilon
    threshold: Length
    opened: bool

    def cost(self, *, hard: bool) -> Fraction:
        """Spent per metre by this look."""
        opening = Fraction(0) if self.opened else Fraction(self.opening.per_m)
        return opening + (Fraction(self.failing.per_m) if hard else Fraction(0))


@dataclass(frozen=True)
class Shared:
    """Noise of level `each`, in a block of `reports` that keep ratio * reports * each together.

    See :mod:`whereish.mechanisms.traces.shared_radius`.  `used`: how many the block has drawn.
    """

    each: Epsilon
    ratio: Fraction
    reports: int
    used: int

    def cost(self) -> Fraction:
        """Spent per metre by the next report of the block: `each` until all of it is paid."""
        each, together = Fraction(self.each.per_m), self.ratio * self.reports
        return each * (min(Fraction(self.used + 1), together) - min(Fraction(self.used), together))


@dataclass(frozen=True)
class Plan:
    """What the next step may spend.

    `test` and `guard` None: no test; `noise` None: the prediction is reported unseen, for free;
    `shared` None: the noise is of this report alone.
    """

    test: Epsilon | None = None
    threshold: Length | None = None
    noise: Epsilon | None = None
    guard: Guard | None = None
    shared: Shared | None = None

    @property
    def looks(self) -> bool:
        """Whether the secret decides if the prediction is reported."""
        return self.test is not None or self.guard is not None

    def cost(self, *, hard: bool) -> Fraction:
        """Spent per metre: the test always, the noise in a hard step only."""
        test = Fraction(self.test.per_m) if self.test else Fraction(0)
        if self.guard is not None:
            test += self.guard.cost(hard=hard)
        if not hard or self.noise is None:
            return test
        return test + (self.shared.cost() if self.shared else Fraction(self.noise.per_m))

    @property
    def most(self) -> Fraction:
        """The largest cost, whatever the test says."""
        return self.cost(hard=True)


@dataclass(frozen=True)
class Reported:
    """One public report: the place, when, and whether it carries fresh noise (hard)."""

    place: FloatArray
    time_s: float | None
    hard: bool
    plan: Plan
    first: bool = False


@dataclass
class Transcript:
    """All that was made public so far, in order; secrets never enter it.

    `derived` holds what planners and predictors have computed from it.  `whole`: nothing is
    released before the end, so that a planner may count on smoothing.  `shares`: whoever draws
    keeps hidden radii from report to report, so that noise may be planned in blocks; of these so
    many are done (`blocks`), and the open one has drawn so many reports (`used`).
    """

    reports: list[Reported] = field(default_factory=list, repr=False)
    spent: Fraction = Fraction(0)
    tests: int = 0
    passed: int = 0
    last_hard: Reported | None = field(default=None, repr=False)
    last_look: Reported | None = field(default=None, repr=False)
    guarded: bool = False
    whole: bool = False
    shares: bool = False
    drawn: int = 0
    blocks: int = 0
    used: int = 0
    space: Surface = field(default_factory=Sphere, repr=False)
    derived: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def append(self, report: Reported) -> None:
        """Add a report and what it cost; a look is a step that used the secret."""
        self.reports.append(report)
        self.spent += report.plan.cost(hard=report.hard)
        if report.plan.looks:
            self.tests += 1
            self.passed += not report.hard
        if report.plan.guard is not None:
            self.guarded = not report.hard  # a failed guard ends its run
        if report.hard:
            self.last_hard = report
            self.drawn += 1
            shared = report.plan.shared
            if shared is not None:
                self.used = (shared.used + 1) % shared.reports
                self.blocks += self.used == 0
        if report.plan.most:
            self.last_look = report


def checked_times(times_s: ArrayLike | None, count: int) -> list[float] | list[None]:
    """One finite number of seconds for each place, or None for all."""
    if times_s is None:
        return [None] * count
    try:
        times = np.asarray(times_s, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("times_s must be numbers of seconds") from None
    if times.shape != (count,) or not np.isfinite(times).all():
        raise InvalidInput(
            f"times_s must be {count} finite numbers of seconds, one for each place;"
            f" got shape {times.shape}"
        )
    return [float(t) for t in times]
