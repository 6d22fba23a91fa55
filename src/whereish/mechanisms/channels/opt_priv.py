"""Shokri's optimal channel: the most adversary error within a bound on quality loss.

The Stackelberg game of Shokri et al. (CCS 2012) yields the channel against which the
best-informed adversary errs most.  It depends on the prior being right, and it makes
no promise of metric privacy: its guarantee is only what its own rows happen to keep,
infinite between places with different supports.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from whereish.errors import InvalidInput
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.inputs import (
    Loss,
    PlacesLike,
    as_secrets,
    check_entries,
    loss_matrix,
    refuse_degrees,
)
from whereish.solvers.optimal.opt_priv import solve_opt_priv
from whereish.space.prior import as_prior
from whereish.units import Length

__all__ = ["opt_priv_channel"]


def opt_priv_channel(
    sites: PlacesLike,
    prior: ArrayLike | None,
    *,
    most_loss: float | Length | str,
    loss: Loss = "euclidean",
    adversary: Loss = "euclidean",
) -> Channel:
    """The channel of largest adversary error with expected loss at most `most_loss`.

    Contract: keeps the log-ratios of its own rows (``Finite``), which no epsilon bounds.

    Parameters
    ----------
    most_loss
        A length such as "800 m", or a number in the units of `loss`.
    adversary
        The distance d_A by which the adversary's guesses are judged.

    Raises
    ------
    InvalidInput
        If no channel loses as little as `most_loss`.

    Examples
    --------
    >>> import whereish as wh
    >>> sites = [[0, 0], [100, 0], [200, 0]]
    >>> channel = wh.opt_priv_channel(sites, None, most_loss="50 m")
    >>> round(wh.quality_loss(channel, None), 3)
    50.0
    """
    places = as_secrets(sites)
    check_entries(len(places), len(places))
    p = as_prior(prior, len(places))
    bound = most_loss if isinstance(most_loss, int | float) else Length.of(most_loss).m
    quality = loss_matrix(loss, places, places)
    least = float((p * quality.min(axis=1)).sum())
    if not bound >= least:
        raise InvalidInput(f"most_loss must be at least {least:g}; got {bound:g}")
    if loss == "euclidean" and bound > 0:
        # A bound beyond the largest loss bounds nothing: degrees were taken for metres.
        refuse_degrees(sites, places, float(quality.max() / bound))
    matrix = solve_opt_priv(
        p, quality, np.ascontiguousarray(loss_matrix(adversary, places, places).T), float(bound)
    )
    used = np.flatnonzero(matrix.max(axis=0) > 0)
    return Channel.of_matrix(matrix[:, used], places, places.points[used])
