"""Sites with their prior, from a CSV file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from whereish.errors import InvalidInput

if TYPE_CHECKING:
    from whereish.space.points import FloatArray
    from whereish.space.sites import Sites

__all__ = ["read_sites"]


def read_sites(path: Path) -> tuple[Sites, FloatArray | None]:
    """Sites from the columns lon, lat (degrees) or x, y (metres); prior from `prior`, if any.

    A prior of counts or weights is divided by its sum.
    """
    import numpy as np

    from whereish.space.plane import Plane
    from whereish.space.points import Points
    from whereish.space.sites import Sites
    from whereish.space.sphere import Sphere

    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            names = reader.fieldnames or []
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InvalidInput(f"the sites {path.name} cannot be read as CSV") from None
    degrees = {"lon", "lat"} <= set(names)
    if not degrees and not {"x", "y"} <= set(names):
        raise InvalidInput(
            f"the sites {path.name} must have columns lon and lat in degrees, or x and y in metres"
        )
    columns = ["lon", "lat"] if degrees else ["x", "y"]
    wanted = [*columns, "prior"] if "prior" in names else columns
    try:
        table = np.array([[float(row[name]) for name in wanted] for row in rows])
    except (TypeError, ValueError):
        raise InvalidInput(
            f"the sites {path.name} must have numbers in {', '.join(wanted)}"
        ) from None
    if not rows:
        raise InvalidInput(f"the sites {path.name} have no rows")
    sites = Sites(Points(table[:, :2], Sphere() if degrees else Plane()))
    if "prior" not in names:
        return sites, None
    weights = table[:, 2]
    if not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
        raise InvalidInput(f"the prior in {path.name} must be >= 0 and not all zero")
    return sites, weights / weights.sum()
