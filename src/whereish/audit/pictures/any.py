"""One verb for every picture."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from whereish.audit.pictures.figure import saved
from whereish.errors import InvalidInput

__all__ = ["plot"]


def plot(thing: Any, path: str | Path | None = None) -> Any:
    """A figure of a mechanism, a trace's release or a comparison; saved where `path` says.

    Channels, maps, noise by distance (all continuous noise), traces and comparisons, as .png, .svg
    or .pdf.  Pictures show what is public: parameters, sites and reports, never a secret.

    Raises
    ------
    InvalidInput
        If there is no picture of such a thing, or the path has another ending.
    MissingExtra
        Without the `plot` extra.

    Examples
    --------
    >>> import whereish as wh
    >>> figure = wh.plot(wh.GlobeLaplace("ln(4)/200 m"))
    >>> figure.axes[0].get_xlabel()
    'distance of the report (km)'
    """
    return saved(_drawn(thing), path)


_PICTURES = (
    ("mechanisms.maps.eikonal", "EikonalMechanism", "maps", "draw_map"),
    ("mechanisms.channels.channel", "Channel", "mechanisms", "draw_channel"),
    ("mechanisms.calibration", "TrueRadii", "mechanisms", "draw_noise"),
    ("mechanisms.traces.release", "TraceRelease", "mechanisms", "draw_trace"),
    ("audit.comparison", "Comparison", "comparison", "draw_comparison"),
)
"""The home and name of a class, and those of the function that draws what is of it."""


def _drawn(thing: Any) -> Any:
    for home, kind, room, draw in _PICTURES:
        loaded = sys.modules.get(f"whereish.{home}")  # as it is, where there is a thing of it
        if loaded is not None and isinstance(thing, getattr(loaded, kind)):
            return getattr(import_module(f"whereish.audit.pictures.{room}"), draw)(thing)
    raise InvalidInput(
        "there are pictures of channels, maps, continuous noise, releases of traces and"
        f" comparisons; got {type(thing).__name__}"
    )
