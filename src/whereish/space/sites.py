"""Sites: a finite public list of places."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.space.points import Points
from whereish.space.sphere import Sphere, unit_vectors

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

__all__ = ["Sites"]


@dataclass(frozen=True, eq=False)
class Sites:
    """n public places: cell centres, cities, census blocks, points of interest.

    >>> import numpy as np
    >>> import whereish as wh
    >>> sites = wh.Sites(wh.Points([[0, 0], [1000, 0]], wh.Plane()))
    >>> sites.nearest(np.array([[700.0, 50.0]])).tolist()
    [1]
    """

    points: Points

    def __post_init__(self) -> None:
        if len(self.points) == 0:
            raise InvalidInput("there must be at least one site; got none")

    def __len__(self) -> int:
        return len(self.points)

    @property
    def coordinates(self) -> FloatArray:
        """The (n, dimension) array of places."""
        return self.points.coordinates

    @cached_property
    def _tree(self) -> cKDTree:
        from scipy.spatial import cKDTree

        return cKDTree(self._embedded(self.coordinates))

    def _embedded(self, coordinates: FloatArray) -> FloatArray:
        # On the sphere the closest by chord is the closest by great circle.
        return unit_vectors(coordinates) if isinstance(self.points.space, Sphere) else coordinates

    def nearest(self, coordinates: FloatArray) -> NDArray[np.intp]:
        """Index of the closest site to each row of `coordinates`."""
        _, index = self._tree.query(self._embedded(coordinates))
        # None is found where the square of a distance overflows: there all are as near.
        return np.minimum(np.asarray(index, dtype=np.intp), len(self) - 1)
