"""What a Bayesian adversary learns from the reports of a finite mechanism.

He knows the channel K and a prior pi over secrets.  After report z the posterior is
pi_x K_xz / sum_x' pi_x' K_x'z, and his best answer to a distance d_A is the guess of
least posterior expected d_A; its mean over reports is the adversary's error
(Shokri et al., S&P 2011; AdvError in Bordenabe's thesis, section 6.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.audit.utility import channel_matrix
from whereish.errors import InvalidInput
from whereish.mechanisms.base import HasChannel
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.inputs import Loss, loss_matrix
from whereish.results import JsonResult
from whereish.space.prior import as_prior

__all__ = [
    "BayesAttack",
    "Identification",
    "adversary_error",
    "best_attack",
    "identification",
    "posterior",
    "posterior_after",
    "uncertain_cells",
    "uncertainty_area",
]


@dataclass(frozen=True)
class BayesAttack(JsonResult):
    """The adversary's optimal remap H and what it achieves.

    Attributes
    ----------
    error : float
        Expected distance of his guess from the secret.
    guesses : (reports,) array
        H: the index of his guess for each report.
    """

    error: float
    guesses: NDArray[np.intp] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Identification(JsonResult):
    """How often the adversary names the secret, before and after the report.

    Attributes
    ----------
    before, after
        The probability that his likeliest secret is the right one: of the prior, and expected
        over reports.
    ratios, chances
        before / after for each report z that may come, with its own posterior, and P(z).  As
        in Cai's slides on location privacy: 1 where the report tells nothing, and less the more
        it tells, so larger is better.

    >>> import whereish as wh
    >>> found = wh.audit.identification([[0.5, 0.5, 0], [0, 0.5, 0.5]], [0.5, 0.5])
    >>> found.ratios.tolist()
    [0.5, 1.0, 0.5]
    >>> found.worst, found.ratio, found.leakage
    (0.5, 0.75, 1.5)
    """

    before: float
    after: float
    ratios: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    chances: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)

    @property
    def ratio(self) -> float:
        """The mean of before / after over reports; before / after where these are not known."""
        if not self.ratios.size:
            return self.before / self.after
        return float(self.chances @ self.ratios)

    @property
    def worst(self) -> float:
        """The least before / after of a report that may come."""
        return float(self.ratios.min()) if self.ratios.size else self.before / self.after

    @property
    def leakage(self) -> float:
        """E[after] / before: the multiplicative Bayes leakage."""
        return self.after / self.before


def best_attack(
    channel: HasChannel | ArrayLike,
    prior: ArrayLike | None,
    distances: Loss = "euclidean",
) -> BayesAttack:
    """The guess of least posterior expected distance for each report.

    `distances` is d_A: a matrix of secrets by guesses, or a loss by name for a `Channel`,
    whose guesses are its secrets.
    """
    k = channel_matrix(channel)
    if isinstance(channel, Channel):
        d = loss_matrix(distances, channel.secrets, channel.secrets)
    elif isinstance(distances, str) or callable(distances):
        raise InvalidInput("a plain matrix has no places: give the distances as a matrix")
    else:
        d = np.asarray(distances, dtype=np.float64)
    if d.ndim != 2 or d.shape[0] != len(k):
        raise InvalidInput(f"distances must have a row for each of {len(k)} secrets; got {d.shape}")
    costs = d.T @ (as_prior(prior, len(k))[:, None] * k)
    return BayesAttack(float(costs.min(axis=0).sum()), costs.argmin(axis=0))


def adversary_error(
    channel: HasChannel | ArrayLike,
    prior: ArrayLike | None,
    distances: Loss = "euclidean",
) -> float:
    """Expected error of the best attack; at most the quality loss by the same distance.

    Raises
    ------
    InvalidInput
        If the prior or the distances do not fit the channel.

    >>> import whereish as wh
    >>> sites = [[0, 0], [100, 0]]
    >>> wh.adversary_error(wh.identity_channel(sites), None)
    0.0
    >>> wh.adversary_error(wh.uniform_channel(sites), None)
    50.0
    """
    return best_attack(channel, prior, distances).error


def identification(channel: HasChannel | ArrayLike, prior: ArrayLike | None) -> Identification:
    """Probability that the likeliest secret is the right one, before and after a report."""
    k = channel_matrix(channel)
    p = as_prior(prior, len(k))
    joint, chances = p[:, None] * k, p @ k
    comes = chances > 0
    best, before = joint.max(axis=0), float(p.max())
    ratios = before * chances[comes] / best[comes]
    return Identification(before, float(best.sum()), ratios, chances[comes] / chances.sum())


def posterior(channel: HasChannel | ArrayLike, prior: ArrayLike | None) -> FloatArray:
    """Column z: the distribution of the secret after report z; the prior where z never comes."""
    k = channel_matrix(channel)
    p = as_prior(prior, len(k))
    joint = p[:, None] * k
    total = joint.sum(axis=0)
    return np.where(total > 0, joint / np.where(total > 0, total, 1.0), p[:, None])


def posterior_after(
    channel: HasChannel | ArrayLike, prior: ArrayLike | None, reports: Sequence[int]
) -> FloatArray:
    """The distribution of one secret after several independent reports of it."""
    k = channel_matrix(channel)
    seen = np.asarray(reports, dtype=np.intp)
    if seen.size and not (seen.min() >= 0 and seen.max() < k.shape[1]):
        raise InvalidInput(f"reports must be indices of the channel's {k.shape[1]} reports")
    with np.errstate(divide="ignore"):
        logs = np.log(as_prior(prior, len(k))) + np.log(k[:, seen]).sum(axis=1)
    if not np.isfinite(logs).any():
        raise InvalidInput("no secret can have given all of these reports")
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def uncertainty_area(
    channel: HasChannel | ArrayLike,
    prior: ArrayLike | None,
    *,
    cell_area: float = 1.0,
    confidence: float = 0.95,
) -> float:
    """Expected area of the smallest set that holds the secret with this posterior probability.

    `cell_area` is the area that a secret stands for.
    """
    k = channel_matrix(channel)
    chance = as_prior(prior, len(k)) @ k
    return float(cell_area * (chance @ uncertain_cells(k, prior, confidence)))


def uncertain_cells(
    channel: HasChannel | ArrayLike, prior: ArrayLike | None, confidence: float
) -> NDArray[np.intp]:
    """For each report, the fewest secrets that hold the true one with this probability."""
    if not 0 < confidence <= 1:
        raise InvalidInput(f"confidence must be in (0, 1]; got {confidence}")
    ranked = -np.sort(-posterior(channel, prior), axis=0)
    held = np.cumsum(ranked, axis=0) >= confidence * (1 - 1e-12)
    return np.asarray(held.argmax(axis=0) + 1)
