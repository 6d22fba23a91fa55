"""Probability that planar Laplace noise is closest to each of some sites.

The boundary of a site's Voronoi cell lies on bisectors with its neighbours.  Each ridge
is shared by two cells, which it adds to and takes from alike, so one integral per ridge
(see `solvers.cells.mass`) serves both:

    mass_i = inside_i - (1 / 2 pi) sum over ridges of i of ± ∫ S(rho) d theta.

Bisectors are taken from the sites themselves; only the ends of ridges come from the
diagram, so that cells which reach to infinity, or sites on one line, cost no accuracy.

Most of the time goes into exponentials, of which a panel of nodes needs few: with s = h sinh(u) a
node at u = m + t has cosh u = (e^m e^t + e^-m e^-t) / 2, and nodes come in pairs t and -t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.compiled import kernel
from whereish.solvers.cells.mass import NODES, WEIGHTS
from whereish.threads import in_threads

__all__ = ["voronoi_masses"]

_MARGIN = 64.0  # scales of the noise beyond a ridge's closest point, where e^-64 of it is left
_PANEL = 3.0  # of u in s = h sinh(u), where 24 nodes are good to 1e-14
_INTEGER = 1e-6
_NOTHING = 750.0  # scales of the noise beyond which e^-r is zero in doubles
_BLOCK = 16  # secrets at once
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


def voronoi_masses(level: float, sites: FloatArray, secrets: FloatArray) -> FloatArray:
    """P(site z is the closest to secret x + noise), (secrets, sites), at `level` nats per length.

    Sites that are closer to each other than 1e-9 of the whole extent (noise included) count as
    one place, whose mass is on the first of them.
    """
    out = np.zeros((len(secrets), len(sites)))
    origin = sites.mean(axis=0)
    around = np.concatenate([sites, secrets]) - origin
    far = 8.0 * (float(np.hypot(*around.T).max()) + 2 * _MARGIN / level)
    first = _first_of_each_place(sites - origin, _ONE_PLACE * far)
    ridges = _ridges(sites[first] - origin, far)

    def fill(begin: int) -> None:
        some = slice(begin, begin + _BLOCK)
        inside = np.zeros((len(out[some]), first.size))
        taken = np.zeros_like(inside)
        add_ridges(level, ridges, secrets[some] - origin, NODES, WEIGHTS, inside, taken)
        inside /= 2 * np.pi
        whole = np.rint(inside)
        inside = np.where(np.abs(inside - whole) < _INTEGER, whole, inside)
        out[some, first] = np.maximum(inside - taken / (2 * np.pi), 0.0)

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


@kernel
def add_ridges(
    level: float,
    ridges: _Ridges,
    secrets: FloatArray,
    nodes: FloatArray,
    weights: FloatArray,
    inside: FloatArray,
    taken: FloatArray,
) -> None:
    """Add the angle and the integral of every ridge to the cells beside it, for each secret.

    Both are (secrets, cells): plus the owner's, minus the other's; cells beyond are sentinels'.
    """
    for row in range(secrets.shape[0]):
        for ridge in range(ridges.owner.size):
            x = ridges.middle[ridge, 0] - secrets[row, 0]
            y = ridges.middle[ridge, 1] - secrets[row, 1]
            along_x, along_y = ridges.along[ridge, 0], ridges.along[ridge, 1]
            # The owner is on the left of the ridge: seen from there, h > 0.
            h = x * along_y - y * along_x
            if h == 0.0:  # seen from the secret, such a ridge covers no angle
                continue
            shift = x * along_x + y * along_y
            start, end = ridges.start[ridge] + shift, ridges.end[ridge] + shift
            sign, away = np.sign(h), abs(h)
            angle = sign * (np.arctan2(end, away) - np.arctan2(start, away))
            integral = sign * integral_along(level, away, start, end, nodes, weights)
            owner, other = ridges.owner[ridge], ridges.other[ridge]
            inside[row, owner] += angle
            taken[row, owner] += integral
            if other < inside.shape[1]:
                inside[row, other] -= angle
                taken[row, other] -= integral


@kernel
def integral_along(
    level: float, h: float, start: float, end: float, nodes: FloatArray, weights: FloatArray
) -> float:
    """∫ S(rho) d theta along a ridge at distance h > 0, S(r) = (1 + level r) e^{-level r}.

    It is cut where nothing is left, and into short panels.
    """
    closest = np.hypot(h, max(start, -end, 0.0))
    if level * closest > _NOTHING:
        return 0.0
    reach = np.sqrt((closest + _MARGIN / level) ** 2 - h**2)
    low = np.arcsinh(min(max(start, -reach), reach) / h)
    high = np.arcsinh(min(max(end, -reach), reach) / h)
    panels = 1 + int((high - low) / _PANEL)
    half = 0.5 * (high - low) / panels
    total: float = 0.0
    for panel in range(panels):
        growth = np.exp(low + (2 * panel + 1) * half)
        for node in range(nodes.size // 2, nodes.size):
            turn = np.exp(half * nodes[node])
            for part in (growth * turn, growth / turn):
                stretched = 0.5 * (part + 1.0 / part)
                r = level * h * stretched
                total += weights[node] * (1.0 + r) * np.exp(-r) / stretched
    integral: float = half * total
    return integral
