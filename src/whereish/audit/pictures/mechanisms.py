"""Channels, noise by distance, and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from whereish.audit.pictures.figure import COLOURS, figure, km

if TYPE_CHECKING:
    from whereish.arrays import FloatArray
    from whereish.mechanisms.calibration import TrueRadii
    from whereish.mechanisms.channels.channel import Channel
    from whereish.mechanisms.traces.release import TraceRelease
    from whereish.space.points import Points

__all__ = ["draw_channel", "draw_noise", "draw_trace"]


def draw_channel(channel: Channel) -> Any:
    """The matrix, and the reports of the site that is most central."""
    from matplotlib.colors import LogNorm

    matrix = channel.matrix
    drawing = figure(11, 4.6, f"Channel of {matrix.shape[0]} places and {matrix.shape[1]} reports")
    left, right = drawing.subplots(1, 2)
    top = float(matrix.max())
    low = max(top * 1e-6, float(matrix[matrix > 0].min()))
    norm = LogNorm(low, top)
    image = left.imshow(
        np.ma.masked_less_equal(matrix, 0), cmap="viridis", norm=norm, aspect="auto"
    )
    left.set_facecolor("0.8")
    left.set(xlabel="report (number)", ylabel="place (number)")
    left.set_title("Probability of each report from each place", fontsize=10)
    drawing.colorbar(image, ax=left, label="probability; grey: never")
    places, unit = _kilometres(channel.secrets.points)
    reports, _ = _kilometres(channel.reports.points, channel.secrets.points)
    one = int(np.hypot(*(places - places.mean(axis=0)).T).argmin())
    right.scatter(*places.T, s=8, color="0.8", label="places")
    dots = right.scatter(
        *reports.T, c=np.maximum(matrix[one], low), cmap="viridis", norm=norm, s=45
    )
    right.plot(*places[one], "+", color="#D55E00", ms=13, mew=2, label="the place reported")
    drawing.colorbar(dots, ax=right, label="probability")
    right.set(xlabel=f"easting ({unit})", ylabel=f"northing ({unit})", aspect="equal")
    right.set_title("Reports of the most central place", fontsize=10)
    right.legend(fontsize=8, frameon=False)
    return drawing


def draw_noise(mechanism: TrueRadii) -> Any:
    """How probably a report is within a distance, and which distances are likely."""
    far = mechanism.ideal_quantile(0.995).m
    radii = np.linspace(0, far, 400)
    within = np.array([mechanism.cdf(_length(radius)) for radius in radii])
    drawing = figure(8, 4.4, f"Distances of reports: {type(mechanism).__name__}")
    axes = drawing.subplots()
    axes.plot(radii * km, within, color=COLOURS[0], label="probability within the distance")
    density = np.gradient(within, radii)
    axes.fill_between(
        radii * km,
        density / density.max(),
        color=COLOURS[1],
        alpha=0.35,
        label="how likely the distance is (relative)",
    )
    for chance, style in ((0.5, ":"), (0.95, "--")):
        radius = mechanism.quantile(chance).m
        axes.axvline(radius * km, color="0.4", linestyle=style, linewidth=1)
        axes.text(radius * km, 0.02, f" {chance:.0%} within {radius:.0f} m", fontsize=8)
    axes.set(xlabel="distance of the report (km)", ylabel="probability", xlim=(0, far * km))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, loc="center right")
    return drawing


def draw_trace(release: TraceRelease) -> Any:
    """The reported places in their order, and what was spent; never the true ones."""
    places, unit = _kilometres(release.reports)
    hard = release.hard
    drawing = figure(
        11, 4.6, f"Trace of {len(release)} reports, {int(hard.sum())} of them with fresh noise"
    )
    left, right = drawing.subplots(1, 2)
    left.plot(*places.T, color="0.8", linewidth=1, zorder=0)
    left.scatter(*places[~hard].T, s=14, color=COLOURS[0], label="reused or predicted")
    left.scatter(*places[hard].T, s=30, color=COLOURS[4], marker="^", label="fresh noise")
    left.set(xlabel=f"easting ({unit})", ylabel=f"northing ({unit})", aspect="equal")
    left.set_title("Reports", fontsize=10)
    left.legend(fontsize=8, frameon=False)
    spent = np.cumsum(release.costs) * 1e3
    right.step(np.arange(1, len(release) + 1), spent, where="post", color=COLOURS[0])
    if release.total is not None:
        right.axhline(release.total.per_m * 1e3, color="0.4", linestyle="--", linewidth=1)
        right.text(1, release.total.per_m * 1e3, "total", fontsize=8, va="bottom")
    right.set(xlabel="report (number)", ylabel="spent so far (per km)")
    right.set_ylim(bottom=0)
    right.spines[["top", "right"]].set_visible(False)
    right.set_title("Budget", fontsize=10)
    return drawing


def _kilometres(points: Points, around: Points | None = None) -> tuple[FloatArray, str]:
    """Places in kilometres from the middle of `around`; degrees by their local scale."""
    from whereish.space.sphere import Sphere

    base = (points if around is None else around).coordinates
    middle = (base.min(axis=0) + base.max(axis=0)) / 2
    moved = points.coordinates - middle
    if isinstance(points.space, Sphere):
        moved = moved * [111.195 * np.cos(np.radians(middle[1])), 111.195]
        return moved, "km"
    return moved * km, "km"


def _length(radius: float) -> Any:
    from whereish.units import Length

    return Length(float(radius))
