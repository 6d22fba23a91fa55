"""The log of a server."""

from __future__ import annotations

import logging

__all__ = ["set_up_log"]


def set_up_log(level: str) -> None:
    """The access log and errors on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    root = logging.getLogger("whereish")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
