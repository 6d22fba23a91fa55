"""Sites with their prior, from a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from whereish.errors import InvalidInput
from whereish.units import Epsilon, number

if TYPE_CHECKING:
    from whereish.arrays import FloatArray
    from whereish.space.sites import Sites

__all__ = ["read_sites"]


def read_sites(
    path: Path, epsilon: Epsilon, say: Callable[[str], object] | None = None
) -> tuple[Sites, FloatArray | None]:
    """Sites from the columns lon, lat (degrees) or x, y (metres); prior from `prior`, if any.

    A prior of counts or weights is divided by its sum, and `say` is told.  Columns x and y
    that seem to hold degrees, since `epsilon` would hide all sites from each other, are refused.
    """
    import numpy as np

    from whereish.space.plane import Plane
    from whereish.space.points import Points, seem_degrees
    from whereish.space.prior import as_prior
    from whereish.space.sites import Sites
    from whereish.space.sphere import Sphere

    if not path.is_file():
        found = "that is a folder" if path.is_dir() else "there is nothing at that path"
        raise InvalidInput(f"the sites {path.name} are not a file: {found}")
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
        table = np.array([[number(row[name]) for name in wanted] for row in rows])
    except (TypeError, ValueError):
        raise InvalidInput(
            f"the sites {path.name} must have numbers in {', '.join(wanted)}"
        ) from None
    if not rows:
        raise InvalidInput(f"the sites {path.name} have no rows")
    sites = Sites(Points(table[:, :2], Sphere() if degrees else Plane()))
    prior = None
    if "prior" in names:
        name = f"the column prior of {path.name}"
        prior = as_prior(table[:, 2], len(table), weights=True, name=name)
        total = float(table[:, 2].sum())
        if say is not None and abs(total - 1.0) > 1e-9:
            say(f"{name} sums to {total:.9g}: its entries are divided by that")
    nats = epsilon.per_m * float(np.ptp(table[:, :2], axis=0).sum())
    if not degrees and seem_degrees(table[:, :2], nats):
        raise InvalidInput(
            f"the columns x and y of {path.name} must be in metres, and seem to be in degrees: name"
            " them lon and lat (sites that are so close in metres need a larger epsilon)"
        )
    return sites, prior
