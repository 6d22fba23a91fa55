"""The mechanisms that a service offers: loaded, verified anew, and asked in degrees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import whereish
from whereish.errors import InvalidInput, WhereishError
from whereish.interfaces.http.problems import Problem
from whereish.interfaces.service.config import MechanismConfig, TraceConfig
from whereish.lbs.asking import lattice_decimals, require_within, rounded_degrees, rounding_m
from whereish.lbs.report_errors import report_errors
from whereish.mechanisms.base import Mechanism
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.one_by_one import one_by_one
from whereish.mechanisms.noise.rounded import RoundedMechanism
from whereish.mechanisms.saved import load_artefact, mechanism_in
from whereish.mechanisms.traces.budget import FixedUtility
from whereish.mechanisms.traces.predictive import PredictiveMechanism
from whereish.mechanisms.wanted_level import wanted_level
from whereish.privacy.guarantee import Basis
from whereish.publish.charging import charged_epsilon
from whereish.space.plane import Plane
from whereish.space.sphere import Sphere
from whereish.units import Epsilon

__all__ = ["Offered", "OfferedTrace", "offer", "offer_trace"]

_ACCURACY = 0.95


@dataclass(frozen=True)
class Offered:
    """A mechanism under its id, with what a report costs and how far off it is.

    `epsilon` is what a report is charged: of a privacy map its largest level, wherever the
    place is.  `steady` says that drawing takes the same steps for every report; what is not steady
    is answered at multiples of a fixed time, and maps are drawn with padding besides.
    """

    id: str
    mechanism: Mechanism
    epsilon: Epsilon
    accuracy_m: float | None
    steady: bool
    verified_at: str
    sha256: str | None = None

    def report(self, places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        """One independent report for each place, in degrees."""
        mechanism = self.mechanism
        try:
            if self.one is not None:
                return [self.one(*place) for place in places]
            space = mechanism.space
            assert isinstance(space, Plane | Sphere)
            lon, lat = zip(*places, strict=True)
            secrets = space.from_degrees(lon, lat)
            require_within(mechanism, secrets)
        except WhereishError:
            raise Problem("outside", "its region is declared, and public") from None
        try:
            if isinstance(mechanism, EikonalMechanism):
                drawn = mechanism.report(secrets, padded=True)
            else:
                drawn = mechanism.report(secrets)
            east, north = space.to_degrees(drawn)
        except WhereishError:
            raise Problem("outside", "see what the mechanism takes") from None
        decimals = lattice_decimals(mechanism)
        pairs = zip(east.tolist(), north.tolist(), strict=True)
        return [rounded_degrees(*pair, decimals)[:2] for pair in pairs]

    @cached_property
    def one(self) -> Callable[[float, float], tuple[float, float]] | None:
        """The report of one place, where that is drawn without ceremony; for one thread."""
        mechanism = self.mechanism
        return one_by_one(mechanism) if isinstance(mechanism, GlobeLaplace) else None

    def to_json(self) -> dict[str, Any]:
        """The guarantee in full."""
        return self.mechanism.guarantee.to_json()


def offer(said: MechanismConfig, beside: Path) -> Offered:
    """Build or load a mechanism; a file is verified from its numbers.

    Raises
    ------
    InvalidInput
        If it cannot be asked in degrees, or cannot be charged.
    NotPrivate
        If a file does not keep what it states.
    """
    sha256: str | None = None
    if said.file is None:
        level = wanted_level(
            said.epsilon,
            mean_error=said.mean_error,
            within=said.within,
            confidence=said.confidence,
            decimals=said.decimals,
        )
        mechanism: Any = GlobeLaplace(level, decimals=said.decimals)
    else:
        artefact = load_artefact(beside / said.file)
        mechanism, sha256 = mechanism_in(artefact), str(artefact.certificate["sha256"])
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput(f"mechanism {said.id} reports answers, not places")
    space = mechanism.space
    located = isinstance(space, Sphere) or (isinstance(space, Plane) and space.crs is not None)
    if not located:
        raise InvalidInput(
            f"mechanism {said.id} works in {space.description}, where degrees have no place: build"
            " it on a projected plane"
        )
    if mechanism.guarantee.basis == Basis.ESTIMATED:
        raise InvalidInput(
            f"mechanism {said.id} has an estimated guarantee, which is not offered: build it on a"
            " plane whose scale is proven"
        )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    if steady := isinstance(mechanism, RoundedMechanism):
        mechanism.warm()  # a kernel takes the same steps for every report; balls may not
    return Offered(
        said.id,
        mechanism,
        charged_epsilon(mechanism),
        _accuracy_m(mechanism),
        steady,
        now,
        sha256,
    )


def _accuracy_m(mechanism: Mechanism) -> float | None:
    """The radius in true metres that holds a report with probability 0.95; None if not known.

    For every place, so that it tells nothing about one.
    """
    try:
        radius = report_errors(mechanism).quantile(_ACCURACY)
    except WhereishError:
        return None
    if isinstance(mechanism.space, Plane):  # its reports are rounded to a lattice of degrees
        radius += rounding_m(lattice_decimals(mechanism))
    return math.ceil(10 * radius) / 10


@dataclass(frozen=True)
class OfferedTrace:
    """A kind of trace session, and the total that each is charged."""

    id: str
    mechanism: PredictiveMechanism
    total: Epsilon


def offer_trace(said: TraceConfig) -> OfferedTrace:
    """The predictive mechanism of a configuration.

    It tests at every step: a sparse run would keep a hidden threshold between requests, and what
    is kept of a session is public.
    """
    total = Epsilon.of(said.total)
    budget = FixedUtility(said.accuracy, total=total, top_speed=said.top_speed, tests="every")
    return OfferedTrace(said.id, PredictiveMechanism(budget), total)


VERSION = whereish.__version__
