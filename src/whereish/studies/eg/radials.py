"""Optimal circular noise: Figures 2 and 3, and the optimum that the authors left open.

For a single point (a region without other places) the best noise of density at most M is the
uniform disk of area 1/M.  For l = eps d it is planar Laplace.  For (D, eps)-location privacy, which
asks for eps within distance D and nothing beyond, the paper has no optimum: ours is computed with
a bound that none beats.
"""

from __future__ import annotations

import math

import numpy as np

from whereish.arrays import FloatArray
from whereish.mechanisms.noise.optimal_circular import OptimalCircular
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy.distinguishability import Distinguishability
from whereish.solvers.radial.loss import Loss
from whereish.studies.figures import figure, panels
from whereish.studies.framework.study import Run, Study, in_turn
from whereish.units import Epsilon

__all__ = ["STUDY"]

_DENSITIES = (1e-6, 4e-6, 1.6e-5)
"""M, per square metre."""
_EPSILON = 1 / 200


def _density(noise: OptimalCircular | PlanarLaplace, radii: FloatArray) -> FloatArray:
    places = np.column_stack([radii, np.zeros(len(radii))])
    return np.asarray(np.exp(noise.log_density(places, np.zeros((1, 2)))))


def _single_point(run: Run) -> None:
    """Figure 2: a uniform disk of area 1/M."""
    axes = figure("distance r (m)", "density (per square metre)")
    radii = np.linspace(0, 700, 701)
    rows = []
    for most in _DENSITIES:
        noise = OptimalCircular(Distinguishability.unlimited(), bound=most)
        axes.plot(radii, _density(noise, radii), label=f"M = {most:g} per m²")
        disk = math.sqrt(1 / (math.pi * most))
        rows.append((most, disk, noise.loss_value, 2 * disk / 3))
    axes.set_yscale("log")
    axes.set_ylim(1e-7, 1e-4)
    axes.legend(loc="upper right")
    run.draw("single-point", axes, "Figure 2: optimal radials of a single point, several M.")
    head = ("M (per m²)", "radius of the disk (m)", "expected distance (m)", "2/3 of the radius")
    run.table("A single point: the uniform disk of density M", head, rows)


def _laplace(run: Run) -> None:
    """Figure 3: the radial at eps = 1/200, found by the solver and in closed form."""
    noise = OptimalCircular(Distinguishability.linear(Epsilon(_EPSILON)))
    closed = PlanarLaplace(Epsilon(_EPSILON))
    radii = np.linspace(0, 2000, 401)
    axes = figure("distance r (m)", "density (per square metre)")
    axes.plot(radii, _density(closed, radii), label="planar Laplace, eps²e^(-eps r)/(2 pi)")
    axes.plot(radii, _density(noise, radii), label="optimal circular noise, solved")
    axes.legend(loc="upper right")
    run.draw("radial", axes, "Figure 3: the optimal radial for l = eps d at eps = 1/200 m.")
    away = np.abs(np.log(_density(noise, radii) / _density(closed, radii))).max()
    run.note(
        f"At eps = 1/200 m the solved radial is planar Laplace's: ln of their ratio at most"
        f" {away:.2g}, expected distance {noise.loss_value:.4f} m (2/eps = {2 / _EPSILON:g}), none"
        f" below {noise.lower_bound:.4f} m."
    )


def _location_privacy(run: Run) -> None:
    """(D, eps)-location privacy: the optimum against planar Laplace that implies it."""
    reach = 1000.0
    levels = (math.log(2), math.log(4)) if run.quick else (math.log(2), math.log(4), 2.0, 4.0)
    promises = [Distinguishability.location(f"{reach} m", level) for level in levels]
    rows = []
    drawn = panels(1, width=6.6, height=4.2)[0]
    radii = np.linspace(1, 6000, 600)
    for level, promise in zip(levels, run.steps(promises, "(D, eps) optima"), strict=True):
        best = OptimalCircular(promise, Loss.power(1))
        laplace = PlanarLaplace(Epsilon(level / reach)).mean_error.m
        rows.append(
            (
                level,
                best.loss_value,
                best.lower_bound,
                laplace,
                f"{1 - best.loss_value / laplace:.1%}",
            )
        )
        drawn.plot(radii, _density(best, radii), label=f"optimum, level {level:.3g} within 1 km")
    drawn.set(xlabel="distance r (m)", ylabel="density (per square metre)", yscale="log")
    drawn.legend(loc="upper right")
    run.draw("location", drawn, "(D, eps)-location privacy's optimum: stairs of width D.")
    head = ("level", "optimum (m)", "none below (m)", "planar Laplace (m)", "gain")
    run.table("(1 km, eps)-location privacy: expected distance", head, rows)


_run = in_turn(_single_point, _laplace, _location_privacy)
STUDY = Study("eg-radials", "Optimal radials: Figures 2 and 3, and beyond", "EG", 22, _run)
