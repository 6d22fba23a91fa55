"""Two densities, and noise in doubles (section 5.2): Figures 5.2 and 5.6.

Theorem 5.3: noise of level eps' in floating point, rounded to a grid of step u, keeps eps within
r_max if eps' + (1/u) ln((q + 2 e^{eps' u}) / (q - 2 e^{eps' u})) <= eps with
q = u / (r_max delta), delta being the precision of angles.  Drawn for r_max = 100 km and
delta = 1e-16, 1e-9 and 1e-7; the text names no u, so that two are shown.
"""

from __future__ import annotations

import math

import numpy as np

from whereish.errors import InvalidInput
from whereish.mechanisms.noise.float_noise import corrected_epsilon
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.studies.figures import HEAT, panels
from whereish.studies.framework.study import Run, Study
from whereish.units import Epsilon

__all__ = ["STUDY"]

_DIGITS = (16, 9, 7)
_UNITS = ("1 m", "10 m")
_CENTRES = ((-2.0, -4.0), (5.0, 3.0))


def _corrected(epsilon: float, unit: str, digits: int) -> float:
    """eps', or NaN where no level suffices."""
    try:
        return corrected_epsilon(Epsilon(epsilon), unit=unit, r_max="100 km", digits=digits).per_m
    except InvalidInput:
        return math.nan


def _densities(run: Run) -> None:
    """Figure 5.2: eps = 1/5; the ratio at any point is at most e^{eps d}."""
    noise = PlanarLaplace(Epsilon(0.2), resolution="1 mm")
    at = np.linspace(-15, 15, 121)
    x, y = np.meshgrid(at, at)
    places = np.column_stack([x.ravel(), y.ravel()])
    logs = [noise.log_density(places, np.array([centre])) for centre in _CENTRES]
    drawn = panels(2, width=4.8, height=4.0)
    for axes, log, centre in zip(drawn, logs, _CENTRES, strict=True):
        mesh = axes.pcolormesh(at, at, np.exp(log).reshape(x.shape), cmap=HEAT, rasterized=True)
        axes.figure.colorbar(mesh, ax=axes, label="density (per square metre)")
        axes.set(aspect="equal", xlabel="x (m)", ylabel="y (m)")
        axes.set_title(f"centre ({centre[0]:g}, {centre[1]:g}), eps = 1/5 per metre")
        axes.grid(False)
    run.draw("densities", drawn[0], "Figure 5.2: planar Laplace densities around two places.")
    apart = math.dist(*_CENTRES)
    worst = float(np.abs(logs[0] - logs[1]).max())
    run.note(
        f"The two densities differ by a factor e^{worst:.4f} at most, and eps d allows"
        f" e^{0.2 * apart:.4f}."
    )


def _run(run: Run) -> None:
    _densities(run)
    levels = np.geomspace(1e-4, 1, 60)
    drawn = panels(len(_UNITS), width=4.8, height=4.0)
    rows = []
    for axes, unit in zip(drawn, run.steps(_UNITS, "Theorem 5.3"), strict=True):
        axes.plot(levels, levels, color="0.7", linestyle="-", label="eps' = eps")
        for digits in _DIGITS:
            kept = [_corrected(eps, unit, digits) for eps in levels]
            axes.plot(levels, kept, label=f"precision 1e-{digits}")
        axes.set(xscale="log", yscale="log", xlabel="eps wanted (per metre)", ylim=(1e-5, 2))
        axes.set(ylabel="eps' of the noise (per metre)", title=f"u = {unit}, r_max = 100 km")
        axes.legend(loc="upper left")
        for digits in _DIGITS:
            rows.append((unit, f"1e-{digits}", *(_corrected(e, unit, digits) for e in _ASKED)))
    run.draw("corrected", drawn[0], "Figure 5.6: the level that float noise must have.")
    head = ("u", "precision", *(f"eps' for {eps:g}/m" for eps in _ASKED))
    run.table("Theorem 5.3, r_max = 100 km (nan: no level suffices)", head, rows)


_ASKED = (0.001, 0.01, 0.1, 0.5)

STUDY = Study("b-precision", "Densities and noise in doubles: Figures 5.2 and 5.6", "B", 52, _run)
