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
- *selection*: on the slides a place's whole weight moves at once (<3,0,0,0> to <0,3,0,0>), to one
  of the user's own places after step 2.  Which places those are is a function of the data that
  no noise hides: with S and S + {t}, a place far from the centre is in the release with
  probability about 1/2 if t is there and e^(-eps m / 4) if not, m its rank in the cluster; so for
  no eps' does e^eps' bound the ratio in all clusters.  ``selection="published"`` runs it and
  carries an estimate, no theorem; ``"proven"`` (the default) draws each check-in among all
  places of its cluster, which are public;
- *who the users are* and how many is taken as public, so it is declared and never read off
  the check-ins (:meth:`Profiles.from_checkins`).

All noise is exact: whole numbers of :class:`~whereish.Laplace1D`, and
:class:`~whereish.sampling.selection.ExponentialSelection`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.publish.profiles.baselines import NaiveProfiles
from whereish.publish.profiles.clustering import (
    Clustering,
    Update,
    noisy_integers,
    private_clusters,
)
from whereish.publish.profiles.counts import (
    ProfileRelease,
    Profiles,
    check_epsilon,
    counts_guarantee,
    noisy_counts,
)
from whereish.publish.profiles.estimate import better_estimate
from whereish.publish.profiles.levels import PlaceLevel
from whereish.randomness import Randomness, secure
from whereish.sampling.selection import ExponentialSelection

__all__ = ["NaiveProfiles", "PriLocation", "ProfileRelease", "Profiles", "Selection"]

Selection: TypeAlias = Literal["proven", "published"]


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
        k and p, public choices.  With ``clusters=None`` every place is its own cluster:
        clusters are then public and selection has no choice, so all of eps is for the weights;
        what each user did is estimated from these by what all did, unless that would be
        farther from the truth than the noisy counts themselves
        (:mod:`whereish.publish.profiles.estimate`).
    update, selection
        Where centres move, and what moves to where: "proven" or "published", see the module's
        text.
    Contract: keeps ``eps * Manhattan()`` on counts of users by places, unless as published.

    Raises
    ------
    InvalidInput
        If a parameter is not what it must be.

    Examples
    --------
    >>> import whereish as wh
    >>> wh.PriLocation(wh.PlaceLevel.of_raster("city", wh.Raster(4, 4)), 1.0).guarantee.basis.name
    'THEOREM'
    """

    level: PlaceLevel
    epsilon: float
    clusters: int | None = 16
    iterations: int = 4
    update: Update = "proven"
    selection: Selection = "proven"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.selection not in ("proven", "published"):
            raise InvalidInput(f"selection must be 'proven' or 'published'; got {self.selection!r}")
        if self.clusters is None and "published" in (self.update, self.selection):
            raise InvalidInput("without clusters there is nothing to update or select as published")
        if self.update not in ("proven", "published"):
            raise InvalidInput(f"update must be 'proven' or 'published'; got {self.update!r}")

    @property
    def guarantee(self) -> Guarantee:
        """``eps * Manhattan()`` on counts of users by places; an estimate if as published."""
        silent = [
            step
            for step, how in (("the centre updates", self.update), ("selection", self.selection))
            if how == "published"
        ]
        if not silent:
            return counts_guarantee(
                self.epsilon, Basis.THEOREM, "PriLocation (whereish.publish.profiles)"
            )
        source = f"PriLocation as published; its proof does not cover {' and '.join(silent)}"
        return counts_guarantee(self.epsilon, Basis.ESTIMATED, source)

    def publish(self, profiles: Profiles, *, rng: Randomness | None = None) -> ProfileRelease:
        """Cluster, perturb weights, select."""
        if profiles.level is not self.level:
            raise InvalidInput("profiles must be of the very level that PriLocation was made for")
        source = secure(rng)
        budget = Fraction(self.epsilon)
        if self.clusters is None:
            return ProfileRelease(
                self._estimated(profiles, budget, source),
                (("cluster weights", budget),),
                self.guarantee,
                source.reproducible,
            )
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

    def _estimated(self, profiles: Profiles, budget: Fraction, rng: Randomness) -> Profiles:
        """Every place its own cluster: noisy counts, and what they say together."""
        noisy = [noisy_integers(table, 1, budget, rng) for _, table in profiles.tables()]
        counts, _ = better_estimate(np.vstack(noisy), 1 / float(budget), self.level, rng)
        user, site = np.nonzero(counts)
        return Profiles.counted(self.level, profiles.users, user, site, counts[user, site])

    def _published(self, profiles: Profiles, clustering: Clustering, rng: Randomness) -> Profiles:
        """Operations 2 and 3, for given clusters."""
        found: list[tuple[IntArray, IntArray, IntArray]] = []
        for cluster, centre in enumerate(clustering.centres):
            members = clustering.members(cluster)
            members = members[_by_distance(self.level, members, int(centre))]
            rate = Fraction(self.epsilon) / (8 * self.level.sensitivity)
            selection = ExponentialSelection(self.level.distances[:, members], rate)
            for low, whole in profiles.tables():
                table = whole[:, members]
                wanted = noisy_counts(table.sum(axis=1), Fraction(self.epsilon) / 4, rng)
                if self.selection == "published":
                    user, place, weight = _moved_whole(table, wanted, members, selection, rng)
                else:
                    user, place = _resized(table, wanted)
                    place = selection.draw(members[place], rng=rng)
                    weight = np.ones(len(user), np.int64)
                found.append((user + low, members[place], weight))
        user, site, weight = (np.concatenate(column) for column in zip(*found, strict=True))
        return Profiles.counted(self.level, profiles.users, user, site, weight)

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

    def published_errors(self, profiles: Profiles, clustering: Clustering) -> FloatArray:
        """E[DE(u)] as published: the mean of d(t, t̂) / HS over the user's places T(u), in [0, 1].

            DE(u) = sum over t in T(u) of d(t, t̂) / (HS |T(u)|),

        each place counted once, whatever its weight; t̂ is drawn as `selection` says, for weights
        without noise.  Users without check-ins have 0.  Computed from the true profiles, so
        it is for the publisher's eyes only.
        """
        errors = np.zeros(profiles.users)
        rate = self.epsilon / (8 * self.level.sensitivity)
        for user in range(profiles.users):
            sites, _ = profiles.of(user)
            if not len(sites):
                continue
            own = clustering.of_site[sites]
            total = 0.0
            for site, cluster in zip(sites, own, strict=True):
                among = sites[own == cluster]
                if self.selection == "proven":
                    among = clustering.members(int(cluster))
                distances = self.level.distances[site, among]
                chance = np.exp(-rate * distances)
                total += float(chance @ distances / chance.sum())
            errors[user] = total / (self.level.sensitivity * len(sites))
        return errors

    def published_alpha(self, profiles: Profiles, clustering: Clustering, *, beta: float) -> float:
        """alpha over all users: P(DE(u) > alpha) <= beta for every user u (Zhu et al.'s utility).

        Markov's inequality, as published: the largest E[DE(u)] over beta, and never above 1.
        """
        if not 0 < beta <= 1:
            raise InvalidInput(f"beta must be in (0, 1]; got {beta!r}")
        return min(float(self.published_errors(profiles, clustering).max()) / beta, 1.0)

    def _expected_distance(self, clustering: Clustering, site: int) -> float:
        cluster = int(clustering.of_site[site])
        members = clustering.members(cluster)
        distances = self.level.distances[site, members]
        weights = np.exp(-self.epsilon * distances / (8 * self.level.sensitivity))
        return float(weights @ distances / weights.sum())


def _by_distance(level: PlaceLevel, members: NDArray[np.intp], centre: int) -> NDArray[np.intp]:
    """The places of a cluster, nearest to the centre first; ties in the level's order."""
    return np.argsort(level.distances[centre, members], kind="stable")


def _resized(table: IntArray, wanted: IntArray) -> tuple[IntArray, IntArray]:
    """The row and column of every check-in, after each row was brought to `wanted` of them."""
    kept = _kept(table, wanted)
    flat = np.repeat(np.arange(kept.size), kept.ravel())
    return flat // kept.shape[1], flat % kept.shape[1]


def _kept(table: IntArray, wanted: IntArray) -> IntArray:
    """Counts of each row brought to `wanted`; columns are sorted by distance to the centre.

    A deficit takes the farthest away; a surplus goes round the places, nearest first.
    """
    columns = table.shape[1]
    before = np.cumsum(table, axis=1) - table
    kept = np.clip(wanted[:, None] - before, 0, table)
    surplus = np.maximum(wanted - table.sum(axis=1), 0)
    rounds, rest = np.divmod(surplus, columns)
    return np.asarray(kept + rounds[:, None] + (np.arange(columns) < rest[:, None]))


def _moved_whole(
    table: IntArray,
    wanted: IntArray,
    members: NDArray[np.intp],
    selection: ExponentialSelection,
    rng: Randomness,
) -> tuple[IntArray, NDArray[np.intp], IntArray]:
    """Rows, new columns and weights: each place of a row moves as one, to a place of that row."""
    kept = _kept(table, wanted)
    row, column = np.nonzero(kept)
    counts = np.bincount(row, minlength=len(kept))
    starts = np.cumsum(counts) - counts
    chosen = selection.draw_among(members[column], column, starts[row], counts[row], rng=rng)
    return row, chosen, kept[row, column]
