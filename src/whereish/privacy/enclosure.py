"""What is proven of the least factor of a promise that is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["Enclosed"]


class Enclosed(ABC):
    """The least t for which t times the promise is kept, between two numbers."""

    @property
    @abstractmethod
    def enclosure(self) -> tuple[float, float]:
        """Nothing below the first is kept, and the second is."""

    @property
    def holds(self) -> bool:
        """Whether the promise itself is kept, proven."""
        return self.enclosure[1] <= 1.0

    @property
    def refuted(self) -> bool:
        """Whether the promise itself is broken, proven."""
        return self.enclosure[0] > 1.0
