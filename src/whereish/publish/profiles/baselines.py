"""What PriLocation is measured against: noise on every count, and one histogram for everybody."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whereish.privacy.guarantee import Basis
from whereish.publish.profiles.counts import (
    ProfileRelease,
    Profiles,
    check_epsilon,
    counts_guarantee,
    noisy_counts,
)
from whereish.publish.profiles.levels import PlaceLevel
from whereish.randomness import Randomness, secure

__all__ = ["NaiveProfiles", "PooledProfiles", "noisy_profiles"]


def noisy_profiles(profiles: Profiles, budget: Fraction, rng: Randomness) -> Profiles:
    """Lap(1 / budget) on every count of every user, in whole numbers, negative ones as zero."""
    parts = []
    for low, table in profiles.tables():
        noisy = noisy_counts(table, budget, rng)
        user, site = np.nonzero(noisy)
        parts.append((user + low, site, noisy[user, site]))
    user, site, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Profiles.counted(profiles.level, profiles.users, user, site, weight)


@dataclass(frozen=True, eq=False)
class _OnCounts:
    """Noise of one level on counts at one level of places."""

    level: PlaceLevel
    epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)


@dataclass(frozen=True, eq=False)
class NaiveProfiles(_OnCounts):
    """The baseline: Lap(1/eps) on every count of every user, also the empty ones.

    Released are whole numbers, negative ones as zero.

    >>> import whereish as wh
    >>> level = wh.PlaceLevel.of_raster("city", wh.Raster(2, 2, (500, 500)))
    >>> wh.NaiveProfiles(level, 1.0).publish(wh.Profiles.counted(level, 1, [0], [3])).spent
    Fraction(1, 1)
    """

    def publish(self, profiles: Profiles, *, rng: Randomness | None = None) -> ProfileRelease:
        """Release noisy counts of all users at all places."""
        source = secure(rng)
        spent = Fraction(self.epsilon)
        return ProfileRelease(
            noisy_profiles(profiles, spent, source),
            (("every count", spent),),
            counts_guarantee(self.epsilon, Basis.THEOREM, "Laplace noise on each count"),
            source.reproducible,
        )


@dataclass(frozen=True, eq=False)
class PooledProfiles(_OnCounts):
    """Everybody's check-ins together, one noisy histogram that each user's profile is set to.

    A check-in more or less of any user changes one pooled count by 1, so Lap(1/eps) on
    each pooled count keeps ``eps * Manhattan()`` on the table of counts of users by places
    (the pooled table is a sum of its rows); that all users get the same one is
    post-processing.  It says nothing about one user in particular, and is nearer to most
    users' profiles than counts that drown in noise.

    Contract: keeps ``eps * Manhattan()`` on counts of users by places.

    Raises
    ------
    InvalidInput
        If epsilon is not > 0 and finite.

    Examples
    --------
    >>> import whereish as wh
    >>> level = wh.PlaceLevel.of_raster("city", wh.Raster(2, 2, (500, 500)))
    >>> profiles = wh.Profiles.counted(level, 3, [0, 1, 2], [3, 3, 1])
    >>> release = wh.PooledProfiles(level, 1.0).publish(profiles)
    >>> release.spent, release.profiles.users
    (Fraction(1, 1), 3)
    """

    def publish(self, profiles: Profiles, *, rng: Randomness | None = None) -> ProfileRelease:
        """Release the noisy sum of all profiles as the profile of each user."""
        source = secure(rng)
        spent = Fraction(self.epsilon)
        pooled = noisy_counts(profiles.pooled, spent, source)
        sites = np.flatnonzero(pooled)
        users = np.arange(profiles.users)
        return ProfileRelease(
            Profiles(
                profiles.level,
                profiles.users,
                np.repeat(users, sites.size),
                np.tile(sites, users.size),
                np.tile(pooled[sites], users.size),
            ),
            (("pooled counts", spent),),
            counts_guarantee(self.epsilon, Basis.THEOREM, "Laplace noise on each pooled count"),
            source.reproducible,
        )
