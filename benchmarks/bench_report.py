"""One report at a time: what a place costs without array ceremony, beside its random words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import whereish as wh
from benchmarks.measure import Bars, cpu_seconds

CALLS = 20_000
LEVEL = "ln(4)/200 m"


def microseconds(call: Callable[[], object]) -> float:
    """CPU time of one call, the least of five rounds."""

    def calls() -> None:
        for _ in range(CALLS):
            call()

    call()
    return cpu_seconds(calls, repeats=5) / CALLS * 1e6


def main() -> list[str]:
    source = wh.SecureRandomness()
    plane, globe = wh.PlanarLaplace(LEVEL), wh.GlobeLaplace(LEVEL)
    words, cells, state = source.words(4), np.empty((1, 2), np.int64), np.empty(1, np.uint8)
    secret = np.array([[2.33316, 48.85412]])
    bars = Bars(f"one report, {CALLS:,} calls (CPU time)")
    ways: dict[str, tuple[Callable[[], object], float]] = {
        "plane, report([[x, y]])": (lambda: plane.report([[120.0, -40.0]]), 10),
        "globe, report([[lon, lat]])": (lambda: globe.report([[2.33316, 48.85412]]), 15),
        "perturb([lon], [lat])": (lambda: wh.perturb([2.33316], [48.85412], epsilon=LEVEL), 20),
    }
    kernel = microseconds(lambda: globe._fast(words, secret, cells, state))
    drawn = microseconds(lambda: source.words(4))
    bars.note("the compiled kernel alone", f"{kernel:10.2f} us")
    bars.note("four secure words alone", f"{drawn:10.2f} us")
    for name, (call, bar) in ways.items():
        spent = microseconds(call)
        bars.at_most(name, spent, bar, "us")
        ratios = f"{spent / kernel:10.1f} x the kernel, {spent / drawn:.1f} x its words"
        bars.note(f"{name}, as ratios", ratios)
    many = np.broadcast_to(secret, (CALLS, 2))
    batch = cpu_seconds(lambda: globe.report(many)) / CALLS * 1e6
    bars.note("globe, for each of many in one call", f"{batch:10.2f} us")
    return bars.failed


if __name__ == "__main__":
    main()
