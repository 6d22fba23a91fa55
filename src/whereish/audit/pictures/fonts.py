"""matplotlib's list of the system's fonts, made once for all users of an installation.

matplotlib looks through all fonts at its first use, which takes seconds, and keeps the list in the
user's home.  Where that cannot be written, as in a container, every process would look again.  So
``whereish compile`` keeps the list beside the compiled kernels, and processes that have none of
their own are given that.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from whereish.compiled.folders import folders, writable_folder
from whereish.errors import MissingExtra

__all__ = ["keep_fonts", "provide_fonts"]

_LISTS = "fontlist-*.json"
_FOLDER = "fonts"


@cache
def provide_fonts() -> None:
    """Before the first figure of a process: where matplotlib has no list of fonts, give it ours."""
    own = _matplotlib_folder()
    if any(own.glob(_LISTS)):
        return
    kept = (file for home in folders() for file in (home / _FOLDER).glob(_LISTS))
    for file in kept:
        with suppress(OSError):  # then matplotlib makes its own
            shutil.copyfile(file, own / file.name)


def keep_fonts() -> None:
    """Keep matplotlib's list of fonts for other processes and users."""
    provide_fonts()
    import matplotlib.font_manager  # noqa: F401  (makes the list where there is none)

    place = writable_folder()
    if place is not None:
        (place / _FOLDER).mkdir(exist_ok=True)
        for file in _matplotlib_folder().glob(_LISTS):
            shutil.copyfile(file, place / _FOLDER / file.name)


def _matplotlib_folder() -> Path:
    with _quiet():  # where it makes a temporary one, its advice is what this module does
        try:
            import matplotlib as mpl
        except ImportError:
            raise MissingExtra("matplotlib", "plot") from None
        return Path(mpl.get_cachedir())


@contextmanager
def _quiet() -> Iterator[None]:
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
