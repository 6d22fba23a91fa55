"""Made-up traces of further kinds, written after the mechanism: nothing was chosen on them.

A point every 5 s, in metres of a plane; everything is a function of the seed.
"""

from __future__ import annotations

import numpy as np

from benchmarks.trace_zoo import Array, Trace, jitter

STEP = 5.0


def _by_way(stops: list[tuple[float, Array]], seconds: Array) -> Array:
    """Where somebody is who is at these places at these times, straight in between."""
    times, places = np.array([time for time, _ in stops]), np.array([place for _, place in stops])
    return np.column_stack([np.interp(seconds, times, places[:, axis]) for axis in (0, 1)])


def _go(stops: list[tuple[float, Array]], to: Array, speed: float, wait: float) -> None:
    """To a place at so many metres a second, and a wait there."""
    when, here = stops[-1]
    there = when + max(float(np.hypot(*(to - here))) / speed, 1.0)
    stops += [(there, to), (there + wait + 0.1, to)]


def waypoints(generator: np.random.Generator, seconds: Array) -> Array:
    """Random waypoints in a square of 6 km at a speed of 1 to 15 m/s, up to ten minutes at each."""
    stops = [(0.0, generator.uniform(0, 6000, 2))]
    while stops[-1][0] < seconds[-1]:
        to, speed = generator.uniform(0, 6000, 2), generator.uniform(1, 15)
        _go(stops, to, speed, generator.uniform(0, 600))
    return _by_way(stops, seconds)


def commuter(generator: np.random.Generator, seconds: Array) -> Array:
    """Home, a train with halts to work, lunch on foot, home, and a walk in the evening."""
    work = generator.normal(0, 9000, 2)
    lunch, park = work + generator.normal(0, 350, 2), generator.normal(0, 700, 2)
    halts = [work * part / 6 for part in range(1, 7)]
    stops = [(0.0, np.zeros(2)), (generator.uniform(5, 9) * 3600, np.zeros(2))]
    for way, stay in ((halts, 4 * 3600.0), ([*halts[-2::-1], np.zeros(2)], 3 * 3600.0)):
        for place in way:
            _go(stops, place, generator.uniform(15, 25), generator.uniform(30, 90))
        if way is halts:
            _go(stops, work, 1.3, stay)
            _go(stops, lunch, 1.3, generator.uniform(1500, 2700))
            _go(stops, work, 1.3, 4 * 3600.0)
    _go(stops, park, 1.2, 300)
    _go(stops, np.zeros(2), 1.2, 12 * 3600.0)
    return _by_way(stops, seconds)


def bus(generator: np.random.Generator, seconds: Array) -> Array:
    """To and fro on a winding line: a stop every 400 m, a longer one at each end."""
    heading = generator.normal(0, 0.4, 24).cumsum()
    line = 400 * np.column_stack([np.cos(heading), np.sin(heading)]).cumsum(axis=0)
    stops = [(0.0, line[0])]
    while stops[-1][0] < seconds[-1]:
        for place in line[1:]:
            _go(stops, place, generator.uniform(6, 11), generator.exponential(20))
        stops.append((stops[-1][0] + generator.uniform(120, 600), line[-1]))
        line = line[::-1]
    return _by_way(stops, seconds)


def courier(generator: np.random.Generator, seconds: Array) -> Array:
    """A bicycle: from restaurants in the middle to doors around it, by streets at right angles."""
    stops = [(0.0, np.zeros(2))]
    while stops[-1][0] < seconds[-1]:
        for spread, wait in ((500, 240), (2000, 90)):
            to = generator.normal(0, spread, 2)
            corner = np.array([to[0], stops[-1][1][1]])
            _go(stops, corner, generator.uniform(4, 7), 0)
            _go(stops, to, generator.uniform(4, 7), generator.exponential(wait))
    return _by_way(stops, seconds)


def hiker(generator: np.random.Generator, seconds: Array) -> Trace:
    """Up a winding path with rests; in valleys nothing is recorded for many minutes."""
    turn = generator.normal(0, 0.12, len(seconds)).cumsum()
    pace = 0.9 * STEP * (generator.random(len(seconds) // 120 + 1) > 0.15).repeat(120)
    places = (pace[: len(seconds), None] * np.column_stack([np.cos(turn), np.sin(turn)])).cumsum(0)
    heard = (generator.random(len(seconds) // 240 + 1) > 0.35).repeat(240)[: len(seconds)]
    heard[0] = True
    return (places + jitter(generator, len(seconds)))[heard], seconds[heard]


def ferry(generator: np.random.Generator, seconds: Array) -> Array:
    """Between two harbours 14 km apart at 9 m/s, along a slight arc, half an hour at each."""
    across = generator.uniform(0, 2 * np.pi)
    harbours = np.zeros(2), 14_000 * np.array([np.cos(across), np.sin(across)])
    stops, side = [(0.0, harbours[0])], 0
    while stops[-1][0] < seconds[-1]:
        here, there = harbours[side], harbours[1 - side]
        aside = generator.normal(0, 500) * np.array([-np.sin(across), np.cos(across)])
        for part in np.linspace(0.1, 1, 10):
            _go(stops, here + part * (there - here) + 4 * part * (1 - part) * aside, 9, 0)
        stops.append((stops[-1][0] + generator.uniform(1200, 2400), there))
        side = 1 - side
    return _by_way(stops, seconds)


def unseen(seed: int) -> dict[str, Trace]:
    """One trace of each kind."""
    generator = np.random.default_rng(seed)
    half, day = STEP * np.arange(6000), STEP * np.arange(17_280)
    found = {
        "waypoints": (waypoints(generator, half), half),
        "commuter, lunch": (commuter(generator, day) + jitter(generator, len(day)), day),
        "bus": (bus(generator, half) + jitter(generator, len(half)), half),
        "bicycle courier": (courier(generator, half) + jitter(generator, len(half)), half),
        "hiker, gaps": hiker(generator, day[:12_000]),
        "ferry": (ferry(generator, day), day),
    }
    return {f"unseen: {name}": trace for name, trace in found.items()}
