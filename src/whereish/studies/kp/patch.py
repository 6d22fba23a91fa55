"""The paper's patch of Philadelphia on its square [0, 100]^2, from two sources of density.

A unit of the square is written as a metre; densities are people per square kilometre.
"""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray
from whereish.data.philadelphia import arcsecond_cells, interpolated, philadelphia_density
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.studies.framework.study import real_data
from whereish.units import METRES_PER

__all__ = ["KM2_PER_MI2", "SIDE", "census_density", "densities", "paper_map"]

SIDE = 100.0
KM2_PER_MI2 = (METRES_PER["mi"] / 1000) ** 2
_PARTS = 20


def census_density(cells: int) -> FloatArray | None:
    """From the block groups of the census of 2000; None where their file is absent."""
    path = real_data("phl_region_blockgroups_2000.parquet")
    if path is None:
        return None
    from whereish.data.grids import tract_values

    per_mi2 = tract_values(path, arcsecond_cells(), column="density_sqmi", supersample=_PARTS)
    return interpolated(per_mi2 / KM2_PER_MI2, cells)


def densities(cells: int) -> dict[str, FloatArray]:
    """Those that are here, by where they come from; ZIP codes are always."""
    found = {"ZIP codes": philadelphia_density(cells)[0]}
    census = census_density(cells)
    return found if census is None else {**found, "census of 2000": census}


def paper_map(density: FloatArray) -> PrivacyMap:
    """eps = 1e-4 d + 0.4 on [0, 100]^2, nothing clipped."""
    side = SIDE / len(density)
    return PrivacyMap(np.asarray(1e-4 * density + 0.4), (side, side))
