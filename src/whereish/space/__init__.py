"""WHERE: points, and the spaces that give their coordinates a meaning."""

from whereish.arrays import FloatArray
from whereish.space.box import Box
from whereish.space.line import Line
from whereish.space.plane import Plane
from whereish.space.points import Points, Space
from whereish.space.raster import Raster
from whereish.space.sites import Sites
from whereish.space.sphere import Sphere
from whereish.space.values import Values

__all__ = [
    "Box",
    "FloatArray",
    "Line",
    "Plane",
    "Points",
    "Raster",
    "Sites",
    "Space",
    "Sphere",
    "Values",
]
