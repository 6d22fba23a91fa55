"""What the studies share: a plain figure, and a line of text."""

from __future__ import annotations

from typing import Any

import click

from whereish.errors import MissingExtra

__all__ = ["figure", "save", "say"]


def say(line: str) -> None:
    """Print a line."""
    click.echo(line)


def figure(x_label: str, y_label: str) -> Any:
    """Axes of a new figure, drawn without a screen."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    drawing = Figure(figsize=(7, 4.2), layout="constrained")
    FigureCanvasAgg(drawing)
    axes = drawing.add_subplot()
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def save(axes: Any, path: str) -> None:
    """Write the figure of `axes` to a PNG file, and say where."""
    axes.figure.savefig(path, format="png", dpi=150)
    say(f"wrote {path}")
