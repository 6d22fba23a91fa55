"""Traces against the trivial rivals: a fresh report at every k-th point, held or joined up.

The default `FixedUtility(accuracy)` runs over a whole trace, and live, point by point.  At the mean
error that it reached (over all points), its budget over that of the rivals:

- "hold": fresh noise at every k-th point, held until the next one, with k chosen beforehand, as
  ours is: the one that costs least for the same mean error on the other person; or on all kinds of
  made traces of another seed together (with a point every 5 s, or with one a minute), since nobody
  knows which kind it is going to be.  The bar is 0.8 of it, for the whole trace and live.
- "kind": the same, but k is chosen on a trace of the same kind: this rival has been told whether it
  is a walk, a drive or a stay.
- "best": k chosen in hindsight, on this very trace.  For somebody who only stays that is one
  report, and nothing that has to find out can cost less.
- "joined": fresh reports at every k-th point joined by straight lines, k in hindsight (which needs
  the whole trace, as our smoothing does).
- "indep.": independent noise at every point.

Made traces and New York taxis are of several seeds: printed are the median and the worst.  Kinds
named "unseen" were written after the mechanism; their k is chosen on the other kinds.

Run: python -m benchmarks holding, or python -m benchmarks.bench_holding walk person for kinds
whose names begin so
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np

from benchmarks.bench_traces import FILE, traces
from benchmarks.measure import Bars
from benchmarks.trace_unseen import unseen
from benchmarks.trace_zoo import Trace, by_the_minute, made, taxis
from whereish.randomness import SeededRandomness
from whereish.studies.trace_rivals import HoldCosts, beforehand, independent, ours

BAR = 0.8
ACCURACIES = (200.0, 500.0, 1000.0, 2000.0)
SEEDS = (301, 302, 303)
OTHER = 401  # the traces on which k is chosen


def people() -> dict[str, Trace]:
    """The two people at hand, in metres of a plane around Beijing."""
    if not FILE.exists():
        return {}
    unit = 111_320 * np.array([np.cos(np.radians(39.95)), 1.0])
    return {
        f"person {user}": ((places - [116.3, 39.95]) * unit, seconds)
        for user, (places, seconds) in traces().items()
    }


@dataclass
class Rows:
    """The ratios of all seeds of one kind of trace, by accuracy and column."""

    found: dict[tuple[str, float], list[dict[str, float]]] = field(default_factory=dict)

    def add(
        self, name: str, trace: Trace, mixed: list[HoldCosts], kind: list[HoldCosts], seed: int
    ) -> None:
        """Run the default on one trace at all accuracies, whole and live."""
        places, seconds = trace
        here, lines = HoldCosts.of(places), HoldCosts.of(places, joined=True)
        for accuracy in ACCURACIES:
            row: dict[str, float] = {}
            for way in ("whole", "live"):
                rng = SeededRandomness(seed + int(accuracy))
                run = ours(places, seconds, accuracy, whole=way == "whole", rng=rng)
                row |= {
                    f"{way} error": run.error,
                    f"{way} reports": run.reports,
                    f"{way} hold": run.spent / beforehand(here, mixed, run.error),
                    f"{way} kind": run.spent / beforehand(here, kind, run.error),
                    f"{way} best": run.spent / float(here.least(run.error).min()),
                    f"{way} indep.": run.spent / independent(len(places), run.error),
                }
                if way == "whole":
                    row["joined"] = run.spent / float(lines.least(run.error).min())
            self.found.setdefault((name, accuracy), []).append(row)
        self._show(name)

    def _show(self, name: str) -> None:
        """What is known of one kind so far is printed when all its seeds are in."""
        rows = [self.found[name, accuracy] for accuracy in ACCURACIES]
        if len(rows[0]) < (1 if name.startswith("person") else len(SEEDS)):
            return
        for accuracy, seeds in zip(ACCURACIES, rows, strict=True):
            middle = {
                column: float(np.median([row[column] for row in seeds])) for column in seeds[0]
            }
            worst = {column: max(row[column] for row in seeds) for column in seeds[0]}
            print(
                f"{name:37s} {accuracy:5.0f} m"
                + "".join(
                    f" | {middle[f'{way} error']:5.0f} m {middle[f'{way} reports']:5.0f}"
                    + "".join(
                        f" {middle[f'{way} {rival}']:6.2f} {worst[f'{way} {rival}']:6.2f}"
                        for rival in ("hold", "kind", "best")
                    )
                    + f" {middle[f'{way} indep.']:5.3f}"
                    for way in ("whole", "live")
                )
                + f" | {middle['joined']:5.2f} {worst['joined']:5.2f}",
                flush=True,
            )


def measured(only: tuple[str, ...]) -> Rows:
    """All rows whose names begin with one of `only`, printed as they come."""
    print(
        f"{'':47s} | whole: error, reports, median and worst of hold, kind, best; indep."
        " | live: the same | joined, median and worst"
    )
    rows, persons = Rows(), people()
    if not any(name.startswith(only) for name in persons):
        persons = {}
    costs = {name: HoldCosts.of(places) for name, (places, _) in persons.items()}
    for name, trace in persons.items():
        others = [cost for other, cost in costs.items() if other != name]
        if name.startswith(only):
            rows.add(name, trace, others, others, seed=1)
    for kinds, others in ((made, made), (unseen, made), (by_the_minute,) * 2, (taxis,) * 2):
        names = [name for name in kinds(OTHER) if name.startswith(only)]
        mixed = [HoldCosts.of(places) for places, _ in others(OTHER).values()] if names else []
        for name in names:
            kind = [HoldCosts.of(kinds(OTHER)[name][0])]
            for seed in SEEDS:
                rows.add(name, kinds(seed)[name], mixed, kind, seed)
    return rows


def main(*only: str) -> list[str]:
    bars = Bars("traces at equal mean error: budget over that of holding, k beforehand")
    rows = measured(only or ("",)).found
    for way in ("whole", "live"):
        for column in ("hold", "kind", "best"):
            worst = {
                row: max(seed[f"{way} {column}"] for seed in seeds) for row, seeds in rows.items()
            }
            above = [row for row, ratio in worst.items() if ratio > BAR]
            bars.note(
                f"{way}, {column}: median row, worst row, rows above {BAR}",
                f"{np.median(list(worst.values())):.2f}, {max(worst.values()):.2f},"
                f" {len(above)} of {len(worst)}",
            )
    for (name, accuracy), seeds in rows.items():
        for way in ("whole", "live"):
            ratio = max(seed[f"{way} hold"] for seed in seeds)
            bars.at_most(f"{name}, {accuracy:g} m, {way}", ratio, BAR, "")
    return bars.failed


if __name__ == "__main__":
    main(*sys.argv[1:])
