"""PriLocation: publish where each user goes, with noise scaled to a level of places.

A profile P_u = (T(u), W(u)) is the set of places that user u checked in at, and how often
(Zhu, Li, Zhou, Xiong et al., Knowledge and Information Systems 2016).  Three operations
spend one budget eps, with HS the level's largest distance:

1. *private location clustering*, eps/2: p iterations of k-means through noise
   (:mod:`whereish.publish.profiles.clustering`);
2. *cluster weight perturbation*, eps/4: every user's number of check-ins in every cluster
   gets Lap(4 / eps); a surplus is made of check-ins near the centre, a deficit takes away
   those farthest from it;
3. *private location selection*, eps/4: each check-in t is replaced by a place j of its
   cluster with weight exp(eps q / (8 HS)), score q = HS - d(t, j).

What is adjacent, and what is proven
------------------------------------
The published proof adds eps/2 + eps/4 + eps/4 and is silent on what two neighbouring data
sets are.  The constants fit one reading: **one check-in of one user more or less**.  For it
the program's three steps are private, and this is the proof.

1. Each of p iterations spends eps/(2p), by the argument of the clustering's module.
2. Given the clusters, it changes one of all counts by 1: Lap(4/eps) spends eps/4.
3. Given clusters and noisy counts, both data sets are brought to the same number of
   check-ins in each cluster.  With S and S + {t}: a surplus of m and of m - 1 differs in
   the m-th made-up check-in against t; taking away the farthest leaves the n nearest of
   S and of S + {t}, which differ in one; so exactly one check-in is another one, at most
   HS away.  Its selection changes by exp(eps/8) in the weight and exp(eps/8) in the
   normaliser: eps/4.  All other check-ins are selected alike and independently, and a
   profile lists counts, not an order.

Together eps, exactly.  For "one check-in moves" (one less and one more) the same release
keeps 2 eps; for all n check-ins of a user, n eps: this is privacy of events, not of users.
In the package's words: the secret is the table of counts of users by places, and
``eps * Manhattan()`` is kept.

The published text is also silent on these:

- *initial centres* drawn from the data reveal it; ours are a function of the level;
- *centre updates*: means of the true check-ins are not covered by noise on the objective.
  ``update="proven"`` (the default) perturbs the counts and sums that an update uses, in the
  same budget; ``"published"`` runs Lloyd's update and carries an estimate, no theorem;
- *empty clusters*: if only clusters that a user visited were perturbed, the others would
  say where the user never was; here every cluster of every user is;
- *who the users are* and how many is taken as public, so it is declared and never read off
  the check-ins (:meth:`Profiles.from_checkins`).

All noise is exact: whole numbers of :class:`~whereish.Laplace1D`, and
:class:`~whereish.sampling.selection.ExponentialSelection`.
"""

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
from whereish.publish.profiles.clustering import (
    Clustering,
    Update,
    noisy_integers,
    private_clusters,
)
from whereish.publish.profiles.levels import PlaceLevel
from whereish.randomness import Randomness, secure
from whereish.sampling.selection import ExponentialSelection
from whereish.space.points import Points
from whereish.units import LARGEST_EPSILON, SMALLEST_EPSILON

__all__ = ["NaiveProfiles", "PriLocation", "ProfileRelease", "Profiles"]

_USERS_AT_ONCE = 256


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

    def table(self, low: int, high: int) -> IntArray:
        """The dense counts of users low..high-1."""
        dense = np.zeros((high - low, len(self.level)), np.int64)
        rows = slice(*np.searchsorted(self.user, [low, high]))
        dense[self.user[rows] - low, self.site[rows]] = self.weight[rows]
        return dense


@dataclass(frozen=True, eq=False)
class ProfileRelease:
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


@dataclass(frozen=True, eq=False)
class NaiveProfiles:
    """The baseline: Lap(1/eps) on every count of every user, also the empty ones.

    Released are whole numbers, negative ones as zero.

    >>> import whereish as wh
    >>> level = wh.PlaceLevel.of_raster("city", wh.Raster(2, 2, (500, 500)))
    >>> wh.NaiveProfiles(level, 1.0).publish(wh.Profiles.counted(level, 1, [0], [3])).spent
    Fraction(1, 1)
    """

    level: PlaceLevel
    epsilon: float

    def __post_init__(self) -> None:
        _check_epsilon(self.epsilon)

    def publish(self, profiles: Profiles, *, rng: Randomness | None = None) -> ProfileRelease:
        """Release noisy counts of all users at all places."""
        source = secure(rng)
        parts = []
        for low in range(0, profiles.users, _USERS_AT_ONCE):
            high = min(low + _USERS_AT_ONCE, profiles.users)
            noisy = _noisy_counts(profiles.table(low, high), Fraction(self.epsilon), source)
            user, site = np.nonzero(noisy)
            parts.append((user + low, site, noisy[user, site]))
        user, site, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
        published = Profiles.counted(profiles.level, profiles.users, user, site, weight)
        spent = Fraction(self.epsilon)
        return ProfileRelease(
            published,
            (("every count", spent),),
            _guarantee(self.epsilon, Basis.THEOREM, "Laplace noise on each count"),
            source.reproducible,
        )


@dataclass(frozen=True, eq=False)
class PriLocation:
    """Hierarchical location publishing.

    Parameters
    ----------
    level
        The public places, with HS.
    epsilon
        The whole budget, for one check-in more or less.
    clusters, iterations
        k and p, public choices.
    update
        Where centres move: "proven" or "published", see the module's text.

    Examples
    --------
    >>> import whereish as wh
    >>> wh.PriLocation(wh.PlaceLevel.of_raster("city", wh.Raster(4, 4)), 1.0).guarantee.basis.name
    'THEOREM'
    """

    level: PlaceLevel
    epsilon: float
    clusters: int = 16
    iterations: int = 4
    update: Update = "proven"

    def __post_init__(self) -> None:
        _check_epsilon(self.epsilon)
        if self.update not in ("proven", "published"):
            raise InvalidInput(f"update must be 'proven' or 'published'; got {self.update!r}")

    @property
    def guarantee(self) -> Guarantee:
        """``eps * Manhattan()`` on counts of users by places; an estimate if as published."""
        if self.update == "proven":
            return _guarantee(
                self.epsilon, Basis.THEOREM, "PriLocation (whereish.publish.profiles)"
            )
        source = "PriLocation as published; its proof does not cover the centre updates"
        return _guarantee(self.epsilon, Basis.ESTIMATED, source)

    def publish(self, profiles: Profiles, *, rng: Randomness | None = None) -> ProfileRelease:
        """Cluster, perturb weights, select."""
        if profiles.level is not self.level:
            raise InvalidInput("profiles must be of the very level that PriLocation was made for")
        source = secure(rng)
        budget = Fraction(self.epsilon)
        clustering = private_clusters(
            self.level,
            profiles.pooled,
            clusters=self.clusters,
            iterations=self.iterations,
            epsilon=budget / 2,
            update=self.update,
            rng=source,
        )
        return ProfileRelease(
            self._published(profiles, clustering, source),
            (
                *((f"clustering, look {i + 1}", look) for i, look in enumerate(clustering.looks)),
                ("cluster weights", budget / 4),
                ("selection", budget / 4),
            ),
            self.guarantee,
            source.reproducible,
            clustering,
        )

    def _published(self, profiles: Profiles, clustering: Clustering, rng: Randomness) -> Profiles:
        """Operations 2 and 3, for given clusters."""
        found: list[tuple[IntArray, IntArray]] = []
        for cluster, centre in enumerate(clustering.centres):
            members = clustering.members(cluster)
            members = members[_by_distance(self.level, members, int(centre))]
            rate = Fraction(self.epsilon) / (8 * self.level.sensitivity)
            selection = ExponentialSelection(self.level.distances[:, members], rate)
            for low, table in _tables(profiles, members):
                wanted = _noisy_counts(table.sum(axis=1), Fraction(self.epsilon) / 4, rng)
                user, place = _resized(table, wanted)
                found.append((user + low, members[selection.draw(members[place], rng=rng)]))
        user, site = (np.concatenate(column) for column in zip(*found, strict=True))
        return Profiles.counted(self.level, profiles.users, user, site)

    def distance_error_bound(
        self, profiles: Profiles, clustering: Clustering, user: int, *, risk: float
    ) -> float:
        """alpha: the mean distance d(t, t̂) of a user's check-ins exceeds it with at most `risk`.

        Markov's inequality on the selection, as in the published bound: alpha is the
        expected mean distance over `risk`, in metres, and never more than HS.  Computed
        from the true profile, so it is for the publisher's eyes only.
        """
        if not 0 < risk <= 1:
            raise InvalidInput(f"risk must be in (0, 1]; got {risk!r}")
        sites, weights = profiles.of(user)
        if not len(sites):
            return 0.0
        expected = sum(
            weight * self._expected_distance(clustering, int(site))
            for site, weight in zip(sites, weights, strict=True)
        )
        return min(float(expected / weights.sum()) / risk, float(self.level.sensitivity))

    def _expected_distance(self, clustering: Clustering, site: int) -> float:
        cluster = int(clustering.of_site[site])
        members = clustering.members(cluster)
        distances = self.level.distances[site, members]
        weights = np.exp(-self.epsilon * distances / (8 * self.level.sensitivity))
        return float(weights @ distances / weights.sum())


def _tables(profiles: Profiles, members: NDArray[np.intp]) -> Iterator[tuple[int, IntArray]]:
    """Counts at these places, for blocks of users, each with its first user's number."""
    for low in range(0, profiles.users, _USERS_AT_ONCE):
        high = min(low + _USERS_AT_ONCE, profiles.users)
        yield low, profiles.table(low, high)[:, members]


def _by_distance(level: PlaceLevel, members: NDArray[np.intp], centre: int) -> NDArray[np.intp]:
    """The places of a cluster, nearest to the centre first; ties in the level's order."""
    return np.argsort(level.distances[centre, members], kind="stable")


def _resized(table: IntArray, wanted: IntArray) -> tuple[IntArray, IntArray]:
    """Bring each row to `wanted` check-ins; columns are sorted by distance to the centre.

    A deficit takes the farthest away; a surplus goes round the places, nearest first.
    Returns the row and column of every check-in.
    """
    rows, columns = table.shape
    before = np.cumsum(table, axis=1) - table
    kept = np.clip(wanted[:, None] - before, 0, table)
    surplus = np.maximum(wanted - table.sum(axis=1), 0)
    rounds, rest = np.divmod(surplus, columns)
    kept = kept + rounds[:, None] + (np.arange(columns) < rest[:, None])
    flat = np.repeat(np.arange(rows * columns), kept.ravel())
    return flat // columns, flat % columns


def _noisy_counts(counts: IntArray, budget: Fraction, rng: Randomness) -> IntArray:
    """Counts plus Lap(1 / budget) in whole numbers, negative ones as zero."""
    return np.maximum(noisy_integers(counts, 1, budget, rng), 0)


def _guarantee(epsilon: float, basis: Basis, source: str) -> Guarantee:
    statement = f"{source}: one check-in of one user more or less, counts of users by places"
    return Guarantee(epsilon * Manhattan(), basis, statement, NUMERICS)


def _check_epsilon(epsilon: float) -> None:
    if not (
        isinstance(epsilon, int | float)
        and math.isfinite(epsilon)
        and 1e3 * SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON
    ):
        raise InvalidInput(
            f"epsilon must be a number between {1e3 * SMALLEST_EPSILON:g} and"
            f" {LARGEST_EPSILON:g} (of differential privacy, without a unit); got {epsilon!r}"
        )
