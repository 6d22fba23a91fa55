"""Maps that nobody tuned for: how far they are lowered, what they cost, how they settle.

``python -m benchmarks.map_suite [60 100 200] [name ...]`` prints one row for each map: the mean
of lowered/asked, squared error over that of the exponential mechanism at eps/2 and of planar
Laplace at the smallest eps, CPU; then medians, worst cases and the bars.  The bars are for what
`build` recommends, told a uniform prior (the city's own where the city is real): the law followed
by its remap; the law as it is, and a comparison in which the exponential mechanism is remapped,
too, are printed beside it.  All of it takes about ten minutes of CPU; 60 alone one.

``optimum`` prints instead what the best possible channels of narrow maps have (on 16 x 16 cells),
``places [60 100 200] [name ...]`` what default builds, on continuous places, have and cost (unless
cities are named, beside the same on larger cells), and ``settling [60 100 200]
[name ...]`` how the best possible mechanism on a line settles, and what keeps cities from doing so
(:mod:`benchmarks.map_settling`).  ``narrow SEED [60]`` compares the laws of narrow maps, on places
and on cells, with a prior (:mod:`benchmarks.map_narrow`).  ``drawn SEED`` prints the rows of two
dozen cities, sizes, ranges and priors that the seed draws.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.eikonal_maps import tract_map
from benchmarks.map_cities import CITIES, as_map, drawn, synthetic
from benchmarks.map_narrow import narrow
from benchmarks.map_settling import settling
from benchmarks.measure import Bars
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.maps.optimal import optimal_map_channel
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.space.box import Box
from whereish.studies.line_optimum import constant_line, later_change, line_optimum, step_changes

SIZES = (60, 100, 200)
DRAWN = 24
USUAL = (12.0, 96.0)
"""Nats across a city: 1/eps from 0.6 to 5 cells of 60, from 2 to 17 cells of 200."""
OTHERS = ((3.0, 24.0), (4.0, 32.0), (30.0, 120.0))
"""1/eps from 2.5 to 20, from 2 to 15 and from 0.5 to 2 cells of 60."""
COARSENED = 60
"""Cells a side, above which default builds are shown on larger cells, too."""
PHILADELPHIA = Box(-75.29, 39.86, -74.95, 40.14)


@dataclass(frozen=True)
class Row:
    """One map and its law."""

    city: str
    size: int
    nats: tuple[float, float]
    kept: float
    least: float
    error: float
    to_half: float
    to_laplace: float
    remapped: float
    both_remapped: float
    cpu: float
    chosen: str


def issue_map(size: int = 84) -> PrivacyMap:
    """120 tracts and a coast, 1 to 8 per km on cells of 120 m: the case that fell to half."""
    rng = np.random.default_rng(3)
    seeds, people = rng.random((120, 2)), np.exp(rng.normal(size=120))
    at = (np.arange(size) + 0.5) / size
    x, y = np.meshgrid(at, at)
    away = (x[..., None] - seeds[:, 0]) ** 2 + (y[..., None] - seeds[:, 1]) ** 2
    density = np.where(x > 0.7, 0.0, people[away.argmin(axis=-1)])
    share = np.clip(density / np.quantile(density[density > 0], 0.9), 0, 1)
    side = 84 * 120.0 / size
    return PrivacyMap((1 + 7 * share) / 1000, (side, side))


def uniform_or(prior: object, asked: PrivacyMap) -> ArrayLike:
    """What `build` is told of where people are."""
    return np.ones(asked.shape) if prior is None else prior  # type: ignore[return-value]


def measured(
    city: str, size: int, nats: tuple[float, float], asked: PrivacyMap, prior: object = None
) -> Row:
    start = time.process_time()
    mechanism = EikonalMechanism.build(asked, places="cells", prior=uniform_or(prior, asked))
    cpu = time.process_time() - start
    error = mechanism.mse(prior)  # type: ignore[arg-type]
    exponential = EikonalMechanism.exponential(asked)
    half = exponential.mse(prior)  # type: ignore[arg-type]
    half_moved = exponential.mse(prior, remap=exponential.posterior_mean(prior))  # type: ignore[arg-type]
    laplace = 6 / float(asked.values.min()) ** 2
    moved = mechanism.mse(prior, remap=mechanism.posterior_mean(prior))  # type: ignore[arg-type]
    lowered = mechanism.lowered
    comparison = mechanism.built.comparison
    row = Row(
        city,
        size,
        nats,
        float(lowered.mean()),
        float(lowered.min()),
        error,
        error / half,
        error / laplace,
        moved / half,
        moved / half_moved,
        cpu,
        "?" if comparison is None else comparison.chosen,
    )
    print(
        f"  {city:<28} {size:4d} {nats[0]:5.3g}-{nats[1]:<5.3g} kept {row.kept:.3f}"
        f" (least {row.least:.3f})  mse {error / 1e6:9.4f} km2 = {row.to_half:.3f} of exp eps/2,"
        f" {row.to_laplace:.3f} of Laplace(min); remapped {row.remapped:.3f}"
        f" (both {row.both_remapped:.3f})  {cpu:6.1f} s  {row.chosen}",
        flush=True,
    )
    return row


def rows(sizes: tuple[int, ...], names: tuple[str, ...] = ()) -> list[Row]:
    """The suite at some sizes; `names` keeps the cities that contain one of them."""
    EikonalMechanism.build(synthetic("coast", 12, (4.0, 8.0)))  # compile
    found = []
    for city in CITIES:
        if names and not any(name in city for name in names):
            continue
        for size in sizes:
            for nats in (USUAL, *(OTHERS if size == SIZES[0] else ())):
                found.append(measured(city, size, nats, synthetic(city, size, nats)))
    if not names or any(name in "issue" for name in names):
        asked = issue_map()
        found.append(measured("120 tracts and a coast, 84", 84, (10.1, 80.6), asked))
    real = {
        "phl_region_blockgroups_2000": {"box": PHILADELPHIA, "slope": 1e-4},
        "paris_iris_2014": {},
    }
    for city, options in real.items():
        if names and not any(name in city for name in names):
            continue
        for size in sizes:
            read = tract_map(city, size, **options)  # type: ignore[arg-type]
            if read is None:
                print(f"  {city}: SKIPPED, not at WHEREISH_DATA")
                break
            asked, density = read
            wide = asked.sides[1] * size
            nats = float(asked.values.min()) * wide, float(asked.values.max()) * wide
            found.append(measured(city, size, nats, asked, density))
    return found


def judge(found: list[Row]) -> list[str]:
    bars = Bars("privacy maps, the suite")
    ratio = np.array([row.to_half for row in found])
    kept = np.array([row.kept for row in found])
    bars.note("mean of lowered/asked, median", f"{np.median(kept):.3f}")
    bars.at_least("  worst", float(kept.min()), 0.8, "")
    own = sum(row.chosen in ("eikonal", "landmarks") for row in found)
    bars.at_most("maps that fell back", len(found) - own, 0, "")
    remapped = np.array([row.remapped for row in found])
    middle, worst = float(np.median(remapped)), float(remapped.max())
    bars.at_most("squared error (recommended) over exponential eps/2, median", middle, 0.45, "")
    bars.at_most("  worst", worst, 0.55, "")
    both = np.array([row.both_remapped for row in found])
    for words, values in (("law as it is, over that", ratio), ("both remapped", both)):
        bars.note(f"  {words}: median", f"{np.median(values):.3f}, worst {values.max():.3f}")
    laplace = np.array([row.to_laplace for row in found])
    bars.note("over Laplace(min), median", f"{np.median(laplace):.3f}, worst {laplace.max():.3f}")
    _judge_finer(bars, found)
    return bars.failed


def _judge_finer(bars: Bars, found: list[Row]) -> None:
    """How errors and CPU change with finer cells, beside what nobody can change."""
    by = {(row.city, row.size): row for row in found if row.nats not in OTHERS}
    for city in dict.fromkeys(row.city for row in found):
        if any((city, size) not in by for size in SIZES):
            continue
        coarse, middle, fine = (by[city, size] for size in SIZES)
        if "noise" not in city:  # which is another map at every size
            three = coarse, middle, fine
            moved = later_change([row.error for row in three])
            bars.at_most(f"{city}: change 100 to 200 over 60 to 100", moved, 0.5, "")
            same = {
                "remapped": [row.remapped * row.error / row.to_half for row in three],
                "exponential eps/2, where nothing is solved": [
                    row.error / row.to_half for row in three
                ],
            }
            for words, errors in same.items():
                bars.note(f"  {words}", f"{later_change(errors):.2f}")
        growth = fine.cpu / coarse.cpu / (SIZES[2] / SIZES[0]) ** 4
        bars.at_most(f"{city}: CPU from 60 to 200, over cells squared", growth, 1.0, "")
    if set(SIZES) <= {row.size for row in found}:
        _explain(bars)


def _explain(bars: Bars) -> None:
    """The best possible mechanism's own changes, which are exact on a line of 12 nats."""
    smooth = later_change([line_optimum(constant_line(USUAL[0], n)).error for n in SIZES])
    steps = step_changes(USUAL[0])
    bars.note("best mechanism on a line: constant level", f"{smooth:.2f} (order 2: 0.42)")
    bars.note(
        "  a step that its cells read at their centres",
        f"{steps[0]:.2f} to {steps[-1]:.2f} (order 1: 0.75)",
    )
    print(
        "  On smooth levels order 2 is possible, and what misses the bar is ours (quantum, frame);"
        " a step\n  moves within a cell from size to size, which no mechanism can undo"
        " (map_suite settling)."
    )


def optimum() -> None:
    """What no mechanism can beat on maps of three nats, beside ours and the exponential's."""
    for city, nats in (("coast", (3.0, 24.0)), ("coast", (3.0, 6.0)), ("gradient", (3.0, 6.0))):
        asked = synthetic(city, 16, nats)
        best = optimal_map_channel(asked, loss="squared", gap=0.02).lower_bound
        ours, half = (
            EikonalMechanism.build(asked, places="cells", prior=uniform_or(None, asked)),
            EikonalMechanism.exponential(asked),
        )
        moved, half_moved = (one.mse(remap=one.posterior_mean()) for one in (ours, half))
        print(
            f"  {city:<12} {nats[0]:g}-{nats[1]:g} over exp eps/2: any channel at least"
            f" {best / half.mse():.3f}, ours remapped {moved / half.mse():.3f};"
            f" over it remapped: {best / half_moved:.3f} and {moved / half_moved:.3f}",
            flush=True,
        )


def on_places(sizes: tuple[int, ...], names: tuple[str, ...]) -> None:
    """Default builds of cities (of tracts, unless named), as they are and on larger cells."""
    EikonalMechanism.build(synthetic("coast", 12, (4.0, 8.0)))  # compile
    for name in names or ("tracts, roughness 0.3",):
        errors = []
        for size in sizes:
            asked = synthetic(name, size, USUAL)
            errors.append(_on_places(f"{name} {size:4d}", asked))
            if size > COARSENED and not names:
                _on_places(f"{name} {size:4d} coarsened(2)", asked.coarsened(2))
        if sizes == SIZES:
            changes = ", ".join(f"{(b / a - 1) * 100:+.2f}%" for a, b in pairwise(errors))
            print(f"  {name}: {changes}; later change over the earlier {later_change(errors):.2f}")


def _on_places(name: str, asked: PrivacyMap) -> float:
    """Print what a default build has and costs; its squared error."""
    cpu, wall = time.process_time(), time.perf_counter()
    built = EikonalMechanism.build(asked)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    error = built.mse()
    print(
        f"  {name}  mse {error / 1e6:.4f} km2, factor {built.factor:.5f},"
        f" CPU {cpu:.1f} s, wall {wall:.1f} s",
        flush=True,
    )
    return error


def main() -> list[str]:
    words = sys.argv[1:] if sys.argv[0].endswith("map_suite.py") else []
    sizes = tuple(int(word) for word in words if word.isdigit()) or SIZES
    names = tuple(word for word in words if not word.isdigit())
    if names[:1] == ("drawn",):
        seed = sizes[0]
        print(f"\n== privacy maps of cities that seed {seed} draws")
        EikonalMechanism.build(synthetic("coast", 12, (4.0, 8.0)), places="cells")  # compile
        cities = drawn(seed, DRAWN)
        return judge(
            [
                measured(
                    one.name, one.size, one.nats, as_map(one.city, one.size, one.nats), one.prior
                )
                for one in cities
            ]
        )
    if "narrow" in names:
        narrow(sizes[0], sizes[1] if len(sizes) == 2 else SIZES[0])
        return []
    if "settling" in names:
        settling(sizes, tuple(name for name in names if name != "settling"))
        return []
    if "optimum" in names or "places" in names:
        if "optimum" in names:
            optimum()
        if "places" in names:
            on_places(sizes, tuple(set(names) - {"optimum", "places"}))
        return []
    print(f"\n== privacy maps, one row for each of the suite at {sizes}")
    return judge(rows(sizes, names))


if __name__ == "__main__":
    main()
