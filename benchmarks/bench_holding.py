"""Traces against the trivial rivals: a fresh report at every k-th point, held or joined up.

Each line runs the default `FixedUtility(accuracy)` over a whole trace.  At the mean error that it
reached (over all points), ours over the budget of the rivals: a fresh report at every k-th point,
held until the next one; fresh reports at every k-th point joined by straight lines (which needs the
whole trace, as our smoothing does); independent noise at every point.  The bar is 0.8 of "hold".

"hold" and "live" have their k chosen beforehand, as ours are: the one that costs least for the same
mean error on the other person; or on walks, drives, stays and days of another seed together (a
taxi's on another taxi), since nobody knows which it is going to be.  "live" is what a session
reports as it goes, at its own mean error.  The other rivals, and "best hold", know the trace: their
k is chosen in hindsight.  For somebody who only stays that is one report, and nothing that has to
find out can cost less.

Run: python -m benchmarks holding
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench_traces import FILE, traces
from benchmarks.measure import Bars
from whereish.compiled import kernel
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.mechanisms.traces.budget import FixedUtility
from whereish.mechanisms.traces.predictive import PredictiveMechanism
from whereish.randomness import SeededRandomness
from whereish.units import Length

BAR = 0.8
ACCURACIES = (200.0, 500.0, 1000.0, 2000.0)
CADENCES = (1, 2, 3, 5, 8, 12, 20, 30, 45, 70, 100, 150, 200, 300, 500, 800, 1500, 3000)
Array = NDArray[np.float64]


@kernel
def hold(places: Array, noise: Array, every: int, joined: bool) -> float:
    """Mean error of reports at every k-th point, with `noise` (as many rows as points)."""
    total, count = 0.0, len(places)
    for i in range(count):
        start = i - i % every
        east, north = places[start, 0] + noise[start, 0], places[start, 1] + noise[start, 1]
        stop = start + every
        if joined and stop < count:
            part = (i - start) / every
            east += part * (places[stop, 0] + noise[stop, 0] - east)
            north += part * (places[stop, 1] + noise[stop, 1] - north)
        total += np.hypot(places[i, 0] - east, places[i, 1] - north)
    return total / count


def budgets(places: Array, error: float, joined: bool = False, seed: int = 5) -> Array:
    """The least budget of a rival whose mean error is at most `error`, for each of CADENCES.

    Infinite where no budget is enough.
    """
    generator = np.random.default_rng(seed)
    radius, angle = generator.gamma(2, 1, len(places)), generator.uniform(0, 2 * np.pi, len(places))
    noise = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    found = np.full(len(CADENCES), np.inf)
    for index, every in enumerate(CADENCES):
        low, high = 0.2 / error, 60 / error
        if hold(places, noise / high, every, joined) > error:
            continue
        for _ in range(16):
            middle = np.sqrt(low * high)
            if hold(places, noise / middle, every, joined) > error:
                low = middle
            else:
                high = middle
        found[index] = float(high) * -(-len(places) // every)
    return found


def beforehand(places: Array, others: list[Array], error: float) -> float:
    """The budget of holding with the k that is the cheapest on `others` together.

    If that k cannot reach the error here, the next smaller one that can.
    """
    chosen = int(np.sum([budgets(other, error) for other in others], axis=0).argmin())
    here = budgets(places, error)[: chosen + 1]
    return float(here[np.isfinite(here)][-1])


def synthetic(seed: int = 3) -> dict[str, tuple[Array, Array]]:
    """Walks, drives, stays, a day of them, and a taxi with a point a minute, in metres."""
    generator = np.random.default_rng(seed)

    def legs(count: int, metres: float, points: int) -> Array:
        heading = np.repeat(generator.uniform(0, 2 * np.pi, count // points + 1), points)[:count]
        return (metres * np.column_stack([np.cos(heading), np.sin(heading)])).cumsum(axis=0)

    turning = generator.normal(0, 0.05, 4000).cumsum()
    walk = 6.5 * np.column_stack([np.cos(turning), np.sin(turning)]).cumsum(axis=0)
    there = legs(400, 50, 60)
    stay = generator.normal(0, 15, (3000, 2))
    day = np.vstack([stay, there, stay + there[-1], there[::-1], stay])
    found = {"walk": walk, "drive": legs(4000, 40, 60), "day": day, "stay": stay}
    timed = {name: (places, 5.0 * np.arange(len(places))) for name, places in found.items()}
    taxi = legs(4000, 400, 8)
    return timed | {TAXI: (taxi, 60.0 * np.arange(len(taxi)))}


def people() -> dict[str, tuple[Array, Array]]:
    """The two people at hand, in metres of a plane around Beijing."""
    if not FILE.exists():
        return {}
    unit = 111_320 * np.array([np.cos(np.radians(39.95)), 1.0])
    return {
        f"person {user}": ((places - [116.3, 39.95]) * unit, seconds)
        for user, (places, seconds) in traces().items()
    }


TAXI = "taxi, a point a minute"


def rivals_of() -> dict[str, list[Array]]:
    """The traces on which the rivals' k is chosen, for every trace that is measured."""
    of_people = {name: places for name, (places, _) in people().items()}
    made = {name: places for name, (places, _) in synthetic(4).items()}
    mixed = [places for name, places in made.items() if name != TAXI]
    found = {name: [made[TAXI]] if name == TAXI else mixed for name in made}
    for name in of_people:
        found[name] = [places for other, places in of_people.items() if other != name]
    return found


def main() -> list[str]:
    bars = Bars("whole traces at equal mean error: budget over that of holding, k beforehand")
    rows, others = people() | synthetic(), rivals_of()
    print(
        "trace                    accuracy  error reports  spent/m   hold   live"
        "  best hold  joined  indep."
    )
    for name, (places, seconds) in rows.items():
        for accuracy in ACCURACIES:
            mechanism = PredictiveMechanism(FixedUtility(Length(accuracy)), PlanarLaplace)
            release = mechanism.report(places, seconds, rng=SeededRandomness(int(accuracy)))
            spent = float(release.spent)
            error, live = (
                float(np.hypot(*(np.asarray(told) - places).T).mean())
                for told in (release.reports, release.drawn)
            )
            rivals = [
                beforehand(places, others[name], error),
                beforehand(places, others[name], live),
                float(budgets(places, error).min()),
                float(budgets(places, error, joined=True).min()),
                len(places) * GlobeLaplace.with_mean_error(Length(error)).epsilon.per_m,
            ]
            ratios = "  ".join(f"{spent / rival:6.2f}" for rival in rivals)
            print(
                f"{name:24s} {accuracy:6.0f} m {error:5.0f} m {int(release.hard.sum()):7d}"
                f" {spent:8.3f} {ratios}"
            )
            bars.at_most(f"{name}, {accuracy:g} m", spent / rivals[0], BAR, "")
            bars.note(f"{name}, {accuracy:g} m, live", f"{spent / rivals[1]:.3g}")
    return bars.failed


if __name__ == "__main__":
    main()
