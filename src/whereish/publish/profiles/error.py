"""How far published profiles are from the true ones.

The distance error of a user is the least average distance that the weight of the
published profile must be moved to become the true one,

    DE(u) = min sum_ij f_ij d(i, j),  f >= 0 with margins W(u)/|W(u)| and Ŵ(u)/|Ŵ(u)|,

the earth mover's distance of the two normalised profiles.  Zhu et al. sum d(t, t̂) over
the check-ins and their own replacements, one such f among all; a release without that
pairing (noise on every count) has no other.  A profile published empty says nothing and
counts HS.  These figures need the true profiles: they are for the publisher.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.publish.profiles.counts import Profiles
from whereish.publish.profiles.transport import transport_cost

__all__ = ["distance_error", "transport_cost"]


def distance_error(
    true: Profiles, published: Profiles, users: Iterable[int] | None = None
) -> FloatArray:
    """DE of each of `users` (all by default), in metres."""
    if true.level is not published.level or true.users != published.users:
        raise InvalidInput("both profiles must be of the same level and the same users")
    level = true.level
    errors = []
    for user in range(true.users) if users is None else users:
        sites, weights = true.of(user)
        places, masses = published.of(user)
        if not len(sites):
            raise InvalidInput("the distance error needs at least one true check-in of each user")
        if not len(places):
            errors.append(float(level.sensitivity))
            continue
        costs = level.distances[np.ix_(sites, places)].astype(np.float64)
        errors.append(transport_cost(costs, weights, masses))
    return np.array(errors, dtype=np.float64)
