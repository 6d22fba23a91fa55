"""Utility of a finite mechanism: what its noise costs.

Quality loss QL(K, prior, l) = sum_xz prior_x K_xz l(x, z).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.base import HasChannel
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.inputs import Loss, loss_matrix
from whereish.space.prior import as_prior

__all__ = ["channel_matrix", "error_per_place", "losses_of", "quality_loss"]


def channel_matrix(channel: HasChannel | ArrayLike) -> FloatArray:
    """The matrix of a channel, or a matrix that was given; rows must sum to 1."""
    matrix = channel.matrix if isinstance(channel, HasChannel) else channel
    k = np.asarray(matrix, dtype=np.float64)
    if k.ndim != 2 or k.size == 0:
        raise InvalidInput(f"a channel must be a matrix with rows and columns; got {k.shape}")
    if not np.isfinite(k).all() or (k < 0).any() or np.abs(k.sum(axis=1) - 1.0).max() > 1e-9:
        raise InvalidInput("a channel must have entries >= 0 and rows that sum to 1")
    return k


def losses_of(channel: HasChannel | ArrayLike, loss: Loss) -> FloatArray:
    """Loss of every report for every secret: a matrix, or by name for a `Channel`."""
    k = channel_matrix(channel)
    if isinstance(channel, Channel):
        return loss_matrix(loss, channel.secrets, channel.reports)
    if isinstance(loss, str) or callable(loss):
        raise InvalidInput("a plain matrix has no places: give the loss as a matrix")
    losses = np.asarray(loss, dtype=np.float64)
    if losses.shape != k.shape:
        raise InvalidInput(f"the loss must have the channel's shape {k.shape}; got {losses.shape}")
    return losses


def quality_loss(
    channel: HasChannel | ArrayLike, prior: ArrayLike | None, loss: Loss = "euclidean"
) -> float:
    """Expected loss under the prior.

    Raises
    ------
    InvalidInput
        If the prior or the loss does not fit the channel.

    Examples
    --------
    >>> import whereish as wh
    >>> sites = [[0, 0], [100, 0]]
    >>> wh.quality_loss(wh.uniform_channel(sites), [0.5, 0.5])
    50.0
    """
    per_place = error_per_place(channel, loss)
    return float(as_prior(prior, per_place.size) @ per_place)


def error_per_place(channel: HasChannel | ArrayLike, loss: Loss = "euclidean") -> FloatArray:
    """Expected loss of someone at each secret place."""
    return np.asarray((channel_matrix(channel) * losses_of(channel, loss)).sum(axis=1))
