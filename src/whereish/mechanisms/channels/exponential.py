"""The exponential channel: reports by exp(-d/2), normalised.

K_xz = exp(-d(x, z)/2) / sum_z' exp(-d(x, z')/2).  The numerator changes by at most
exp(d(x, x')/2) between secrets, and so does the normaliser, so the channel keeps d
(McSherry and Talwar, FOCS 2007, with d as the utility).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.channels.calibrated import Target
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.inputs import Loss, PlacesLike, kept_on
from whereish.privacy.metric import Metric
from whereish.units import Epsilon, Length

__all__ = ["exponential_channel"]


def exponential_channel(
    sites: PlacesLike,
    epsilon: Epsilon | str | None = None,
    *,
    metric: Metric | ArrayLike | None = None,
    quality_loss: float | None = None,
    accuracy: tuple[float, Length | str] | None = None,
    prior: ArrayLike | None = None,
    loss: Loss = "euclidean",
) -> Channel:
    """The exponential mechanism on `sites`, which keeps eps * d.

    Contract: keeps ``eps * d`` between the sites, certified on the integer weights.

    Parameters
    ----------
    epsilon, metric
        What is kept; without epsilon the metric is in nats.
    quality_loss, accuracy
        Instead of epsilon: the expected `loss` under `prior`, or (c, radius) for a report within
        `radius` with probability c.  Epsilon is then found to 1e-9 of it.

    Raises
    ------
    InvalidInput
        If epsilon, the metric and the sites do not fit each other, or no epsilon gives the loss.
    NotPrivate
        If the integer weights fail their certificate.

    Examples
    --------
    >>> import whereish as wh
    >>> sites = [[0, 0], [100, 0]]
    >>> channel = wh.exponential_channel(sites, "ln(2)/100 m")
    >>> channel.matrix.round(3).tolist()
    [[0.586, 0.414], [0.414, 0.586]]
    >>> same_loss = wh.exponential_channel(sites, quality_loss=25.0)
    >>> round(wh.quality_loss(same_loss, None), 6)
    25.0
    """
    if quality_loss is not None or accuracy is not None:
        if epsilon is not None:
            raise InvalidInput("give one of epsilon, quality_loss and accuracy")
        places, unit = kept_on(sites, Epsilon.per_metre(1.0), metric)
        target = Target.of(
            places,
            places,
            prior=prior,
            loss=loss,
            quality_loss=quality_loss,
            accuracy=accuracy,
        )
        typical = float(unit.distances[np.isfinite(unit.distances)].mean()) or 1.0
        epsilon = target.epsilon(lambda eps: _rows(eps * unit.distances), 1 / typical)
    places, kept = kept_on(sites, epsilon, metric)
    return Channel.certified(
        _rows(kept.distances),
        places,
        places,
        kept,
        source="exponential mechanism at half the metric",
    )


def _rows(distances: FloatArray) -> FloatArray:
    numerators = np.exp(-distances / 2)
    return np.asarray(numerators / numerators.sum(axis=1, keepdims=True))
