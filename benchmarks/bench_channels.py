"""Optimal channels on instances that nobody tuned for: a row for each, medians and worst cases.

``python -m benchmarks.bench_channels [small] [400] [large] [word ...]`` prints the suite's parts:
small instances (n <= 60) to 1e-4 beside HiGHS's optimum, those of 400 places (700 on a road) to
1%, and the large ones; words keep the instances whose names contain one of them.  Beside each stand
the tight channel (where it exists) and planar Laplace, both after the Bayesian remap.  ``early
SEED`` prints the gap after 20 s of eight instances of 900 to 1,225 places that the seed draws.

All times are CPU seconds, since the clock of a shared machine says nothing: a solve ends at the
asked gap, or is broken off when it has used its CPU time, and stands there with the gap it had.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.channel_instances import Instance, drawn, instances, made
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
PATIENCE = 1.5
"""Times the CPU seconds of a bar after which a solve is broken off."""
LARGE = {
    "n = 1000, peaked prior, gap 1%": (
        "optimal_channel(*peaked(32, 32, keep=1000), EPSILON, gap=1e-2, progress=trace)",
        (1e-2, 200.0, None),
    ),
    "n = 2500, peaked prior, gap 5%": (
        "optimal_channel(*peaked(50, 50), EPSILON, gap=5e-2, progress=trace)",
        (5e-2, None, 4096.0),
    ),
    "map of 35 x 35 cells, squared loss, gap 2%": (
        "optimal_map_channel(synthetic('coast', 35, (4.0, 32.0)), gap=2e-2, progress=trace)",
        (2e-2, 300.0, None),
    ),
}
"""What is solved, and its bars: gap, CPU seconds, peak memory in MB."""
CHILD = """
from benchmarks.bench_channels import EARLY, Enough, Trace
from benchmarks.map_cities import synthetic
from tests.instances import EPSILON, peaked
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.mechanisms.maps.optimal import optimal_map_channel
optimal_channel(*peaked(7, 7), EPSILON, gap=1e-2)
def job():
    trace = Trace({gap}, {limit}, aloud=20.0)
    try:
        trace.end({call})
    except Enough:
        pass
    return dict(gap=trace.gap, early=trace.after(EARLY), reached=trace.reached)
"""


class Enough(Exception):
    """The CPU time of a solve is used up."""


class Trace:
    """Called with the progress of a solve: the CPU seconds at which each gap was known.

    `aloud` tells the gap on standard error every so many CPU seconds.
    """

    def __init__(self, asked: float, limit: float | None, aloud: float | None = None) -> None:
        self.asked, self.limit, self.aloud, self._told = asked, limit, aloud, 0.0
        self.moments: list[tuple[float, float]] = []
        self._start = time.process_time()

    def __call__(self, at: SolveProgress) -> None:
        self._note(at.gap)
        if self.aloud is not None and self.cpu >= self._told + self.aloud:
            self._told = self.cpu
            print(f"    {self.cpu:8.0f} s  {at.gap:7.2%}  {at.stage}", file=sys.stderr, flush=True)
        if self.limit is not None and self.cpu > self.limit and at.gap > self.asked:
            raise Enough

    def end(self, channel: OptimalChannel) -> None:
        """What was returned; rounding to integers included."""
        self._note(channel.gap)

    def _note(self, gap: float) -> None:
        self.moments.append((time.process_time() - self._start, gap))

    @property
    def cpu(self) -> float:
        return self.moments[-1][0]

    @property
    def gap(self) -> float:
        return self.moments[-1][1]

    @property
    def reached(self) -> float:
        """CPU seconds at which the asked gap was first known; infinite where it never was."""
        return min((cpu for cpu, gap in self.moments if gap <= self.asked), default=np.inf)

    def after(self, seconds: float) -> float:
        """The gap that was known after so many CPU seconds."""
        return min((gap for cpu, gap in self.moments if cpu <= seconds), default=1.0)


@dataclass(frozen=True)
class Row:
    """One instance: ours, and others over ours."""

    instance: Instance
    trace: Trace
    to_highs: float | None
    rivals: dict[str, float]


def solved(instance: Instance, trace: Trace) -> OptimalChannel | None:
    """The channel, or None where the CPU time did not suffice."""
    try:
        channel = optimal_channel(
            Points(instance.places, Plane.metres()),
            instance.prior,
            f"{instance.nats_per_m!r}/m",
            loss=instance.losses,
            gap=trace.asked,
            progress=trace,
        )
    except Enough:
        return None
    trace.end(channel)
    return channel


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
    trace = Trace(gap, limit)
    channel = solved(instance, trace)
    ratio, beside = None, ""
    if highs and channel is not None:
        value, theirs = by_highs(instance)
        ratio = channel.loss / value if value > 0 else 1.0 if channel.loss < 1e-9 else np.inf
        beside = f"  HiGHS: loss x {ratio:.6f}, {theirs:.1f} s"
    others = rivals(instance) if channel is not None and channel.loss > 0 else {}
    others = {name: loss / channel.loss for name, loss in others.items() if channel is not None}
    for name, over in others.items():
        beside += f"  {name} + remap x {over:.3f}"
    told = f"{channel.loss:10.5g}" if channel is not None else "broken off"
    print(
        f"  {instance.name:<58} loss {told}  gap {trace.gap:8.1e}  asked in {trace.reached:6.1f} s"
        f" of {trace.cpu:6.1f} s (gap in {EARLY:.0f} s: {trace.after(EARLY):.1%}){beside}",
        flush=True,
    )
    return Row(instance, trace, ratio, others)


def judge(title: str, found: list[Row], gap: float, seconds: float | None) -> list[str]:
    bars = Bars(title)
    gaps = np.array([row.trace.gap for row in found])
    cpu = np.array([row.trace.reached for row in found])
    early = [row.trace.after(EARLY) for row in found]
    bars.note("instances", str(len(found)))
    bars.note("gap, median", f"{np.median(gaps):.2e}")
    bars.at_most("gap, worst", float(gaps.max()), gap, "")
    bars.note("CPU to the asked gap, median", f"{np.median(cpu):.1f} s")
    if seconds is not None:
        bars.note(f"asked gap within {seconds:g} s", f"{np.count_nonzero(cpu <= seconds)}")
        bars.at_most("CPU to the asked gap, worst", float(cpu.max()), seconds, "s")
    bars.at_most(f"gap in {EARLY:.0f} s, worst", max(early), USEFUL, "")
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
        limit = None if seconds is None else PATIENCE * seconds
        found = in_child(CHILD.format(call=call, gap=gap, limit=limit))
        bars.at_most(f"{name}: certified", found["gap"], gap, "")
        bars.at_most(f"  gap in {EARLY:.0f} s", found["early"], USEFUL, "")
        bars.note("  CPU and peak memory", f"{found['cpu']:10.1f} s, {found['peak_mb']:.0f} MB")
        if seconds is not None:
            bars.at_most("  CPU to that gap", found["reached"], seconds, "s")
        if memory is not None:
            bars.at_most("  peak memory", found["peak_mb"], memory, "MB")
    return bars.failed


def early(seed: int) -> list[str]:
    """Gaps in the first seconds on instances that no suite has."""
    bars = Bars(f"channels of 900 to 1,225 places, seed {seed}")
    gaps = []
    for instance in drawn(seed, 8, (900, 1225)):
        trace = Trace(1e-2, EARLY)
        solved(instance, trace)
        gaps.append(trace.after(EARLY))
        print(f"  {instance.name:<58} gap in {EARLY:.0f} s: {gaps[-1]:.1%}", flush=True)
    bars.note("median", f"{np.median(gaps):.1%}")
    bars.at_most("worst", max(gaps), USEFUL, "")
    return bars.failed


def main() -> list[str]:
    words = sys.argv[1:] if sys.argv[0].endswith("bench_channels.py") else []
    parts = [word for word in words if word in ("small", "400", "large")]
    parts = parts or ["small", "400", "large"]
    words = [word for word in words if word not in parts]
    failed: list[str] = []
    warm = made("grid", 16, "uniform", 0.5, "euclidean")
    assert warm is not None
    solved(warm, Trace(1e-3, None))  # compiles
    if words[:1] == ["early"]:
        return early(int(words[1]))
    if "small" in parts:
        print("\n== channels, n = 49, gap 1e-4")
        rows = [measured(one, 1e-4, 30.0, highs=True) for one in chosen(words, 49)]
        failed += judge("channels, small", rows, 1.05e-4, None)
    if "400" in parts:
        print("\n== channels, n = 400 (700 on a road), gap 1%")
        rows = [measured(one, 1e-2, PATIENCE * 40.0) for one in chosen(words, 400)]
        failed += judge("channels, n = 400", rows, 1e-2, 40.0)
    if "large" in parts:
        failed += large(words)
    return failed


if __name__ == "__main__":
    main()
