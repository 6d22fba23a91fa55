"""A comparison of mechanisms: what they cost against what they hide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whereish.audit.pictures.figure import COLOURS, figure, km

if TYPE_CHECKING:
    from whereish.audit.comparison import Comparison

__all__ = ["draw_comparison"]


def draw_comparison(comparison: Comparison) -> Any:
    """Quality loss against adversary error: a colour for each mechanism, a dot for each level.

    A remapped mechanism has the colour of the one that it remaps.
    """
    from matplotlib.lines import Line2D

    drawing = figure(8, 5, "What mechanisms cost, and what they hide")
    axes = drawing.subplots()
    names = list(dict.fromkeys(line.mechanism for line in comparison))
    largest = 0.0
    handles = []
    families = list(dict.fromkeys(name.partition(",")[0] for name in names))
    for name in names:
        index = families.index(name.partition(",")[0])
        mine = [line for line in comparison if line.mechanism == name]
        mine.sort(key=lambda line: line.quality_loss_m)
        x = [line.quality_loss_m * km for line in mine]
        y = [line.adversary_error_m * km for line in mine]
        largest = max(largest, *x, *y)
        colour = COLOURS[index % len(COLOURS)]
        marker = ("o", "s", "^", "D")[index // len(COLOURS) % 4] if mine[0].keeps_epsilon else "X"
        filled = colour if not name.endswith("remapped") else "white"
        style: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "markerfacecolor": filled,
            "markersize": 8,
        }
        axes.plot(x, y, linewidth=1, **style)
        handles.append(Line2D([], [], label=name, linewidth=1, **style))
    axes.axline((0, 0), slope=1, color="0.8", linewidth=1, zorder=0)
    handles.append(Line2D([], [], color="0.8", linewidth=1, label="no guess beats the report"))
    axes.set(
        xlabel="quality loss: mean distance of the report (km)",
        ylabel="adversary error: mean distance of the best guess (km)",
        xlim=(-0.02 * largest, 1.05 * largest),
        ylim=(-0.02 * largest, 1.05 * largest),
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        handles=handles,
        fontsize=8,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        title="dots: one for each level\nhollow: remapped\nX: keeps no epsilon",
        title_fontsize=8,
        alignment="left",
    )
    return drawing
