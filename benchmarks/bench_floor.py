"""Live sessions beside an oracle: is there a filter and a cadence at all that would meet the bar?

For each kind of trace on which a filter on independent noise has little to win: the live
session's budget over that of the hold ("ours"), and at the same mean error the budget of the
oracle of `whereish.studies.trace_floor`, whose cadence, level, speed and turn are the best for
this very trace, over the same hold ("oracle"), and over the best hold in hindsight ("both in
hindsight").  The oracle draws independent noise, our sessions share hidden radii.  No bars: the
rows say where 0.8 is out of reach without that.

Run: python -m benchmarks floor, or python -m benchmarks.bench_floor drive for kinds whose names
begin so
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.bench_holding import ACCURACIES, BAR, OTHER, SEEDS
from benchmarks.measure import Bars
from benchmarks.trace_zoo import by_the_minute, made, taxis
from whereish.randomness import SeededRandomness
from whereish.studies.trace_floor import floor, least_in_the_mean_square, wanderer
from whereish.studies.trace_rivals import HoldCosts, beforehand, ours

HARD = ("taxi", "drive, turning")


def main(*only: str) -> list[str]:
    bars = Bars("live sessions beside an oracle: budget over that of holding, at equal mean error")
    bars.note("wanderer, best filter over best hold", f"{wanderer(seed=1)[0]:.3f}")
    bars.note("wanderer, any private steps (rms)", f"{least_in_the_mean_square():.3f}")
    found = []
    for kinds in (made, by_the_minute, taxis):
        mixed = [HoldCosts.of(places) for places, _ in kinds(OTHER).values()]
        for name, (places, seconds) in kinds(SEEDS[0]).items():
            if not name.startswith(only or HARD):
                continue
            here = HoldCosts.of(places)
            runs = [
                ours(places, seconds, accuracy, whole=False, rng=SeededRandomness(int(accuracy)))
                for accuracy in ACCURACIES
            ]
            least = floor(places, seconds, [run.error for run in runs], seed=7)
            for accuracy, run, budget in zip(ACCURACIES, runs, least, strict=True):
                hold, best = beforehand(here, mixed, run.error), here.least(run.error).min()
                row = run.spent / hold, budget / hold, budget / best
                found.append(row)
                bars.note(
                    f"{name}, {accuracy:g} m: ours, oracle, both in hindsight",
                    "{:.2f}  {:.2f}  {:.2f}".format(*row),
                )
    table = np.array(found)
    for column, values in zip(("ours", "oracle", "both in hindsight"), table.T, strict=True):
        bars.note(
            f"{column}: median, worst, rows above {BAR}",
            f"{np.median(values):.2f}, {values.max():.2f}, {(values > BAR).sum()} of {len(values)}",
        )
    return bars.failed


if __name__ == "__main__":
    main(*sys.argv[1:])
