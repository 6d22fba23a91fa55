"""What a command writes, refused before any work where it could not be written after it."""

from __future__ import annotations

from pathlib import Path

from whereish.errors import InvalidInput

__all__ = ["MECHANISMS", "PICTURES", "check_output", "require_matplotlib"]


PICTURES = (".png", ".svg", ".pdf")
"""The endings of pictures."""

MECHANISMS = (".npz",)
"""That of saved mechanisms."""


def check_output(path: Path, *, overwrite: bool, suffix: tuple[str, ...] = ()) -> None:
    """Refuse, before any work, an output that could not be written after it."""
    if path.is_dir():
        raise InvalidInput(f"the output {path.name} must be a file; it is a folder")
    if suffix and path.suffix.lower() not in suffix:
        ends = suffix[0] if len(suffix) == 1 else f"one of {', '.join(suffix)}"
        raise InvalidInput(f"the output must end in {ends}; got {path.name}")
    if not path.parent.is_dir():
        raise InvalidInput(f"the folder of the output {path.name} does not exist; make it first")
    if path.exists() and not overwrite:
        raise InvalidInput(f"the output {path.name} exists; add --overwrite to replace it")


def require_matplotlib() -> None:
    """Refuse, before any work, a picture that could not be drawn after it.

    A command draws and ends, so that nobody asks matplotlib for help in it: the tables of
    properties in its docstrings, a quarter of what its import takes, are not made.
    """
    from whereish.audit.pictures.fonts import provide_fonts

    provide_fonts()
    from matplotlib import artist

    def nothing(artist: object) -> str:
        return ""

    artist.kwdoc = nothing
