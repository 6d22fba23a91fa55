"""The two operational meanings of eps d, as attacks: they fail on private channels.

Under a hiding function posteriors differ by at most 2 eps d(phi); an informed adversary learns
at most eps d(N).  Random adversaries and the worst ones try three channels on a grid: planar
Laplace and the optimal one, which keep eps d, and planar Laplace whose grid was resampled into
the region, which does not.  The densities of the slides, around (-2, -4) and (5, 3) at
eps = 1/5, are the same in the plane.
"""

from __future__ import annotations

import math

import numpy as np

from whereish.arrays import FloatArray
from whereish.audit.characterisations import (
    sampled_attacks,
    worst_hiding_attack,
    worst_informed_attack,
)
from whereish.mechanisms.channels.laplace import laplace_channel
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy.norms import Euclidean
from whereish.space.raster import Raster
from whereish.studies.figures import figure
from whereish.studies.framework.study import Run, Study
from whereish.units import Epsilon

__all__ = ["STUDY", "resampled_channel"]

_GRID = Raster(5, 5, (2.0, 2.0), (-5.0, -5.0))
_EPSILON = 0.2
_CENTRES = np.array([[-2.0, -4.0], [5.0, 3.0]])


def resampled_channel() -> FloatArray:
    """Planar Laplace drawn again until it falls into the grid: cells' masses, rescaled.

    The mass of a cell is taken at its centre, so that the normaliser is all that is broken.
    """
    centres = _GRID.centres()
    weights = np.exp(-_EPSILON * Euclidean().matrix(centres))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _run(run: Run) -> None:
    allowed = _EPSILON * Euclidean().matrix(_GRID.centres())
    prior = run.public.dirichlet(np.ones(len(_GRID)))
    channels: dict[str, FloatArray] = {
        "planar Laplace, clamped": laplace_channel(_GRID, Epsilon(_EPSILON)).matrix,
        "optimal channel": optimal_channel(_GRID, prior, Epsilon(_EPSILON), gap=1e-2).matrix,
        "planar Laplace, resampled": resampled_channel(),
    }
    count = 200 if run.quick else 2000
    rows, broken = [], []
    for name in run.steps(list(channels), "adversaries"):
        matrix = channels[name]
        seen = sampled_attacks(matrix, allowed, count=count, seed=run.study.seed)
        worst = (worst_hiding_attack(matrix, allowed), worst_informed_attack(matrix, allowed))
        rows.append((name, *(a.factor for a in seen), *(a.factor for a in worst)))
        if any(a.succeeds for a in worst):
            broken.append(name)
    head = (
        "channel",
        "hiding, sampled",
        "informed, sampled",
        "hiding, worst",
        "informed, worst",
    )
    run.table(f"Learned / allowed by eps d (best of {count} adversaries)", head, rows)
    run.note(f"Attacks learn more than eps d allows on: {', '.join(broken) or 'none'}.")
    _densities(run)


def _densities(run: Run) -> None:
    """Log-densities of the two places along the line through them: never farther than eps d."""
    noise = PlanarLaplace(Epsilon(_EPSILON), resolution="1 mm")
    apart = math.dist(*_CENTRES)
    along = np.linspace(-1, 2, 301)
    line = _CENTRES[0] + along[:, None] * (_CENTRES[1] - _CENTRES[0])
    axes = figure("distance along the line from (-2, -4) to (5, 3)", "density (per unit²)")
    logs = [noise.log_density(line, centre[None]) for centre in _CENTRES]
    for log, centre in zip(logs, _CENTRES, strict=True):
        axes.plot(along * apart, np.exp(log), label=f"around ({centre[0]:g}, {centre[1]:g})")
    axes.legend(loc="upper right")
    run.draw("densities", axes, "Two densities at eps = 1/5; they differ by e^(eps d) at most.")
    run.note(
        f"Along the line the densities differ by e^{np.abs(logs[0] - logs[1]).max():.6f} at most;"
        f" eps d = {_EPSILON * apart:.6f}."
    )


STUDY = Study("c-attacks", "Two operational meanings of a metric, as attacks", "C", 31, _run)
