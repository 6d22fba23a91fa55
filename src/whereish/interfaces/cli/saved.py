"""Saved mechanisms, whatever their kind."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from whereish.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from whereish.mechanisms.base import Mechanism

__all__ = ["check_output", "load_mechanism", "require_matplotlib"]


def check_output(path: Path, *, overwrite: bool, suffix: str | None = None) -> None:
    """Refuse, before any work, an output that could not be written after it."""
    if suffix is not None and path.suffix.lower() != suffix:
        raise InvalidInput(f"the output must end in {suffix}; got {path.name}")
    if not path.parent.is_dir():
        raise InvalidInput(f"the folder of the output {path.name} does not exist; make it first")
    if path.is_dir():
        raise InvalidInput(f"the output {path.name} must be a file; it is a folder")
    if path.exists() and not overwrite:
        raise InvalidInput(f"the output {path.name} exists; add --overwrite to replace it")


def require_matplotlib() -> None:
    """Refuse, before any work, a picture that could not be drawn after it."""
    if find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plot")


def load_mechanism(path: Path) -> Mechanism:
    """The mechanism in a file that `whereish build` wrote."""
    from whereish.mechanisms.channels.channel import Channel
    from whereish.mechanisms.maps.entries import EIKONAL, EIKONAL_QUERY
    from whereish.mechanisms.saved import load_artefact

    saved = load_artefact(path)
    if saved.kind == EIKONAL:
        from whereish.mechanisms.maps.file import from_artefact

        return from_artefact(saved)
    if saved.kind == EIKONAL_QUERY:
        raise InvalidInput(
            "this file holds a mechanism that reports answers, not places; use it in Python, with"
            " whereish.EikonalQuery.load"
        )
    return Channel.load(path)
