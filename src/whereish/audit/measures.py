"""The usual measures of location privacy of a finite mechanism, in one table.

The measures are those of Cai's slides and of Bordenabe's thesis, chapter 3: expected distance
error of the best guess (Shokri et al. 2011), how often the guess is right before and after the
report, k-anonymity (the number of places that a report is consistent with: the cells of a cloaking
zone, the true place among dummies), and the region of uncertainty.  None is a guarantee: all depend
on the prior, and the guarantee is in the channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from whereish.audit.adversary import best_attack, identification, uncertain_cells
from whereish.audit.utility import channel_matrix, losses_of
from whereish.mechanisms.base import HasChannel
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.inputs import Loss
from whereish.results import JsonResult
from whereish.space.prior import as_prior

__all__ = ["PrivacyMeasures", "privacy_measures"]


@dataclass(frozen=True)
class PrivacyMeasures(JsonResult):
    """What an adversary with a prior makes of a channel's reports.

    Attributes
    ----------
    quality_loss
        Expected loss of the user; None for a plain matrix without a loss.
    distance_error
        Expected distance of the adversary's best guess from the secret.
    identified_before, identified_after
        How often his likeliest place is the right one.
    identification_ratio, worst_identification_ratio
        before / after, per report: mean and least.  Larger is better.
    leakage
        E[after] / before.
    least_anonymity, mean_anonymity
        k: places with some prior that a report is consistent with, least and mean over reports.
    uncertainty_area, least_uncertainty_area
        Area of the smallest set that holds the secret with posterior probability `confidence`.
    confidence
        Of the region of uncertainty.
    """

    quality_loss: float | None
    distance_error: float
    identified_before: float
    identified_after: float
    identification_ratio: float
    worst_identification_ratio: float
    leakage: float
    least_anonymity: int
    mean_anonymity: float
    uncertainty_area: float
    least_uncertainty_area: float
    confidence: float

    def __repr__(self) -> str:
        named = f"identified {self.identified_before:.3g} -> {self.identified_after:.3g}"
        error, k = f"distance error {self.distance_error:.6g}", f"k >= {self.least_anonymity}"
        return f"PrivacyMeasures({error}, {named}, {k})"

    def __str__(self) -> str:
        rows = [
            ("quality loss", self.quality_loss),
            ("expected distance error", self.distance_error),
            ("identified before", self.identified_before),
            ("identified after", self.identified_after),
            ("before / after, mean", self.identification_ratio),
            ("before / after, worst report", self.worst_identification_ratio),
            ("Bayes leakage", self.leakage),
            ("k-anonymity, least", self.least_anonymity),
            ("k-anonymity, mean", self.mean_anonymity),
            (f"area of {self.confidence:.0%} uncertainty, mean", self.uncertainty_area),
            (f"area of {self.confidence:.0%} uncertainty, least", self.least_uncertainty_area),
        ]
        return "\n".join(
            f"{name:<36} {'-' if value is None else format(value, '.6g')}" for name, value in rows
        )


def privacy_measures(
    channel: HasChannel | ArrayLike,
    prior: ArrayLike | None,
    *,
    distances: Loss = "euclidean",
    loss: Loss | None = None,
    cell_area: float = 1.0,
    confidence: float = 0.95,
) -> PrivacyMeasures:
    """All measures of a channel under a prior.

    Parameters
    ----------
    channel
        A channel, or a matrix of secrets by reports (then `distances` must be a matrix).
    distances
        d_A, by which the adversary's error is measured.
    loss
        What a report costs the user; for a `Channel` the same as `distances` by default.
    cell_area
        The area that a secret stands for.

    Raises
    ------
    InvalidInput
        If the prior, the distances or the loss do not fit the channel.

    Examples
    --------
    >>> import whereish as wh
    >>> sites = [[0, 0], [100, 0], [200, 0], [300, 0]]
    >>> zones = wh.cloaking_channel(sites, [0, 0, 1, 1])
    >>> found = wh.privacy_measures(zones, None)
    >>> found.least_anonymity, found.identified_after, found.distance_error
    (2, 0.5, 50.0)
    """
    k = channel_matrix(channel)
    p = as_prior(prior, len(k))
    named = identification(k, p)
    cost = loss if loss is not None else distances if isinstance(channel, Channel) else None
    quality = None
    if cost is not None:
        quality = float(p @ (k * losses_of(channel, cost)).sum(axis=1))
    chances = p @ k
    comes = chances > 0
    consistent = ((p[:, None] * k) > 0).sum(axis=0)[comes]
    cells = uncertain_cells(k, p, confidence)[comes]
    weights = chances[comes] / chances[comes].sum()
    return PrivacyMeasures(
        quality_loss=quality,
        distance_error=best_attack(channel, p, distances).error,
        identified_before=named.before,
        identified_after=named.after,
        identification_ratio=named.ratio,
        worst_identification_ratio=named.worst,
        leakage=named.leakage,
        least_anonymity=int(consistent.min()),
        mean_anonymity=float(weights @ consistent),
        uncertainty_area=float(cell_area * (weights @ cells)),
        least_uncertainty_area=float(cell_area * np.min(cells)),
        confidence=float(confidence),
    )
