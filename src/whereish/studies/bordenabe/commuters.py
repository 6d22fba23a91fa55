"""Commuters (Figure 5.13): whether the histogram of commute distances survives blurred homes.

The thesis blurs the homes of the San Francisco residents of LODES, a file of the US census, and
counts commutes of 0-10-25-50+ miles.  That file is not here: commuters are made from the density
of Philadelphia's ZIP codes by a gravity model and, where it is present, Bristol's table of zone
pairs of the census of 2011 is used too.  Only homes move.  The noise is planar Laplace at
l within r; for noise in doubles Theorem 5.3 corrects epsilon (u = 1e-3 mi, diameter 1e4 mi), which
changes nothing that can be seen.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from pyarrow import csv

from whereish.arrays import FloatArray
from whereish.data.commuters import MILES, Commuters, synthetic_commuters
from whereish.data.philadelphia import philadelphia_density
from whereish.mechanisms.noise.float_noise import corrected_epsilon
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.space.plane import Plane
from whereish.space.points import Points
from whereish.studies.figures import panels
from whereish.studies.framework.study import Run, Study, real_data
from whereish.units import METRES_PER, Epsilon, Length

__all__ = ["STUDY", "bristol_commuters", "philadelphia_commuters"]

_CITY_MI2 = 46.87
_PEOPLE = 374_390
_SHARES = {5: "0.86 mi", 10: "1.22 mi", 25: "1.93 mi"}
_CITY_RADIUS = "3.86 mi"
_CITY_LEVELS = (8.6, 4.3, 2.15)


def philadelphia_commuters(count: int, seed: int) -> Commuters:
    """Made-up commuters of a square of 50 km around Philadelphia."""
    density, raster = philadelphia_density(50)
    return synthetic_commuters(raster, density, count, seed=seed, reach="12 km")


def bristol_commuters(count: int, generator: np.random.Generator) -> Commuters | None:
    """Commuters drawn from Bristol's zone pairs by their counts; None where the file is absent."""
    path = real_data("bristol_commute_od_2011.csv.gz")
    if path is None:
        return None
    table = csv.read_csv(pa.input_stream(str(path), compression="gzip"))
    homes, works, weights = _columns(table)
    rows = generator.choice(len(weights), count, p=weights / weights.sum())
    plane = Plane.around(float(homes[:, 0].mean()), float(homes[:, 1].mean()), "60 km")
    ends = (plane.from_degrees(*places[rows].T) for places in (homes, works))
    return Commuters(*(Points(points.coordinates, plane) for points in ends))


def _columns(table: pa.Table) -> tuple[FloatArray, FloatArray, FloatArray]:
    def pair(*names: str) -> FloatArray:
        return np.column_stack([table[name].to_numpy() for name in names]).astype(np.float64)

    ends = pair("o_lon", "o_lat"), pair("d_lon", "d_lat")
    return *ends, pair("commuters")[:, 0]


def _noises(plane: Plane) -> dict[str, PlanarLaplace]:
    by_area = {
        f"ln 2 within {radius} ({share}%)": Epsilon(math.log(2) / Length.of(radius).m)
        for share, radius in _SHARES.items()
    }
    by_level = {
        f"{level} within {_CITY_RADIUS}": Epsilon(level / Length.of(_CITY_RADIUS).m)
        for level in _CITY_LEVELS
    }
    return {name: PlanarLaplace(eps, plane=plane) for name, eps in {**by_area, **by_level}.items()}


def _blurred(run: Run, commuters: Commuters) -> dict[str, FloatArray]:
    """Shares of each class, for true and for blurred homes."""
    found = {"true homes": commuters.histogram().shares}
    assert isinstance(commuters.homes.space, Plane)
    noises = _noises(commuters.homes.space)
    for name in run.steps(list(noises), "blurring homes"):
        homes = noises[name].report(commuters.homes, rng=run.rng)
        found[name] = commuters.histogram(homes=homes).shares
    return found


def _run(run: Run) -> None:
    for share in (5, 10, 25, 100):
        run.compare(f"radius-{share}", math.sqrt(share / 100 * _CITY_MI2 / math.pi))
    count = _PEOPLE // 20 if run.quick else _PEOPLE
    sets = {"Philadelphia, made up": philadelphia_commuters(count, run.study.seed)}
    bristol = bristol_commuters(count, run.public)
    if bristol is not None:
        sets["Bristol, census of 2011"] = bristol
    run.note(
        f"LODES is not here: {count} commuters each of {' and of '.join(sets)}; the sources'"
        " shares of commutes are in a figure and not in the text."
    )
    drawn = panels(len(sets), width=5.4, height=4.2)
    for axes, (place, commuters) in zip(drawn, sets.items(), strict=True):
        shares = _blurred(run, commuters)
        labels = commuters.histogram().labels
        head = ("homes", *(f"{label} mi" for label in labels), "moved to another class")
        truth = shares["true homes"]
        rows = [(name, *row, float(np.abs(row - truth).sum() / 2)) for name, row in shares.items()]
        run.table(f"Shares of commutes, {place}", head, rows)
        width = 0.8 / len(shares)
        for index, (name, row) in enumerate(shares.items()):
            at = np.arange(len(labels)) + (index - (len(shares) - 1) / 2) * width
            axes.bar(at, row, width, label=name)
        axes.set_xticks(range(len(labels)), [f"{label} mi" for label in labels])
        axes.set(xlabel="commute distance", ylabel="share of commuters", title=place)
        axes.legend(loc="upper right")
    run.draw("histograms", drawn[0], "Figure 5.13: commutes before and after homes are blurred.")
    _float_correction(run)


def _float_correction(run: Run) -> None:
    """Theorem 5.3 with the thesis's unit and diameter."""
    mile = METRES_PER["mi"]
    epsilon = Epsilon(math.log(2) / Length.of("1.22 mi").m)
    corrected = corrected_epsilon(
        epsilon, unit=Length(1e-3 * mile), r_max=Length(1e4 * mile), digits=16
    )
    lost = 1 - corrected.per_m / epsilon.per_m
    run.note(
        f"Theorem 5.3 at u = 1e-3 mi and r_max = 1e4 mi in doubles: epsilon is lowered by"
        f" {lost:.2g} of itself (classes: {', '.join(f'{edge:g}' for edge in MILES)} mi)."
    )


STUDY = Study("b-commuters", "Commute distances with blurred homes: Figure 5.13", "B", 513, _run)
