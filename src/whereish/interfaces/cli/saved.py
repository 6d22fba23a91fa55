"""Saved mechanisms, whatever their kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whereish.mechanisms.base import Mechanism

__all__ = ["load_mechanism"]


def load_mechanism(path: Path) -> Mechanism:
    """The mechanism in a file that `whereish build` wrote."""
    from whereish.mechanisms.artefact import load_artefact
    from whereish.mechanisms.channel import Channel
    from whereish.mechanisms.eikonal_file import KIND, from_artefact

    saved = load_artefact(path)
    return from_artefact(saved) if saved.kind == KIND else Channel.load(path)
