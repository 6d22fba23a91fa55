"""Every public mechanism in one list: its name, how it is made, and a small example of it.

One line here is all that a new mechanism needs beside its own module: the contract suite
(``tests/contract``) runs on every example, by what the mechanism can do, and
``sanitize(mechanism="name")`` takes those that an epsilon alone can build.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from whereish.errors import InvalidInput
from whereish.mechanisms.base import Mechanism
from whereish.mechanisms.calibration import Calibrated
from whereish.units import Epsilon

__all__ = ["REGISTRY", "Registered", "calibrated_family", "mechanism_named"]

_EPS = "0.01/m"
_SITES = [[100.0 * (i % 3), 100.0 * (i // 3)] for i in range(9)]
_PRIOR = [(1 + i % 4) / 21 for i in range(9)]


@dataclass(frozen=True)
class Registered:
    """One public mechanism.

    Parameters
    ----------
    home
        Where its class or function is, below ``whereish``; it is imported when asked for.
    example
        A small instance, from that class or function; for the contract suite.
    by_epsilon
        Whether an epsilon alone builds it, so that its name can stand for it.
    tight
        Whether no smaller metric is kept, so that an audit must come close.
    """

    name: str
    home: str
    example: Callable[[Any], Any]
    by_epsilon: bool = False
    tight: bool = True

    @property
    def make(self) -> Callable[..., Any]:
        """The public class or function."""
        module, _, name = f"whereish.{self.home}".rpartition(".")
        return cast(Callable[..., Any], getattr(import_module(module), name))

    def built(self) -> Any:
        """The example."""
        return self.example(self.make)


def _map() -> Any:
    import numpy as np

    from whereish.privacy.maps.privacy_map import PrivacyMap

    i, j = np.mgrid[:6, :7]
    return PrivacyMap(1e-3 * (1 + 0.1 * ((i * j) % 3)), "500 m")


def _grid() -> Any:
    from whereish.mechanisms.channels.tight import tight_channel

    return tight_channel(_SITES, _EPS)


def _values(top: int) -> Any:
    from whereish.space.values import Values

    return Values(1, top)


def _records() -> Any:
    from whereish.privacy.tuples import Records

    return Records(_values(10), 2)


def _location_privacy() -> Any:
    from whereish.privacy.distinguishability import Distinguishability

    return Distinguishability.location("200 m", 1.0)


def _radial(radius: float) -> float:
    return math.exp(-radius / 150)


_NOISE, _CHANNELS, _MAPS = "mechanisms.noise", "mechanisms.channels", "mechanisms.maps"
_RECORDS, _TRACES = "mechanisms.records", "mechanisms.traces"

REGISTRY: dict[str, Registered] = {
    entry.name: entry
    for entry in (
        Registered(
            "planar-laplace", f"{_NOISE}.planar_laplace.PlanarLaplace", lambda m: m(_EPS), True
        ),
        Registered(
            "globe-laplace", f"{_NOISE}.globe_laplace.GlobeLaplace", lambda m: m(_EPS), True
        ),
        Registered(
            "manhattan-laplace", f"{_NOISE}.axis_laplace.ManhattanLaplace", lambda m: m(_EPS), True
        ),
        Registered("laplace-1d", f"{_NOISE}.axis_laplace.Laplace1D", lambda m: m(_EPS), True),
        Registered(
            "circular", f"{_NOISE}.circular.CircularNoise", lambda m: m(_radial, reach="2 km")
        ),
        Registered(
            "optimal-circular",
            f"{_NOISE}.optimal_circular.OptimalCircular",
            lambda m: m(_location_privacy(), resolution="20 m"),
        ),
        Registered(
            "optimal", f"{_CHANNELS}.optimal.optimal_channel", lambda m: m(_SITES, _PRIOR, _EPS)
        ),
        Registered("optimal-map", f"{_MAPS}.optimal.optimal_map_channel", lambda m: m(_map())),
        Registered(
            "exponential",
            f"{_CHANNELS}.exponential.exponential_channel",
            lambda m: m(_SITES, _EPS),
            tight=False,
        ),
        Registered("tight", f"{_CHANNELS}.tight.tight_channel", lambda m: m(_SITES, _EPS)),
        Registered(
            "laplace",
            f"{_CHANNELS}.laplace.laplace_channel",
            lambda m: m(_SITES, _EPS),
            tight=False,
        ),
        Registered(
            "cloaking",
            f"{_CHANNELS}.cloaking.cloaking_channel",
            lambda m: m(_SITES, [0] * 4 + [1] * 5),
        ),
        Registered("identity", f"{_CHANNELS}.cloaking.identity_channel", lambda m: m(_SITES)),
        Registered("uniform", f"{_CHANNELS}.cloaking.uniform_channel", lambda m: m(_SITES)),
        Registered(
            "opt-priv",
            f"{_CHANNELS}.opt_priv.opt_priv_channel",
            lambda m: m(_SITES, _PRIOR, most_loss="80 m"),
        ),
        Registered("between-sites", f"{_CHANNELS}.between.BetweenSites", lambda m: m(_grid())),
        Registered("eikonal", f"{_MAPS}.eikonal.EikonalMechanism", lambda m: m.build(_map())),
        Registered(
            "eikonal-query",
            f"{_MAPS}.query.EikonalQuery",
            lambda m: m.build(_map(), [[(i + j) // 4 for j in range(7)] for i in range(6)]),
        ),
        Registered(
            "two-sided-geometric", f"{_RECORDS}.geometric.TwoSidedGeometric", lambda m: m(1, 0.5)
        ),
        Registered(
            "truncated-geometric",
            f"{_RECORDS}.geometric.TruncatedGeometric",
            lambda m: m(_values(10), 0.5),
        ),
        Registered(
            "cube-geometric",
            f"{_RECORDS}.cube_geometric.CubeGeometric",
            lambda m: m(_records(), 0.5),
        ),
        Registered(
            "predictive", f"{_TRACES}.predictive.PredictiveMechanism", lambda m: m(_budget())
        ),
    )
}
"""All public mechanisms, by name."""


def _budget() -> Any:
    from whereish.mechanisms.traces.budget import FixedUtility

    return FixedUtility("500 m")


def mechanism_named(name: str, epsilon: Epsilon | str, **options: Any) -> Mechanism:
    """Build the mechanism of this name from an epsilon.

    Raises
    ------
    InvalidInput
        If no mechanism that an epsilon alone builds has this name.
    """
    return cast(Mechanism, _by_epsilon(name).make(epsilon, **options))


def calibrated_family(name: str) -> type[Calibrated]:
    """The class of this name, which finds the epsilon of an error.

    Raises
    ------
    InvalidInput
        If it cannot, or no mechanism that an epsilon alone builds has this name.
    """
    family = _by_epsilon(name).make
    if not (isinstance(family, type) and issubclass(family, Calibrated)):
        raise InvalidInput(
            f"mechanism {name!r} is built from epsilon alone: mean_error and within are for"
            " mechanisms that know their error, such as 'globe-laplace'"
        )
    return family


def _by_epsilon(name: str) -> Registered:
    names = sorted(entry.name for entry in REGISTRY.values() if entry.by_epsilon)
    if name not in names:
        near = difflib.get_close_matches(str(name), names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(f"mechanism must be one of {', '.join(names)}; got {name!r}{hint}")
    return REGISTRY[name]
