"""Coordinate systems that files of public data state: read, named, and taken to WGS84 degrees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput, shortened
from whereish.space.box import Box

if TYPE_CHECKING:
    from pyproj import CRS, Transformer

__all__ = ["System", "degrees_box", "outline", "prj_system"]

_METRE = {"metre", "meter"}


@dataclass(frozen=True)
class System:
    """A geographic or projected coordinate system; easting or longitude first.

    `text` is its code where PROJ's database has it ("EPSG:32618"), and its definition
    otherwise.
    """

    text: str

    @classmethod
    def of(cls, text: str) -> System:
        """The horizontal part of a system that PROJ knows, by code or definition."""
        from pyproj import CRS
        from pyproj.exceptions import CRSError

        try:
            crs = _horizontal(CRS.from_user_input(text))
        except CRSError:
            crs = None
        if crs is None or not (crs.is_geographic or crs.is_projected):
            raise InvalidInput(
                "a coordinate system must be geographic or projected and known to PROJ, such as"
                f" 'EPSG:32618'; got {shortened(' '.join(text.split()))!r}"
            )
        return cls(_code(crs) or crs.to_wkt())

    @classmethod
    def stated(cls, text: str) -> System | None:
        """The system that a file states; None for a local one in metres, which says nowhere."""
        from pyproj import CRS
        from pyproj.exceptions import CRSError

        try:
            crs = CRS.from_user_input(text)
        except CRSError:
            return cls.of(text)
        if crs.is_engineering and {axis.unit_name for axis in crs.axis_info} <= _METRE:
            return None
        return cls.of(text)

    @cached_property
    def crs(self) -> CRS:
        """PROJ's object."""
        from pyproj import CRS

        return CRS.from_user_input(self.text)

    @property
    def turn(self) -> float | None:
        """A full turn in the system's unit of longitude; None for a projected system."""
        if not self.crs.is_geographic:
            return None
        return 2 * math.pi / float(self.crs.axis_info[0].unit_conversion_factor)

    @property
    def in_metres(self) -> bool:
        """Whether it is projected with axes in metres."""
        units = {axis.unit_name for axis in self.crs.axis_info}
        return bool(self.crs.is_projected) and units <= _METRE

    def same(self, other: System) -> bool:
        """Whether both mean the same places, whatever their axes' order and their names."""
        return self.text == other.text or bool(self.crs.equals(other.crs, ignore_axis_order=True))

    def from_degrees(self, lon: FloatArray, lat: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x, y of WGS84 degrees; infinite where the system has no such place."""
        x, y = self._transformer.transform(lon, lat)
        return np.asarray(x), np.asarray(y)

    def to_degrees(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """WGS84 longitudes and latitudes; infinite where there is no such place."""
        lon, lat = self._transformer.transform(x, y, direction="INVERSE")
        return np.asarray(lon), np.asarray(lat)

    @cached_property
    def _transformer(self) -> Transformer:
        from pyproj import Transformer

        return Transformer.from_crs("OGC:CRS84", self.crs, always_xy=True)

    def __str__(self) -> str:
        name = shortened(self.crs.name)
        return f"{self.text}, {name}" if len(self.text) < 20 else name


def _horizontal(crs: CRS) -> CRS:
    """Without heights."""
    if crs.is_compound:
        crs = crs.sub_crs_list[0]
    return crs.to_2d() if len(crs.axis_info) == 3 else crs


def _code(crs: CRS) -> str | None:
    """The code of a system, if its definition is the database's (names may differ)."""
    code = crs.to_authority(min_confidence=70)
    if code is None:
        return None
    text = ":".join(code)
    return text if type(crs).from_user_input(text).equals(crs, ignore_axis_order=True) else None


def prj_system(path: Path) -> System | None:
    """The system in the file NAME.prj (or NAME.PRJ) beside a grid; None where there is none."""
    beside = [path.with_suffix(ending) for ending in (".prj", ".PRJ")]
    found = next((one for one in beside if one.is_file()), None)
    if found is None:
        return None
    try:
        text = found.read_text("utf-8").strip("\ufeff \t\r\n\x00")
        return System.of(_arcinfo(text) or text)
    except (OSError, UnicodeDecodeError, InvalidInput):
        raise InvalidInput(
            f"{found.name} must hold a coordinate system that PROJ knows, as WKT; mend it, or"
            " remove it and declare the system"
        ) from None


def _arcinfo(text: str) -> str | None:
    """The oldest form of .prj, lines such as "Projection UTM": degrees and UTM of WGS84 only."""
    lines = dict(line.upper().split(maxsplit=1) for line in text.splitlines() if " " in line)
    if "PROJECTION" not in lines:
        return None
    kind = lines["PROJECTION"].strip()
    if lines.get("DATUM", "").strip() not in ("WGS84", "WGS_1984") or kind not in (
        "GEOGRAPHIC",
        "UTM",
    ):
        raise InvalidInput("a .prj of this form must be geographic or UTM on WGS84")
    if kind == "GEOGRAPHIC":
        return "OGC:CRS84"
    zone = int(lines["ZONE"])
    return f"EPSG:{(32600 if zone > 0 else 32700) + abs(zone)}"


def outline(box: Box, points: int = 257) -> tuple[FloatArray, FloatArray]:
    """Points along the border of a box and on lines across it, where images have their extremes.

    Between neighbours a curved image bulges by less than 1e-5 of a side.
    """
    part = np.linspace(0.0, 1.0, points)
    across = np.linspace(0.0, 1.0, 17)
    x, y = (
        np.concatenate(axis)
        for axis in zip(
            *[(part, np.full(points, at)) for at in across],
            *[(np.full(points, at), part) for at in across],
            strict=True,
        )
    )
    # Rounding must not put a point beyond the box.
    return (
        np.minimum(box.x_low + x * box.width, box.x_high),
        np.minimum(box.y_low + y * box.height, box.y_high),
    )


def degrees_box(lon: FloatArray, lat: FloatArray, name: str) -> Box:
    """The box of degrees around finite places, on whichever side of the antimeridian."""
    known = np.isfinite(lon) & np.isfinite(lat)
    if not known.any():
        raise InvalidInput(
            f"{name} lies outside its own coordinate system: is it another one than it says?"
        )
    lon, lat = lon[known], lat[known]
    turned = np.exp(1j * np.radians(lon)).mean()
    middle = math.degrees(math.atan2(turned.imag, turned.real)) if abs(turned) > 1e-6 else 0.0
    lon = middle + np.remainder(lon - middle + 180.0, 360.0) - 180.0
    return Box(lon.min(), lat.min(), lon.max(), lat.max())
