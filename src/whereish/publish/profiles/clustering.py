"""Private location clustering: k-means over check-ins, seen through noise.

The k-means objective of centres c_1..c_k over check-ins t_i is

    G(c) = sum_i min_l d(t_i, c_l),

and one check-in more or less changes it by at most HS, the level's largest distance.  So
G + Lap(2 p HS / eps) is (eps / 2p)-differentially private, and p iterations spend eps/2
(Zhu et al., Knowledge and Information Systems 2016).  That is the published step:

``published``
    In each iteration G is seen through this noise, then Lloyd's update moves each centre
    to the mean of the check-ins nearest to it; the centres with the least noisy G win.
    The means are functions of the data that no noise hides, and the published proof, which
    charges for the objective only, is silent on them.  Nothing is proven for this one.
``proven``
    An iteration needs of the objective only the number of check-ins in each cluster and
    the sum of their offsets from its centre.  These are what is perturbed: one check-in
    changes one count by 1 and one sum by at most the level's d_1 diameter B, so
    Lap(1/e) on the counts with e a quarter of eps/(2p), and Lap(B/e') on each coordinate
    of the sums with e' the other three quarters, spend eps/(2p) (Blum, Dwork, McSherry,
    Nissim, PODS 2005; clusters are disjoint, so all are covered at once).  What follows is
    post-processing: a centre moves by noisy sum over noisy count, and one that seems to
    have next to nobody goes to the most crowded cluster.

Both begin from the same centres, spread over the level's places by farthest-point
choice: a function of the public level alone.  Initial centres taken from the data, as
k-means usually does, would publish somebody's location as it is.

Objectives, counts and sums are whole numbers (of metres), and noise is drawn on their own
lattice without rounding error (:class:`~whereish.Laplace1D`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.axis_laplace import Laplace1D
from whereish.publish.profiles.levels import PlaceLevel
from whereish.randomness import Randomness
from whereish.units import Epsilon, Length

__all__ = ["Clustering", "Update", "noisy_integers", "private_clusters", "spread"]

Update: TypeAlias = Literal["proven", "published"]

_COUNTS_SHARE = Fraction(1, 4)
_LARGEST_VALUE = 2**45


@dataclass(frozen=True, eq=False)
class Clustering:
    """Centres (places of the level), the cluster of every place, and what was spent."""

    centres: IntArray
    of_site: NDArray[np.intp] = field(repr=False)
    looks: tuple[Fraction, ...]

    def members(self, cluster: int) -> NDArray[np.intp]:
        """The places of one cluster."""
        return np.flatnonzero(self.of_site == cluster)


def private_clusters(
    level: PlaceLevel,
    weights: IntArray,
    *,
    clusters: int,
    iterations: int,
    epsilon: Fraction,
    update: Update,
    rng: Randomness,
) -> Clustering:
    """Cluster the places of `level` for check-ins of these `weights`, spending `epsilon`."""
    if not 1 <= clusters <= len(level):
        raise InvalidInput(
            f"clusters must be between 1 and the level's {len(level)} places; got {clusters}"
        )
    if iterations < 1:
        raise InvalidInput(f"iterations must be at least 1; got {iterations}")
    # Sums of distances then fit into 64 bits; clamping brings no two tables farther apart.
    weights = np.minimum(weights, 2**62 // (len(level) * max(level.diameter_d1_m, 1)))
    look = epsilon / iterations
    start = spread(level.distances, clusters)
    if update == "proven":
        centres = start
        for _ in range(iterations):
            centres = _noisy_update(level, weights, centres, look, rng)
    else:
        centres = _least_noisy_objective(level, weights, start, iterations, look, rng)
    return Clustering(centres, _nearest(level, centres), (look,) * iterations)


def spread(distances: IntArray, count: int) -> IntArray:
    """`count` rows far from each other: the middle one, then always the farthest."""
    chosen = [int(np.argmin(distances.max(axis=1)))]
    gap = distances[chosen[0]].copy()
    while len(chosen) < count:
        chosen.append(int(np.argmax(gap)))
        gap = np.minimum(gap, distances[chosen[-1]])
    return np.array(chosen, dtype=np.int64)


def _nearest(level: PlaceLevel, centres: IntArray) -> NDArray[np.intp]:
    return np.asarray(np.argmin(level.distances[:, centres], axis=1))


def _noisy_update(
    level: PlaceLevel, weights: IntArray, centres: IntArray, look: Fraction, rng: Randomness
) -> IntArray:
    """One private iteration of Lloyd's algorithm, spending `look`."""
    grid = level.grid_m
    cluster = _nearest(level, centres)
    counts = np.zeros(len(centres), np.int64)
    sums = np.zeros((len(centres), 2), np.int64)
    np.add.at(counts, cluster, weights)
    np.add.at(sums, cluster, weights[:, None] * (grid - grid[centres[cluster]]))
    crowd = noisy_integers(counts, 1, look * _COUNTS_SHARE, rng)
    moved = noisy_integers(sums, level.diameter_d1_m, look * (1 - _COUNTS_SHARE), rng)
    # From here on, post-processing: only public and noisy numbers are used.
    goal = grid[centres] + moved / np.maximum(crowd, 1)[:, None]
    goal = np.clip(goal, grid.min(axis=0), grid.max(axis=0))
    goal[crowd < 1] = grid[centres][crowd < 1]
    return _resettled(level, _snapped(level, goal), crowd)


def _snapped(level: PlaceLevel, goal: FloatArray) -> IntArray:
    """The place of the level nearest to each goal (in grid coordinates)."""
    apart = ((level.grid_m[None] - goal[:, None]) ** 2).sum(axis=2)
    return np.asarray(np.argmin(apart, axis=1), dtype=np.int64)


def _resettled(level: PlaceLevel, centres: IntArray, crowd: IntArray) -> IntArray:
    """Send centres that stand alone, or double, to where the noisy crowd is.

    The most crowded cluster is halved: the idle centre takes the place of that cluster
    that is farthest from its centre among the nearer half of its places.
    """
    centres, share = centres.copy(), np.maximum(crowd, 0).astype(np.float64)
    few = share.sum() / (8 * len(centres))
    for idle in np.argsort(share, kind="stable"):
        twin = bool((np.delete(centres, idle) == centres[idle]).any())
        if share[idle] > few and not twin:
            continue
        busy = int(np.argmax(share))
        if busy == idle:
            continue
        places = np.flatnonzero(_nearest(level, centres) == busy)
        near = places[np.argsort(level.distances[centres[busy], places], kind="stable")]
        free = near[~np.isin(near, centres)]
        if not len(free):
            share[busy] = 0.0
            continue
        centres[idle] = free[(len(free) - 1) // 2]
        share[busy] /= 2
        share[idle] = share[busy]
    return np.unique(centres)


def _least_noisy_objective(
    level: PlaceLevel,
    weights: IntArray,
    centres: IntArray,
    iterations: int,
    look: Fraction,
    rng: Randomness,
) -> IntArray:
    """The published iteration: noisy objective, then means of the true check-ins."""
    best, least = centres, None
    for _ in range(iterations):
        objective = weights @ level.distances[:, centres].min(axis=1)
        noisy = int(noisy_integers(np.array([objective]), level.sensitivity, look, rng)[0])
        if least is None or noisy < least:
            best, least = centres, noisy
        centres = _means(level, weights, centres)
    return best


def _means(level: PlaceLevel, weights: IntArray, centres: IntArray) -> IntArray:
    cluster = _nearest(level, centres)
    goal = level.grid_m[centres].astype(np.float64)
    for index in range(len(centres)):
        mass = np.where(cluster == index, weights, 0)
        if mass.sum() > 0:
            goal[index] = (mass @ level.grid_m) / mass.sum()
    return np.unique(_snapped(level, goal))


def noisy_integers(
    values: IntArray, sensitivity: int, budget: Fraction, rng: Randomness
) -> IntArray:
    """Whole numbers plus Lap(sensitivity / budget), rounded to whole numbers.

    Positions are counted in units of 2^shift >= sensitivity, so that the level per unit is
    of the size of `budget`; powers of two change the exponent and nothing else.  The level
    is rounded down, so that no more than `budget` is spent.  Values beyond 2^45 are clamped,
    which brings no two farther apart: a refusal would tell of them without noise.
    """
    values = np.clip(values, -_LARGEST_VALUE, _LARGEST_VALUE)
    shift = (sensitivity - 1).bit_length()
    level = rounded_down(budget * 2**shift / sensitivity)
    noise = Laplace1D(Epsilon(level), resolution=Length(2.0**-shift))
    positions = values.astype(np.float64).reshape(-1, 1) * 2.0**-shift
    return np.asarray(noise.cells(positions, rng=rng).reshape(values.shape))


def rounded_down(amount: Fraction) -> float:
    """The largest double that is at most `amount`."""
    value = float(amount)
    return value if Fraction(value) <= amount else math.nextafter(value, 0.0)
