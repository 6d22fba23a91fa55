"""Solvers on default BLAS threads against one, and on two cores against one.

``python -m benchmarks.bench_threads [word ...]`` prints only the rows on two cores whose names
have one of the words.
"""

from __future__ import annotations

import os
import sys

from benchmarks.measure import Bars, in_child

LEAST = """
import numpy as np
from tests.instances import EPSILON, peaked
from whereish.mechanisms.channels.optimal import optimal_channel
optimal_channel(*peaked(4, 4), EPSILON)
"""
SMALL = {
    "optimal_channel, n = 100": LEAST
    + """
def job():
    optimal_channel(*peaked(10, 10), EPSILON, gap=1e-3)
""",
    "opt_priv_channel, n = 25": """
from tests.instances import peaked
from whereish.mechanisms.channels.opt_priv import opt_priv_channel
places, prior = peaked(5, 5)
def job():
    opt_priv_channel(places, prior, most_loss=300.0)
""",
    "EikonalMechanism.build, 24 x 24": """
import numpy as np
import whereish as wh
levels = 0.002 * np.exp(np.random.default_rng(1).normal(size=(24, 24)).cumsum(0) / 5)
wh.EikonalMechanism.build(wh.PrivacyMap(levels[:4, :4], cell="200 m"))
def job():
    wh.EikonalMechanism.build(wh.PrivacyMap(levels, cell="200 m"))
""",
    "EikonalQuery.build, 24 x 24, 5 answers": """
import numpy as np
import whereish as wh
levels = np.full((24, 24), 0.002)
answers = np.arange(24 * 24).reshape(24, 24) % 5
def job():
    wh.EikonalQuery.build(wh.PrivacyMap(levels, cell="200 m"), answers)
""",
}
INSTANCES = (
    ("scattered", 240, "uniform", 0.4, "euclidean"),
    ("scattered", 300, "Dirichlet 0.3", 3.0, "threshold"),
    ("grid", 289, "log-normal", 1.0, "squared"),
    ("road", 700, "Zipf", 0.5, "euclidean"),
    ("road", 700, "uniform", 0.1, "squared"),
    ("clusters", 300, "log-normal", 0.5, "squared"),
    ("clusters", 300, "3/4 zeros", 1.0, "threshold"),
    ("decades", 400, "log-normal", 1.0, "squared"),
    ("decades", 300, "uniform", 3.0, "squared"),
)
"""Every kind of places: words of `channel_instances.made`."""


def _solve(*words: object) -> str:
    """A solve to 1%, once before, so that reading machine code is not part of it."""
    return f"""
from benchmarks.channel_instances import made
from whereish.mechanisms.channels.optimal import optimal_channel
one = made(*{words!r})
def job():
    level = f"{{one.nats_per_m}}/m"
    optimal_channel(one.places, one.prior, level, loss=one.losses, gap=1e-2)
job()
"""


LARGE = {
    "optimal_channel, n = 225, gap 1%": LEAST
    + """
def job():
    optimal_channel(*peaked(15, 15), EPSILON, gap=1e-2)
job()
""",
    **{f"optimal_channel, {', '.join(map(str, words))}": _solve(*words) for words in INSTANCES},
    "first-order method, n = 900": """
import numpy as np
from tests.instances import distances, peaked
from whereish.solvers.optimal.first_order.method import FirstOrder
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.threads import one_blas_thread
places, prior = peaked(30, 30)
d = distances(places)
cost = np.ascontiguousarray((prior[:, None] * d).T)
with one_blas_thread():
    edges = greedy_spanner(0.005 * d, 1.01).edges
    method = FirstOrder(ChannelProgramme(cost, 0.005 * d), edges)
    method.iterate(2)
def job():
    with one_blas_thread():
        method.iterate(100)
""",
}


def _built(size: int, places: str) -> str:
    """A build of tracts, once before on few cells."""
    return f"""
from benchmarks.map_cities import synthetic
from whereish.mechanisms.maps.eikonal import EikonalMechanism
def job(size={size}):
    asked = synthetic("tracts, roughness 0.3", size, (12.0, 96.0))
    EikonalMechanism.build(asked, places={places!r})
job(33)
"""


MAPS = {
    "map on cells, 100 x 100": _built(100, "cells"),
    "map on places, 60 x 60": _built(60, "continuous"),
}
"""Builds, of which no bar is asked."""

IDLE = 0.3
"""Load average below which wall times mean something."""


def main() -> list[str]:
    bars = Bars("threads: default BLAS threads against one (CPU time of one run each, best of 2)")
    words = sys.argv[1:] if sys.argv[0].endswith("bench_threads.py") else []
    for name, code in () if words else SMALL.items():
        one = min(in_child(code, OPENBLAS_NUM_THREADS="1")["cpu"] for _ in range(2))
        many = min(in_child(code)["cpu"] for _ in range(2))
        bars.note(name, f"{one:10.2f} s on one thread, {many:.2f} s by default")
        bars.at_most(f"{name}: default over one", many / one, 1.3)
    two = Bars(f"two cores against one (wall time; load {os.getloadavg()[0]:.1f})", bars.failed)
    for name, code in (LARGE | MAPS).items():
        if words and not any(word in name for word in words):
            continue
        idle = os.getloadavg()[0] < IDLE + 1
        runs = [in_child(code, WHEREISH_THREADS=count) for count in ("1", "2")]
        ratio = runs[0]["wall"] / runs[1]["wall"]
        told = f"CPU {runs[0]['cpu']:.1f} and {runs[1]['cpu']:.1f} s"
        two.note(
            name, f"{runs[0]['wall']:10.1f} s, with two threads {runs[1]['wall']:.1f} s; {told}"
        )
        if idle and name in MAPS:
            two.note(f"{name}: two cores", f"{ratio:.2f} x")
        elif idle:
            two.at_least(f"{name}: two cores", ratio, 1.6)
        else:
            two.note(f"{name}: two cores", f"SKIPPED: the machine is loaded ({ratio:.2f} x)")
    return bars.failed


if __name__ == "__main__":
    main()
