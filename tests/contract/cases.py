"""Every mechanism of the registry, sorted by what it can do, and secrets for each."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from whereish.mechanisms.base import HasChannel, HasDensity, Mechanism
from whereish.mechanisms.calibration import Calibrated
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.registry import REGISTRY
from whereish.space.sphere import Sphere

COUNT = 60


@cache
def example(name: str) -> Any:
    return REGISTRY[name].built()


def able(*capabilities: type) -> list[str]:
    """The mechanisms that have all of these capabilities."""
    return [name for name in REGISTRY if all(isinstance(example(name), c) for c in capabilities)]


MECHANISMS = able(Mechanism)
DENSITIES = able(Mechanism, HasDensity)
CHANNELS = able(Channel)
FINITE = [name for name in able(HasChannel) if name not in CHANNELS]
CALIBRATED = able(Calibrated)
OTHERS = [name for name in REGISTRY if name not in MECHANISMS]
"""What reports no points: answers to a query, whole traces."""


def secrets_of(mechanism: Any, count: int = COUNT) -> np.ndarray:
    """Different secrets, near enough to each other that their reports overlap."""
    generator = np.random.default_rng(3)
    if isinstance(mechanism, Channel):
        return mechanism.secrets.coordinates[np.arange(count) % len(mechanism.secrets)]
    if hasattr(mechanism, "map"):
        centres = mechanism.map.raster.sites().coordinates
        return centres[np.arange(count) % len(centres)]
    space = getattr(mechanism, "space", Sphere())
    if hasattr(space, "indices"):  # values, multiples, records
        return generator.integers(0, 10, (count, space.dimension)).astype(float)
    if isinstance(space, Sphere):  # across the antimeridian
        return np.array([179.9995, 48.0]) + generator.uniform(-0.003, 0.003, (count, 2))
    return generator.uniform(-300, 300, (count, space.dimension))
