"""Guarantees: a metric that is kept, on what grounds, and with which arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from whereish.errors import InvalidInput
from whereish.privacy.metric import Metric, TupleSum
from whereish.units import Epsilon, Length

__all__ = ["Basis", "Guarantee"]


class Basis(IntEnum):
    """On what grounds a guarantee stands, from the weakest to the strongest."""

    ESTIMATED = 0
    CERTIFIED = 1
    THEOREM = 2


@dataclass(frozen=True)
class Guarantee:
    """The promise ln P(K(x) in S) - ln P(K(x') in S) <= metric(x, x').

    Parameters
    ----------
    metric
        What is kept.
    basis
        A theorem, a certificate computed for this mechanism, or an estimate.
    source
        Which theorem, or what was checked.
    numerics
        How far the program's arithmetic is the theorem's.
    """

    metric: Metric
    basis: Basis
    source: str
    numerics: str = "exact"

    def __add__(self, other: Guarantee) -> Guarantee:
        """Sequential composition: both reports of one secret together keep the sum."""
        return Guarantee(
            self.metric + other.metric,
            min(self.basis, other.basis),
            _joined(self.source, other.source),
            _joined(self.numerics, other.numerics),
        )

    def repeated(self, times: int) -> Guarantee:
        """`times` independent reports of one secret; also a group of `times` equal secrets."""
        if times < 1:
            raise InvalidInput(f"a release must happen at least once; got {times}")
        return Guarantee(times * self.metric, self.basis, self.source, self.numerics)

    def on_tuples(self, size: int) -> Guarantee:
        """Independent reports of each entry of a tuple of `size` secrets."""
        return Guarantee(TupleSum(self.metric, size), self.basis, self.source, self.numerics)

    def implies(self, metric: Metric) -> bool:
        """Whether this guarantee is known to keep `metric` too."""
        return self.metric <= metric

    def level(self, radius: Length | str, base: Metric) -> float:
        """Largest log-likelihood ratio of secrets within `radius` of each other by `base`."""
        return self.metric.ratio_to(base) * Length.of(radius, name="radius").m

    def epsilon(self, base: Metric) -> Epsilon:
        """The least epsilon known for which eps * base is kept."""
        return Epsilon.per_metre(self.metric.ratio_to(base))

    def to_json(self) -> dict[str, Any]:
        """A plain description, for files and certificates."""
        return {
            "metric": self.metric.to_json(),
            "statement": f"ln P(K(x) in S) - ln P(K(x') in S) <= {self.metric.description}",
            "basis": self.basis.name.lower(),
            "source": self.source,
            "numerics": self.numerics,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Guarantee:
        """The guarantee that :meth:`to_json` described."""
        try:
            return cls(
                Metric.from_json(data["metric"]),
                Basis[data["basis"].upper()],
                _text(data["source"]),
                _text(data["numerics"]),
            )
        except (KeyError, TypeError, AttributeError):
            raise InvalidInput("this is not the description of a guarantee") from None

    def __str__(self) -> str:
        return f"{self.metric.description} ({self.basis.name.lower()}: {self.source})"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _joined(a: str, b: str) -> str:
    return a if a == b else f"{a}; {b}"
