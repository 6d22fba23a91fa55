"""Table I: squared errors on the paper's patch, and in which unit its density must be.

The paper's Laplace noise has the least eps of the map: density eps² e^{-eps|v|}/(2 pi), so
E|v|² = 6/eps².  The eikonal mechanism knows the map; its error is averaged with the prior
proportional to density.  The paper gives the density no unit.  Both are tried: one of them
gives the paper's range of eps and its error.
"""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.studies.figures import HEAT, panels
from whereish.studies.framework.study import Run, Study
from whereish.studies.kp.patch import KM2_PER_MI2, SIDE, densities, paper_map

__all__ = ["STUDY"]

_FULL, _QUICK = 200, 48
_LEAST = 0.4


def _laplace_mse(level: float) -> float:
    """E|v|² of planar Laplace: the second moment of Gamma(2, 1/eps), 2·3/eps²."""
    scale = PlanarLaplace(f"{level!r}/m").mean_error.m / 2
    return 6 * scale**2


def _eikonal_mse(density: FloatArray) -> tuple[PrivacyMap, float]:
    levels = paper_map(density)
    return levels, EikonalMechanism.build(levels, places="cells").mse(density)


def _units(run: Run, name: str, cells: int) -> None:
    """The same density per km² and per square mile."""
    per_km2 = densities(cells)[name]
    rows = []
    for unit, density in (("km²", per_km2), ("square mile", per_km2 * KM2_PER_MI2)):
        levels, mse = _eikonal_mse(density)
        low, high = levels.values.min(), levels.values.max()
        above = float((levels.values > run.published_value("largest")).mean())
        rows.append((f"people per {unit}", low, high, f"{above:.1%}", mse))
    head = (
        "density",
        "least eps",
        "largest eps",
        "cells above the printed",
        "eikonal mse (units²)",
    )
    run.table(f"The density's unit, {name}, {cells} x {cells} cells", head, rows)
    largest, mse = run.published_value("largest"), run.published_value("eikonal")
    nearer = min(rows, key=lambda row: abs(row[2] - largest))[0]
    said = "; ".join(
        f"{unit}: eps in [{low:.3g}, {high:.3g}], {above} of the cells above {largest:g}, mse"
        f" {found:.3g}"
        for unit, low, high, above, found in rows
    )
    run.note(
        f"{name}, {cells} x {cells} cells. {said}. The paper prints eps up to {largest:g} and mse"
        f" {mse:g} (200 x 200): its density is {nearer}."
    )


def _run(run: Run) -> None:
    run.compare("laplace", _laplace_mse(_LEAST))
    cells = _QUICK if run.quick else _FULL
    known = densities(cells)
    kinds = {"ZIP codes": "", "census of 2000": "-census"}
    for name in run.steps(list(kinds), f"eikonal mechanism on {cells} x {cells} cells"):
        ending = kinds[name]
        if name not in known:
            for number in ("least", "largest", "eikonal"):
                run.cannot_compare(f"{number}{ending}", "the census's block groups are not here")
            continue
        levels, mse = _eikonal_mse(known[name])
        low, high = float(levels.values.min()), float(levels.values.max())
        run.compare(f"least{ending}", low)
        run.compare(
            f"largest{ending}",
            high,
            reason=f"the density is of {name} and not of the paper's grid: the densest cell has"
            f" {(high - 0.4) * 1e4:.0f} people per km²; nothing is clipped",
        )
        if run.quick:
            run.cannot_compare(
                f"eikonal{ending}",
                f"the quick run has {cells} x {cells} cells, where the mse is {mse:.2f}; it grows"
                " with their number",
            )
        else:
            run.compare(
                f"eikonal{ending}",
                mse,
                reason=f"the density is of {name} and not of the paper's grid",
            )
        _units(run, name, min(cells, 100))
    _by_cells(run)
    _draw(run, known)


def _by_cells(run: Run) -> None:
    """The error grows with the number of cells, which coarse cells round away."""
    counts = (16, 24, 35) if run.quick else (16, 24, 35, 60, 100, 140)
    rows = []
    for cells in run.steps(counts, "squared error by cells"):
        rows.append(
            (f"{cells} x {cells}", *(_eikonal_mse(d)[1] for d in densities(cells).values()))
        )
    run.table("Eikonal mse (units²) by cells", ("cells", *densities(16)), rows)


def _draw(run: Run, known: dict[str, FloatArray]) -> None:
    drawn = panels(len(known), width=5.0, height=4.2)
    for axes, (name, density) in zip(drawn, known.items(), strict=True):
        levels = paper_map(density).values
        edges = np.linspace(0, SIDE, len(density) + 1)
        mesh = axes.pcolormesh(edges, edges, levels, cmap=HEAT, rasterized=True)
        axes.figure.colorbar(mesh, ax=axes, label="eps (per unit)", shrink=0.85)
        axes.set(aspect="equal", xlabel="x (units)", ylabel="y (units)", title=name)
        axes.grid(False)
    run.draw("levels", drawn[0], "Figure 2: the levels of the paper's patch, from two densities.")


STUDY = Study("kp-table", "Table I: squared errors on the paper's patch", "KP", 1, _run)
