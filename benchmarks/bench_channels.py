"""Optimal channels on instances that nobody tuned for: a row for each, medians and worst cases.

``python -m benchmarks.bench_channels [small] [400] [large] [word ...]`` prints the suite's parts:
small instances (n <= 60) to 1e-4 beside HiGHS's optimum, those of 400 places (700 on a road) to
1%, and the large ones; words keep the instances whose names contain one of them.  Beside each stand
the tight channel (where it exists) and planar Laplace, both after the Bayesian remap.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.channel_instances import Instance, instances, made
from benchmarks.measure import Bars, in_child
from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.laplace import laplace_channel
from whereish.mechanisms.channels.optimal import OptimalChannel, optimal_channel
from whereish.mechanisms.channels.tight import tight_channel
from whereish.solvers.optimal.programme import ChannelProgramme, SolveProgress
from whereish.solvers.optimal.reference import solve_reference
from whereish.space.plane import Plane
from whereish.space.points import Points
from whereish.threads import one_blas_thread

EARLY = 20.0
"""Seconds of CPU in which a bound within `USEFUL` of the loss is due."""
USEFUL = 0.2
LARGE = {
    "n = 1000, peaked prior, gap 1%": (
        "optimal_channel(*peaked(32, 32, keep=1000), EPSILON, gap=1e-2, progress=note)",
        (1e-2, 200.0, None),
    ),
    "n = 2500, peaked prior, gap 5%": (
        "optimal_channel(*peaked(50, 50), EPSILON, gap=5e-2, progress=note)",
        (5e-2, None, 4096.0),
    ),
    "map of 35 x 35 cells, squared loss, gap 2%": (
        "optimal_map_channel(synthetic('coast', 35, (4.0, 32.0)), gap=2e-2, progress=note)",
        (2e-2, 300.0, None),
    ),
}
"""What is solved, and its bars: gap, CPU seconds, peak memory in MB."""
CHILD = """
from benchmarks.map_suite import synthetic
from tests.instances import EPSILON, peaked
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.mechanisms.maps.optimal import optimal_map_channel
optimal_channel(*peaked(7, 7), EPSILON, gap=1e-2)
def job():
    early, begin = [1.0], time.process_time()
    def note(at):
        if time.process_time() - begin <= {early}:
            early[0] = at.gap
    return dict(gap={call}.gap, early=early[0])
"""


@dataclass(frozen=True)
class Row:
    """One instance: ours, and others over ours."""

    instance: Instance
    gap: float
    cpu: float
    early: float
    """The gap after `EARLY` seconds of CPU, or at the end."""
    to_highs: float | None
    rivals: dict[str, float]


def solved(instance: Instance, gap: float, cpu_limit: float) -> tuple[OptimalChannel, float, float]:
    """The channel, its CPU time, and the gap that was known after `EARLY` seconds."""
    start, early = time.process_time(), [1.0]

    def note(at: SolveProgress) -> None:
        if time.process_time() - start <= EARLY:
            early[0] = at.gap

    channel = optimal_channel(
        Points(instance.places, Plane.metres()),
        instance.prior,
        f"{instance.nats_per_m!r}/m",
        loss=instance.losses,
        gap=gap,
        time_limit=cpu_limit,
        progress=note,
    )
    spent = time.process_time() - start
    return channel, spent, channel.gap if spent <= EARLY else early[0]


def remapped(instance: Instance, channel: Channel) -> float:
    """Expected loss of a channel after the Bayesian remap onto the places."""
    cost = instance.prior[:, None] * instance.losses
    return float((channel.matrix.T @ cost).min(axis=1).sum())


def rivals(instance: Instance) -> dict[str, float]:
    """Losses of what costs a tenth of a second; absent where it does not exist."""
    places, epsilon = Points(instance.places, Plane.metres()), f"{instance.nats_per_m!r}/m"
    found = {}
    for name, build in (("tight", tight_channel), ("Laplace", laplace_channel)):
        try:
            found[name] = remapped(instance, build(places, epsilon))
        except (InvalidInput, NotPrivate):
            continue
    return found


@one_blas_thread()
def by_highs(instance: Instance) -> tuple[float, float]:
    """HiGHS's optimum of the full programme, and its CPU time."""
    cost = np.ascontiguousarray((instance.prior[:, None] * instance.losses).T)
    programme = ChannelProgramme(cost, instance.nats_per_m * instance.distances)
    start = time.process_time()
    value = programme.value(solve_reference(programme, solver="ipx"))
    return value, time.process_time() - start


def measured(instance: Instance, gap: float, limit: float, *, highs: bool = False) -> Row:
    channel, cpu, early = solved(instance, gap, limit)
    ratio, beside = None, ""
    if highs:
        value, theirs = by_highs(instance)
        ratio = channel.loss / value if value > 0 else 1.0 if channel.loss < 1e-9 else np.inf
        beside = f"  HiGHS: loss x {ratio:.6f}, {theirs:.1f} s"
    others = rivals(instance) if channel.loss > 0 else {}
    others = {name: loss / channel.loss for name, loss in others.items()}
    for name, over in others.items():
        beside += f"  {name} + remap x {over:.3f}"
    print(
        f"  {instance.name:<58} loss {channel.loss:10.5g}  gap {channel.gap:8.1e}"
        f"  {cpu:6.1f} s (gap in {EARLY:.0f} s: {early:.1%}){beside}",
        flush=True,
    )
    return Row(instance, channel.gap, cpu, early, ratio, others)


def judge(title: str, found: list[Row], gap: float, seconds: float | None) -> list[str]:
    bars = Bars(title)
    gaps, cpu = np.array([row.gap for row in found]), np.array([row.cpu for row in found])
    bars.note("instances", str(len(found)))
    bars.note("gap, median", f"{np.median(gaps):.2e}")
    bars.at_most("gap, worst", float(gaps.max()), gap, "")
    bars.note("CPU, median", f"{np.median(cpu):.1f} s")
    if seconds is not None:
        bars.at_most("CPU, worst", float(cpu.max()), seconds, "s")
    bars.at_most(f"gap in {EARLY:.0f} s, worst", max(row.early for row in found), USEFUL, "")
    ratios = np.array([row.to_highs for row in found if row.to_highs is not None])
    if ratios.size:
        bars.note("loss over HiGHS's optimum, median", f"{np.median(ratios):.7f}")
        bars.at_most("loss over HiGHS's optimum, worst", float(ratios.max()), 1 + 2 * gap, "")
    for name in ("tight", "Laplace"):
        over = np.array([row.rivals[name] for row in found if name in row.rivals])
        if over.size:
            figures = f"{np.median(over):.3f}, worst {over.max():.3f} ({over.size} instances)"
            bars.note(f"{name} + remap over ours, median", figures)
    return bars.failed


def chosen(words: list[str], n: int) -> list[Instance]:
    return [one for one in instances(n) if not words or any(word in one.name for word in words)]


def large(words: list[str]) -> list[str]:
    """Each in a process of its own, for its peak memory."""
    bars = Bars("channels, many places")
    for name, (call, (gap, seconds, memory)) in LARGE.items():
        if words and not any(word in name for word in words):
            continue
        found = in_child(CHILD.format(call=call, early=EARLY))
        bars.at_most(f"{name}: certified", found["gap"], gap, "")
        bars.at_most(f"  gap in {EARLY:.0f} s", found["early"], USEFUL, "")
        bars.note("  CPU and peak memory", f"{found['cpu']:10.1f} s, {found['peak_mb']:.0f} MB")
        if seconds is not None:
            bars.at_most("  CPU", found["cpu"], seconds, "s")
        if memory is not None:
            bars.at_most("  peak memory", found["peak_mb"], memory, "MB")
    return bars.failed


def main() -> list[str]:
    words = sys.argv[1:] if sys.argv[0].endswith("bench_channels.py") else []
    parts = [word for word in words if word in ("small", "400", "large")]
    parts = parts or ["small", "400", "large"]
    words = [word for word in words if word not in parts]
    failed: list[str] = []
    warm = made("grid", 16, "uniform", 0.5, "euclidean")
    assert warm is not None
    solved(warm, 1e-3, 10.0)  # compiles
    if "small" in parts:
        print("\n== channels, n = 49, gap 1e-4")
        rows = [measured(one, 1e-4, 60.0, highs=True) for one in chosen(words, 49)]
        failed += judge("channels, small", rows, 1.05e-4, None)
    if "400" in parts:
        print("\n== channels, n = 400 (700 on a road), gap 1%")
        rows = [measured(one, 1e-2, 400.0) for one in chosen(words, 400)]
        failed += judge("channels, n = 400", rows, 1e-2, 40.0)
    if "large" in parts:
        failed += large(words)
    return failed


if __name__ == "__main__":
    main()
