"""Saved mechanisms, whatever their kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whereish.errors import InvalidInput

if TYPE_CHECKING:
    from whereish.mechanisms.base import Mechanism

__all__ = ["load_mechanism"]


def load_mechanism(path: Path) -> Mechanism:
    """The mechanism in a file that `whereish build` wrote."""
    from whereish.mechanisms.artefact import load_artefact
    from whereish.mechanisms.channel import Channel
    from whereish.mechanisms.map_file import EIKONAL, EIKONAL_QUERY

    saved = load_artefact(path)
    if saved.kind == EIKONAL:
        from whereish.mechanisms.eikonal_file import from_artefact

        return from_artefact(saved)
    if saved.kind == EIKONAL_QUERY:
        raise InvalidInput(
            "this file holds a mechanism that reports answers, not places; use it in Python, with"
            " whereish.EikonalQuery.load"
        )
    return Channel.load(path)
