"""Places between cells: squared error of the geometric spline over that of cells, one report's CPU.

Cells are built with 32 neighbours and the stencil's factor divided out, as the spline's levels are,
so that the ratio is what the step from cells to places costs.  Both errors are of the same secrets,
places spread evenly over their cells: a law on cells, which sees the centre in their stead, has a
twelfth of each squared side more than between centres.  Reports are where each mechanism tells
them: without a frame, no farther out than the outermost centres on cells, and 7/16 of a cell inside
the map between them.  The bars are 1.03 and 1.09 at constant eps, 1.12 and 1.2 on smooth maps (eps
times cell side up to 0.5 and 1), 1.35 elsewhere; they are for the default and, where eps times the
side reaches 1, for `finer=True` too.

Run: python -m benchmarks between; or python -m benchmarks.bench_between constant noise for some,
and with the word default without `finer`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import whereish as wh
from benchmarks.measure import Bars
from whereish.arrays import FloatArray

CELL_M = 100.0


def _places(n: int) -> tuple[FloatArray, FloatArray]:
    across = (np.arange(n) + 0.5) / n
    x, y = np.meshgrid(across, across, indexing="ij")
    return x, y


def constant(n: int) -> FloatArray:
    return np.ones((n, n))


def smooth(n: int) -> FloatArray:
    x, y = _places(n)
    bumps = [(0.5, 0.45, 0.12, 1.6), (0.2, 0.7, 0.05, 0.6), (0.75, 0.8, 0.06, 0.7)]
    parts = [a * np.exp(-((x - p) ** 2 + (y - q) ** 2) / (2 * s * s)) for p, q, s, a in bumps]
    return np.minimum(0.4 + sum(parts), 2.0)


def tracts(n: int) -> FloatArray:
    generator = np.random.default_rng(0)
    seeds = generator.random((40, 2))
    values = np.exp(generator.uniform(np.log(0.4), np.log(2), 40))
    places = np.stack(_places(n), axis=-1)
    return values[((places[..., None, :] - seeds) ** 2).sum(-1).argmin(-1)]


def river(n: int) -> FloatArray:
    x, y = _places(n)
    return np.where(np.abs(y - 0.5 - 0.1 * np.sin(6 * x)) < 1.5 / n, 0.4, 2.0)


def noise(n: int) -> FloatArray:
    return np.random.default_rng(1).uniform(0.6, 1.4, (n, n))


CASES: list[tuple[Callable[[int], FloatArray], int, float, float]] = [
    (constant, 30, 0.5, 1.03),
    (constant, 30, 1.0, 1.09),
    (smooth, 40, 0.5, 1.12),
    (smooth, 40, 1.0, 1.2),
    (tracts, 40, 1.0, 1.35),
    (river, 40, 1.0, 1.35),
    (noise, 40, 1.0, 1.35),
]


def report_us(mechanism: wh.EikonalMechanism, places: FloatArray) -> float:
    """Median CPU of one report, in microseconds."""
    mechanism.report(places[:1])
    spent = []
    for place in places:
        start = time.process_time_ns()
        mechanism.report(place[None])
        spent.append(time.process_time_ns() - start)
    return float(np.median(spent)) / 1000


def main() -> list[str]:
    words = sys.argv[1:] if sys.argv[0].endswith("bench_between.py") else []
    default_alone = "default" in words
    words = [word for word in words if word != "default"]
    bars = Bars("places between cells: squared error over that of cells")
    for make, n, steepest, bar in CASES:
        if words and make.__name__ not in words:
            continue
        shape = make(n)
        levels = shape / shape.max() * steepest / CELL_M
        privacy_map = wh.PrivacyMap(levels, cell=f"{CELL_M:g} m")
        cells = wh.EikonalMechanism.build(
            privacy_map, places="cells", neighbours=32, divide_stencil=True
        )
        frame = cells.built.frame
        on_cells = cells.mse() + 2 * CELL_M**2 / 12
        name = f"{make.__name__}, {n} x {n}, eps h <= {steepest:g}"
        for finer in (False, True) if steepest > 0.5 and not default_alone else (False,):
            start = time.process_time()
            between = wh.EikonalMechanism.build(
                privacy_map, finer=finer, frame=(2 if finer else 1) * frame
            )
            cpu = time.process_time() - start
            ratio = between.mse() / on_cells
            bars.at_most(name + (", finer" if finer else ""), ratio, bar)
            bars.note("  CPU of the build", f"{cpu:.1f} s")
            if make is smooth and not finer:
                places = np.random.default_rng(0).uniform(0, n * CELL_M, (400, 2))
                both = (f"{report_us(built, places):.0f} us" for built in (between, cells))
                bars.note(f"{name}: one report, between and on cells", ", ".join(both))
    return bars.failed


if __name__ == "__main__":
    main()
