"""What symmetry costs: Figures 1 and 4, measured from users' real positions.

A symmetric mechanism adds noise where the user is; the best one on cells moves him to a centre
first, which on cells of 5 km costs about 2 km however large eps is.  The paper's users are in Los
Angeles; four others stand in, in a box of the same extent, with 300, 150, 80 and 40 check-ins or
nearest to that.
"""

from __future__ import annotations

import math

import numpy as np

from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.privacy.norms import Euclidean
from whereish.space.box import Box
from whereish.space.plane import Plane
from whereish.space.raster import Raster
from whereish.studies.comparison import SymmetryComparison, compare_symmetry, rectangle_distance
from whereish.studies.eg.users import HEIGHT_M, WIDTH_M, Users, users_with
from whereish.studies.figures import figure, panels
from whereish.studies.framework.study import Run, Study, in_turn
from whereish.units import Epsilon

__all__ = ["STUDY"]

_COUNTS = (300, 150, 80, 40)
_LOS_ANGELES = Box(-118.5354, 33.9301, -118.1010, 34.1996)
_PARIS = Raster(7, 9, (1500.0, 1500.0))
_AWAY_M = 812.0


def _box(run: Run) -> None:
    """The paper's box in kilometres, its cells, and the size of its programme."""
    middle = (
        (_LOS_ANGELES.x_low + _LOS_ANGELES.x_high) / 2,
        (_LOS_ANGELES.y_low + _LOS_ANGELES.y_high) / 2,
    )
    plane = Plane.around(*middle, "30 km")
    corners = plane.from_degrees(
        np.array([_LOS_ANGELES.x_low, _LOS_ANGELES.x_high, middle[0], middle[0]]),
        np.array([middle[1], middle[1], _LOS_ANGELES.y_low, _LOS_ANGELES.y_high]),
    ).coordinates
    run.compare("width", (corners[1, 0] - corners[0, 0]) / 1000)
    run.compare("height", (corners[3, 1] - corners[2, 1]) / 1000)
    cells = int(WIDTH_M / 5000) * int(HEIGHT_M / 5000)
    run.compare("cells", cells)
    run.compare("inequalities", cells * (cells - 1) * cells)
    run.compare("equalities", cells)


def _paris(run: Run) -> None:
    """Figure 1: somebody 0.812 km from the centre of his cell, however large eps is."""
    run.compare("paris-cells", len(_PARIS))
    centres = _PARIS.centres()
    cell = 31
    place = centres[cell] + _AWAY_M * np.array([0.8, 0.6])
    assert _PARIS.locate(place[None])[0] == cell
    levels = (
        (0.5, 1.0, 2.0, 4.0, 8.0) if run.quick else (0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
    )
    losses = []
    for level in run.steps(levels, "Figure 1"):
        best = optimal_channel(_PARIS, None, f"{level}/km", gap=1e-2)
        away = Euclidean().matrix(place[None], best.reports.coordinates)[0]
        losses.append(float(best.matrix[cell] @ away) / 1000)
    run.compare("paris-offset", losses[-1])
    axes = figure("eps (per km)", "expected distance from the real position (km)")
    axes.plot(levels, losses, marker="o", label="optimal on 63 cells of 1.5 km")
    axes.plot(levels, [2 / level for level in levels], marker="s", label="planar Laplace, 2/eps")
    axes.axhline(_AWAY_M / 1000, color="0.4", linestyle=":", label="distance to the cell's centre")
    axes.set_ylim(0, 5)
    axes.legend(loc="upper right")
    run.draw("paris", axes, "Figure 1: a user 0.812 km from his cell's centre.")


def _compared(run: Run, users: Users) -> list[list[SymmetryComparison]]:
    levels = (0.2, 0.9, 3.0) if run.quick else tuple(round(0.1 * i, 1) for i in range(2, 31))
    raster = users.raster(5000.0)
    epsilons = [Epsilon.of(f"{level}/km") for level in levels]
    return [
        compare_symmetry(raster, None, epsilons, positions=places, gap=1e-2)
        for places in run.steps(users.places, "Figure 4, users")
    ]


def _figure_4(run: Run) -> None:
    users = users_with(_COUNTS, run.public)
    found = _compared(run, users)
    stand_in = f"users of Los Angeles are not here: four others, {users.source}"
    below = [row for rows in found for row in rows if row.epsilon.per_m < 0.99e-3]
    least = min(row.non_symmetric for row in below) / 1000
    run.compare("below-symmetric", min(row.symmetric for row in below) / 1000)
    run.compare(
        "below-non-symmetric", least, reason=f"{stand_in}; the least of them is {least:.3f} km"
    )
    last = [rows[-1] for rows in found]
    at_3 = last[0].symmetric / 1000
    cut = f"{math.floor(100 * at_3) / 100:.2f}"
    run.compare("symmetric-3", at_3, reason=f"2/eps = {at_3:.4f} km, cut to {cut} and not rounded")
    plateau = float(np.mean([row.non_symmetric for row in last])) / 1000
    each = ", ".join(f"{row.non_symmetric / 1000:.2f}" for row in last)
    even = float(rectangle_distance(np.zeros(1), np.zeros(1), 5000.0, 5000.0)[0]) / 1000
    run.compare(
        "plateau",
        plateau,
        reason=f"{stand_in}; at eps = 3 they lose {each} km, and somebody who is anywhere in a cell"
        f" of 5 km loses {even:.3f} km",
    )
    falls = [rows[-1].non_symmetric > rows[-1].symmetric for rows in found]
    run.note(
        "Carries over: at eps = 3 per km the symmetric mechanism is nearer than the one on cells"
        f" for {sum(falls)} of {len(falls)} users."
    )
    drawn = panels(2, rows=2, width=4.8, height=3.6)
    for axes, rows, places in zip(drawn, found, users.places, strict=True):
        x = [1000 * row.epsilon.per_m for row in rows]
        axes.plot(x, [row.symmetric / 1000 for row in rows], label="symmetric, 2/eps")
        axes.plot(x, [row.non_symmetric / 1000 for row in rows], label="optimal on cells of 5 km")
        axes.plot(x, [row.adapted / 1000 for row in rows], label="the same, for real positions")
        axes.set(xlabel="eps (per km)", ylabel="expected distance (km)", ylim=(0, 8))
        axes.set_title(f"a user with {len(places)} check-ins")
        axes.legend(loc="upper right")
    run.draw("users", drawn[0], f"Figure 4: from real positions, {users.source}.")
    listed = [
        (
            f"{1000 * row.epsilon.per_m:.1f}",
            len(places),
            row.symmetric / 1000,
            row.non_symmetric / 1000,
            row.adapted / 1000,
        )
        for seen, places in zip(found, users.places, strict=True)
        for row in seen
        if 1000 * row.epsilon.per_m in (0.2, 0.9, 3.0)
    ]
    head = (
        "eps (per km)",
        "check-ins",
        "symmetric (km)",
        "on cells (km)",
        "for real positions (km)",
    )
    run.table("Expected distances from real positions", head, listed)


_run = in_turn(_box, _paris, _figure_4)
STUDY = Study("eg-symmetry", "What symmetry costs: Figures 1 and 4", "EG", 24, _run)
