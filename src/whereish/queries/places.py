"""Reports of a set of places, together: each place for itself, or their centroid.

Independent reports with a mechanism that keeps d keep the sum of d over the entries, hence
n * d on d_inf; one report of the centroid keeps eps * d_inf with noise for one place, but says
less.  Both guarantees speak of the same secret, the tuple, so they add up in a ledger:
``each.guarantee + centre.guarantee``.
"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from whereish.errors import InvalidInput
from whereish.mechanisms.base import Mechanism
from whereish.privacy.guarantee import Guarantee
from whereish.privacy.tuples import maximum_of_places
from whereish.queries.answer import Answer, answer
from whereish.queries.centroid import Centroid
from whereish.randomness import Randomness
from whereish.results import JsonResult
from whereish.space.points import Points
from whereish.units import Epsilon, Length

__all__ = ["PlacesReport", "report_centroid", "report_each"]


@dataclass(frozen=True)
class PlacesReport(JsonResult):
    """One report per place of a tuple, and the guarantee about the whole tuple."""

    points: Points
    guarantee: Guarantee


def report_each(
    mechanism: Mechanism, places: Points | ArrayLike, *, rng: Randomness | None = None
) -> PlacesReport:
    """Report every place of a tuple independently."""
    points = mechanism.report(places, rng=rng)
    if len(points) == 0:
        raise InvalidInput("a set of places must have at least one; got none")
    return PlacesReport(points, mechanism.guarantee.on_tuples(len(points)))


def report_centroid(
    places: Points | ArrayLike,
    epsilon: Epsilon | str,
    *,
    resolution: Length | str = "1 m",
    rng: Randomness | None = None,
) -> Answer:
    """Report the centroid of a tuple so that eps * d_inf is kept."""
    size = len(places) if isinstance(places, Points) else _length(places)
    metric = maximum_of_places(max(size, 1))
    return answer(Centroid(), places, metric, epsilon, resolution=resolution, rng=rng)


def _length(places: ArrayLike) -> int:
    try:
        return len(places)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInput("a set of places must be an (n, 2) array of metres") from None
