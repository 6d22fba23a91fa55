"""A privacy map's mechanism: its levels, and the reports of three public places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from whereish.audit.pictures.figure import figure, km
from whereish.errors import InvalidInput

if TYPE_CHECKING:
    from whereish.arrays import FloatArray
    from whereish.mechanisms.maps.eikonal import EikonalMechanism

__all__ = ["chosen_places", "draw_map"]

_SHOWN = 1e-5  # of the largest probability: what is rarer has the lightest shade


def draw_map(mechanism: EikonalMechanism) -> Any:
    """Four panels: the levels with three places, and the probability of each cell's report."""
    privacy_map = mechanism.map
    if privacy_map.one_dimensional:
        raise InvalidInput("a map along a line has no picture; plot mechanism.distribution(x)")
    levels = privacy_map.values * 1e3
    centres = privacy_map.raster.centres()
    cells = chosen_places(mechanism)
    origin = np.asarray(privacy_map.origin)
    box = mechanism.reports.box
    drawing = figure(
        11,
        min(max(2 * 4.2 * box.height / box.width + 1.6, 5.0), 14.0),
        f"Privacy map of {levels.shape[0]} x {levels.shape[1]} cells, and where three places are"
        " reported",
    )
    from matplotlib.colors import LogNorm

    panels = drawing.subplots(2, 2).ravel()
    image = panels[0].imshow(
        levels, origin="lower", extent=_extent(privacy_map.raster.box, origin), cmap="cividis"
    )
    bar = drawing.colorbar(image, ax=panels[0], shrink=0.85)
    bar.set_label("level asked for (per km)")
    panels[0].set_title(
        f"Levels; in use on average {mechanism.lowered.mean():.3f} of them", fontsize=10
    )
    laws = [mechanism.distribution(centres[cell]) for cell in cells.values()]
    top = max(float(law.max()) for law in laws)
    norm = LogNorm(top * _SHOWN, top)
    never = 0
    for panel, law, (name, cell) in zip(panels[1:], laws, cells.items(), strict=True):
        never = max(never, int((law <= 0).sum()))
        shown = np.ma.masked_where(law <= 0, np.maximum(law, top * _SHOWN))
        panel.set_facecolor("0.8")
        image = panel.imshow(
            shown,
            origin="lower",
            extent=_extent(mechanism.reports.box, origin),
            cmap="viridis",
            norm=norm,
        )
        panel.set_title(f"Reports of {name} ({levels.flat[cell]:.2f} per km)", fontsize=10)
    bar = drawing.colorbar(image, ax=list(panels[1:]), shrink=0.6, extend="min")
    bar.minorticks_off()  # each would be laid out like a label
    grey = "; grey cells are never reported" if never else ""
    bar.set_label(f"probability of a cell as report{grey}")
    for name, cell in cells.items():
        east, north = (centres[cell] - origin) * km
        own = panels[1 + list(cells).index(name)]
        for panel in (panels[0], own):
            panel.plot(east, north, "+", color="white", markersize=11, markeredgewidth=3)
            panel.plot(east, north, "+", color="#D55E00", markersize=10, markeredgewidth=1.5)
        panels[0].annotate(
            name.split(",")[0],
            (east, north),
            xytext=(6, 6),
            textcoords="offset points",
            color="white",
            fontweight="bold",
        )
    for panel in panels:
        panel.set_xlabel("easting (km)")
        panel.set_ylabel("northing (km)")
    return drawing


def chosen_places(mechanism: EikonalMechanism) -> dict[str, int]:
    """Cells of low, middle and high level in the declared region, apart from each other.

    Of the cells within a twentieth of the rank wanted the one is taken that is farthest from
    those taken before.
    """
    privacy_map = mechanism.map
    centres = privacy_map.raster.centres()
    order = np.argsort(privacy_map.values, axis=None, kind="stable")
    order = order[privacy_map.plane.in_region(centres)[order]]
    if not order.size:
        raise InvalidInput("no cell of this map lies in its declared region")
    ranks = {"A, low level": 0.0, "B, middle level": 0.5, "C, high level": 1.0}
    taken: list[int] = []
    for rank in ranks.values():
        low = max(0, round((rank - 0.05) * len(order)))
        high = max(low + 1, round((rank + 0.05) * len(order)))
        near = order[low:high] if low < len(order) else order[-1:]
        taken.append(int(_farthest(near, taken, centres)))
    return dict(zip(ranks, taken, strict=True))


def _farthest(cells: Any, taken: list[int], centres: FloatArray) -> int:
    if not taken:
        middle = centres.mean(axis=0)
        return int(cells[np.hypot(*(centres[cells] - middle).T).argmin()])
    away = [np.hypot(*(centres[cells] - centres[one]).T) for one in taken]
    return int(cells[np.min(away, axis=0).argmax()])


def _extent(box: Any, origin: FloatArray) -> tuple[float, float, float, float]:
    x, y = origin
    return (box.x_low - x) * km, (box.x_high - x) * km, (box.y_low - y) * km, (box.y_high - y) * km
