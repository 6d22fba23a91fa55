"""The line: positions along one axis, in metres."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from whereish.arrays import FloatArray

__all__ = ["Line"]


@dataclass(frozen=True, slots=True)
class Line:
    """Positions in metres along one axis (a road, a river, a height).

    >>> import whereish as wh
    >>> wh.Points([[120.0], [450.0]], wh.Line())
    Points(2 in a line in metres)
    """

    dimension: ClassVar[int] = 1
    """One coordinate."""
    description: ClassVar[str] = "a line in metres"
    """The space in a few words."""

    def check(self, coordinates: FloatArray) -> None:
        """Every finite number is a position."""

    def to_json(self) -> dict[str, Any]:
        """A plain description: there is only one line."""
        return {}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Line:
        """The line that :meth:`to_json` described."""
        return cls()
