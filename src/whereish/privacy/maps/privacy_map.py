"""Privacy maps: a privacy level eps(u) for every place u.

Where eps is small, a place must stay indistinct from places far away.  The map
is a raster of levels at cell centres, interpolated bilinearly between them and
constant beyond the outermost; it is public knowledge.  What it promises is the
geodesic metric

    d_eps(u, v) = min over paths from u to v of the integral of eps(x) |dx|

(locally Lipschitz privacy: Koufogiannis and Pappas, Location-dependent Privacy).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.notebook import heat_map
from whereish.privacy.maps.coarser import levels_below
from whereish.space.box import Box
from whereish.space.interpolation import interpolated
from whereish.space.line import Line
from whereish.space.plane import Plane
from whereish.space.points import Points, Space, checked_coordinates, plain_numbers
from whereish.space.prior import as_prior
from whereish.space.raster import Raster
from whereish.units import LARGEST_EPSILON, SMALLEST_EPSILON, Length, per_unit

__all__ = ["LARGEST_DENSITY", "PrivacyMap", "checked_levels", "log_laplacian"]

LARGEST_DENSITY = 1e8
"""39 people on each square metre, if they were counted per square mile: nothing is denser in any
unit of area that people use, but marks of missing data (1e20, 3.4e38) and identifiers are."""


_NEVER_LEAVES = 50.0
"""Nats across a cell at which reports are the true cell, save with probability e^-50."""


_FARTHEST = 2.0**30
"""Sides of a cell from zero: doubles are then within 2^-23 of a side.  Nodes of laws are rounded to
doubles, and a law that is moved by a tenth of a cell breaks its promise beside a step."""


@dataclass(frozen=True, eq=False)
class PrivacyMap:
    """Levels eps per metre on the cells of a raster.

    Parameters
    ----------
    values
        (rows, columns) levels per true metre, row 0 the southernmost; or (n,) levels
        along a line.
    cell
        Side of a cell, "500 m", or (width, height).
    origin
        South-west corner of the raster, in the plane's metres.
    plane
        The declared plane of the raster; true metres by default.

    >>> PrivacyMap([[0.0004, 0.0004], [0.002, 0.002]], cell="500 m").shape
    (2, 2)
    """

    values: FloatArray
    cell: Length | str | tuple[float, float]
    origin: tuple[float, float] = (0.0, 0.0)
    plane: Plane = field(default_factory=Plane)
    one_dimensional: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        values = checked_levels(self.values)
        if values.ndim > 2:
            raise InvalidInput(
                "a privacy map must be an array (rows, columns), or (n,) along a line; got shape"
                f" {values.shape}: for more dimensions see lattice_distances"
            )
        sides = self.cell
        if not isinstance(sides, tuple):
            sides = (Length.positive(sides, name="cell").m,) * 2
        object.__setattr__(self, "one_dimensional", values.ndim == 1)
        values = np.atleast_2d(values).copy()
        values.setflags(write=False)
        object.__setattr__(self, "values", values)
        self._refuse_other_units(sides)
        # Plain floats, and refused unless the sides are positive and all is finite.
        raster = Raster(*self.shape, sides, self.origin, self.plane)
        object.__setattr__(self, "cell", raster.cell)
        object.__setattr__(self, "origin", raster.origin)
        self._refuse_blurred(raster)

    def _refuse_other_units(self, sides: tuple[float, float]) -> None:
        """Levels at which no report would ever leave its cell are in another unit."""
        least = float(self.values.min())
        if min(sides) * least > _NEVER_LEAVES:
            raise InvalidInput(
                f"levels are per metre, and at {least:g} per metre or more no report would ever"
                f" leave a cell of {min(sides):g} m: divide levels per km by 1000"
            )

    def _refuse_blurred(self, raster: Raster) -> None:
        """Cells so far from zero that doubles would put laws elsewhere than their levels."""
        for first, side, count in zip(
            raster.origin, raster.cell, (raster.columns, raster.rows), strict=True
        ):
            if max(abs(first), abs(first + count * side)) > _FARTHEST * side:
                raise InvalidInput(
                    "a map must lie within 2^30 of its cells' sides of (0, 0), here"
                    f" {_FARTHEST * side:g} m, or doubles cannot tell places in a cell: count from"
                    " an origin nearby"
                )

    @classmethod
    def from_density(
        cls,
        density: ArrayLike,
        *,
        slope: float,
        offset: float,
        per: str,
        cell: Length | str | tuple[float, float],
        low: float | None = None,
        high: float | None = None,
        origin: tuple[float, float] = (0.0, 0.0),
        plane: Plane | None = None,
    ) -> PrivacyMap:
        """eps = slope·density + offset, clipped to [low, high], per `per` ("km").

        The more people, the looser the level: among many, one needs less room to hide.

        >>> m = PrivacyMap.from_density(
        ...     [[0.0, 16_000.0]], slope=1e-4, offset=0.4, per="km", cell="500 m")
        >>> m.values.tolist()
        [[0.0004, 0.002]]
        """
        metres = per_unit(per)
        if low is not None and high is not None and not low <= high:
            raise InvalidInput(f"low must be at most high; got {low:g} and {high:g}")
        people = plain_numbers(density, "a density")
        if not np.isfinite(people).all() or (people < 0).any():
            raise InvalidInput(
                "a density must be finite and >= 0 in every cell; fill holes and repair negative"
                " cells first"
            )
        absurd = int((people > LARGEST_DENSITY).sum())
        if absurd:
            # Clipping would make the loosest level of what is no density at all.
            raise InvalidInput(
                f"a density must be at most {LARGEST_DENSITY:g}, more people than stand in any"
                f" square mile; {absurd} of {people.size} are above: are they identifiers, or marks"
                " of cells without data? Fill those first, or count in thousands"
            )
        levels = np.clip(slope * people + offset, low, high)
        return cls(levels / metres, cell, origin, Plane() if plane is None else plane)

    @cached_property
    def raster(self) -> Raster:
        """The cells."""
        assert isinstance(self.cell, tuple)
        return Raster(*self.shape, self.cell, self.origin, self.plane)

    @property
    def space(self) -> Space:
        """Where secrets live: a line for a map along one axis, the plane otherwise."""
        return Line() if self.one_dimensional else self.plane

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape[0], self.values.shape[1]

    @property
    def sides(self) -> tuple[float, float]:
        """Height and width of a cell in metres, in the order of the array's axes."""
        assert isinstance(self.cell, tuple)
        return self.cell[1], self.cell[0]

    def on_raster(self, coordinates: FloatArray) -> FloatArray:
        """Planar coordinates; places on a line get those of the raster's only row."""
        if coordinates.shape[1] == 2:
            return coordinates
        middle = self.origin[1] + self.raster.cell[1] / 2
        return np.column_stack([coordinates[:, 0], np.full(len(coordinates), middle)])

    def checked_places(self, secrets: Points | ArrayLike) -> FloatArray:
        """Secrets on the map's plane; those beyond its declared region are refused."""
        coordinates = checked_coordinates(secrets, self.space)
        if not self.one_dimensional:
            self._check_region(coordinates)
        return self.on_raster(coordinates)

    def _check_region(self, coordinates: FloatArray) -> None:
        """As the plane does; whether the map's own cells reach beyond its region is public."""
        try:
            self.plane.check_region(coordinates)
        except InvalidInput as error:
            cells = int((~self.plane.in_region(self.raster.centres())).sum())
            own = (
                f" {cells} of the map's own {self.values.size} cells lie beyond its region too:"
                " there may be reports, and no secret (map.plane.in_region tells which)"
                if cells
                else ""
            )
            raise InvalidInput(f"{error}{own}") from None

    def plane_levels(self, divided: float = 1.0) -> FloatArray:
        """Levels per metre of the plane (one that stretches by k needs eps/k), over `divided`."""
        return np.asarray(self.values / (self.plane.scale * divided))

    def normalised_prior(self, prior: ArrayLike | None) -> FloatArray:
        """Probabilities of the cells, from numbers >= 0 in proportion; uniform for None."""
        return as_prior(
            prior, self.values.size, shape=self.shape, weights=True, of="cell of the map"
        )

    def curvature(self) -> FloatArray:
        """Gaussian curvature K = -Laplacian(ln eps)/eps^2 of the metric eps|du|, per cell.

        Below -1 the plain weights of the eikonal mechanism turn negative.
        """
        return np.asarray(-log_laplacian(self.values, self.sides) / self.values**2)

    def too_curved(self) -> NDArray[np.bool_]:
        """Cells of curvature below -1, around which a mechanism has to lower the map."""
        return np.asarray(self.curvature() < -1.0)

    def smoothed(self, radius: Length | str, *, below: bool = False) -> PrivacyMap:
        """The map after a Gaussian blur of ln eps with standard deviation `radius`.

        A blur raises levels beside looser ones.  With `below` none is raised: each level first
        becomes the least within twice the radius, and the kernel ends there, so that it averages
        levels none of which is above that of its own cell.  Reports then leave no hole where a
        zone is tight, and the zone keeps what it asked for.
        """
        from scipy.ndimage import gaussian_filter, minimum_filter

        metres = Length.positive(radius, name="radius").m
        sigma = [
            metres / side if count > 1 else 0.0
            for side, count in zip(self.sides, self.shape, strict=True)
        ]
        if not below:
            return self._with(np.exp(gaussian_filter(np.log(self.values), sigma, mode="nearest")))
        reach = [2 * int(2.0 * s + 0.5) + 1 for s in sigma]  # the kernel's own, in cells
        least = np.log(minimum_filter(self.values, size=reach, mode="nearest"))
        blurred = np.exp(gaussian_filter(least, sigma, mode="nearest", truncate=2.0))
        return self._with(np.minimum(blurred, self.values))  # the last bit of exp and log

    def supersampled(
        self, factor: int, *, method: Literal["bilinear", "bicubic"] = "bilinear"
    ) -> PrivacyMap:
        """Every cell cut into `factor` x `factor` cells, levels interpolated.

        "bicubic" is smooth where "bilinear" has kinks, and stays within the range of the 16
        levels around.
        """
        if not isinstance(factor, int) or factor < 1:
            raise InvalidInput(f"factor must be an integer >= 1; got {factor!r}")
        if method not in ("bilinear", "bicubic"):
            raise InvalidInput(f"method must be 'bilinear' or 'bicubic'; got {method!r}")
        rows, cols = self.shape
        down = 1 if self.one_dimensional else factor
        y, x = (np.arange(rows * down) + 0.5) / down, (np.arange(cols * factor) + 0.5) / factor
        across, along = np.meshgrid(x, y)
        finer = interpolated(self.values, across, along, method)
        width, height = self.raster.cell
        return self._with(finer, (width / factor, height / down))

    def coarsened(self, factor: int) -> PrivacyMap:
        """The map on cells about `factor` times as wide and high, nowhere above this one.

        Between places as at centres: a mechanism on continuous places that keeps the coarser map
        keeps this one, too, and is built in about 1/factor^4 of the time.  Beside a step levels
        become the lower ones, as far as the larger cells reach.
        """
        if not isinstance(factor, int) or isinstance(factor, bool) or factor < 1:
            raise InvalidInput(f"factor must be an integer >= 1; got {factor!r}")
        rows, columns = (-(-count // factor) for count in self.shape)
        width, height = self.raster.cell
        cell = width * self.shape[1] / columns, height * self.shape[0] / rows
        return self._with(levels_below(self.values, (rows, columns)), cell)

    def scaled(self, factor: float) -> PrivacyMap:
        """All levels multiplied by `factor`."""
        return self._with(self.values * factor)

    def _with(self, values: FloatArray, cell: tuple[float, float] | None = None) -> PrivacyMap:
        array = values[0] if self.one_dimensional else values
        return PrivacyMap(array, self.cell if cell is None else cell, self.origin, self.plane)

    def digest(self) -> str:
        """SHA-256 of the levels and of where they are.

        Its bytes are those of plain floats, in whatever type the map was given, and do not
        depend on how a class prints itself: a map read from a file has the digest it was
        saved with.
        """
        return self._digest

    @cached_property
    def _digest(self) -> str:
        crs, region, shift = self.plane.crs, self.plane.region, self.plane.shift
        by = "" if shift is None else f", shift={shift!r}"
        place = (
            f"{self.shape} {self.cell} {self.origin}"
            f" Plane(crs={None if crs is None else str(crs)!r}, region={_box_text(region)}{by})"
            f" {self.one_dimensional}"
        )
        levels = np.ascontiguousarray(self.values, "<f8").tobytes()
        return hashlib.sha256(place.encode() + levels).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Everything but the levels."""
        return {
            "shape": list(self.shape),
            "cell_m": list(self.raster.cell),
            "origin_m": list(self.origin),
            **self.plane.to_json(),
            "plane_scale": self.plane.scale,
            "one_dimensional": self.one_dimensional,
            "sha256": self.digest(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], values: FloatArray) -> PrivacyMap:
        """The map that :meth:`to_json` described, with its levels."""
        plane = Plane.from_json(data)
        x, y = data["origin_m"]
        width, height = data["cell_m"]
        levels = values[0] if data["one_dimensional"] else values
        read = cls(levels, (width, height), (x, y), plane)
        if read.digest() != data["sha256"]:
            raise InvalidInput("the levels of this privacy map are not those of its description")
        return read

    def __repr__(self) -> str:
        rows, cols = self.shape
        low, high = self.values.min(), self.values.max()
        return f"PrivacyMap({rows} x {cols}, eps {low:.4g} to {high:.4g} per metre)"

    def _repr_html_(self) -> str:
        caption = f"{self!r}: north is up, the larger ln eps (the looser), the darker"
        return heat_map(np.log(self.values[::-1]), caption)


def _box_text(box: Box | None) -> str:
    if box is None:
        return "None"
    x_low, y_low, x_high, y_high = map(repr, box.bounds)
    return f"Box(x_low={x_low}, y_low={y_low}, x_high={x_high}, y_high={y_high})"


def checked_levels(values: ArrayLike) -> FloatArray:
    """Levels per metre of any shape; holes, zero and what no unit explains are refused."""
    array = plain_numbers(values, "the levels of a privacy map")
    if np.ndim(values) == 0:
        raise InvalidInput(
            "a privacy map must be an array of levels per metre, one for each cell; got one number:"
            " one level everywhere needs no map, take wh.PlanarLaplace('1/km')"
        )
    if array.size == 0:
        raise InvalidInput(
            "a privacy map must be an array of levels per metre with at least one cell; got shape"
            f" {np.shape(values)}"
        )
    holes = int((~np.isfinite(array)).sum())
    if holes:
        raise InvalidInput(
            f"every cell of a privacy map must have a finite level; {holes} of {array.size} are NaN"
            " or infinite: fill holes with the tightest level that suits them"
        )
    beyond = int(((array < SMALLEST_EPSILON) | (array > LARGEST_EPSILON)).sum())
    if beyond:
        raise InvalidInput(
            f"levels must be between {SMALLEST_EPSILON:g} and {LARGEST_EPSILON:g} per metre, so"
            f" above zero; {beyond} of {array.size} cells are not: is the unit right?"
        )
    return array


def log_laplacian(levels: FloatArray, sides: tuple[float, float]) -> FloatArray:
    """Laplacian of ln eps per cell, by central differences; `sides` are height and width.

    Beyond the border the map continues as its outermost cells.
    """
    log = np.pad(np.log(levels), 1, mode="edge")
    height, width = sides
    centre = log[1:-1, 1:-1]
    down = (log[2:, 1:-1] + log[:-2, 1:-1] - 2 * centre) / height**2
    return np.asarray(down + (log[1:-1, 2:] + log[1:-1, :-2] - 2 * centre) / width**2)
