"""What a mechanism is, and what more some of them can do.

A mechanism is a randomised map from secrets to reports that carries its
guarantee.  More than that is a capability, asked for with ``isinstance``:
:class:`HasDensity` for continuous laws, :class:`HasChannel` for finite ones.
Post-processing keeps every metric, so ``mechanism >> remap`` is a mechanism with
the same guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, SpaceMismatch
from whereish.privacy.guarantee import Guarantee
from whereish.randomness import Randomness
from whereish.space.box import Box
from whereish.space.points import Points, Space
from whereish.space.sites import Sites
from whereish.space.sphere import Sphere

__all__ = [
    "Closest",
    "Composable",
    "HasChannel",
    "HasDensity",
    "HasDomain",
    "Mechanism",
    "Remap",
    "Remapped",
]

Remap: TypeAlias = Callable[[Points], Points]
"""A deterministic map of reports that sees no secret."""


@runtime_checkable
class Mechanism(Protocol):
    """A randomised map from secrets to reports, with its guarantee.

    >>> import whereish as wh
    >>> isinstance(wh.PlanarLaplace("0.01/m"), wh.Mechanism)
    True
    """

    @property
    def space(self) -> Space:
        """Where secrets live."""

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about every report."""

    def report(self, secrets: Points | ArrayLike, *, rng: Randomness | None = None) -> Points:
        """One independent report for each secret; ``rng=None`` draws secure bits."""


@runtime_checkable
class HasDensity(Protocol):
    """A mechanism whose ideal, unrounded reports have a density."""

    def log_density(self, reports: Points | ArrayLike, secrets: Points | ArrayLike) -> FloatArray:
        """ln of the density (per square metre) of each report given its secret."""


@runtime_checkable
class HasChannel(Protocol):
    """A mechanism with finitely many secrets and reports."""

    @property
    def matrix(self) -> FloatArray:
        """Row x, column z: the probability of report z given secret x."""


@runtime_checkable
class HasDomain(Protocol):
    """A mechanism that can say, without drawing, which secrets it takes."""

    def check_secrets(self, secrets: Points | ArrayLike) -> object:
        """Raise `InvalidInput` unless all are secrets that :meth:`Mechanism.report` takes.

        It looks at each secret alone, against bounds that are public.
        """


def check_domain(mechanism: object, secrets: Points | ArrayLike) -> None:
    """Refuse secrets that `mechanism` would refuse, where it can say so without drawing."""
    if isinstance(mechanism, HasDomain):
        mechanism.check_secrets(secrets)


class Composable:
    """Gives a mechanism its ``>>`` and its truncation."""

    def __rshift__(self: Mechanism, remap: Remap) -> Remapped:
        return Remapped(self, remap)

    def truncated(self: Mechanism, region: Box | Sites) -> Remapped:
        """Move each report to the closest place of a public `region`.

        A box, in the coordinates of the mechanism's space, or a list of sites.
        This is post-processing, so the guarantee stands, at the corners too;
        drawing again until a report falls inside would break it.
        """
        return Remapped(self, closest(region, self.space))


@dataclass(frozen=True)
class Remapped(Composable):
    """A mechanism followed by a remap of its reports."""

    mechanism: Mechanism
    remap: Remap

    @property
    def space(self) -> Space:
        """Where secrets live."""
        return self.mechanism.space

    @property
    def guarantee(self) -> Guarantee:
        """The mechanism's own: post-processing keeps it."""
        return self.mechanism.guarantee

    def check_secrets(self, secrets: Points | ArrayLike) -> None:
        """The mechanism's own check, where it has one."""
        check_domain(self.mechanism, secrets)

    def report(self, secrets: Points | ArrayLike, *, rng: Randomness | None = None) -> Points:
        """Report, then remap."""
        return self.remap(self.mechanism.report(secrets, rng=rng))


@dataclass(frozen=True, eq=False)
class Closest:
    """The remap that moves each report to the closest place of a public region."""

    region: Box | Sites
    space: Space | None = None

    def __call__(self, reports: Points) -> Points:
        if isinstance(self.region, Sites):
            nearest = self.region.nearest(reports.coordinates)
            moved = self.region.coordinates[nearest]
        elif isinstance(reports.space, Sphere):
            moved = Sphere.clamp(reports.coordinates, self.region)
        else:
            moved = self.region.clamp(reports.coordinates)
        return Points(moved, reports.space, reports.reproducible)


def closest(region: Box | Sites, space: Space | None = None) -> Closest:
    """The remap that moves each report (of `space`) to the closest place of `region`."""
    if isinstance(region, Sites):
        if space is not None and region.points.space != space:
            raise SpaceMismatch(
                f"the sites are in {region.points.space.description}, the reports in"
                f" {space.description}; convert the sites first"
            )
    elif not isinstance(region, Box):
        raise InvalidInput(
            f"a region must be a Box or Sites; got {type(region).__name__}: a box is declared in"
            " the coordinates of the mechanism's space"
        )
    elif isinstance(space, Sphere) and not -90 <= region.y_low < region.y_high <= 90:
        raise InvalidInput("a box on the globe must have latitudes within -90..90 degrees")
    return Closest(region, space)
