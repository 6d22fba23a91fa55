"""The best channel under a privacy map: Problem IV of Koufogiannis and Pappas.

Minimise sum_uy prior_u K_uy loss(u, y) over channels on the map's cells that keep its metric, the
shortest path integral of eps over the stencil's edges.  That is the promise of
:class:`~whereish.mechanisms.maps.eikonal.EikonalMechanism` on cells, so the optimum says how much
its closed form gives away.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.channels.inputs import Loss, check_entries
from whereish.mechanisms.channels.optimal import OptimalChannel, optimal_channel
from whereish.mechanisms.maps.options import checked_neighbours
from whereish.privacy.maps.geodesic import MapGeodesic
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.solvers.optimal.programme import ProgressCallback
from whereish.space.line import Line
from whereish.space.points import Points
from whereish.space.sites import Sites

__all__ = ["optimal_map_channel"]

_RESERVE = 1e-12  # of the metric, for the rounding of its integrals and sums


def optimal_map_channel(
    privacy_map: PrivacyMap,
    prior: ArrayLike | None = None,
    loss: Loss = "squared",
    *,
    neighbours: int = 16,
    gap: float = 1e-2,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> OptimalChannel:
    """The channel of least expected loss on the cells of a privacy map.

    Contract: keeps the least integral of eps along paths over the stencil's edges between the
    centres of cells, certified on the integer weights.

    Parameters
    ----------
    privacy_map
        The levels.  Secrets and reports are the centres of its cells; on a plane with a declared
        region, of those with their centre inside.
    prior
        Numbers >= 0 in proportion to the probabilities of all cells, in the map's shape or flat;
        None for uniform.
    loss
        'squared' as in the paper, 'euclidean', a function of coordinates, or a matrix; in metres
        of the plane.
    neighbours
        Directions of the stencil: 8, 16 or 32.
    gap, time_limit, progress
        As for :func:`~whereish.mechanisms.channels.optimal.optimal_channel`.

    Raises
    ------
    InvalidInput
        If the map and the prior do not fit each other, or the prior has weight outside the
        declared region.
    SolverError
        If the solver found no channel.

    Examples
    --------
    >>> import whereish as wh
    >>> levels = wh.PrivacyMap([[0.001, 0.001, 0.004], [0.001, 0.004, 0.004]], cell="500 m")
    >>> best = wh.optimal_map_channel(levels, [[1, 1, 2], [1, 2, 2]])
    >>> best.status, best.lower_bound <= best.loss <= 1.01 * best.lower_bound
    ('optimal', True)
    """
    count = privacy_map.values.size
    check_entries(count, count)
    sites, cells = _sites(privacy_map)
    if prior is not None:
        weights = privacy_map.normalised_prior(prior)
        if np.delete(weights, cells).any():
            raise InvalidInput(
                "the prior must be 0 in cells with their centres outside the region that the map's"
                f" plane declares ({count - len(cells)} of {count}): no secret can be there"
            )
        prior = weights[cells]
    metric = _metric(MapGeodesic(privacy_map, checked_neighbours(neighbours)), cells)
    found = optimal_channel(
        sites,
        prior,
        None,
        loss=loss,
        metric=metric,
        gap=gap,
        time_limit=time_limit,
        progress=progress,
    )
    of_map = {"map_sha256": privacy_map.digest(), "neighbours": neighbours}
    return replace(found, details={**found.details, **of_map})


def _sites(privacy_map: PrivacyMap) -> tuple[Sites, NDArray[np.intp]]:
    """The centres of the cells that may be secrets, and the cells' flat indices."""
    centres = privacy_map.raster.centres()
    if privacy_map.one_dimensional:
        return Sites(Points(centres[:, :1], Line())), np.arange(len(centres))
    cells = np.flatnonzero(privacy_map.plane.in_region(centres))
    if not len(cells):
        raise InvalidInput("the map must have a cell with its centre in its declared region")
    return Sites(Points(centres[cells], privacy_map.plane)), cells


def _metric(geodesic: MapGeodesic, cells: NDArray[np.intp]) -> FloatArray:
    """Nats between cells, never above the true shortest paths; through other cells too."""
    distances = geodesic.between_cells(cells[:, None], cells[None])
    return np.asarray(np.minimum(distances, distances.T) * (1 - _RESERVE))
