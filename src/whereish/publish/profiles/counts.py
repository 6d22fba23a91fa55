"""Profiles: how often each user was at each place of a level, and what a release of them is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import IntArray
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.rounded import NUMERICS
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.norms import Manhattan
from whereish.publish.profiles.clustering import Clustering, noisy_integers
from whereish.publish.profiles.levels import PlaceLevel
from whereish.randomness import Randomness
from whereish.results import JsonResult, plain
from whereish.space.points import Points
from whereish.units import LARGEST_EPSILON, SMALLEST_EPSILON

__all__ = [
    "ProfileRelease",
    "Profiles",
    "check_epsilon",
    "counts_guarantee",
    "noisy_counts",
]

_USERS_AT_ONCE = 256
"""Users whose dense counts are in memory at once."""


@dataclass(frozen=True, eq=False)
class Profiles:
    """Counts of check-ins: `weight` of them by `user` (0..users-1) at place `site`.

    >>> import whereish as wh
    >>> level = wh.PlaceLevel.of_raster("city", wh.Raster(2, 2, (500, 500)))
    >>> wh.Profiles.counted(level, users=2, user=[0, 0, 1], site=[0, 3, 3]).pooled.tolist()
    [1, 0, 0, 2]
    """

    level: PlaceLevel
    users: int
    user: IntArray = field(repr=False)
    site: IntArray = field(repr=False)
    weight: IntArray = field(repr=False)

    @classmethod
    def from_checkins(
        cls,
        level: PlaceLevel,
        users: ArrayLike,
        places: Points | ArrayLike,
        *,
        public_users: ArrayLike | None = None,
    ) -> tuple[Profiles, NDArray[Any]]:
        """Profiles of check-ins, and the user ids in the order of the profiles.

        `public_users` must be given: the ids of all users that get a profile, each once,
        with check-ins or without.  The proof takes this list as public; a list made from
        the check-ins themselves would tell who has one.
        """
        if public_users is None:
            raise InvalidInput(
                "public_users must be given: the ids of all users, known without looking at the"
                " check-ins, since a list made from these would tell who has one"
            )
        ids, names = np.asarray(users), np.asarray(public_users)
        sites = level.locate(places)
        if ids.shape != sites.shape:
            raise InvalidInput(
                f"there must be a user for each place; got {ids.shape} users and {sites.shape}"
                " places"
            )
        if names.ndim != 1 or names.size == 0 or len(np.unique(names)) != len(names):
            raise InvalidInput("public_users must be a list of ids, each once, and at least one")
        order = np.argsort(names, kind="stable")
        if (names.dtype.kind in "US") != (ids.dtype.kind in "US") and ids.size:
            raise InvalidInput(
                f"users and public_users must be ids of one type; got {ids.dtype} and {names.dtype}"
            )
        at = np.minimum(np.searchsorted(names[order], ids), len(names) - 1).astype(np.intp)
        user = order[at]
        strange = int((names[user] != ids).sum())
        if strange:
            raise InvalidInput(
                f"every check-in must be by one of public_users; {strange} of {len(ids)} are not:"
                " leave them out, or declare their users"
            )
        return cls.counted(level, len(names), user, sites), names

    @classmethod
    def counted(
        cls, level: PlaceLevel, users: int, user: ArrayLike, site: ArrayLike, weight: ArrayLike = 1
    ) -> Profiles:
        """Gather equal (user, site) pairs and drop empty ones."""
        pair = np.asarray(user, np.int64) * len(level) + np.asarray(site, np.int64)
        each = np.broadcast_to(np.asarray(weight, np.int64), pair.shape)
        keys, inverse = np.unique(pair, return_inverse=True)
        total = np.zeros(len(keys), np.int64)
        np.add.at(total, inverse, each)
        keys, total = keys[total > 0], total[total > 0]
        return cls(level, users, keys // len(level), keys % len(level), total)

    def __len__(self) -> int:
        return self.users

    @property
    def nonzero(self) -> int:
        """How many (user, place) pairs have a count."""
        return len(self.site)

    @property
    def pooled(self) -> IntArray:
        """Check-ins at each place, of all users."""
        counts = np.zeros(len(self.level), np.int64)
        np.add.at(counts, self.site, self.weight)
        return counts

    def of(self, user: int) -> tuple[IntArray, IntArray]:
        """T(u) and W(u)."""
        low, high = np.searchsorted(self.user, [user, user + 1])
        return self.site[low:high], self.weight[low:high]

    def tables(self) -> Iterator[tuple[int, IntArray]]:
        """Counts for blocks of users, each with the number of its first."""
        for low in range(0, self.users, _USERS_AT_ONCE):
            yield low, self.table(low, min(low + _USERS_AT_ONCE, self.users))

    def table(self, low: int, high: int) -> IntArray:
        """The dense counts of users low..high-1."""
        dense = np.zeros((high - low, len(self.level)), np.int64)
        rows = slice(*np.searchsorted(self.user, [low, high]))
        dense[self.user[rows] - low, self.site[rows]] = self.weight[rows]
        return dense


@dataclass(frozen=True, eq=False)
class ProfileRelease(JsonResult):
    """Published profiles, the guarantee, and `spending`, which adds up to the budget exactly."""

    profiles: Profiles
    spending: tuple[tuple[str, Fraction], ...] = field(repr=False)
    guarantee: Guarantee
    reproducible: bool
    clustering: Clustering | None = field(default=None, repr=False)

    @property
    def spent(self) -> Fraction:
        """The sum of what each operation spent."""
        return sum((amount for _, amount in self.spending), Fraction(0))

    def to_json(self) -> dict[str, Any]:
        """The published counts by user and place, what was spent on what, and the guarantee."""
        counts = {name: getattr(self.profiles, name) for name in ("user", "site", "weight")}
        told = {"spending": self.spending, "guarantee": self.guarantee}
        plainly: dict[str, Any] = plain(
            {"users": self.profiles.users, **counts, **told, "reproducible": self.reproducible}
        )
        return plainly


def noisy_counts(counts: IntArray, budget: Fraction, rng: Randomness) -> IntArray:
    """Counts plus Lap(1 / budget) in whole numbers, negative ones as zero."""
    return np.maximum(noisy_integers(counts, 1, budget, rng), 0)


def counts_guarantee(epsilon: float, basis: Basis, source: str) -> Guarantee:
    """``eps * Manhattan()`` on the table of counts of users by places."""
    statement = f"{source}: one check-in of one user more or less, counts of users by places"
    return Guarantee(epsilon * Manhattan(), basis, statement, NUMERICS)


def check_epsilon(epsilon: float) -> None:
    """Refuse what is no budget."""
    if not (
        isinstance(epsilon, int | float)
        and math.isfinite(epsilon)
        and 1e3 * SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON
    ):
        raise InvalidInput(
            f"epsilon must be a number between {1e3 * SMALLEST_EPSILON:g} and"
            f" {LARGEST_EPSILON:g} (of differential privacy, without a unit); got {epsilon!r}"
        )
