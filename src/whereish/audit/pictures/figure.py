"""What all pictures share: a figure without a screen, colours that all can tell apart, saving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from whereish.audit.pictures.fonts import provide_fonts
from whereish.errors import InvalidInput

__all__ = ["COLOURS", "ENDINGS", "figure", "km", "saved"]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442", "#000000")
"""Okabe and Ito's palette, which people with any kind of colour vision can tell apart."""

ENDINGS = (".png", ".svg", ".pdf")
km = 1e-3
_DPI = 130


def figure(width: float, height: float, title: str) -> Any:
    """A new figure with a title."""
    provide_fonts()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(drawing)
    drawing.suptitle(title, fontsize=11)
    return drawing


def saved(drawing: Any, path: str | Path | None) -> Any:
    """The figure, written where a path says; the same picture gives the same bytes."""
    if path is None:
        return drawing
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise InvalidInput(f"a picture must end in one of {', '.join(ENDINGS)}; got {ending!r}")
    stamp = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "whereish"}):
        if ending == ".png":  # savefig would draw it twice
            screen = drawing.dpi
            drawing.set_dpi(_DPI)
            drawing.canvas.print_png(path, metadata=stamp[ending])
            drawing.set_dpi(screen)
        else:
            drawing.savefig(path, dpi=_DPI, metadata=stamp[ending])
    return drawing
