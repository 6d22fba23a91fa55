"""Pinned places: one report for home, drawn once and used whenever one is there.

Fresh reports of one place average out: k of them have a mean about 1/sqrt(k) as far from it, and
together keep k times the metric.  A pinned place has one report z, drawn once.  All uses are
functions of z, so together they keep what one report keeps, eps * d between the places that may
have been pinned, however often it is used.

What is still told.  Equal reports are seen to be equal: a service knows that its user is at the
same pinned place again, when, how often and how long; two services that compare know it of both.
Using the pin says "here"; not using it, elsewhere.  Someone who moves within the `zone` and keeps
using the pin is hidden within the zone wholly; the guarantee is about the place that was pinned.

The file holds names, reports and radii; the true places never.  It is open to its owner alone: who
has it knows which reports are the user's home, not where that is.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whereish.errors import InvalidInput, NotWritten
from whereish.lbs.asking import (
    Asking,
    check_place,
    lattice_decimals,
    mechanism_of,
    rounded_degrees,
)
from whereish.lbs.report_errors import report_errors
from whereish.publish.ledger.ledger import Ledger
from whereish.publish.release.durable import sync
from whereish.randomness import Randomness
from whereish.results import JsonResult
from whereish.units import Epsilon, Length

__all__ = ["Pin", "PinnedPlaces"]

_FORMAT = "whereish pins 1"
_CONFIDENCES = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)


@dataclass(frozen=True)
class Pin(JsonResult):
    """A place's one report, and how far it may be from somebody who is there."""

    name: str
    lon: float = field(repr=False)
    lat: float = field(repr=False)
    zone: Length
    guarantee: Mapping[str, Any] = field(repr=False)
    radii_m: Mapping[float, float] = field(repr=False)

    @property
    def statement(self) -> str:
        """What all uses together keep, and what they tell all the same."""
        kept = self.guarantee["statement"]
        return (
            f"All uses of this pin together: {kept}, between the places x that may have been"
            " pinned. Equal reports are seen to be equal: whoever gets them knows that their"
            " sender is at the same pinned place again, when, how often and how long."
        )

    def radius(self, confidence: float) -> tuple[Length, float]:
        """True metres from anybody in the zone to the report, and the confidence of that.

        It is the least of some fixed confidences that is not below the one asked for.
        """
        for stated, radius in sorted(self.radii_m.items()):
            if confidence <= stated:
                return Length(radius + self.zone.m), stated
        raise InvalidInput(
            f"a pinned place has radii for confidences up to {max(self.radii_m):g}; got"
            f" {confidence!r}"
        )


class PinnedPlaces:
    """Pinned places in a private file.

    Contract: all uses of a pin together keep what one report of its mechanism keeps.

    Parameters
    ----------
    path
        The file; it is made on the first :meth:`pin`, for its owner alone.

    Examples
    --------
    >>> import tempfile
    >>> import whereish as wh
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pins = wh.PinnedPlaces(f"{folder}/pins.json")
    ...     home = pins.pin("home", (2.33316, 48.85412), epsilon="ln(4)/200 m")
    ...     again = wh.PinnedPlaces(f"{folder}/pins.json")["home"]
    ...
    >>> (home.lon, home.lat) == (again.lon, again.lat)
    True
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._pins: dict[str, Pin] = {}
        if self._path.exists():
            self._pins = _read(self._path)

    def __repr__(self) -> str:
        return f"PinnedPlaces({self._path.name}, {len(self._pins)} pinned)"

    def __len__(self) -> int:
        return len(self._pins)

    def __contains__(self, name: object) -> bool:
        return name in self._pins

    def __getitem__(self, name: str) -> Pin:
        if name not in self._pins:
            raise InvalidInput(f"no place is pinned as {name!r}: pin it once with pins.pin(...)")
        return self._pins[name]

    @property
    def names(self) -> list[str]:
        """What is pinned."""
        return sorted(self._pins)

    def pin(
        self,
        name: str,
        place: tuple[float, float],
        *,
        mechanism: Any = None,
        epsilon: Epsilon | str | None = None,
        zone: Length | str = "50 m",
        ledger: Ledger | None = None,
        subject: str = "me",
        rng: Randomness | None = None,
    ) -> Pin:
        """Draw the one report of a place and keep it; charged once.

        Parameters
        ----------
        place
            Longitude and latitude in degrees; it is not kept.
        zone
            How far from it one is still "there".

        Raises
        ------
        InvalidInput
            If the name is taken: a second report of one place tells more.
        """
        if name in self._pins:
            raise InvalidInput(
                f"{name!r} is pinned already: a second report of one place would tell more; forget"
                " it first if it is another place"
            )
        if not name or len(name) > 100:
            raise InvalidInput("the name of a pin must have 1 to 100 characters")
        noise = mechanism_of(mechanism, epsilon)
        within, errors = Length.of(zone, name="zone"), report_errors(noise)
        radii = {chance: errors.quantile(chance) for chance in _CONFIDENCES}
        drawn = Asking(noise, ledger, subject).report(check_place(place), rng)
        lon, lat, moved = rounded_degrees(*drawn, lattice_decimals(noise))
        radii = {chance: radius + moved for chance, radius in radii.items()}
        pin = Pin(name, lon, lat, within, noise.guarantee.to_json(), radii)
        self._write({**self._pins, name: pin})
        return pin

    def forget(self, name: str) -> None:
        """Remove a pin; what was told with it stays told, and stays charged."""
        _ = self[name]
        self._write({other: pin for other, pin in self._pins.items() if other != name})

    def _write(self, pins: dict[str, Pin]) -> None:
        said = {
            "format": _FORMAT,
            "pins": [
                {
                    "name": pin.name,
                    "lon": pin.lon,
                    "lat": pin.lat,
                    "zone_m": pin.zone.m,
                    "guarantee": dict(pin.guarantee),
                    "radii_m": [[chance, radius] for chance, radius in pin.radii_m.items()],
                }
                for pin in pins.values()
            ],
        }
        folder = self._path.parent
        try:
            # mkstemp makes it for its owner alone; it has reports in it, no secret.
            descriptor, fresh = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=folder)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(said, file, indent=1)
                sync(Path(fresh))
                Path(fresh).replace(self._path)
                sync(folder)
            finally:
                Path(fresh).unlink(missing_ok=True)
        except OSError as error:
            raise NotWritten(
                f"the pins {self._path.name} cannot be written ({error.strerror})"
            ) from None
        self._pins = pins


def _read(path: Path) -> dict[str, Pin]:
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            path.chmod(0o600)
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["format"] != _FORMAT:
            raise ValueError
        pins = [
            Pin(
                str(one["name"]),
                float(one["lon"]),
                float(one["lat"]),
                Length(float(one["zone_m"])),
                dict(one["guarantee"]),
                {float(chance): float(radius) for chance, radius in one["radii_m"]},
            )
            for one in said["pins"]
        ]
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidInput(f"{path.name} cannot be read as a file of pinned places") from None
    return {pin.name: pin for pin in pins}
