"""A trace's budget at equal mean error: ours against the two trivial ways of reporting it.

*Independent* noise at each of n points costs n eps.  *Holding* draws fresh noise at every k-th
point and repeats it until the next, which costs ceil(n / k) eps: whoever chooses k well beforehand
has a strong rival.  `joined` is its sibling for a whole trace: straight lines between the reports.

Run: python -m whereish.studies.trace_rivals [figure.png]
"""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from whereish.arrays import FloatArray
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.mechanisms.traces.budget import FixedUtility
from whereish.mechanisms.traces.predictive import PredictiveMechanism
from whereish.randomness import Randomness, SeededRandomness
from whereish.studies.figures import figure, run_program, save, say
from whereish.units import Length

__all__ = ["CADENCES", "HoldCosts", "beforehand", "independent", "main", "ours", "svg"]

CADENCES: Final = (
    *(1, 2, 3, 5, 8, 12, 20, 30, 45, 70, 100, 150, 200, 300, 500, 800, 1500, 3000),
    *(6000, 12_000, 10**9),
)
"""Every k-th point; the last: once."""
_LEVELS: Final = np.geomspace(2e-5, 1.0, 32)
_POINTS: Final = 2500
ACCURACIES: Final = (100.0, 200.0, 400.0, 800.0, 1600.0)


@dataclass(frozen=True, eq=False)
class HoldCosts:
    """What holding costs on one trace: the mean error of each cadence at each of many levels."""

    points: int
    errors: FloatArray

    @classmethod
    def of(cls, places: FloatArray, *, joined: bool = False, seed: int = 5) -> HoldCosts:
        """Measured at no more than 2,500 points, evenly; where reports are few, with many draws."""
        from scipy.special import gammaincinv

        generator = np.random.default_rng(seed)
        count = len(places)
        points = np.unique(np.linspace(0, count - 1, min(count, _POINTS)).astype(np.intp))
        rows = []
        for every in CADENCES:
            start = points // every * every
            stop = np.minimum(start + every, count - 1)
            reported, at = np.unique([start, stop], return_inverse=True)
            draws = int(np.clip(400 // len(reported), 1, 20))
            size = (draws, len(reported), 1)
            order = generator.random(size).argsort(axis=0)  # strata of the radii of each report
            radius = gammaincinv(2.0, (order + generator.random(size)) / draws)
            angle = generator.uniform(0, 2 * np.pi, size)
            noise = radius * np.concatenate([np.cos(angle), np.sin(angle)], axis=2)
            first, second = at.reshape(2, -1)
            moved, told = places[points] - places[start], noise[:, first]
            if joined:
                part = ((points - start) / np.maximum(stop - start, 1))[:, None]
                moved = moved - part * (places[stop] - places[start])
                told = told + part * (noise[:, second] - told)
            off = (np.hypot(*np.moveaxis(moved - told / level, -1, 0)) for level in _LEVELS)
            rows.append([distance.mean() for distance in off])
        return cls(count, np.minimum.accumulate(np.array(rows), axis=1))

    def least(self, error: float) -> FloatArray:
        """The least budget per metre at each cadence, for a mean error of at most `error`.

        Between the levels that were measured, by a line through the logarithms; infinite where
        no level is enough.
        """
        found = np.full(len(CADENCES), np.inf)
        wanted = np.log(error)
        for index, row in enumerate(np.log(self.errors)):
            if row[-1] <= wanted <= row[0]:
                level = np.exp(np.interp(-wanted, -row, np.log(_LEVELS)))
                if row[-1] < wanted - 1e-3:  # not where more noise would no longer matter
                    found[index] = level * -(-self.points // CADENCES[index])
        return found


def beforehand(here: HoldCosts, others: list[HoldCosts], error: float) -> float:
    """The budget of holding with the cadence that is the cheapest on `others` together.

    If that cadence cannot reach the error here, the next shorter one that can.
    """
    chosen = int(np.sum([other.least(error) for other in others], axis=0).argmin())
    possible = here.least(error)[: chosen + 1]
    return float(possible[np.isfinite(possible)][-1])


def independent(points: int, error: float) -> float:
    """The budget of fresh noise at every point: its mean error is 2 / eps."""
    return points * 2 / error


@dataclass(frozen=True)
class Measured:
    """One run: its mean error in metres, what it spent per metre, and its noisy reports."""

    error: float
    spent: float
    reports: int


def ours(
    places: FloatArray,
    seconds: FloatArray,
    accuracy: float,
    *,
    whole: bool,
    rng: Randomness | None = None,
) -> Measured:
    """The default on one trace: smoothed as a whole, or live, point by point."""
    mechanism = PredictiveMechanism(FixedUtility(Length(accuracy)), PlanarLaplace)
    if whole:
        release = mechanism.report(places, seconds, rng=rng)
    else:
        session = mechanism.start(rng=rng)
        for place, time_s in zip(places, seconds, strict=True):
            session.report(place, float(time_s))
        release = session.release()
    error = float(np.hypot(*(np.asarray(release.reports) - places).T).mean())
    return Measured(error, float(release.spent), int(release.hard.sum()))


def made_day(seed: int) -> tuple[FloatArray, FloatArray]:
    """Ten hours with a point every 5 s: at home, a drive, at work, a walk, at work, and back."""
    generator = np.random.default_rng(seed)

    def stay(hours: float) -> FloatArray:
        return np.asarray(generator.normal(0, 15, (int(720 * hours), 2)))

    def way(minutes: int, speed: float) -> FloatArray:
        heading = generator.uniform(0, 2 * np.pi) + generator.normal(0, 0.7, minutes).cumsum()
        step = 5 * speed * np.column_stack([np.cos(heading), np.sin(heading)])
        return np.asarray(np.repeat(step, 12, axis=0).cumsum(axis=0))

    there, walk = way(30, 9.0), way(20, 1.3)
    round_trip = np.vstack([walk, walk[::-1]])
    parts = [
        stay(1.5),
        there,
        there[-1] + stay(3),
        there[-1] + round_trip,
        there[-1] + stay(3),
        there[::-1],
        stay(1),
    ]
    places: FloatArray = np.vstack(parts)
    return places, 5.0 * np.arange(len(places), dtype=np.float64)


def curves(*, rng: Randomness) -> dict[str, list[tuple[float, float]]]:
    """(mean error, budget per metre) of each way, at each accuracy, on one made day.

    The hold's cadence is the one that was cheapest on three other days.
    """
    places, seconds = made_day(1)
    here, others = HoldCosts.of(places), [HoldCosts.of(made_day(seed)[0]) for seed in (2, 3, 4)]
    found: dict[str, list[tuple[float, float]]] = {
        "independent noise": [],
        "every k-th point, held": [],
        "ours, live": [],
        "ours, whole trace": [],
    }
    for accuracy in ACCURACIES:
        live, whole = (ours(places, seconds, accuracy, whole=way, rng=rng) for way in (False, True))
        found["ours, live"].append((live.error, live.spent))
        found["ours, whole trace"].append((whole.error, whole.spent))
        for error in (live.error, whole.error):
            found["independent noise"].append((error, independent(len(places), error)))
            found["every k-th point, held"].append((error, beforehand(here, others, error)))
    return {name: sorted(points) for name, points in found.items()}


def _drawn(*, rng: Randomness) -> Any:
    axes = figure("mean error (m)", "budget of the day, per metre")
    for name, points in curves(rng=rng).items():
        errors, budgets = np.array(points).T
        axes.loglog(errors, budgets, marker="o", markersize=3, label=name)
        say(f"{name:24s}" + "".join(f"  {e:5.0f} m {b:8.4f}" for e, b in points))
    axes.legend(frameon=False)
    return axes


def svg() -> str:
    """The figure as text, for a page."""
    with contextlib.redirect_stdout(io.StringIO()):
        axes = _drawn(rng=SeededRandomness(7))
    text = io.StringIO()
    axes.figure.savefig(text, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return text.getvalue().partition("<svg")[2].join(("<svg", ""))


def main(path: str = "trace_rivals.png", *, rng: Randomness | None = None) -> None:
    """Budget against mean error on one made day, for the four ways."""
    save(_drawn(rng=rng or SeededRandomness(7)), path)


if __name__ == "__main__":
    run_program(main)
