"""Pictures of mechanisms, releases and comparisons (the `plot` extra)."""

from __future__ import annotations

from whereish.audit.pictures.any import plot

__all__ = ["plot"]
