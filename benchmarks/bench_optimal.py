"""Optimal channels against general LP solvers, and how far they reach."""

from __future__ import annotations

import json
import subprocess
import sys
from tempfile import TemporaryDirectory

import numpy as np
import qif
from tests.instances import CELL, EPSILON, distances, peaked

from benchmarks.measure import PROTOTYPES, Bars, cpu_seconds, in_child
from whereish.audit.adversary import adversary_error
from whereish.audit.utility import quality_loss
from whereish.mechanisms.channels.laplace import laplace_channel
from whereish.mechanisms.channels.optimal import OptimalChannel, optimal_channel
from whereish.mechanisms.channels.remap import bayesian_remap
from whereish.mechanisms.channels.tight import tight_channel
from whereish.solvers.channels.posterior import euclidean_argmin
from whereish.solvers.optimal.opt_priv import solve_opt_priv
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.reference import solve_reference
from whereish.solvers.optimal.spanner import greedy_spanner
from whereish.space.raster import Raster
from whereish.units import Epsilon

LEVEL = Epsilon.of(EPSILON).per_m
OURS = """
from tests.instances import EPSILON, peaked
from whereish.mechanisms.channels.optimal import optimal_channel
optimal_channel(*peaked(4, 4), EPSILON)
def job():
    return dict(gap=optimal_channel(*peaked({shape}), EPSILON, gap={gap}).gap)
"""


def programme(places: np.ndarray, prior: np.ndarray, loss: str = "euclidean") -> ChannelProgramme:
    d = distances(places)
    losses = d if loss == "euclidean" else d**2
    return ChannelProgramme(np.ascontiguousarray((prior[:, None] * losses).T), LEVEL * d)


def same_optimum(bars: Bars) -> None:
    """Euclidean and squared loss, uniform and peaked priors, against HiGHS on the full LP."""
    for name, shape in (("25", (5, 5, None)), ("49", (7, 7, None)), ("50", (12, 12, 50))):
        places, peaks = peaked(shape[0], shape[1], keep=shape[2])
        worst = 0.0
        for loss in ("euclidean", "squared"):
            for prior in (peaks, np.full(len(peaks), 1 / len(peaks))):
                full = programme(places, prior, loss)
                reference = full.value(solve_reference(full, solver="ipx"))
                ours = optimal_channel(places, prior, EPSILON, loss=loss, gap=2e-7)
                worst = max(worst, abs(ours.loss / reference - 1))
        bars.at_most(f"n = {name}: farthest from HiGHS's optimum (4 instances)", worst, 1e-6, "")


def fifty(bars: Bars) -> None:
    places, prior = peaked(12, 12, keep=50)
    full, d = programme(places, prior), distances(places)

    def by_qif() -> None:
        qif.mechanism.d_privacy.min_loss_given_d(
            prior, 50, lambda x, y: LEVEL * d[x, y], lambda x, z: d[x, z]
        )

    ours = cpu_seconds(lambda: optimal_channel(places, prior, EPSILON, gap=1e-6))
    bars.note("n = 50 exact (gap 1e-6)", f"{ours:10.2f} s")
    ipx = cpu_seconds(lambda: solve_reference(full, solver="ipx"), repeats=1)
    bars.at_least("n = 50: against HiGHS ipx on the full LP", ipx / ours, 8)
    bars.at_least("n = 50: against qif", cpu_seconds(by_qif, repeats=1) / ours, 8)


def hundred(bars: Bars) -> None:
    places, prior = peaked(10, 10)
    channel = optimal_channel(places, prior, EPSILON, gap=1e-5)
    ours = cpu_seconds(lambda: optimal_channel(places, prior, EPSILON, gap=1e-5))
    bars.at_most("n = 100 exact (gap 1e-5)", ours, 6, "s")
    bars.at_most("n = 100: gap", channel.gap, 1e-5, "")
    spanner = greedy_spanner(distances(places), 1.05)
    full = programme(places, prior)
    thin = ChannelProgramme(full.cost, LEVEL / 1.05 * spanner.graph_distances)
    published = cpu_seconds(
        lambda: solve_reference(thin, solver="ipx", pairs=spanner.edges), repeats=1
    )
    bars.at_least("n = 100: against HiGHS ipx on its 1.05-spanner", published / ours, 4)
    advantage = abs(adversary_error(channel, prior) / quality_loss(channel, prior) - 1)
    bars.at_most("n = 100: AdvError = QL (Theorem 6.2)", advantage, 1e-9, "")
    compare_simple(bars, channel, prior)


def compare_simple(bars: Bars, channel: OptimalChannel, prior: np.ndarray) -> None:
    """Reports clamped to the grid of secrets lose more than those on a wider grid."""
    bars.note("n = 100: optimal loss", f"{channel.loss:10.1f} m")
    tight = bayesian_remap(tight_channel(channel.secrets, EPSILON), prior)
    others = [("the tight mechanism", tight)]
    for name, beyond in (("on the same grid", 0), ("on a grid 14 cells wider", 14)):
        side = 10 + 2 * beyond
        raster = Raster(side, side, CELL, tuple(-(beyond + 0.5) * np.array(CELL)))
        laplace = laplace_channel(raster, EPSILON, secrets=channel.secrets)
        others.append((f"planar Laplace {name}", bayesian_remap(laplace, prior)))
    for name, remapped in others:
        loss = quality_loss(remapped, prior)
        excess = f"{loss:10.1f} m, {loss / channel.loss - 1:.2%} above the optimum"
        bars.note(f"n = 100: {name}, remapped", excess)


def reach(bars: Bars) -> None:
    """Ours and the research prototype in turn, each in a process of its own.

    Both measure themselves, without compilation; the prototype solves the same instance
    to the same gap, in doubles and without a certificate in integers.
    """
    for places, shape, gap, script, options in (
        (225, "15, 15", 1e-3, "dyn2.py", ["--final", "1e-3"]),
        (400, "20, 20", 1e-2, "dyn2.py", ["--final", "1e-2"]),
        (400, "20, 20", 1e-3, "dyn2.py", ["--final", "1e-3"]),
        (1000, "32, 32, keep=1000", 2.5e-2, "admm2.py", ["--f32", "--it", "2500"]),
    ):
        name = f"n = {places}"
        ours = in_child(OURS.format(shape=shape, gap=gap))
        bars.at_most(f"{name}: certified gap", ours["gap"], gap, "")
        cost = f"{ours['cpu']:10.1f} s, {ours['peak_mb']:.0f} MB"
        bars.note(f"{name}: CPU and peak memory", cost)
        theirs = prototype(script, str(places), *options)
        if theirs is None:
            bars.note(f"{name}: against the prototype", "not at WHEREISH_PROTOTYPES")
            continue
        cost = f"{theirs['cpu']:10.1f} s, gap {theirs['gap']:.2g}"
        bars.note(f"{name}: the prototype's CPU and gap", cost)
        bars.at_most(f"{name}: CPU over the prototype's", ours["cpu"] / theirs["cpu"], 1.5)


def prototype(script: str, *arguments: str) -> dict[str, float] | None:
    """What a script of the research prototypes says of its run, where they are at hand."""
    path = PROTOTYPES / "optimal" / script
    if not path.exists():
        return None
    with TemporaryDirectory() as scratch:  # they leave files where they run
        done = subprocess.run(
            [sys.executable, str(path), *arguments],
            cwd=scratch,
            check=True,
            capture_output=True,
            text=True,
        )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def others(bars: Bars) -> None:
    places, prior = peaked(10, 10)
    d = distances(places)
    spent = cpu_seconds(lambda: solve_opt_priv(prior, d, d, 1000.0), repeats=1)
    bars.note("OptPriv, n = 100", f"{spent:10.2f} s")
    big = distances(peaked(32, 32, keep=1000)[0])
    spent = cpu_seconds(lambda: greedy_spanner(big, 1.05), repeats=1)
    bars.note("greedy 1.05-spanner, n = 1000", f"{spent:10.2f} s")
    raster = Raster(60, 80, (500.0, 500.0))
    centres, rng = raster.centres(), np.random.default_rng(0)
    apart = distances(centres)
    joint = rng.gamma(0.5, size=apart.shape) * np.exp(-LEVEL * apart)
    ours = cpu_seconds(lambda: euclidean_argmin(joint, centres, centres), repeats=2)
    dense = cpu_seconds(lambda: (joint @ apart).argmin(axis=1), repeats=1)
    faster = f"{dense / ours:.1f} times faster than the dense product"
    bars.note("Bayesian remap of 4,800 cells", f"{ours:10.2f} s, {faster}")


def main() -> list[str]:
    optimal_channel(*peaked(4, 4), EPSILON)  # compile or load
    bars = Bars("optimal channels (CPU time, one core)")
    same_optimum(bars)
    fifty(bars)
    hundred(bars)
    others(bars)
    reach(bars)
    return bars.failed


if __name__ == "__main__":
    main()
