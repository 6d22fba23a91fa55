"""Probability that circular noise is closest to each of some sites.

The boundary of a site's Voronoi cell lies on bisectors with its neighbours.  Each ridge
is shared by two cells, which it adds to and takes from alike, so one integral per ridge
(see `solvers.cells.mass`) serves both:

    mass_i = inside_i - (1 / 2 pi) sum over ridges of i of ± ∫ S(rho) d theta.

Bisectors are taken from the sites themselves; only the ends of ridges come from the
diagram, so that cells which reach to infinity, or sites on one line, cost no accuracy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.solvers.cells.mass import Survival, edge_integrals

__all__ = ["voronoi_masses"]

_MARGIN = 64.0  # scales of the noise beyond a ridge's closest point, where e^-64 of it is left
_PANEL = 3.0  # of u in s = h sinh(u), where 24 nodes are good to 1e-14
_INTEGER = 1e-6
_ONE_PLACE = 1e-9  # of the extent: closer sites would be merged by rounding, no one knows how


class _Ridges(NamedTuple):
    """Pieces of bisectors: middle + s * along for s in [start, end], left of it `owner`."""

    owner: NDArray[np.intp]
    other: NDArray[np.intp]
    middle: FloatArray
    along: FloatArray
    start: FloatArray
    end: FloatArray


def voronoi_masses(
    survival: Survival,
    scale: float,
    sites: FloatArray,
    secrets: FloatArray,
) -> FloatArray:
    """P(site z is the closest to secret x + noise), (secrets, sites).

    `survival` must fall like e^{-r / scale} far out.  Sites that are closer to each other
    than 1e-9 of the whole extent (noise included) count as one place, whose mass is on the
    first of them.
    """
    out = np.zeros((len(secrets), len(sites)))
    origin = sites.mean(axis=0)
    around = np.concatenate([sites, secrets]) - origin
    far = 8.0 * (float(np.hypot(*around.T).max()) + 2 * _MARGIN * scale)
    first = _first_of_each_place(sites - origin, _ONE_PLACE * far)
    ridges = _ridges(sites[first] - origin, far)
    for row, secret in enumerate(secrets - origin):
        masses = _masses(survival, scale, ridges, first.size, secret)
        out[row, first] = np.maximum(masses, 0.0)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def _first_of_each_place(sites: FloatArray, closest: float) -> NDArray[np.intp]:
    """Indices of the sites that have none before them within `closest`."""
    from scipy.spatial import cKDTree

    pairs = cKDTree(sites).query_pairs(closest, output_type="ndarray")
    return np.setdiff1d(np.arange(len(sites)), pairs.max(axis=1) if len(pairs) else pairs.ravel())


def _ridges(sites: FloatArray, far: float) -> _Ridges:
    """All ridges, where far sentinels close the cells that would be unbounded.

    Bisectors with a sentinel are about far / 2 away, where no noise comes.
    """
    from scipy.spatial import Voronoi

    angles = np.arange(8) * (np.pi / 4) + 0.1
    sentinels = far * np.column_stack([np.cos(angles), np.sin(angles)])
    points = np.concatenate([sites, sentinels])
    diagram = Voronoi(points)
    pairs = np.sort(np.asarray(diagram.ridge_points, dtype=np.intp), axis=1)
    ends = np.asarray(diagram.ridge_vertices, dtype=np.intp)
    kept = pairs[:, 0] < len(sites)  # the owner is a site, the other perhaps a sentinel
    owner, other, ends = pairs[kept, 0], pairs[kept, 1], ends[kept]
    across = points[other] - points[owner]
    across /= np.hypot(*across.T)[:, None]
    along = np.column_stack([-across[:, 1], across[:, 0]])
    middle = (points[owner] + points[other]) / 2
    reach = [((diagram.vertices[end] - middle) * along).sum(axis=1) for end in ends.T]
    return _Ridges(owner, other, middle, along, np.minimum(*reach), np.maximum(*reach))


def _masses(
    survival: Survival, scale: float, ridges: _Ridges, count: int, secret: FloatArray
) -> FloatArray:
    offset = ridges.middle - secret
    # The owner is on the left of the ridge: seen from there, h > 0.
    h = offset[:, 0] * ridges.along[:, 1] - offset[:, 1] * ridges.along[:, 0]
    shift = (offset * ridges.along).sum(axis=1)
    start, end = ridges.start + shift, ridges.end + shift
    turned = np.sign(h) * (np.arctan2(end, np.abs(h)) - np.arctan2(start, np.abs(h)))
    inside = _by_cell(ridges, turned, count) / (2 * np.pi)
    whole = np.rint(inside)
    inside = np.where(np.abs(inside - whole) < _INTEGER, whole, inside)
    integrals = _integrals(survival, scale, h, start, end)
    return np.asarray(inside - _by_cell(ridges, integrals, count) / (2 * np.pi))


def _integrals(
    survival: Survival,
    scale: float,
    h: FloatArray,
    start: FloatArray,
    end: FloatArray,
) -> FloatArray:
    """∫ S(rho) d theta along each ridge, cut where nothing is left and into short panels."""
    closest = np.hypot(h, np.maximum(np.maximum(start, -end), 0.0))
    reach = np.sqrt((closest + _MARGIN * scale) ** 2 - h**2)
    distance = np.where(h == 0, 1.0, np.abs(h))
    low = np.arcsinh(np.clip(start, -reach, reach) / distance)
    high = np.arcsinh(np.clip(end, -reach, reach) / distance)
    panels = 1 + int(np.max((high - low)[h != 0], initial=0.0) / _PANEL)
    cuts = low + np.linspace(0.0, 1.0, panels + 1)[:, None] * (high - low)
    s = distance * np.sinh(cuts)
    return np.asarray(edge_integrals(survival, h, s[:-1], s[1:]).sum(axis=0))


def _by_cell(ridges: _Ridges, values: FloatArray, count: int) -> FloatArray:
    """Sum over the ridges of each cell: with a plus for the owner, a minus for the other."""
    total = np.bincount(ridges.owner, values, minlength=count)
    return np.asarray(total - np.bincount(ridges.other, values, minlength=count)[:count])
