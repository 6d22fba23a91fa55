"""Where the secrets of symmetric noise live: the plane, a disk, or finitely many places.

Noise x + v asks of a region X only its differences V_X = {x - x' : x, x' in X}
(ElSalamouny and Gambs 2018): a density F keeps l on X if and only if, for almost all u, v,

    F(u) <= exp(l(|u - v|)) F(v)   whenever u - v is in V_X             (Theorem 2).

For circular noise F(v) = R(|v|) the pairs of vectors of lengths r, r' reach every distance
from |r - r'| to r + r', in every direction, so the condition is (Theorem 4)

    R(r) <= exp(l_X(r, r')) R(r'),
    l_X(r, r') = inf {l(|u - v|) : |u| = r, |v| = r', u - v in V_X}.

The plane has V_X = all vectors and l_X = l(|r - r'|); a disk of diameter D those of length at
most D, so l_X = l(|r - r'|) up to D and no limit beyond; a finite X has finitely many, and l_X is
l at the least of their lengths in [|r - r'|, r + r'].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.regularity import Check
from whereish.space.points import plain_numbers
from whereish.units import Length

__all__ = ["Disk", "Domain", "DomainLike", "FinitePlaces", "WholePlane", "domain_of"]


class Domain(ABC):
    """A region X, by its differences."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The region in words."""

    @abstractmethod
    def radial_level(self, ell: Distinguishability, r: ArrayLike, other: ArrayLike) -> FloatArray:
        """l_X(r, r') of Theorem 4, in nats; infinite where no difference joins the two radii."""

    def within(self, ell: Distinguishability) -> Distinguishability:
        """What l promises on X, as a function of the distance alone (a plane or a disk)."""
        raise InvalidInput(f"a distance alone does not say what l promises on {self.description}")

    def same_as_plane(self, ell: Distinguishability) -> Check:
        """Whether circular noise that keeps l on X keeps it on the plane, by Theorem 6."""
        raise InvalidInput(f"Theorem 6 speaks of regions with a disk inside, not of {self}")


@dataclass(frozen=True)
class WholePlane(Domain):
    """X is the plane: all differences.

    >>> float(WholePlane().radial_level(Distinguishability.linear("0.01/m"), 100.0, 300.0))
    2.0
    """

    @property
    def description(self) -> str:
        """The region in words."""
        return "the plane"

    def radial_level(self, ell: Distinguishability, r: ArrayLike, other: ArrayLike) -> FloatArray:
        """l(|r - r'|)."""
        return ell(np.abs(np.asarray(r, float) - np.asarray(other, float)))

    def within(self, ell: Distinguishability) -> Distinguishability:
        """The function itself."""
        return ell

    def same_as_plane(self, ell: Distinguishability) -> Check:
        """It is the plane."""
        return Check(True)


@dataclass(frozen=True)
class Disk(Domain):
    """X is a disk, or any region that lies in one and has the same diameter.

    >>> ell = Distinguishability.linear("0.01/m")
    >>> Disk(Length.of("250 m")).radial_level(ell, [100, 100], [300, 400]).tolist()
    [2.0, inf]
    """

    diameter: Length

    @property
    def description(self) -> str:
        """The region in words."""
        return f"a disk of diameter {self.diameter}"

    def radial_level(self, ell: Distinguishability, r: ArrayLike, other: ArrayLike) -> FloatArray:
        """l(|r - r'|) up to the diameter, no limit beyond."""
        return WholePlane().radial_level(self.within(ell), r, other)

    def within(self, ell: Distinguishability) -> Distinguishability:
        """The function up to the diameter."""
        return ell.restricted(self.diameter)

    def same_as_plane(self, ell: Distinguishability) -> Check:
        """Theorem 6: so it is if l(D + d) >= l(D) + l(d) for all d; else such a d.

        A pair of radii at distance m D + d is then joined by m + 1 steps that X allows.  The
        condition is sufficient; a function that chains inside X shorten below l without it
        would do as well.
        """
        return ell.extends_to_plane(self.diameter)


@dataclass(frozen=True, eq=False)
class FinitePlaces(Domain):
    """X is a finite set of places, in metres of a plane.

    >>> square = FinitePlaces([[0, 0], [100, 0], [0, 100], [100, 100]])
    >>> square.lengths.round(1).tolist()
    [100.0, 141.4]
    >>> float(square.radial_level(Distinguishability.linear("0.01/m"), 10.0, 130.0))  # at 141.4 m
    inf
    """

    places: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        places = plain_numbers(self.places, "places of a finite region")
        if places.ndim != 2 or places.shape[1] != 2 or len(places) == 0:
            raise InvalidInput(f"places must be an (n, 2) array of metres; got {places.shape}")
        if not np.isfinite(places).all():
            raise InvalidInput("places of a finite region must be finite")
        object.__setattr__(self, "places", places)

    @property
    def description(self) -> str:
        """The region in words."""
        return f"{len(self.places)} places"

    @property
    def differences(self) -> FloatArray:
        """V_X without zero: (m, 2), one of each."""
        apart = (self.places[:, None] - self.places[None]).reshape(-1, 2)
        return np.unique(apart[(apart != 0).any(axis=1)], axis=0)

    @property
    def lengths(self) -> FloatArray:
        """The lengths of the differences, increasing."""
        apart = self.differences
        return np.unique(np.hypot(apart[:, 0], apart[:, 1]))

    def radial_level(self, ell: Distinguishability, r: ArrayLike, other: ArrayLike) -> FloatArray:
        """l at the least length in [|r - r'|, r + r'], infinite if none is; 0 where r = r'."""
        a, b = np.broadcast_arrays(np.asarray(r, float), np.asarray(other, float))
        lengths = np.append(self.lengths, np.inf)
        least = lengths[np.searchsorted(lengths, np.abs(a - b))]
        reached = least <= a + b
        level = np.where(reached, ell(np.where(reached, least, 0.0)), np.inf)
        return np.asarray(np.where(a == b, 0.0, level))


DomainLike: TypeAlias = Domain | Length | str | ArrayLike | None
"""A domain; None for the plane; a diameter for a disk; an (n, 2) array for finitely many places."""


def domain_of(region: DomainLike) -> Domain:
    """The domain that a caller means.

    >>> domain_of(None).description, domain_of("10 km").description
    ('the plane', 'a disk of diameter 10 km')
    """
    if region is None:
        return WholePlane()
    if isinstance(region, Domain):
        return region
    if isinstance(region, Length | str):
        return Disk(Length.positive(region, name="the diameter of the region"))
    return FinitePlaces(np.asarray(region, float))
