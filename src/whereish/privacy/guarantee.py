"""Guarantees: a metric that is kept, on what grounds, and with which arithmetic.

A :class:`Guarantee` speaks of a mechanism: it holds for all sets of reports, before anything
is drawn.  A :class:`SpentBudget` speaks of one release after the fact (*ex post*): it bounds
the likelihood ratio of these very reports r.  The amount depends on r, so it bounds no
probability of a set: another run may have spent, and revealed, more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Self

from whereish.errors import InvalidInput, printable, shortened
from whereish.notebook import table
from whereish.privacy.metric import Metric
from whereish.privacy.tuples import TupleSum
from whereish.space.plane import Plane
from whereish.space.points import Space
from whereish.units import Epsilon, Length, at_least_one

__all__ = ["Basis", "Guarantee", "SpentBudget"]


class Basis(IntEnum):
    """On what grounds a guarantee stands, from the weakest to the strongest.

    >>> import whereish as wh
    >>> wh.PlanarLaplace("0.01/m").guarantee.basis.name
    'THEOREM'
    >>> wh.Basis.ESTIMATED < wh.Basis.CERTIFIED < wh.Basis.THEOREM
    True
    """

    ESTIMATED = 0
    CERTIFIED = 1
    THEOREM = 2


@dataclass(frozen=True)
class _Grounded:
    """A metric, and what is known that it bounds."""

    metric: Metric
    basis: Basis
    source: str
    numerics: str = "exact"

    def __add__(self, other: Self) -> Self:
        """Both reports of one secret together: the sum, on the weaker of their grounds."""
        if not isinstance(other, type(self)):
            raise InvalidInput(_NO_SUM)
        return type(self)(
            self.metric + other.metric,
            min(self.basis, other.basis),
            _joined(self.source, other.source),
            _joined(self.numerics, other.numerics),
        )

    def on(self, space: Space) -> Self:
        """The same, with what it owes to a projected plane.

        The operation that takes places there is named; where the plane's scale factor is
        an estimate, so is the basis.
        """
        operation = space.operation if isinstance(space, Plane) else None
        if operation is None or not isinstance(space, Plane):
            return self
        source = f"{self.source}; places on {space.crs} by {operation.description}"
        if space.proven:
            return replace(self, source=source)
        source += f", whose scale factor {space.scale:.6f} is estimated from samples, not proven"
        return replace(self, basis=Basis.ESTIMATED, source=source)

    def level(self, radius: Length | str, base: Metric) -> float:
        """Largest log-likelihood ratio (nats) of secrets within `radius` of each other."""
        return self.metric.ratio_to(base) * Length.of(radius, name="radius").m

    def __repr__(self) -> str:
        kept, source = shortened(self.metric.description), shortened(self.source)
        return f"{type(self).__name__}({kept}; {self.basis.name.lower()}: {source})"


@dataclass(frozen=True, repr=False)
class Guarantee(_Grounded):
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

    Examples
    --------
    >>> import whereish as wh
    >>> once = wh.PlanarLaplace("0.01/m").guarantee
    >>> print(once.repeated(3))
    0.03 * |x - x'| (theorem: planar Laplace (Andrés et al. 2013, section 4.1))
    >>> once.level("200 m", wh.Euclidean())
    2.0
    """

    def repeated(self, times: int) -> Guarantee:
        """`times` independent reports of one secret; also a group of `times` equal secrets."""
        count = at_least_one(times, name="times", meaning="how often a release happens")
        return Guarantee(count * self.metric, self.basis, self.source, self.numerics)

    def on_tuples(self, size: int) -> Guarantee:
        """Independent reports of each entry of a tuple of `size` secrets."""
        return Guarantee(TupleSum(self.metric, size), self.basis, self.source, self.numerics)

    def implies(self, metric: Metric) -> bool:
        """Whether this guarantee is known to keep `metric` too."""
        if not isinstance(metric, Metric):
            raise InvalidInput(
                "metric must be a metric, such as wh.Epsilon.of('2/km') * wh.Euclidean() (on a"
                " plane) or * wh.Geodesic() (on the globe): a level alone does not say of which"
                f" distance; got {type(metric).__name__}"
            )
        return self.metric <= metric

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
        if isinstance(data, dict) and _SPENT in data:
            raise InvalidInput(
                "this describes what one release spent, ex post, which is no guarantee: read it"
                " with SpentBudget.from_json"
            )
        try:
            return cls(Metric.from_json(data["metric"]), *_grounds(data))
        except (KeyError, TypeError, AttributeError):
            raise InvalidInput("this is not the description of a guarantee") from None

    def __str__(self) -> str:
        words = f"{self.metric.description} ({self.basis.name.lower()}: {self.source})"
        return printable(words)

    def _repr_html_(self) -> str:
        return table(
            {
                "kept": shortened(self.metric.description, 300),
                "basis": self.basis.name.lower(),
                "source": self.source,
                "numerics": self.numerics,
            }
        )


_SPENT = "spent"
_NO_SUM = (
    "only guarantees add up to a guarantee, which holds for all sets of reports; what one release"
    " spent, ex post, does not: add the bound declared before it (TraceRelease.bound)"
)


@dataclass(frozen=True, repr=False)
class SpentBudget(_Grounded):
    """What one release revealed: for its reports r, ln P(r | x) - ln P(r | x') <= metric.

    Amounts spent on the same secret add up; with a :class:`Guarantee` they do not, and no
    guarantee follows from them.

    >>> import whereish as wh
    >>> trace = wh.PredictiveMechanism(wh.FixedUtility("500 m")).report([[2.35, 48.85]])
    >>> type(trace.guarantee).__name__, trace.guarantee.basis.name
    ('SpentBudget', 'THEOREM')
    """

    def implies(self, metric: Metric) -> bool:
        """Refused: an amount that depends on the reports keeps no metric."""
        raise InvalidInput(
            "what one release spent, ex post, implies no metric for all sets of reports: ask the"
            " bound that was declared before the release (TraceRelease.bound)"
        )

    def to_json(self) -> dict[str, Any]:
        """A plain description, which no guarantee can be read from."""
        return {
            _SPENT: self.metric.to_json(),
            "statement": "ex post, for the reports r of this release alone:"
            f" ln P(K(x) = r) - ln P(K(x') = r) <= {self.metric.description}",
            "not": "no bound for a set of reports, since another run may spend and tell more",
            "basis": self.basis.name.lower(),
            "source": self.source,
            "numerics": self.numerics,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SpentBudget:
        """The amount that :meth:`to_json` described."""
        try:
            return cls(Metric.from_json(data[_SPENT]), *_grounds(data))
        except (KeyError, TypeError, AttributeError):
            raise InvalidInput("this is not the description of a spent budget") from None

    def __str__(self) -> str:
        words = f"{self.metric.description}, ex post ({self.basis.name.lower()}: {self.source})"
        return printable(words)


def _grounds(data: dict[str, Any]) -> tuple[Basis, str, str]:
    return Basis[data["basis"].upper()], _text(data["source"]), _text(data["numerics"])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _joined(a: str, b: str) -> str:
    return a if a == b else f"{a}; {b}"
