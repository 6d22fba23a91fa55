"""The exponential channel: reports by exp(-d/2), normalised.

K_xz = exp(-d(x, z)/2) / sum_z' exp(-d(x, z')/2).  The numerator changes by at most
exp(d(x, x')/2) between secrets, and so does the normaliser, so the channel keeps d
(McSherry and Talwar, FOCS 2007, with d as the utility).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.inputs import PlacesLike, kept_on
from whereish.privacy.metric import Metric
from whereish.units import Epsilon

__all__ = ["exponential_channel"]


def exponential_channel(
    sites: PlacesLike, epsilon: Epsilon | str | None, *, metric: Metric | ArrayLike | None = None
) -> Channel:
    """The exponential mechanism on `sites`, which keeps eps * d.

    Contract: keeps ``eps * d`` between the sites, certified on the integer weights.

    Raises
    ------
    InvalidInput
    NotPrivate
        If epsilon, the metric and the sites do not fit each other; if the integer weights
        fail their certificate.

    >>> import whereish as wh
    >>> channel = wh.exponential_channel([[0, 0], [100, 0]], "ln(2)/100 m")
    >>> channel.matrix.round(3).tolist()
    [[0.586, 0.414], [0.414, 0.586]]
    """
    places, kept = kept_on(sites, epsilon, metric)
    numerators = np.exp(-kept.distances / 2)
    matrix = numerators / numerators.sum(axis=1, keepdims=True)
    return Channel.certified(
        matrix, places, places, kept, source="exponential mechanism at half the metric"
    )
