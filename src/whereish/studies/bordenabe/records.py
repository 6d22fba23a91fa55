"""Databases and meters (chapter 4): the earliest registration date, and five minutes of a meter.

Dates are 0..5000 days.  Under Hamming distance one person may move the earliest date by all of
5000; under Manhattan distance with radius 5 a date that moves by a day moves it by one.  The
smart meter reads every 10 s for 5 minutes under d_inf, at 0.1 and 0.5 per watt.
"""

from __future__ import annotations

import math

import numpy as np

from whereish.mechanisms.records.cube_geometric import CubeGeometric
from whereish.queries.percentile import Minimum
from whereish.studies.figures import panels
from whereish.studies.framework.study import Run, Study, in_turn
from whereish.studies.registration_dates import notions, usefulness
from whereish.studies.smart_meters import (
    LEVELS,
    MINUTES,
    five_minutes,
    households,
    lamps,
    recognised,
)

__all__ = ["STUDY"]


def _dates(run: Run) -> None:
    for notion, name in zip(notions(), ("manhattan", "hamming"), strict=True):
        run.compare(f"sensitivity-{name}", float(Minimum().sensitivity(notion.metric).value))
    axes = panels(1, width=7, height=4.2)[0]
    radii = np.arange(0, 101.0, 2.0 if run.quick else 1.0)
    for times in (1, 2, 4):
        for notion, colour in zip(
            notions(times * math.log(2)), ("#0072b2", "#d55e00"), strict=True
        ):
            label = f"{notion.name}, level {f'{times} ' if times > 1 else ''}ln 2"
            style = {1: "-", 2: "--", 4: ":"}[times]
            shares = usefulness(notion, radii)
            axes.plot(radii, shares, linestyle=style, color=colour, label=label)
    axes.set(xlabel="distance from the true date (days)", ylim=(0, 1.02))
    axes.set_ylabel("probability of an answer within it")
    axes.legend(loc="center right")
    run.draw("dates", axes, "The earliest registration date, worst database.")


def _meters(run: Run) -> None:
    rows = []
    times = 400 if run.quick else 2000
    drawn = panels(2, width=5.2)
    seconds = 10 * np.arange(MINUTES.size)
    run.compare("readings", MINUTES.size)
    for axes, epsilon in zip(drawn, run.steps(LEVELS, "smart meters"), strict=True):
        for name, others in (("households", households), ("lamps of 10 W", lamps)):
            candidates = np.vstack([five_minutes(), others(19, run.public)])
            seen = recognised(epsilon, candidates, times=times, rng=run.rng)
            rows.append((f"{epsilon}/W", name, *(f"{share:.1%}" for share in seen.identified)))
        noisy = CubeGeometric(MINUTES, epsilon).report(five_minutes(), rng=run.rng).coordinates[0]
        axes.step(seconds, five_minutes(), where="post", color="black", label="truth")
        axes.step(seconds, noisy, where="post", color="#d55e00", linestyle="--", label="reported")
        axes.set(xlabel="time (s)", ylabel="power (W)", title=f"eps = {epsilon} per watt")
        axes.legend(loc="upper right")
    run.draw("meters", drawn[0], "Five minutes of a meter, noise of d_inf.")
    head = ("eps", "20 candidates", "eps on each reading", "noise of d_inf", "eps/30 on each")
    run.table("How often the likeliest candidate is the true one", head, rows)


_run = in_turn(_dates, _meters)
STUDY = Study("b-records", "Registration dates and smart meters: Figures 4.1 to 4.4", "B", 41, _run)
