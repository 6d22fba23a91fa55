"""(alpha, delta)-usefulness of any mechanism.

A mechanism is (alpha, delta)-useful when, for every secret, its report is within alpha of the
secret with probability at least 1 - delta (Blum, Ligett, Roth, STOC 2008; Bordenabe's thesis,
sections 4.3 and 5.5).  One function asks every kind of mechanism for the probability:

- geometric noise and finite channels: exactly, the least over all secrets;
- continuous noise: a lower bound in true metres, rounding of the report included (in city blocks
  for the Manhattan Laplace, which are longer);
- privacy maps: exactly, for every cell or for the places that are given;
- anything else: from samples at given places, an exact binomial lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Mechanism
from whereish.mechanisms.calibration import TrueRadii
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.inputs import ground_metric
from whereish.privacy.norms import Euclidean, Geodesic
from whereish.randomness import Randomness
from whereish.results import JsonResult
from whereish.space.points import Points, checked_coordinates
from whereish.space.sphere import Sphere
from whereish.units import Length

if TYPE_CHECKING:
    from whereish.mechanisms.maps.eikonal import EikonalMechanism

__all__ = ["Usefulness", "usefulness"]

_MOST_CELLS = 4096
_DOUBT = 1e-6  # that a sampled bound is wrong


@runtime_checkable
class _OnValues(Protocol):
    def usefulness(self, radius: Fraction | float) -> float: ...


@dataclass(frozen=True)
class Usefulness(JsonResult):
    """How often a report is within alpha of its secret.

    Attributes
    ----------
    alpha
        The radius, in metres or in units of the values.
    chance
        The least probability, or a lower bound of it.
    basis
        'exact', 'bound' (proven, perhaps not attained) or 'estimated' (from samples).
    secrets
        Of which secrets it speaks.

    >>> Usefulness(200.0, 0.96, "exact", "every secret").is_useful(0.05)
    True
    """

    alpha: float
    chance: float
    basis: Literal["exact", "bound", "estimated"]
    secrets: str

    @property
    def delta(self) -> float:
        """1 - chance."""
        return 1 - self.chance

    def is_useful(self, delta: float) -> bool:
        """Whether the mechanism is (alpha, delta)-useful."""
        if not 0 <= delta <= 1:
            raise InvalidInput(f"delta must be a probability; got {delta!r}")
        return self.chance >= 1 - delta


def usefulness(
    mechanism: object,
    alpha: Length | str | float | Fraction,
    *,
    at: Points | ArrayLike | None = None,
    samples: int = 100_000,
    rng: Randomness | None = None,
) -> Usefulness:
    """How often reports are within `alpha` of the secret, for any mechanism.

    Parameters
    ----------
    mechanism
        Noise, a channel, a privacy map's mechanism, geometric noise on values or records, or
        anything with `report`.
    alpha
        A length such as '200 m' for places; a number in units of the values for records.
    at
        Secrets to look at, for maps and for mechanisms that must be sampled.
    samples, rng
        How many reports are drawn of each of `at` where the law is not known.

    Raises
    ------
    InvalidInput
        If alpha has no unit where places are concerned, or `at` is needed and missing.

    Examples
    --------
    >>> import whereish as wh
    >>> wh.audit.usefulness(wh.TruncatedGeometric.with_ratio(wh.Values(1, 4), "1/2"), 1).basis
    'exact'
    >>> noise = wh.PlanarLaplace("ln(4)/200 m")
    >>> wh.audit.usefulness(noise, noise.quantile(0.95)).is_useful(0.05)
    True
    """
    if isinstance(mechanism, _OnValues):
        if isinstance(alpha, Length | str):
            raise InvalidInput(f"alpha must be a number in units of the values; got {alpha}")
        return Usefulness(float(alpha), mechanism.usefulness(alpha), "exact", "every secret")
    if not isinstance(alpha, Length | str):
        raise InvalidInput(f"alpha must be a length, such as '200 m'; got {alpha!r}")
    radius = Length.positive(alpha, name="alpha").m
    if isinstance(mechanism, Channel):
        x, z = mechanism.secrets.coordinates, mechanism.reports.coordinates
        near = ground_metric(mechanism.secrets).matrix(x, z) <= radius
        held = (mechanism.matrix * near).sum(axis=1)
        return Usefulness(radius, _capped(held.min()), "exact", "every site")
    from whereish.mechanisms.maps.eikonal import EikonalMechanism  # heavy, and for maps alone

    if isinstance(mechanism, EikonalMechanism):
        return _on_map(mechanism, radius, at)
    if isinstance(mechanism, TrueRadii) and at is None:
        return Usefulness(radius, mechanism.coverage(Length(radius)), "bound", "every secret")
    return _sampled(mechanism, radius, at, samples, rng)


def _capped(chance: float) -> float:
    return min(float(chance), 1.0)


def _on_map(
    mechanism: EikonalMechanism, radius: float, at: Points | ArrayLike | None
) -> Usefulness:
    if at is None:
        cells = mechanism.map.raster
        if mechanism.places != "cells" or len(cells) > _MOST_CELLS:
            raise InvalidInput(
                "give the places of a map with at=...: it has too many to try them all, or reports"
                " of continuous places"
            )
        places = cells.centres()
    else:
        places = checked_coordinates(at, mechanism.space)
    reports = mechanism.reports.centres()
    held = []
    for place in places:
        secret = place
        if mechanism.places == "cells":  # the promise, and the report, are about its cell
            secret = mechanism.map.raster.centres()[mechanism.map.raster.locate(place[None])[0]]
        near = Euclidean()(reports, secret) <= radius
        held.append(float(mechanism.distribution(place).ravel()[near].sum()))
    secrets = "every cell" if at is None else f"{len(places)} places"
    return Usefulness(radius, _capped(min(held)), "exact", secrets)


def _sampled(
    mechanism: object,
    radius: float,
    at: Points | ArrayLike | None,
    samples: int,
    rng: Randomness | None,
) -> Usefulness:
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput(f"a mechanism must report secrets; got {type(mechanism).__name__}")
    if at is None:
        raise InvalidInput(
            f"the law of a {type(mechanism).__name__} is not known in closed form: give secrets to"
            " sample with at=..."
        )
    if samples < 1:
        raise InvalidInput(f"samples must be at least 1; got {samples}")
    from scipy.stats import beta

    places = checked_coordinates(at, mechanism.space)
    metric = Geodesic() if isinstance(mechanism.space, Sphere) else Euclidean()
    chances = []
    for place in places:
        secrets = Points(np.repeat(place[None], samples, axis=0), mechanism.space)
        reports: FloatArray = mechanism.report(secrets, rng=rng).coordinates
        hits = int((metric(reports, place) <= radius).sum())
        share = _DOUBT / len(places)
        chances.append(float(beta.ppf(share, hits, samples - hits + 1)) if hits else 0.0)
    return Usefulness(radius, min(chances), "estimated", f"{len(places)} places")
