"""What finite mechanisms are made from: places, a prior, a loss and a metric, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.privacy.finite import Finite
from whereish.privacy.metric import Metric
from whereish.privacy.norms import Euclidean, GreatCircle
from whereish.privacy.on_sites import check_fits, indexed, site_distances
from whereish.space.line import Line
from whereish.space.plane import Plane
from whereish.space.points import Points, plain_numbers, seem_degrees
from whereish.space.raster import Raster
from whereish.space.sites import Sites
from whereish.space.sphere import Sphere
from whereish.units import Epsilon

__all__ = [
    "Loss",
    "PlacesLike",
    "SitesMetric",
    "as_secrets",
    "as_sites",
    "check_entries",
    "ground_metric",
    "kept_on",
    "loss_matrix",
    "refuse_degrees",
    "sites_metric",
]

PlacesLike: TypeAlias = Sites | Points | Raster | ArrayLike
Loss: TypeAlias = str | Callable[[FloatArray, FloatArray], FloatArray] | ArrayLike
"""'euclidean', 'squared', a function of two coordinate arrays, or an (n, reports) matrix."""

_MOST_ENTRIES = 2**28
"""Of a channel: 2 GiB of weights, and 4e12 triples to check for 16,384 sites."""


def as_sites(places: PlacesLike) -> Sites:
    """Sites from sites, points, a raster's centres or an (n, 2) array in metres."""
    if isinstance(places, Sites):
        return places
    if isinstance(places, Raster):
        return places.sites()
    if isinstance(places, Points):
        return Sites(places)
    array = plain_numbers(places, "sites")
    if array.size == 0:
        raise InvalidInput("there must be at least one site; got none")
    return Sites(Points(array, Line() if array.ndim == 2 and array.shape[1] == 1 else Plane()))


def as_secrets(places: PlacesLike) -> Sites:
    """Sites that may be secrets: not too many for a channel, all in their plane's region.

    Checked before any work; a mechanism would refuse them after it.
    """
    if isinstance(places, Raster):
        check_entries(len(places), 1)  # before its centres are made
    sites = as_sites(places)
    check_entries(len(sites), 1)
    if isinstance(sites.points.space, Plane):
        sites.points.space.check_region(sites.coordinates)
    return sites


def check_entries(secrets: int, reports: int) -> None:
    """Refuse a channel that neither memory nor patience would hold."""
    if secrets * reports > _MOST_ENTRIES:
        raise InvalidInput(
            f"a channel must have at most {_MOST_ENTRIES:,} entries; {secrets:,} secrets by"
            f" {reports:,} reports are more: take fewer places, or a mechanism that needs no"
            " matrix (PlanarLaplace, EikonalMechanism)"
        )


def refuse_degrees(places: PlacesLike, sites: Sites, nats: float) -> None:
    """Refuse a plain array of longitudes and latitudes where metres are due."""
    declared = isinstance(places, Sites | Points | Raster)
    if not declared and sites.coordinates.shape[1] == 2 and seem_degrees(sites.coordinates, nats):
        raise InvalidInput(
            "a plain array of places must be in metres, and these seem to be degrees (all sites"
            f" together would be within {nats:.2g} nats of each other): give Points(places,"
            " Sphere()) for degrees, or Points(places, Plane.metres()) if they are metres"
        )


def ground_metric(sites: Sites) -> Metric:
    """Metres between places: great-circle on the sphere, Euclidean elsewhere."""
    return GreatCircle() if isinstance(sites.points.space, Sphere) else Euclidean()


def loss_matrix(loss: Loss, secrets: Sites, reports: Sites) -> FloatArray:
    """Loss of every report for every secret, (n, reports), in metres for 'euclidean'."""
    x, z = secrets.coordinates, reports.coordinates
    if isinstance(loss, str):
        if loss not in ("euclidean", "squared"):
            raise InvalidInput(
                f"loss must be 'euclidean', 'squared', a function or a matrix; got {loss!r}"
            )
        distances = ground_metric(secrets).matrix(x, z)
        return distances if loss == "euclidean" else distances**2
    values = loss(x[:, None], z[None]) if callable(loss) else loss
    matrix = plain_numbers(values, "loss")
    if matrix.shape != (len(secrets), len(reports)):
        raise InvalidInput(
            f"loss must be a matrix of {len(secrets)} secrets by {len(reports)} reports; got"
            f" shape {matrix.shape}"
        )
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise InvalidInput("every loss must be finite and >= 0")
    return matrix


@dataclass(frozen=True)
class SitesMetric:
    """A metric with its matrix on some sites, and the relative error of that matrix."""

    metric: Metric
    distances: FloatArray
    error: float | FloatArray


def sites_metric(
    sites: Sites, epsilon: Epsilon | str | None, metric: Metric | ArrayLike | None
) -> SitesMetric:
    """The metric to keep on `sites`.

    `metric` is a metric on coordinates or a matrix of distances; None means metres
    between places.  `epsilon` scales it; without epsilon it is in nats already.  On a
    projected plane the plane's largest scale is charged, so that the promise holds in
    true metres.
    """
    if metric is None and epsilon is None:
        raise InvalidInput("a privacy level must be given: epsilon, or a metric in nats")
    if metric is None or isinstance(metric, Metric):
        base = ground_metric(sites) if metric is None else metric
    else:
        base = Finite(plain_numbers(metric, "metric"))
    if epsilon is not None:
        base = base * Epsilon.of(epsilon)
    check_fits(base, sites.points.space)
    if isinstance(sites.points.space, Plane):
        base = base.stretched(sites.points.space.scale)
    distances, error = site_distances(base, len(sites), sites.coordinates)
    # Rounding may break symmetry by an ulp; the smaller promise implies the larger.
    return SitesMetric(base, np.minimum(distances, distances.T), error)


def kept_on(
    places: PlacesLike, epsilon: Epsilon | str | None, metric: Metric | ArrayLike | None
) -> tuple[Sites, SitesMetric]:
    """The secrets and the metric to keep on them, checked before any work is done."""
    sites = as_secrets(places)
    check_entries(len(sites), len(sites))
    kept = sites_metric(sites, epsilon, metric)
    if not indexed(kept.metric):
        refuse_degrees(places, sites, _widest(kept.distances))
    return sites, kept


def _widest(distances: FloatArray) -> float:
    return float(distances[np.isfinite(distances)].max(initial=0.0))
