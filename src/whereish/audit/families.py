"""Whole families of hiding functions and neighbourhoods, with the worst member of each.

The characterisations of :mod:`whereish.audit.characterisations` speak of all functions phi and of
all sets N.  Fewer are enough when they are tight (Chatzikokolakis et al., PETS 2013, section 3;
Bordenabe's thesis, section 2.3): say that a family *covers* the pair (x, x') when some member has

    phi(x) = x', phi(x') = x and d(phi) = d(x, x'),   or   x, x' in N and d(N) = d(x, x').

(A function that moves x to x' and keeps x' allows 2 d(phi) for a ratio that d(phi) bounds: it lets
channels pass that keep only 2 d.  So functions cover what they swap.)  If the shortest chains of
covered pairs are as short as d, a channel that passes every member keeps d: it keeps each covered
pair, hence every sum of them.

*What a member learns.*  With r_x(z) = ln K_xz - ln K_phi(x)z, the two posteriors of x differ by

    r_x(z) - ln (sum_y p_y K_yz / sum_y p_y K_phi(y)z),

and a prior that is almost sure of y makes the second term r_y(z): over all priors the most is
max_z (max_x r_x(z) - min_y r_y(z)).  For N it is max_z max_{x, y in N} ln K_xz / K_yz.  Both are
computed exactly here, and shown by an attack whose prior nearly attains them.

Canonical families: for d_h, d_1 and their relatives on records, the functions that exchange two
values of one entry (or hide an entry behind one value) and the sets of databases that agree but
for one entry; for any finite metric, swaps and pairs; for places, balls; and maximally distant
sets, whose members are all equally far.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.audit.characterisations import (
    Allowed,
    Attack,
    Law,
    Places,
    almost_sure,
    hiding_attack,
    informed_attack,
    law_and_distances,
)
from whereish.errors import InvalidInput
from whereish.privacy.finite import SAME
from whereish.privacy.regularity import Check
from whereish.privacy.tuples import Records
from whereish.results import JsonResult

__all__ = [
    "FamilyAttack",
    "balls",
    "entry_neighbourhoods",
    "entry_replacements",
    "entry_swaps",
    "hiding_family",
    "informed_family",
    "maximally_distant_sets",
    "pairs",
    "swaps",
    "tight_functions",
    "tight_sets",
]

Member: TypeAlias = NDArray[np.intp]
_Learned: TypeAlias = tuple[float, float, int, int]


@dataclass(frozen=True, eq=False)
class FamilyAttack(JsonResult):
    """The worst member of a family.

    Attributes
    ----------
    worst
        The attack that learns most per allowed, with a prior that nearly attains it.
    learned
        The supremum over all priors for that member.
    member, count
        Its number in the family, and how many there are.
    """

    worst: Attack
    learned: float
    member: int
    count: int = field(repr=False)

    @property
    def factor(self) -> float:
        """Learned per allowed, over all priors and members: above 1 the metric is broken."""
        if self.worst.allowed == 0:
            return 0.0 if self.learned <= SAME else math.inf
        return self.learned / self.worst.allowed


def hiding_family(
    channel: Law, metric: Allowed, family: Iterable[ArrayLike], *, sites: Places = None
) -> FamilyAttack:
    """The hiding function of a family under which the most is learned, over all priors.

    >>> import numpy as np
    >>> d = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> e = np.e / (1 + np.e)
    >>> found = hiding_family([[e, 1 - e], [1 - e, e]], d, swaps(2))
    >>> round(found.factor, 9)
    1.0
    """
    k, d = law_and_distances(channel, metric, sites)
    index = np.arange(len(k))

    def learned(phi: Member) -> tuple[float, float, int, int]:
        with np.errstate(divide="ignore", invalid="ignore"):
            r = np.log(k) - np.log(k[phi])
        r[(k == 0) & (k[phi] == 0)] = 0.0
        high, low = r.argmax(axis=0), r.argmin(axis=0)
        gap = r.max(axis=0) - r.min(axis=0)
        z = int(gap.argmax())
        return float(gap[z]), 2 * float(d[index, phi].max()), int(high[z]), int(low[z])

    found, x, y, number, count, phi = _worst(family, learned, len(k), full=True)
    attack = hiding_attack(k, d, almost_sure(len(k), y, x), phi)
    return FamilyAttack(attack, found, number, count)


def informed_family(
    channel: Law, metric: Allowed, family: Iterable[ArrayLike], *, sites: Places = None
) -> FamilyAttack:
    """The neighbourhood of a family inside which the most is learned, over all priors."""
    k, d = law_and_distances(channel, metric, sites)

    def learned(inside: Member) -> tuple[float, float, int, int]:
        with np.errstate(divide="ignore"):
            logs = np.log(k[inside])
        possible = np.isfinite(logs).any(axis=0)
        if not possible.any():
            return 0.0, 0.0, int(inside[0]), int(inside[0])
        gap = logs.max(axis=0)[possible] - logs.min(axis=0)[possible]
        z = int(np.flatnonzero(possible)[gap.argmax()])
        high, low = int(inside[logs[:, z].argmax()]), int(inside[logs[:, z].argmin()])
        return float(gap.max()), float(d[np.ix_(inside, inside)].max()), low, high

    found, x, y, number, count, inside = _worst(family, learned, len(k), full=False)
    attack = informed_attack(k, d, almost_sure(len(k), y, x), inside)
    return FamilyAttack(attack, found, number, count)


def _worst(
    family: Iterable[ArrayLike], learned: Callable[[Member], _Learned], size: int, *, full: bool
) -> tuple[float, int, int, int, int, Member]:
    """What the worst member learns, the two secrets of its prior, its number, their count."""
    best: tuple[float, int, int, int, Member] | None = None
    ratio, count = -1.0, 0
    for member in family:
        index = np.asarray(member, np.intp)
        wrong = index.shape != (size,) if full else index.ndim != 1 or not index.size
        if wrong or index.min() < 0 or index.max() >= size:
            raise InvalidInput(f"a member of a family must be of the indices 0..{size - 1}")
        got, allowed, x, y = learned(index)
        share = got / allowed if allowed > 0 else (math.inf if got > SAME else 0.0)
        if share > ratio:
            ratio, best = share, (got, x, y, count, index)
        count += 1
    if best is None:
        raise InvalidInput("a family must have at least one member; got none")
    got, x, y, number, index = best
    return got, x, y, number, count, index


# -- do they characterise the metric? -----------------------------------------------


def tight_functions(distances: ArrayLike, family: Iterable[ArrayLike]) -> Check:
    """Whether a family of hiding functions characterises d; else a pair that it leaves free."""
    d = np.asarray(distances, float)
    covered = np.full(d.shape, np.inf)
    index = np.arange(len(d))
    for member in family:
        phi = np.asarray(member, np.intp)
        moved = d[index, phi]
        tight = (moved >= moved.max() * (1 - SAME)) & (phi[phi] == index)
        covered[index[tight], phi[tight]] = moved[tight]
    return _chained(d, np.minimum(covered, covered.T))


def tight_sets(distances: ArrayLike, family: Iterable[ArrayLike]) -> Check:
    """Whether a family of neighbourhoods characterises d; else a pair that it leaves free."""
    d = np.asarray(distances, float)
    covered = np.full(d.shape, np.inf)
    for member in family:
        inside = np.ix_(np.asarray(member, np.intp), np.asarray(member, np.intp))
        tight = d[inside] >= d[inside].max() * (1 - SAME)
        covered[inside] = np.where(tight, np.minimum(covered[inside], d[inside]), covered[inside])
    return _chained(d, covered)


def _chained(d: FloatArray, covered: FloatArray) -> Check:
    chains = covered.copy()
    np.fill_diagonal(chains, 0.0)
    for k in range(len(d)):
        chains = np.minimum(chains, chains[:, k, None] + chains[None, k])
    free = np.argwhere((chains > d * (1 + SAME)) & np.isfinite(d))
    return Check(True) if not len(free) else Check(False, (float(free[0][0]), float(free[0][1])))


# -- canonical families -----------------------------------------------------------------


def swaps(size: int) -> Iterator[Member]:
    """Functions that swap two secrets: tight for every metric."""
    for x, y in itertools.combinations(range(size), 2):
        phi = np.arange(size)
        phi[[x, y]] = y, x
        yield phi


def pairs(size: int) -> Iterator[Member]:
    """Sets of two secrets: tight for every metric."""
    for x, y in itertools.combinations(range(size), 2):
        yield np.array([x, y], np.intp)


def _numbered(records: Records) -> tuple[int, IntArray]:
    """How many values an entry may have, and the numbers of all databases."""
    count = len(records.entries(most=2048))
    return count, np.arange(count**records.size)


def entry_replacements(records: Records) -> Iterator[Member]:
    """Replace entry i by value v, in every database: not tight, see the module.

    Databases are numbered as `itertools.product` lists the universe's indices.
    """
    count, index = _numbered(records)
    for i, v in itertools.product(range(records.size), range(count)):
        weight = count ** (records.size - 1 - i)
        yield (index - (index // weight % count) * weight + v * weight).astype(np.intp)


def entry_swaps(records: Records) -> Iterator[Member]:
    """Phi of d_h and its relatives: exchange values v and w of entry i, in every database."""
    count, index = _numbered(records)
    for i, (v, w) in itertools.product(
        range(records.size), itertools.combinations(range(count), 2)
    ):
        weight = count ** (records.size - 1 - i)
        digit = index // weight % count
        moved = np.where(digit == v, w - v, np.where(digit == w, v - w, 0))
        yield (index + weight * moved).astype(np.intp)


def entry_neighbourhoods(records: Records) -> Iterator[Member]:
    """N of d_h and its relatives: the databases that agree in all entries but one."""
    count, index = _numbered(records)
    for i in range(records.size):
        weight = count ** (records.size - 1 - i)
        for start in index[index // weight % count == 0]:
            yield (start + weight * np.arange(count)).astype(np.intp)


def balls(distances: ArrayLike, radius: float) -> Iterator[Member]:
    """The secrets within `radius` of each secret: what someone knows who knows the district."""
    d = np.asarray(distances, float)
    if not radius >= 0:
        raise InvalidInput(f"the radius of balls must be a number >= 0; got {radius!r}")
    for row in d:
        yield np.flatnonzero(row <= radius)


def maximally_distant_sets(distances: ArrayLike, *, most: int = 100_000) -> Iterator[Member]:
    """Sets whose members are all equally far apart and to which none can be added.

    For d_h the sets of :func:`entry_neighbourhoods` are among them.
    """
    d = np.asarray(distances, float)
    found = 0
    for length in np.unique(d[np.isfinite(d) & (d > 0)]):
        joined = np.isclose(d, length, rtol=SAME, atol=0.0)
        for clique in _cliques(joined, [], list(range(len(d))), []):
            if len(clique) > 1:
                found += 1
                if found > most:
                    raise InvalidInput(f"there are more than {most} maximally distant sets")
                yield np.array(sorted(clique), np.intp)


def _cliques(
    joined: NDArray[np.bool_], chosen: list[int], open_: list[int], done: list[int]
) -> Iterator[list[int]]:
    """Maximal cliques (Bron and Kerbosch 1973)."""
    if not open_ and not done:
        yield chosen
        return
    pivot = max(open_ + done, key=lambda v: int(joined[v, open_].sum())) if open_ else None
    for v in [v for v in open_ if pivot is None or not joined[pivot, v]]:
        yield from _cliques(
            joined,
            [*chosen, v],
            [u for u in open_ if joined[v, u]],
            [u for u in done if joined[v, u]],
        )
        open_ = [u for u in open_ if u != v]
        done = [*done, v]
