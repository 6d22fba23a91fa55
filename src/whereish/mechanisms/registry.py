"""The mechanisms by name, with what the contract suite needs to know of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from whereish.errors import InvalidInput
from whereish.mechanisms.base import Mechanism
from whereish.mechanisms.noise.axis_laplace import Laplace1D, ManhattanLaplace
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.units import Epsilon

__all__ = ["REGISTRY", "Entry", "mechanism_named"]


@dataclass(frozen=True)
class Entry:
    """One mechanism: how to build it from epsilon, and what it claims.

    Parameters
    ----------
    build
        From a privacy level and options to the mechanism.
    tight
        Whether no smaller metric is kept, so that an audit must come close.
    """

    name: str
    build: Callable[..., Mechanism]
    tight: bool = True
    options: dict[str, Any] = field(default_factory=dict)


REGISTRY: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("globe-laplace", GlobeLaplace),
        Entry("laplace-1d", Laplace1D),
        Entry("manhattan-laplace", ManhattanLaplace),
        Entry("planar-laplace", PlanarLaplace),
    )
}
"""Mechanisms that an epsilon alone can build, by their names on the command line."""


def mechanism_named(name: str, epsilon: Epsilon | str, **options: Any) -> Mechanism:
    """Build the mechanism of this name."""
    try:
        entry = REGISTRY[name]
    except KeyError:
        raise InvalidInput(
            f"mechanism must be one of {', '.join(sorted(REGISTRY))}; got {name!r}"
        ) from None
    return entry.build(epsilon, **{**entry.options, **options})
