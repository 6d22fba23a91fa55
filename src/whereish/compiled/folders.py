"""The folders in which an installation keeps what it makes once: machine code, a list of fonts.

They are read in this order, and the first that can be written is written to:

1. ``WHEREISH_CACHE``, where it is set: then no other is looked at;
2. ``__pycache__/kernels`` in the package itself, so that an image or an installation made by
   an administrator carries it for every user;
3. the user's cache (``XDG_CACHE_HOME``, ``~/.cache``, or what the system has for that).
"""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["folders", "writable_folder"]

_PACKAGE = Path(__file__).parents[1]


@cache
def folders() -> tuple[Path, ...]:
    """The folders that are read from, nearest first."""
    given = os.environ.get("WHEREISH_CACHE")
    homes = [Path(given)] if given else [_PACKAGE / "__pycache__" / "kernels", _user_cache()]
    written = writable_folder()
    return tuple(home for home in homes if home.is_dir() or home == written)


@cache
def writable_folder() -> Path | None:
    """The folder that is written to; None where there is none."""
    given = os.environ.get("WHEREISH_CACHE")
    homes = [Path(given)] if given else [_PACKAGE / "__pycache__" / "kernels", _user_cache()]
    return next((home for home in homes if _may_write(home)), None)


def _user_cache() -> Path:
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "whereish"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local")).expanduser() / "whereish"
    caches = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return Path(os.path.expanduser(caches)) / "whereish"  # noqa: PTH111  # never raises


def _may_write(place: Path) -> bool:
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except OSError:
        return False
    return True
