"""whereish: say roughly where someone is, with a proof of how roughly."""

from __future__ import annotations

__version__ = "0.1.0"
