"""One verb for every picture."""

from __future__ import annotations

from collections.abc import Callable
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


def _drawn(thing: Any) -> Any:
    from whereish.audit.comparison import Comparison
    from whereish.audit.pictures.comparison import draw_comparison
    from whereish.audit.pictures.maps import draw_map
    from whereish.audit.pictures.mechanisms import draw_channel, draw_noise, draw_trace
    from whereish.mechanisms.calibration import TrueRadii
    from whereish.mechanisms.channels.channel import Channel
    from whereish.mechanisms.maps.eikonal import EikonalMechanism
    from whereish.mechanisms.traces.release import TraceRelease

    pictures: tuple[tuple[type[Any], Callable[[Any], Any]], ...] = (
        (EikonalMechanism, draw_map),
        (Channel, draw_channel),
        (TrueRadii, draw_noise),
        (TraceRelease, draw_trace),
        (Comparison, draw_comparison),
    )
    for kind, draw in pictures:
        if isinstance(thing, kind):
            return draw(thing)
    raise InvalidInput(
        "there are pictures of channels, maps, continuous noise, releases of traces and"
        f" comparisons; got {type(thing).__name__}"
    )
