"""Figure 3: the reports of three places, of high, medium and low density; and curvature.

Where the curvature K = -Laplacian(ln eps)/eps² is below -1, the plain weights of the
mechanism turn negative and the map must be lowered.  The condition is compared with where the
weights of the linear system are negative, on maps that are hard on purpose.
"""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import import_extra
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.privacy.maps.geodesic import MapGeodesic
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.studies.figures import HEAT, panels
from whereish.studies.framework.study import Run, Study
from whereish.studies.kp.patch import SIDE, densities, paper_map

__all__ = ["STUDY", "hard_maps", "plain_weights"]


_AROUND = np.array([-15.0, 15.0])


def _three_places(density: FloatArray) -> dict[str, int]:
    """Cells of the highest, the median and the lowest density, a fifth of the side inside."""
    n = len(density)
    edge = n // 5
    inside = np.zeros(density.shape, bool)
    inside[edge : n - edge, edge : n - edge] = True
    cells = np.flatnonzero(inside.ravel())
    order = cells[np.argsort(density.ravel()[cells], kind="stable")]
    return {"high": int(order[-1]), "medium": int(order[len(order) // 2]), "low": int(order[0])}


def hard_maps(cells: int) -> dict[str, PrivacyMap]:
    """Steps, a pit, a ridge and a smooth bump, in nats per cell of 0.3 to 1.5."""
    at = (np.arange(cells) + 0.5) / cells
    x, y = np.meshgrid(at, at)
    away = np.hypot(x - 0.5, y - 0.5)
    shapes = {
        "smooth bump": np.exp(-(away**2) / (2 * 0.25**2)),
        "step": (x > 0.5).astype(float),
        "pit": 1 - np.exp(-(away**2) / (2 * 0.08**2)),
        "ridge": np.exp(-((x - 0.5) ** 2) / (2 * 0.05**2)),
    }
    return {name: PrivacyMap(0.3 * 5.0**shape, (1.0, 1.0)) for name, shape in shapes.items()}


def plain_weights(levels: PrivacyMap) -> FloatArray:
    """w with sum_y w(y) e^{-d(u, y)} = 1 for all u: the paper's linear system, any signs."""
    distances = MapGeodesic(levels, 16).matrix(levels.raster.centres())
    solved = np.linalg.solve(np.exp(-distances), np.ones(levels.values.size))
    return np.asarray(solved.reshape(levels.shape))


def _curvature(run: Run) -> None:
    cells = 24 if run.quick else 40
    maps = hard_maps(cells)
    rows = []
    drawn = panels(len(maps), width=3.4, height=4.4)
    inner = (slice(3, -3), slice(3, -3))  # weights turn negative along any border
    for axes, name in zip(drawn, run.steps(list(maps), "curvature"), strict=True):
        levels = maps[name]
        negative = plain_weights(levels)[inner] < 0
        curved = levels.too_curved()[inner]
        both = int((negative & curved).sum())
        rows.append((name, int(curved.sum()), int(negative.sum()), both))
        axes.imshow(2 * curved + 1.0 * negative, origin="lower", cmap=HEAT, vmin=0, vmax=3)
        axes.set(xlabel="column", ylabel="row", title=name)
        axes.grid(False)
    head = ("map", "curvature below -1", "negative weights", "both")
    run.table(f"Cells of {cells - 6} x {cells - 6} inner ones", head, rows)
    for value, label in enumerate(("neither", "negative weight", "curvature below -1", "both")):
        colour = import_extra("matplotlib", "plot").colormaps[HEAT](value / 3)
        drawn[0].plot([], [], "s", markersize=9, color=colour, label=label)
    drawn[0].figure.legend(loc="outside lower center", ncols=4)
    run.draw("curvature", drawn[0], "Where curvature is below -1, and where weights are negative.")


def _run(run: Run) -> None:
    cells = 48 if run.quick else 120
    name, density = list(densities(cells).items())[-1]
    mechanism = EikonalMechanism.build(paper_map(density), places="cells")
    drawn = panels(3, width=4.2, height=3.9)
    rows = []
    reports, frame = mechanism.reports, mechanism.built.frame
    edges = np.linspace(0, SIDE, cells + 1)
    for axes, (kind, cell) in zip(drawn, _three_places(density).items(), strict=True):
        place = mechanism.map.raster.centres()[cell]
        law = mechanism.distribution(place)
        away = np.hypot(*(reports.centres() - place).T)
        mean = float(law.ravel() @ away)
        level = float(mechanism.map.values.ravel()[cell])
        rows.append((kind, float(density.ravel()[cell]), level, mean, 2 / level))
        shown = law[frame : frame + cells, frame : frame + cells]
        mesh = axes.pcolormesh(edges, edges, shown / law.max(), cmap=HEAT, rasterized=True)
        axes.figure.colorbar(mesh, ax=axes, label="probability / largest", shrink=0.8)
        axes.plot(*place, "+", color="#d55e00", markersize=10, markeredgewidth=2)
        axes.set(aspect="equal", xlabel="x (units)", ylabel="y (units)")
        axes.set(xlim=place[0] + _AROUND, ylim=place[1] + _AROUND)
        axes.set_title(f"{kind} density, eps = {level:.2f} per unit")
        axes.grid(False)
    run.draw("reports", drawn[0], f"Figure 3: reports of three places (+), density from {name}.")
    head = ("density", "people per km²", "eps (per unit)", "mean distance", "2/eps")
    run.table(f"Three places, {cells} x {cells} cells, {name}", head, rows)
    _curvature(run)


STUDY = Study("kp-laws", "Figure 3: three places; curvature and negative weights", "KP", 3, _run)
