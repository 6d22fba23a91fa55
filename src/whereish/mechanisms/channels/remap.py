"""Remaps: deterministic maps of reports, which keep every promise.

The Bayesian remap moves each report to the place of least posterior expected loss
under a prior (Chatzikokolakis, ElSalamouny, Palamidessi, PETS 2017).  The prior
improves utility if it is right and costs no privacy if it is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Remap, closest
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.inputs import (
    Loss,
    PlacesLike,
    as_sites,
    loss_matrix,
)
from whereish.solvers.channels.posterior import euclidean_argmin, geometric_medians
from whereish.space.plane import Plane
from whereish.space.points import Points
from whereish.space.prior import as_prior
from whereish.space.sites import Sites

__all__ = ["BayesianRemap", "bayesian_remap", "nearest_remap"]

_MEDIAN_TOLERANCE = 1e-9  # of the extent of the secrets


def nearest_remap(sites: PlacesLike) -> Remap:
    """Move each report to the nearest of `sites`.

    Raises
    ------
    InvalidInput
        If the sites are no places of one space.

    >>> import whereish as wh
    >>> shops = [[0, 0], [1000, 0]]
    >>> (wh.PlanarLaplace("0.01/m") >> wh.nearest_remap(shops)).report([[40, 20]])
    Points(1 in the plane in metres)
    """
    return closest(as_sites(sites))


@dataclass(frozen=True, eq=False)
class BayesianRemap:
    """Move each report to the place of least posterior expected loss.

    Parameters
    ----------
    prior
        Probability of each of the channel's secrets; None for uniform.
    loss
        'euclidean', 'squared', a function of coordinates, or a matrix of secrets by
        targets.
    onto
        The places to choose from; the channel's secrets by default.
    anywhere
        Choose from the whole plane: the geometric median for Euclidean loss, the mean for
        squared loss.

    Raises
    ------
    InvalidInput
        When applied: if the prior is not a distribution on the secrets, or `anywhere` has no plane.

    Examples
    --------
    >>> import whereish as wh
    >>> sites = [[0, 0], [1000, 0], [2000, 0]]
    >>> channel = wh.exponential_channel(sites, "0.001/m")
    >>> moved = channel >> wh.BayesianRemap([0.1, 0.8, 0.1])
    >>> moved.matrix.sum(axis=0).tolist()
    [3.0]
    """

    prior: ArrayLike | None
    loss: Loss = "euclidean"
    onto: PlacesLike | None = field(default=None, repr=False)
    anywhere: bool = False

    def __repr__(self) -> str:
        prior = "uniform" if self.prior is None else f"of {np.size(self.prior)} places"
        loss = repr(self.loss) if isinstance(self.loss, str) else type(self.loss).__name__
        where = "anywhere" if self.anywhere else "secrets" if self.onto is None else "given places"
        return f"BayesianRemap(prior {prior}, loss {loss}, onto {where})"

    def targets(self, channel: Channel) -> Sites:
        """The new place of each report; reports of no probability stay near where they are."""
        prior = as_prior(self.prior, len(channel.secrets))
        joint = prior[:, None] * channel.matrix
        silent = joint.sum(axis=0) == 0
        if self.anywhere:
            moved = self._anywhere(channel, joint)
            moved[silent] = channel.reports.coordinates[silent]
            return Sites(Points(moved, channel.space))
        places = channel.secrets if self.onto is None else as_sites(self.onto)
        best = self._among(channel.secrets, places, joint)
        best[silent] = places.nearest(channel.reports.coordinates[silent])
        return Sites(places.points[best])

    def _among(self, secrets: Sites, places: Sites, joint: FloatArray) -> NDArray[np.intp]:
        planar = isinstance(secrets.points.space, Plane)
        named = self.loss if isinstance(self.loss, str) and planar else None
        if named == "squared":
            # |x - c|² averages to |c - mean|² plus a constant.
            return places.nearest(_means(joint, secrets.coordinates))
        if named == "euclidean":
            best = euclidean_argmin(
                np.ascontiguousarray(joint.T), secrets.coordinates, places.coordinates
            )
            return best.astype(np.intp)
        losses = loss_matrix(self.loss, secrets, places)
        return np.asarray((losses.T @ joint).argmin(axis=0))

    def _anywhere(self, channel: Channel, joint: FloatArray) -> FloatArray:
        places = channel.secrets.coordinates
        named = isinstance(self.loss, str) and self.loss in ("euclidean", "squared")
        if not (named and isinstance(channel.space, Plane)):
            raise InvalidInput(
                "a remap to anywhere needs a plane and 'euclidean' or 'squared' loss; choose"
                " among sites with onto=..."
            )
        if self.loss == "squared":
            return _means(joint, places)
        extent = float(np.ptp(places, axis=0).max()) or 1.0
        return geometric_medians(np.ascontiguousarray(joint.T), places, _MEDIAN_TOLERANCE * extent)


def bayesian_remap(
    channel: Channel,
    prior: ArrayLike | None,
    *,
    loss: Loss = "euclidean",
    onto: PlacesLike | None = None,
    anywhere: bool = False,
) -> Channel:
    """The channel followed by its Bayesian remap; see :class:`BayesianRemap`.

    Raises
    ------
    InvalidInput
        If the prior or the loss does not fit, or `anywhere` has no plane.

    Examples
    --------
    >>> import whereish as wh
    >>> sites = [[0, 0], [1000, 0], [2000, 0]]
    >>> channel = wh.exponential_channel(sites, "0.001/m")
    >>> prior = [0.1, 0.8, 0.1]
    >>> better = wh.bayesian_remap(channel, prior)
    >>> wh.quality_loss(better, prior) < wh.quality_loss(channel, prior)
    True
    """
    if not hasattr(channel, "weights"):
        raise InvalidInput(
            "channel must be a Channel, such as wh.exponential_channel(sites, '1/km'), which knows"
            f" its places; got {type(channel).__name__}"
        )
    return channel >> BayesianRemap(prior, loss, onto, anywhere)


def _means(joint: FloatArray, places: FloatArray) -> FloatArray:
    total = joint.sum(axis=0)
    return np.asarray((joint.T @ places) / np.where(total > 0, total, 1.0)[:, None])
