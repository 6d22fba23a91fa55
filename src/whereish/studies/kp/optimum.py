"""Eikonal against the optimal channel on the same grid, which the paper's Table I does not do.

Table I sets an eikonal mechanism on 200 x 200 cells beside an optimum on 35 x 35.  Cells alone move
the squared error, so here both are on the same cells and keep the same metric.  The optimum
comes with a bound that no private channel beats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.maps.optimal import optimal_map_channel
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.space.points import Points
from whereish.studies.figures import figure
from whereish.studies.framework.study import Run, Study
from whereish.studies.kp.patch import densities, paper_map

__all__ = ["STUDY", "Compared", "bump", "compared"]

_PUBLISHED_CELLS = 35
# Certified gaps, and seconds after which the best channel and bound so far must do.
_GAP, _GAP_MANY_CELLS, _PATIENCE = 0.01, 0.02, 900.0


@dataclass(frozen=True)
class Compared:
    """Squared errors of the eikonal mechanism, plain and remapped, and of the optimum."""

    eikonal: float
    remapped: float
    optimum: float
    bound: float
    status: str

    @property
    def excess(self) -> float:
        """By how much the remapped eikonal mechanism exceeds the optimum found."""
        return self.remapped / self.optimum - 1


def compared(levels: PrivacyMap, prior: FloatArray, *, gap: float, time_limit: float) -> Compared:
    """Both on the cells of one map."""
    eikonal = EikonalMechanism.build(levels, places="cells")
    mean, cells = eikonal.posterior_mean(prior), levels.raster

    def remap(reports: Points) -> Points:
        """To the cell nearest to the posterior mean: the best cell for squared error."""
        return Points(cells.centres()[cells.locate(mean(reports).coordinates)], reports.space)

    best = optimal_map_channel(levels, prior, gap=gap, time_limit=time_limit)
    return Compared(
        eikonal.mse(prior),
        eikonal.mse(prior, remap=remap),
        best.loss,
        best.lower_bound,
        best.status,
    )


def bump(cells: int, side: float) -> tuple[PrivacyMap, FloatArray]:
    """One bump of eps from 0.4 to 2 in the middle; the prior is proportional to eps - 0.4."""
    at = (np.arange(cells) + 0.5) / cells - 0.5
    height = np.exp(-np.add.outer(at**2, at**2) / (2 * 0.2**2))
    return PrivacyMap(0.4 + 1.6 * height, (side, side)), np.asarray(height)


def _maps(sizes: tuple[int, ...]) -> dict[str, tuple[PrivacyMap, FloatArray]]:
    found = {}
    for cells in sizes:
        density = densities(cells)["ZIP codes"]
        found[f"paper's patch, {cells} x {cells}"] = (paper_map(density), density)
    for side in (0.5, 1.0, 3.0, 6.0):
        found[f"bump, 10 x 10 cells of {side:g}"] = bump(10, side)
    return found


def _run(run: Run) -> None:
    maps = _maps((8, 10) if run.quick else (16, 20, _PUBLISHED_CELLS))
    rows, found = [], {}
    for name in run.steps(list(maps), "optimal channels"):
        levels, prior = maps[name]
        gap = _GAP if levels.values.size < 900 else _GAP_MANY_CELLS
        seen = compared(levels, prior, gap=gap, time_limit=_PATIENCE)
        found[name] = seen
        nats = float(np.average(levels.values, weights=prior) * levels.sides[0])
        errors = (seen.eikonal, seen.remapped, seen.optimum, seen.bound)
        rows.append((name, nats, *errors, f"{seen.excess:.2%}"))
    head = (
        "map",
        "eps x cell (nats)",
        "eikonal",
        "remapped",
        "optimum",
        "no channel below",
        "excess",
    )
    run.table("Squared errors on the same cells (units²)", head, rows)
    if run.quick:
        _no_optimum(run)
    else:
        name = f"paper's patch, {_PUBLISHED_CELLS} x {_PUBLISHED_CELLS}"
        _optimum_35(run, maps[name][0], found[name])
    by_nats = ", ".join(f"{row[-1]} at {row[1]:.2f}" for row in sorted(rows, key=lambda r: r[1]))
    run.note(
        "How far the eikonal mechanism, remapped to the best cells, is above the optimum depends on"
        f" the nats per cell: {by_nats}. With few of them noise is as wide as the map: an optimum"
        " that knows the prior pulls reports inwards, and the eikonal mechanism is made from"
        " distances alone."
    )
    _draw(run, rows)


def _no_optimum(run: Run) -> None:
    density = densities(_PUBLISHED_CELLS)["ZIP codes"]
    mse = EikonalMechanism.build(paper_map(density), places="cells").mse(density)
    run.cannot_compare(
        "optimum",
        "the quick run solves no programme on 35 x 35 cells; the eikonal mechanism's mse there"
        f" is {mse:.2f} units²",
    )


def _optimum_35(run: Run, levels: PrivacyMap, seen: Compared) -> None:
    cell = levels.sides[0]
    run.compare(
        "optimum",
        seen.optimum,
        reason=f"on 35 x 35 cells no channel is below {seen.bound:.3f} units² and the one found has"
        f" {seen.optimum:.3f} ({seen.status}); in cells of {cell:.3g} units that is"
        f" {seen.optimum / cell**2:.3f} cells², so the paper's number may be of other cells, other"
        " units or another density: the text does not say",
    )


def _draw(run: Run, rows: list[tuple[str, float, float, float, float, float, str]]) -> None:
    axes = figure("mean eps x cell side (nats)", "squared error / optimum")
    for kind, mark, said in (("bump", "o", "one bump"), ("paper", "s", "paper's patch")):
        of_kind = sorted((row for row in rows if row[0].startswith(kind)), key=lambda row: row[1])
        x, best = [row[1] for row in of_kind], np.array([row[4] for row in of_kind])
        plain, remapped = (np.array([float(row[i]) for row in of_kind]) for i in (2, 3))
        axes.plot(x, plain / best, marker=mark, label=f"{said}, eikonal")
        axes.plot(x, remapped / best, marker=mark, label=f"{said}, remapped to the best cells")
    axes.axhline(1, color="0.5", linestyle="-", linewidth=1)
    axes.set_xscale("log")
    axes.set_xticks([0.6, 1, 2, 4, 8], ["0.6", "1", "2", "4", "8"])
    axes.set_xticks([], minor=True)
    axes.legend(loc="upper right")
    run.draw("excess", axes, "The eikonal mechanism above the optimum on the same cells.")


STUDY = Study("kp-optimum", "Eikonal against the optimum on the same cells", "KP", 2, _run)
