"""The one style of all studies' figures, their files, and a line of text.

Colours are those of Okabe and Ito, which colour-blind people tell apart; lines differ by dashes
too.  Heat maps use cividis.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from whereish.audit.pictures.fonts import provide_fonts
from whereish.errors import import_extra

__all__ = [
    "COLOURS",
    "DASHES",
    "HEAT",
    "figure",
    "panels",
    "run_program",
    "save",
    "say",
    "styled",
    "write_figure",
]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), "-")
HEAT = "cividis"

_RC = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "font.size": 10,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.fontsize": 8.5,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "none",
    "lines.linewidth": 1.6,
    "savefig.dpi": 150,
    "svg.fonttype": "none",
    "svg.hashsalt": "whereish",
    "image.cmap": HEAT,
}


def say(line: str) -> None:
    """Print a line."""
    click.echo(line)


@contextmanager
def styled() -> Iterator[None]:
    """Within it, all that is drawn has the style."""
    provide_fonts()
    matplotlib = import_extra("matplotlib", "plot")
    cycler = import_extra("cycler", "plot")
    cycle = cycler.cycler(color=COLOURS) + cycler.cycler(linestyle=DASHES)
    with matplotlib.rc_context({**_RC, "axes.prop_cycle": cycle}):
        yield


def panels(columns: int, *, rows: int = 1, width: float = 4.4, height: float = 3.8) -> Any:
    """The axes of a new figure of `rows` x `columns` panels, as a flat array."""
    import numpy as np

    drawing = _new(width * columns, height * rows)
    return np.asarray(drawing.subplots(rows, columns, squeeze=False)).ravel()


def figure(x_label: str, y_label: str) -> Any:
    """Axes of a new figure, drawn without a screen."""
    axes = _new(7, 4.2).add_subplot()
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _new(width: float, height: float) -> Any:
    provide_fonts()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(drawing)
    return drawing


def save(axes: Any, path: str) -> None:
    """Write the figure of `axes` to a PNG file, and say where."""
    axes.figure.savefig(path, format="png", dpi=150)
    say(f"wrote {path}")


def run_program(main: Callable[..., None]) -> None:
    """A study as a program of its own; the figure's path may be on the command line."""
    with styled():
        main(*sys.argv[1:2])


def write_figure(drawing: Any, stem: Path) -> None:
    """Write a figure as STEM.png and STEM.svg, the same bytes for the same figure."""
    with styled():
        drawing.savefig(f"{stem}.png", metadata={"Software": None})
        drawing.savefig(f"{stem}.svg", metadata={"Date": None})
