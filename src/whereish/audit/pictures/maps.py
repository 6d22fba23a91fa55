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

_WIDTH, _PANEL, _GAP = 11.0, 3.6, 1.7  # inches
_BAR = "<colorbar>"  # as matplotlib labels the axes of its own
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
    height = min(max(2 * _PANEL * box.height / box.width + 2.6, 5.0), 14.0)
    drawing = figure(
        _WIDTH,
        height,
        f"Privacy map of {levels.shape[0]} x {levels.shape[1]} cells, and where three places are"
        " reported",
    )
    from matplotlib.colors import LogNorm

    drawing.set_layout_engine("none")  # all places are known: finding them takes a tenth
    sides = {"left": 0.6 / _WIDTH, "right": (0.6 + 2 * _PANEL + _GAP) / _WIDTH}
    ends = {"bottom": 0.6 / height, "top": 1 - 0.85 / height}
    apart = {"wspace": _GAP / _PANEL, "hspace": 0.9 / ((height - 2.35) / 2)}
    panels = drawing.subplots(2, 2, gridspec_kw={**sides, **ends, **apart}).ravel()
    image = panels[0].imshow(
        levels, origin="lower", extent=_extent(privacy_map.raster.box, origin), cmap="cividis"
    )
    beside = panels[0].inset_axes([1.04, 0.08, 0.05, 0.84], label=_BAR)
    bar = drawing.colorbar(image, cax=beside)
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
    place = (sides["right"] + 0.35 / _WIDTH, 0.2, 0.25 / _WIDTH, 0.6)
    beside = drawing.add_axes(place, label=_BAR)
    bar = drawing.colorbar(image, cax=beside, extend="min")
    bar.minorticks_off()  # each would be laid out like a label
    bar.formatter = _percent  # powers of ten would have to be typeset
    grey = "; grey cells are never reported" if never else ""
    bar.set_label(f"probability of a cell as report{grey}")
    for name, cell in cells.items():
        east, north = (centres[cell] - origin) * km
        own = panels[1 + list(cells).index(name)]
        for panel in (panels[0], own):
            panel.plot(east, north, "+", color="white", markersize=11, markeredgewidth=3)
            panel.plot(east, north, "+", color="#D55E00", markersize=10, markeredgewidth=1.5)
        right, top = _beyond_middle(panels[0], east, north)
        panels[0].annotate(
            name.split(",")[0],
            (east, north),
            xytext=(-6 if right else 6, -6 if top else 6),
            textcoords="offset points",
            ha="right" if right else "left",
            va="top" if top else "bottom",
            color="white",
            fontweight="bold",
            bbox={"facecolor": "0.15", "edgecolor": "none", "pad": 1.5},
        )
    for panel in panels:
        panel.set_xlabel("easting (km)")
        panel.set_ylabel("northing (km)")
        panel.locator_params(nbins=5, steps=[1, 2, 5, 10])
    return drawing


def _percent(probability: float, _: int) -> str:
    return f"{100 * probability:g}%"


def _beyond_middle(panel: Any, x: float, y: float) -> tuple[bool, bool]:
    """Whether a point is right of and above the middle, so that its letter goes the other way."""
    return 2 * x > sum(panel.get_xlim()), 2 * y > sum(panel.get_ylim())


def chosen_places(mechanism: EikonalMechanism) -> dict[str, int]:
    """Cells of low, middle and high level in the declared region, apart from each other.

    Low and high are the levels within a tenth of their range of its ends, middle ones those
    within a twentieth of the median's rank.  Of each the cell is taken that is farthest from those
    taken before.
    """
    privacy_map = mechanism.map
    centres, levels = privacy_map.raster.centres(), privacy_map.values.ravel()
    order = np.argsort(levels, kind="stable")
    order = order[privacy_map.plane.in_region(centres)[order]]
    if not order.size:
        raise InvalidInput("no cell of this map lies in its declared region")
    ranked = levels[order]
    low, high = ranked[0], ranked[-1]
    middle = round(0.45 * (len(order) - 1)), round(0.55 * (len(order) - 1))
    alike = {
        "A, low level": order[ranked <= low + 0.1 * (high - low)],
        "B, middle level": order[middle[0] : middle[1] + 1],
        "C, high level": order[ranked >= high - 0.1 * (high - low)],
    }
    taken: list[int] = []
    for cells in alike.values():
        taken.append(_farthest(cells, taken, centres))
    return dict(zip(alike, taken, strict=True))


def _farthest(cells: Any, taken: list[int], centres: FloatArray) -> int:
    if not taken:
        middle = centres.mean(axis=0)
        return int(cells[np.hypot(*(centres[cells] - middle).T).argmin()])
    away = [np.hypot(*(centres[cells] - centres[one]).T) for one in taken]
    return int(cells[np.min(away, axis=0).argmax()])


def _extent(box: Any, origin: FloatArray) -> tuple[float, float, float, float]:
    x, y = origin
    return (box.x_low - x) * km, (box.x_high - x) * km, (box.y_low - y) * km, (box.y_high - y) * km
