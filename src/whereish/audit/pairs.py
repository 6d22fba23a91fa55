"""Pairs of secrets for an audit that searches: all directions, several distances.

With n reports a secret an event of mass p and level d (in nats, the same for both) shows a
relative excess delta with

    z = delta d sqrt(n p) / sqrt(1 + e^d)

standard deviations, which is largest at d = 2.2 and above half of that from 0.8 to 5:
nearer secrets hardly differ, and of farther ones the other secret hardly ever hits the
event.  Faults of other shapes show nearer (places that are reported as they are) or
farther (light tails), so distances from 1/4 to 8 nats are tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from whereish.arrays import FloatArray
from whereish.audit.events import on_sphere
from whereish.errors import InvalidInput
from whereish.privacy.metric import Metric
from whereish.space.sphere import RADIUS_M

__all__ = ["Pair", "pairs_among", "pairs_around"]

NATS = (0.25, 1.0, 2.0, 4.0, 8.0)
"""Claimed levels between the secrets of a pair."""
_DIRECTIONS = 16
_MOST_AXES = 5


class Pair(NamedTuple):
    """Two secrets and their distance."""

    x: FloatArray
    y: FloatArray
    distance: float


def pairs_among(places: FloatArray, metric: Metric) -> list[Pair]:
    """All pairs of these places that are at a finite distance above zero."""
    found = [
        Pair(x, y, float(metric(x[None], y[None]).ravel()[0])) for x, y in combinations(places, 2)
    ]
    found = [pair for pair in found if math.isfinite(pair.distance) and pair.distance > 0]
    if not found:
        raise InvalidInput("two of the places must be at a finite distance greater than zero")
    return found


def pairs_around(place: FloatArray, metric: Metric, epsilon: float) -> list[Pair]:
    """`place` with secrets in all directions, at claimed levels of :data:`NATS`."""
    move = _on_sphere(place) if on_sphere(metric) else _straight(place)
    found = []
    for direction, nats in product(_directions(len(place)), NATS):
        y = _at(place, partial(move, direction), metric, nats / epsilon)
        if y is not None:
            found.append(Pair(place, y, float(metric(place[None], y[None]).ravel()[0])))
    if not found:
        raise InvalidInput(
            "no secret around this place is at a claimed level of"
            f" {NATS[0]:g} to {NATS[-1]:g} nats; give epsilon in the unit of the metric, or several"
            " places among which to choose"
        )
    return found


def _at(
    place: FloatArray, moved: Callable[[float], FloatArray], metric: Metric, distance: float
) -> FloatArray | None:
    """The place at this distance on a way out; None where the metric never reaches it."""

    def reached(t: float) -> float:
        return float(metric(place[None], moved(t)[None]).ravel()[0])

    low, high = 0.0, distance
    for _ in range(64):
        if not reached(high) < distance:
            break
        low, high = high, 2 * high
    else:
        return None
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle) < distance else (low, middle)
    found = moved(high)
    return found if 0.5 * distance <= reached(high) <= 2 * distance else None


def _directions(axes: int) -> Iterator[FloatArray]:
    """Unit vectors: both ways on a line, a circle, or axes and diagonals beyond the plane."""
    if axes == 2:
        turns = 2 * math.pi * np.arange(_DIRECTIONS) / _DIRECTIONS
        yield from np.column_stack([np.cos(turns), np.sin(turns)])
    else:
        yield from (sign * axis for axis in np.eye(axes) for sign in (1.0, -1.0))
        if 1 < axes <= _MOST_AXES:
            for signs in product((1.0, -1.0), repeat=axes):
                yield np.array(signs) / math.sqrt(axes)


def _straight(place: FloatArray) -> Callable[[FloatArray, float], FloatArray]:
    return lambda direction, t: place + t * direction


def _on_sphere(place: FloatArray) -> Callable[[FloatArray, float], FloatArray]:
    """The place `t` metres away, for directions (east, north); never more than half around."""
    lon, lat = np.radians(place)
    up = np.array([math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)])
    east = np.array([-math.sin(lon), math.cos(lon), 0.0])
    north = np.cross(up, east)

    def move(direction: FloatArray, t: float) -> FloatArray:
        angle = min(t / RADIUS_M, math.pi)
        way = direction[0] * east + direction[1] * north
        x, y, z = math.cos(angle) * up + math.sin(angle) * way
        return np.degrees([math.atan2(y, x), math.atan2(z, math.hypot(x, y))])

    return move
