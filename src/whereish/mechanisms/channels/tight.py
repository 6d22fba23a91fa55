"""The tight-constraints channel: K_xz = h_z e^{-d(x,z)} with rows that sum to one.

Every column meets its own secret's constraints with equality (Chatzikokolakis, Andrés,
Bordenabe and Palamidessi, PETS 2013).  The weights solve M h = 1 with M = e^{-d}; where
some are negative, no such channel exists.  Remapped by Bayes' rule it is within a few
percent of the optimum, for one linear solve.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from whereish.errors import InvalidInput
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.inputs import PlacesLike, kept_on
from whereish.privacy.metric import Metric
from whereish.solvers.optimal.repair import tight_matrix
from whereish.units import Epsilon

__all__ = ["tight_channel"]


def tight_channel(
    sites: PlacesLike, epsilon: Epsilon | str | None, *, metric: Metric | ArrayLike | None = None
) -> Channel:
    """The tight-constraints mechanism on `sites`, which keeps eps * d.

    Contract: keeps ``eps * d`` between the sites, up to the rounding to integer weights tightly.

    Raises
    ------
    InvalidInput
        If no such channel exists at this level: sites too close, or listed twice.
    NotPrivate
        If the integer weights fail their certificate.

    Examples
    --------
    >>> import whereish as wh
    >>> channel = wh.tight_channel([[0, 0], [100, 0]], "ln(2)/100 m")
    >>> channel.matrix.round(3).tolist()
    [[0.667, 0.333], [0.333, 0.667]]
    """
    places, kept = kept_on(sites, epsilon, metric)
    matrix = tight_matrix(np.exp(-kept.distances))
    if matrix is None:
        raise InvalidInput(
            "a tight channel must have weights >= 0, which these sites do not allow at this level"
            " (some are listed twice, or too close): take optimal_channel or exponential_channel"
        )
    return Channel.certified(
        matrix / matrix.sum(axis=1, keepdims=True),
        places,
        places,
        kept,
        source="tight-constraints mechanism (Chatzikokolakis et al. 2013)",
    )
