"""A finding: a published number, the one obtained, and the verdict that follows from the two."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from whereish.errors import InvalidInput
from whereish.studies.framework.published import Published

__all__ = ["Finding", "Verdict"]


class Verdict(StrEnum):
    """What may be said of a published number."""

    MATCHES = "matches"
    DIFFERS = "differs"
    INCOMPARABLE = "cannot be compared"


@dataclass(frozen=True)
class Finding:
    """What a study found of a published number.

    Raises
    ------
    InvalidInput
        If the obtained number is not finite, or there is neither a number nor a reason.
    """

    published: Published
    obtained: float | None
    """The number that the study computed; None where it could compute none."""
    reason: str = ""
    """Why the two differ, or why there is nothing to compare: said only in these cases."""

    def __post_init__(self) -> None:
        if self.obtained is None and not self.reason:
            raise InvalidInput(f"{self.published.key} has neither a number nor a reason")
        if self.obtained is not None and not math.isfinite(self.obtained):
            raise InvalidInput(f"{self.published.key} must be a finite number")

    @property
    def verdict(self) -> Verdict:
        """From the numbers alone."""
        if self.obtained is None:
            return Verdict.INCOMPARABLE
        return Verdict.MATCHES if self.published.agrees(self.obtained) else Verdict.DIFFERS

    @property
    def unexplained(self) -> bool:
        """Whether it differs, and the study does not say why."""
        return self.verdict is Verdict.DIFFERS and not self.reason

    @property
    def sentence(self) -> str:
        """The verdict with its reason.

        >>> number = Published("x.y", "B", "p. 1", 2.0, 0.1, "a setting")
        >>> Finding(number, 2.05, "never said").sentence
        'matches'
        >>> Finding(number, 3.0, "the grid is coarser").sentence
        'differs because the grid is coarser'
        """
        if self.verdict is Verdict.MATCHES:
            return str(self.verdict)
        return f"{self.verdict} because {self.reason or 'of something that the study does not say'}"

    @property
    def obtained_text(self) -> str:
        """The number as printed."""
        if self.obtained is None:
            return "-"
        unit = f" {self.published.unit}" if self.published.unit else ""
        return f"{self.obtained:.6g}{unit}"
