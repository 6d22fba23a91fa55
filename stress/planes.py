"""Sample planes of the EPSG registry: tears, stretching beyond the charge, radii too short.

    python -m stress.planes --planes 2000 --segments 100000

For each plane that is accepted: bisection along random segments for a jump of the image, pairs of
places on both sides of every border of an area of use, and short segments whose images must not be
longer than the plane's scale allows, nor, within a reach around the region, shorter than the
smallest factor that radii count with.  Prints how many were refused and why.
"""

from __future__ import annotations

import argparse
import collections
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from whereish.errors import InvalidInput
from whereish.space import Box, Plane
from whereish.space.projection.ellipsoid import WGS84
from whereish.space.projection.operation import available_operations

ROUNDING_M = 1e-7
"""Images are computed to some nanometres: coordinates of 10^7 m in doubles, and PROJ's series."""

REASONS = {
    "axes in metres": "not in metres",
    "knows no operation": "no operation known in the region",
    "needs a grid": "best operation needs a grid that is not installed",
    "no single operation": "no single operation covers the region",
    "one piece": "not in one piece, or stretched more than 20 times",
    "degrees wide": "region too wide, or too near a pole",
}


@dataclass
class Tally:
    """What was found."""

    proven: int = 0
    estimated: int = 0
    refused: collections.Counter[str] = field(default_factory=collections.Counter)
    torn: list[str] = field(default_factory=list)
    exceeded: list[str] = field(default_factory=list)
    excess: list[float] = field(default_factory=list)
    shrunk: list[str] = field(default_factory=list)
    spare: list[float] = field(default_factory=list)
    without_factor: int = 0
    estimated_crs: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The figures, for people."""
        accepted = self.proven + self.estimated
        yield f"planes accepted: {accepted} (proven {self.proven}, estimated {self.estimated})"
        yield f"planes refused: {self.refused.total()}"
        yield from (f"  {count:5d}  {reason}" for reason, count in self.refused.most_common())
        yield f"torn: {len(self.torn)} of {accepted} {self.torn}"
        yield f"stretched beyond the charge: {len(self.exceeded)} of {accepted} {self.exceeded}"
        if self.excess:
            middle, most = np.quantile(self.excess, [0.5, 0.99])
            yield (
                f"charge above the largest sampled stretching: median {middle:.1e}, 99% {most:.1e},"
                f" least {min(self.excess):.1e}"
            )
        known = len(self.spare)
        yield f"shortened beyond the smallest factor: {len(self.shrunk)} of {known} {self.shrunk}"
        if self.spare:
            middle, most = np.quantile(self.spare, [0.5, 0.99])
            yield (
                f"smallest sampled stretching above the factor: median {middle:.1e},"
                f" 99% {most:.1e}, least {min(self.spare):.1e};"
                f" no factor known around {self.without_factor}"
            )
        yield f"estimated: {' '.join(self.estimated_crs)}"


def sample(
    planes: int,
    segments: int,
    generator: np.random.Generator,
    progress: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """Draw coordinate systems and regions until `planes` are accepted; look at each."""
    from pyproj.database import query_crs_info

    found = Tally()
    known = [
        one
        for one in query_crs_info("EPSG")
        if one.type.name == "PROJECTED_CRS" and not one.deprecated and one.area_of_use is not None
    ]
    while found.proven + found.estimated < planes:
        one = known[generator.integers(len(known))]
        crs, region = f"EPSG:{one.code}", random_region(one.area_of_use.bounds, generator)
        try:
            plane = Plane.projected(crs, region)
        except InvalidInput as refusal:
            said = (reason for words, reason in REASONS.items() if words in str(refusal))
            found.refused[next(said, str(refusal))] += 1
            continue
        look(plane, segments, generator, found)
        progress(found)
    return found


def look(plane: Plane, segments: int, generator: np.random.Generator, found: Tally) -> None:
    """Count one plane, and what is wrong with it."""
    assert plane.crs is not None
    label = f"{plane.crs} {plane.region}"
    found.proven += plane.proven
    found.estimated += not plane.proven
    if not plane.proven:
        found.estimated_crs.append(plane.crs)
    jump = max(largest_jump_m(plane, generator), border_jump_m(plane, generator))
    if jump > ROUNDING_M:
        found.torn.append(f"{label} by {jump:.3g} m")
    excess = plane.scale / largest_stretch(plane, segments, generator) - 1
    found.excess.append(excess)
    if excess < 0:
        found.exceeded.append(f"{label} by {-excess:.3g}{'' if plane.proven else ' (estimated)'}")
    reach = float(np.exp(generator.uniform(np.log(10.0), np.log(100_000.0))))
    factor = plane.contraction(reach).factor
    if factor == 0:
        found.without_factor += 1
        return
    spare = smallest_stretch(plane, reach, segments, generator) / factor - 1
    found.spare.append(spare)
    if spare < 0:
        words = "" if plane.proven else " (estimated)"
        found.shrunk.append(f"{label} within {reach:.0f} m by {-spare:.3g}{words}")


def random_region(bounds: tuple[float, float, float, float], generator: np.random.Generator) -> Box:
    """A box about a place of an area of use: inside it, or across its border."""
    west, south, east, north = bounds
    wide, high = (east - west) % 360 or 360.0, north - south
    lon = west + wide * generator.uniform()
    lat = float(np.clip(south + high * generator.uniform(), -85, 85))
    half_lon, half_lat = np.exp(generator.uniform(np.log([0.02, 0.02]), np.log([8.0, 5.0])))
    share = generator.uniform(0.05, 1.0)
    half_lon, half_lat = min(half_lon, share * wide / 2), min(half_lat, share * high / 2)
    return Box(lon - half_lon, max(lat - half_lat, -88), lon + half_lon, min(lat + half_lat, 88))


def short_m(lon: np.ndarray, lat: np.ndarray, lon_2: np.ndarray, lat_2: np.ndarray) -> np.ndarray:
    """Lengths of segments of a few hundred metres, good to 1e-9 of them (midpoint rule)."""
    middle = np.radians((lat + lat_2) / 2)
    north = np.radians(lat_2 - lat) * WGS84.meridian(middle)
    east = np.radians(lon_2 - lon) * WGS84.parallel(middle)
    return np.asarray(WGS84.a * np.hypot(north, east))


def images(plane: Plane, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
    """Coordinates on the plane, (n, 2), as `Plane.from_degrees` computes them."""
    assert plane.operation is not None
    return np.column_stack(plane.operation.transformer().transform(lon, lat))


def largest_stretch(plane: Plane, segments: int, generator: np.random.Generator) -> float:
    """The largest ratio of lengths over short segments of the region."""
    assert plane.region is not None
    apart, true = short_segments(plane, plane.region, segments, generator)
    return float(((apart - ROUNDING_M) / true).max())


def smallest_stretch(
    plane: Plane, reach: float, segments: int, generator: np.random.Generator
) -> float:
    """The smallest ratio over short segments within `reach` metres of the region.

    The box is a little smaller than all of that, so that every place of it is that near.
    """
    r = plane.region
    assert r is not None
    lowest = min(abs(r.y_low), abs(r.y_high)) if r.y_low * r.y_high > 0 else 0.0
    up, across = 0.7 * reach / 112_000, 0.7 * reach / (112_000 * np.cos(np.radians(lowest)))
    around = Box(r.x_low - across, r.y_low - up, r.x_high + across, r.y_high + up)
    apart, true = short_segments(plane, around, segments, generator)
    return float(((apart + ROUNDING_M) / true).min())


def short_segments(
    plane: Plane, r: Box, segments: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Lengths on the plane and true ones of short segments, a third along the box's edge."""
    u, v = generator.uniform(size=(2, segments))
    edge, side = generator.uniform(size=segments) < 1 / 3, generator.integers(4, size=segments)
    u = np.where(edge & (side < 2), side, u)
    v = np.where(edge & (side >= 2), side - 2, v)
    lon = np.clip(r.x_low + r.width * u, r.x_low, r.x_high)
    lat = np.clip(r.y_low + r.height * v, r.y_low, r.y_high)
    way = generator.uniform(0, 2 * np.pi, segments)
    step = 150.0 / 111_000
    lon_2 = np.clip(lon + step * np.cos(way) / np.cos(np.radians(lat)), r.x_low, r.x_high)
    lat_2 = np.clip(lat + step * np.sin(way), r.y_low, r.y_high)
    true = short_m(lon, lat, lon_2, lat_2)
    long = true > 50  # both ends may have been moved to one corner
    apart = np.hypot(*(images(plane, lon, lat) - images(plane, lon_2, lat_2)).T)
    return apart[long], true[long]


def largest_jump_m(
    plane: Plane, generator: np.random.Generator, segments: int = 64, halvings: int = 42
) -> float:
    """How far images jump beyond what the scale allows, where bisection leads to.

    Of both halves of a segment the one that is stretched more is kept: a jump stays inside.
    """
    r = plane.region
    assert r is not None
    low, high = np.array([[r.x_low, r.y_low], [r.x_high, r.y_high]])
    a, b = generator.uniform(low, high, (2, segments, 2))
    at_a, at_b = images(plane, *a.T), images(plane, *b.T)
    for _ in range(halvings):
        middle = (a + b) / 2
        at = images(plane, *middle.T)
        first, second = (np.hypot(*(at - end).T) for end in (at_a, at_b))
        ahead = (first / short_m(*a.T, *middle.T) > second / short_m(*middle.T, *b.T))[:, None]
        a, at_a = np.where(ahead, a, middle), np.where(ahead, at_a, at)
        b, at_b = np.where(ahead, middle, b), np.where(ahead, at, at_b)
        if np.abs(a - b).sum(axis=1).max() < 1e-10:
            break
    return float((np.hypot(*(at_a - at_b).T) - plane.scale * short_m(*a.T, *b.T)).max())


def border_jump_m(plane: Plane, generator: np.random.Generator, apart: float = 1e-10) -> float:
    """The same over pairs on both sides of the borders of areas of use of all operations."""
    r = plane.region
    assert r is not None
    assert plane.crs is not None
    pairs = []
    for west, south, east, north in available_operations(plane.crs, r).areas:
        for lon in (west, east):
            x = r.x_low + (lon - r.x_low) % 360
            y = generator.uniform(r.y_low, r.y_high, 8)
            pairs.append(np.column_stack([np.full(8, x - apart), y, np.full(8, x + apart), y]))
        for lat in (south, north):
            x = generator.uniform(r.x_low, r.x_high, 8)
            pairs.append(np.column_stack([x, np.full(8, lat - apart), x, np.full(8, lat + apart)]))
    ends = np.concatenate(pairs) if pairs else np.empty((0, 4))
    inside = r.contains(ends[:, :2]) & r.contains(ends[:, 2:])
    a, b = ends[inside, :2], ends[inside, 2:]
    jumps = np.hypot(*(images(plane, *a.T) - images(plane, *b.T)).T)
    return float((jumps - plane.scale * short_m(*a.T, *b.T)).max(initial=0.0))


def main() -> None:
    """Sample and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--planes", type=int, default=2000)
    parser.add_argument("--segments", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=11)
    asked = parser.parse_args()

    def progress(found: Tally) -> None:
        if (found.proven + found.estimated) % 50 == 0:
            print(*found.lines(), "", sep="\n", file=sys.stderr, flush=True)

    generator = np.random.default_rng(asked.seed)
    print(*sample(asked.planes, asked.segments, generator, progress).lines(), sep="\n")


if __name__ == "__main__":
    main()
