"""What a metric means to an adversary: two characterisations, run as attacks.

A channel K keeps d if and only if no Bayesian adversary of either kind learns more than the
metric allows (Chatzikokolakis et al., PETS 2013, section 3; Bordenabe's thesis, chapter 4).
With |ln p - ln q| = max_x |ln p(x) - ln q(x)| for the distance of two beliefs:

*Hiding function.*  phi: X -> X hides each secret x behind phi(x), at most
d(phi) = max_x d(x, phi(x)) away.  For every prior, phi and report, the posterior about the
secret when K reported x and when it reported phi(x) differ by at most 2 d(phi).

*Informed adversary.*  Someone knows that the secret lies in N, of diameter d(N).  For every
prior, N and report, prior and posterior inside N differ by at most d(N).

Both bounds are best: let x, x', z attain t = max ln(K_xz / K_x'z) / d(x, x'), the factor of
:func:`whereish.audit.exact`.  The prior that believes almost surely in x' and the function
that swaps x and x' bring the first distance as close to 2 t d(x, x') as one likes; the same
prior on N = {x, x'} brings the second to t d(x, x').  And no prior does better: each term of
the logarithm is at most t d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.audit.exact import check_rows, distances_of
from whereish.errors import InvalidInput
from whereish.mechanisms.base import HasChannel
from whereish.privacy.metric import Metric
from whereish.results import JsonResult
from whereish.solvers.channels.ratios import largest_ratio
from whereish.space.points import Points
from whereish.space.prior import as_prior
from whereish.space.sites import Sites

__all__ = [
    "Allowed",
    "Attack",
    "Law",
    "Places",
    "almost_sure",
    "hiding_attack",
    "informed_attack",
    "law_and_distances",
    "sampled_attacks",
    "worst_hiding_attack",
    "worst_informed_attack",
]

Places: TypeAlias = Sites | Points | ArrayLike | None
_ROUNDING = 1e-9  # logarithms of doubles
_SURE = 2.0**-60  # weight of the secret that the worst prior nearly excludes

Law: TypeAlias = HasChannel | ArrayLike
"""A mechanism with a channel, or the channel's matrix."""
Allowed: TypeAlias = Metric | ArrayLike
"""A metric on the secrets, or the matrix of their distances."""


@dataclass(frozen=True, eq=False)
class Attack(JsonResult):
    """What one adversary learned from the most telling report.

    Attributes
    ----------
    learned
        Distance of the two beliefs, the largest over secrets and reports.
    allowed
        2 d(phi) or d(N): what the metric allows.
    secret, report
        Where it is attained.
    prior, assumed
        The adversary's prior, and phi as an array of indices or N as a list of them.
    """

    learned: float
    allowed: float
    secret: int
    report: int
    prior: FloatArray = field(repr=False)
    assumed: NDArray[np.intp] = field(repr=False)

    @property
    def factor(self) -> float:
        """Learned per allowed: above 1 the channel breaks the metric."""
        if math.isinf(self.allowed):
            return 0.0
        if self.allowed == 0:
            return 0.0 if self.learned <= _ROUNDING else math.inf
        return self.learned / self.allowed

    @property
    def succeeds(self) -> bool:
        """Whether more was learned than the metric allows (beyond rounding)."""
        return self.learned > self.allowed * (1 + _ROUNDING) + _ROUNDING


def hiding_attack(
    channel: Law, metric: Allowed, prior: ArrayLike, phi: ArrayLike, *, sites: Places = None
) -> Attack:
    """Posteriors about x when K reported x, and when it reported phi(x)."""
    k, d = law_and_distances(channel, metric, sites)
    p, hidden = as_prior(prior, len(k), of="secret"), _indices(phi, len(k), "phi")
    if hidden.shape != (len(k),):
        raise InvalidInput(f"phi must map each of {len(k)} secrets; got shape {hidden.shape}")
    allowed = 2 * float(d[np.arange(len(k)), hidden].max())
    return _compared(_posterior(p, k), _posterior(p, k[hidden]), allowed, p, hidden)


def informed_attack(
    channel: Law,
    metric: Allowed,
    prior: ArrayLike,
    neighbourhood: ArrayLike,
    *,
    sites: Places = None,
) -> Attack:
    """Prior and posterior inside the neighbourhood N that the adversary knows."""
    k, d = law_and_distances(channel, metric, sites)
    inside = np.unique(_indices(neighbourhood, len(k), "a neighbourhood"))
    if inside.size == 0:
        raise InvalidInput("a neighbourhood must have at least one secret; got none")
    p = as_prior(prior, len(k), of="secret")
    within = np.zeros_like(p)
    within[inside] = p[inside]
    if within.sum() == 0:
        raise InvalidInput("the prior must give some weight to the neighbourhood")
    within /= within.sum()
    after = _posterior(within, k)
    before = within[:, None] * (after.sum(axis=0) > 0)  # reports that cannot happen tell nothing
    allowed = float(d[np.ix_(inside, inside)].max())
    return _compared(before, after, allowed, p, inside)


def worst_hiding_attack(channel: Law, metric: Allowed, *, sites: Places = None) -> Attack:
    """The adversary under a hiding function who learns most: phi swaps the worst pair."""
    k, d = law_and_distances(channel, metric, sites)
    x, other = _worst_pair(k, d)
    swap = np.arange(len(k))
    swap[[x, other]] = other, x
    return hiding_attack(k, d, almost_sure(len(k), other, x), swap)


def worst_informed_attack(channel: Law, metric: Allowed, *, sites: Places = None) -> Attack:
    """The informed adversary who learns most: N is the worst pair."""
    k, d = law_and_distances(channel, metric, sites)
    x, other = _worst_pair(k, d)
    return informed_attack(k, d, almost_sure(len(k), other, x), [x, other])


def sampled_attacks(
    channel: Law,
    metric: Allowed,
    *,
    count: int,
    seed: int,
    sites: Places = None,
) -> tuple[Attack, Attack]:
    """The best of `count` random adversaries of each kind: under phi, and informed.

    Priors are Dirichlet, from flat to nearly certain; phi moves every secret to a random
    one of its m nearest, and N is a random secret with its m nearest, m random.
    """
    if count < 1:
        raise InvalidInput(f"count must be at least 1; got {count}")
    k, d = law_and_distances(channel, metric, sites)
    size = len(k)
    random = np.random.default_rng(seed)
    nearest = np.argsort(d, axis=1, kind="stable")
    hiding, informed = [], []
    for _ in range(count):
        concentration = 10.0 ** random.uniform(-2, 1)
        prior = random.dirichlet(np.full(size, concentration)) + 1e-12
        prior /= prior.sum()
        reach = int(random.integers(2, size + 1)) if size > 1 else 1
        phi = nearest[np.arange(size), random.integers(0, reach, size)]
        hiding.append(hiding_attack(k, d, prior, phi))
        informed.append(informed_attack(k, d, prior, nearest[random.integers(size), :reach]))
    return max(hiding, key=_factor), max(informed, key=_factor)


def _factor(attack: Attack) -> float:
    return attack.factor


def law_and_distances(
    channel: Law, metric: Allowed, sites: Places
) -> tuple[FloatArray, FloatArray]:
    """The channel's matrix with rows that sum to 1, and the distances of its secrets."""
    weights: NDArray[Any] = (
        channel.matrix if isinstance(channel, HasChannel) else np.asarray(channel)
    )
    check_rows(weights)
    d, _ = distances_of(metric, len(weights), sites)
    if d.shape != (len(weights), len(weights)):
        raise InvalidInput(
            f"distances must be between the {len(weights)} secrets of the channel; got {d.shape}"
        )
    k = weights.astype(np.float64)
    return k / k.sum(axis=1, keepdims=True), d


def _indices(of: ArrayLike, size: int, name: str) -> NDArray[np.intp]:
    index = np.asarray(of)
    if index.size and not (
        np.issubdtype(index.dtype, np.integer) and index.min() >= 0 and index.max() < size
    ):
        raise InvalidInput(f"{name} must be given by the indices 0..{size - 1} of secrets")
    return index.astype(np.intp)


def _posterior(prior: FloatArray, k: FloatArray) -> FloatArray:
    """Column z: P(x | z); zero where z cannot happen."""
    joint = prior[:, None] * k
    total = joint.sum(axis=0)
    return np.asarray(np.divide(joint, total, out=np.zeros_like(joint), where=total > 0))


def _compared(
    first: FloatArray,
    second: FloatArray,
    allowed: float,
    prior: FloatArray,
    assumed: NDArray[np.intp],
) -> Attack:
    """The largest |ln first - ln second|; a report possible under one alone tells all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(np.log(first) - np.log(second))
    apart[(first == 0) & (second == 0)] = 0.0
    secret, report = (int(i) for i in np.unravel_index(int(apart.argmax()), apart.shape))
    return Attack(float(apart.max()), allowed, secret, report, prior, assumed)


def _worst_pair(k: FloatArray, d: FloatArray) -> tuple[int, int]:
    found = largest_ratio(k, d)
    if found.triple is None:
        return 0, min(1, len(k) - 1)
    return found.triple[0], found.triple[1]


def almost_sure(size: int, likely: int, unlikely: int) -> FloatArray:
    """A prior on two secrets that nearly excludes one."""
    prior = np.zeros(size)
    prior[likely] += 1 - _SURE
    prior[unlikely] += _SURE
    return prior
