"""``whereish plot``: a privacy map's mechanism in one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whereish.errors import InvalidInput, MissingExtra
from whereish.interfaces.cli.outputs import check_output, require_matplotlib

if TYPE_CHECKING:
    from whereish.mechanisms.maps.eikonal import EikonalMechanism

__all__ = ["command", "draw"]


@click.command("plot")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The .png.")
def command(file: Path, output: Path) -> None:
    """Draw the privacy map saved in FILE, and what becomes of three places.

    The places are public: the tightest cell, one of median level and the loosest.
    """
    from whereish.mechanisms.maps.eikonal import EikonalMechanism

    check_output(output, overwrite=True, suffix=".png")
    require_matplotlib()
    draw(EikonalMechanism.load(file), output)
    click.echo(f"wrote {output.name}")


def draw(mechanism: EikonalMechanism, output: Path) -> None:
    """The map, where it was lowered, and the laws of three public places."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    import numpy as np

    privacy_map = mechanism.map
    if privacy_map.one_dimensional:
        raise InvalidInput("a map along a line has no picture; plot mechanism.distribution(x)")
    levels = privacy_map.values * 1e3
    # Cells of the raster may lie beyond the declared region, where no secret may be.
    within = privacy_map.plane.in_region(privacy_map.raster.centres())
    order = np.argsort(levels, axis=None, kind="stable")
    order = order[within[order]]
    if not order.size:
        raise InvalidInput("no cell of this map lies in its declared region")
    chosen = {
        "tightest": order[0],
        "median": order[len(order) // 2],
        "loosest": order[-1],
    }
    centres = privacy_map.raster.centres() / 1e3
    figure = Figure(figsize=(15, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 5)
    extent = _extent(privacy_map.raster.box)
    image = axes[0].imshow(levels, origin="lower", extent=extent, cmap="viridis")
    figure.colorbar(image, ax=axes[0], shrink=0.8)
    axes[0].set_title("level asked for, per km", fontsize=9)
    image = axes[1].imshow(
        mechanism.lowered,
        origin="lower",
        extent=extent,
        cmap="magma",
        vmin=min(0.95, float(mechanism.lowered.min())),
        vmax=1.0,
    )
    figure.colorbar(image, ax=axes[1], shrink=0.8)
    axes[1].set_title("level in use / asked for", fontsize=9)
    wide = _extent(mechanism.reports.box)
    for panel, (name, cell) in zip(axes[2:], chosen.items(), strict=True):
        law = mechanism.distribution(privacy_map.raster.centres()[cell])
        shown = np.log10(np.maximum(law, law.max() * 1e-4))
        panel.imshow(shown, origin="lower", extent=wide, cmap="Greys")
        panel.plot(*centres[cell], "+", color="#c0392b", ms=9, mew=1.5)
        panel.set_title(f"reports of the {name} cell ({levels.flat[cell]:.2f}/km)", fontsize=9)
    for panel in axes:
        panel.set_xlabel("km", fontsize=8)
        panel.tick_params(labelsize=7)
    figure.savefig(output, format="png", dpi=130)


def _extent(box: Any) -> tuple[float, float, float, float]:
    return box.x_low / 1e3, box.x_high / 1e3, box.y_low / 1e3, box.y_high / 1e3
