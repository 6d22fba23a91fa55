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
from whereish.threads import in_threads

__all__ = ["voronoi_masses"]

_MARGIN = 64.0  # scales of the noise beyond a ridge's closest point, where e^-64 of it is left
_PANEL = 3.0  # of u in s = h sinh(u), where 24 nodes are good to 1e-14
_INTEGER = 1e-6
_FEW_PANELS = 4
_BLOCK = 4  # secrets at once
_WORTH_THREADS = 30_000  # integrals
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

    def fill(begin: int) -> None:
        some = slice(begin, begin + _BLOCK)
        masses = _masses(survival, scale, ridges, first.size, secrets[some] - origin)
        out[some, first] = np.maximum(masses, 0.0)

    worth = len(secrets) * ridges.owner.size > _WORTH_THREADS
    in_threads(fill, range(0, len(secrets), _BLOCK), threads=None if worth else 1)
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
    survival: Survival, scale: float, ridges: _Ridges, count: int, secrets: FloatArray
) -> FloatArray:
    """For each of some secrets, the mass of every cell."""
    x, y = (ridges.middle[:, axis] - secrets[:, axis, None] for axis in (0, 1))
    # The owner is on the left of the ridge: seen from there, h > 0.
    h = x * ridges.along[:, 1] - y * ridges.along[:, 0]
    shift = x * ridges.along[:, 0] + y * ridges.along[:, 1]
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
    widest = np.max(high - low, axis=1, where=h != 0, initial=0.0)
    # One number of panels for all secrets, unless it is large: then each has its own.
    many = float(widest.max()) > _FEW_PANELS * _PANEL
    found = []
    for some in np.array_split(np.arange(len(h)), len(h) if many else 1):
        panels = 1 + int(widest[some].max() / _PANEL)
        cuts = low[some] + np.linspace(0.0, 1.0, panels + 1)[:, None, None] * (high - low)[some]
        s = distance[some] * np.sinh(cuts)
        found.append(edge_integrals(survival, h[some], s[:-1], s[1:]).sum(axis=0))
    return np.concatenate(found)


def _by_cell(ridges: _Ridges, values: FloatArray, count: int) -> FloatArray:
    """Sums over the ridges of each cell for every secret: plus the owner's, minus the other's."""
    rows = count * np.arange(len(values))[:, None]
    given = np.bincount(
        (rows + ridges.owner).ravel(), values.ravel(), minlength=values.shape[0] * count
    )
    real = ridges.other < count
    taken = np.bincount(
        (rows + ridges.other[real]).ravel(), values[:, real].ravel(), minlength=given.size
    )
    return np.asarray((given - taken).reshape(-1, count))
